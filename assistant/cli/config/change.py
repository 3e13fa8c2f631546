"""`assistant config set|unset|edit`: config.toml changed by command, never to something that could not be started with.

What is refused is refused in the words that starting would use. A file that has other problems already may be mended
one by one: only what a change adds to them is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click
from pydantic import SecretStr

from assistant.cli.config.command import unknown_setting_error
from assistant.cli.output import print_remark, print_text
from assistant.core.errors import SettingsError, UsageError
from assistant.service.home_lock import is_home_served
from assistant.settings.config_text import CONFIG_HEADER, SettingChange, diff_keys, remove_key, set_key
from assistant.settings.home import Home, home_from_environment
from assistant.settings.layers import format_setting_value, parse_setting_text
from assistant.settings.secrets import SECRET_NAMES
from assistant.settings.sections import SETTING_FIELDS
from assistant.settings.settings import Settings, load_settings, parse_settings_values, settings_problems
from assistant.settings.watch import is_live_setting
from assistant.store.home.config_file import ConfigFile

AFTER_RESTART_NOTE = "It takes effect after a restart: `assistant stop`, then `assistant run`."
LIVE_CHANGE_NOTE = "The running assistant uses it within half a minute."


# A value may begin with a hyphen, as what is below zero does: it is then refused as a value, or taken.
@click.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set KEY to VALUE in config.toml; its comments and its order stay.

    Text needs no quotes; write a list as in TOML. For secrets use `assistant config secret`.

    \b
    Example:
      assistant config set context.target 0.25
      assistant config set home.timezone Europe/Oslo
      assistant config set model.fallback '["openai:qwen3", "offline"]'
    """
    _must_be_open(key)
    home = home_from_environment()
    report_changes(
        home, change_config_file(home, lambda text: set_key(text or CONFIG_HEADER, key, parse_setting_text(key, value)))
    )


@click.command()
@click.argument("key")
def unset(key: str) -> None:
    """Remove KEY from config.toml, so that its default applies.

    \b
    Example:
      assistant config unset context.target
    """
    if key not in SETTING_FIELDS:
        raise unknown_setting_error(key)
    home = home_from_environment()
    report_changes(home, change_config_file(home, lambda text: remove_key(text, key)))


@click.command()
def edit() -> None:
    """Edit config.toml in your editor ($VISUAL or $EDITOR); mistakes are not saved.

    \b
    Example:
      EDITOR=nano assistant config edit
    """
    home = home_from_environment()
    file = ConfigFile(home.config)
    before = file.read()
    written = click.edit(before or CONFIG_HEADER, extension=".toml", require_save=True)
    while written is not None:
        text = written
        try:
            report_changes(home, _replaced(home, before, text))
            return
        except SettingsError as error:
            print_remark("\n".join(error.problems))
        if not _again():
            break
        before = file.read()
        written = click.edit(text, extension=".toml", require_save=False)
    print_remark("Nothing was changed.")
    if written is not None:
        raise click.exceptions.Exit(SettingsError.exit_code)


def _replaced(home: Home, before: str, text: str) -> list[SettingChange]:
    """Put `text` in place of `before`, and of nothing else. Raises `SettingsError` for any problem that it has."""

    def checked(now: str) -> str:
        problems = list(settings_problems(home, text))
        if now != before:
            problems.append(f"{home.config} was changed by someone else in the meantime.")
        if problems:
            raise SettingsError("\n".join(problems), problems=problems)
        return text

    return diff_keys(*ConfigFile(home.config).change(checked))


def change_config_file(home: Home, edited: Callable[[str], str]) -> list[SettingChange]:
    """Change config.toml; which keys became different. Raises `SettingsError` for what starting would refuse, and then
    nothing is changed; `UsageError`, `HomeError`, `StoreError`."""

    def checked(text: str) -> str:
        new = edited(text)
        had = settings_problems(home, text)
        added = [problem for problem in settings_problems(home, new) if problem not in had]
        if added:
            raise SettingsError("\n".join([*added, "Nothing was changed."]), problems=added)
        return new

    return diff_keys(*ConfigFile(home.config).change(checked))


def report_changes(home: Home, done: list[SettingChange]) -> None:
    """Say what became different, what wins over it, and when it holds."""
    if not done:
        print_text("Nothing changed.")
        return
    print_changes(home, done)
    if is_home_served(home.path):
        print_remark(describe_when_effective(change.key for change in done))


def describe_when_effective(changed: Iterable[str]) -> str:
    """When the daemon that runs goes by what was changed."""
    return LIVE_CHANGE_NOTE if all(map(is_live_setting, changed)) else AFTER_RESTART_NOTE


def print_changes(home: Home, done: list[SettingChange]) -> None:
    """Say what became different, and what wins over it."""
    for change in done:
        print_text(f"{change.key}: {_words(change, change.old)} -> {_words(change, change.new)}")
    try:
        settings = load_settings(home)
    except SettingsError as error:
        for problem in error.problems:
            print_remark(problem)
    else:
        for change in done:
            _tell_what_wins(settings, change)


def _must_be_open(key: str) -> None:
    """A setting, and no secret: what is typed in a shell is kept in its history. Raises `UsageError`."""
    if key in SECRET_NAMES:
        raise UsageError(
            f"{key} is a secret. Nothing was changed; `assistant config secret set {key}` asks for it without echo."
        )
    if key not in SETTING_FIELDS:
        raise unknown_setting_error(key)


def _words(change: SettingChange, value: Any) -> str:
    spec = SETTING_FIELDS.get(change.key)
    if value is None:
        return f"{_default(change.key)} (the default)"
    return (
        format_setting_value(SecretStr(value))
        if spec is not None and spec.annotation is SecretStr
        else format_setting_value(value)
    )


def _default(key: str) -> str:
    """What the shipped defaults say."""
    values, _ = parse_settings_values(home_from_environment(), "")
    return format_setting_value(values.value_of(key)) if key in SETTING_FIELDS else "nothing"


def _tell_what_wins(settings: Settings, change: SettingChange) -> None:
    origin = settings.origins.get(change.key, "")
    if origin not in ("", "default.toml", str(settings.home.config)):
        print_remark(f"{origin} overrides config.toml: `{change.key}` stays as it is set there.")


def _again() -> bool:
    try:
        return click.confirm("Go back to editing?", default=True, err=True)
    except click.Abort:
        return False
