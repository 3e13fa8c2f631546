"""`assistant config set|unset|edit|secret`: config.toml and secrets changed by command, never to something that could
not be started with.

What is refused is refused in the words that starting would use. A file that has other problems already may be fixed
one by one: only what a change adds to them is refused. No secret is ever printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from assistant.cli.lazy import DefaultGroup
from assistant.cli.output import is_utf8, json_result, print_prose, print_remark, print_text
from assistant.cli.setup.answers import read_setting_answer
from assistant.commands.completion import complete_names
from assistant.core.dataclass import dataclass
from assistant.core.errors import SettingsError, UsageError
from assistant.core.secret_text import SecretStr
from assistant.service.home_lock import is_home_served
from assistant.settings.config_text import CONFIG_HEADER, SettingChange, diff_keys, remove_key, set_key
from assistant.settings.home import Home, home_from_environment
from assistant.settings.layers import (
    environment_variable,
    format_setting_value,
    parse_setting_text,
    unknown_setting_error,
)
from assistant.settings.secrets import (
    IN_FILE,
    IN_KEYRING,
    MCP_SECRET,
    PROVIDER_KEYS,
    SECRET_NAMES,
    canonical_secret_name,
)
from assistant.settings.sections import SETTING_FIELDS, STRONG_TOKEN_LENGTH, WEB_TOKEN_KEY, is_weak_token
from assistant.settings.settings import Settings, load_settings, parse_settings_values, settings_problems
from assistant.settings.watch import is_live_setting
from assistant.store.home.config_file import ConfigFile, HomeSecretStore

AFTER_RESTART_NOTE = "It takes effect after a restart: `assistant stop`, then `assistant run`."
LIVE_CHANGE_NOTE = "The running assistant uses it within half a minute."


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A key of config.toml with what it was and what it is, as TOML with secrets masked; null is the default."""

    key: str
    old: str | None
    new: str | None


# A value may begin with a hyphen, as what is below zero does: it is then refused as a value, or taken.
@click.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key", shell_complete=complete_names(SETTING_FIELDS))
@click.argument("value")
@json_result(list[ChangedSetting], "Print a JSON array of what changed.")
def set_(key: str, value: str) -> list[ChangedSetting]:
    """Set KEY to VALUE in config.toml; its comments and its order stay.

    Text needs no quotes; write a list as in TOML. For secrets use `assistant config secret`.

    > assistant config set context.target 0.25
    > assistant config set sleep.at 4am
    > assistant config set model.fallback '["openai:qwen3", "offline"]'
    """
    if key in SECRET_NAMES:  # what is typed in a shell is kept in its history
        raise UsageError(
            f"{key} is a secret. Nothing was changed; `assistant config secret set {key}` asks for it without echo."
        )
    if key not in SETTING_FIELDS:
        raise unknown_setting_error(key)
    parsed = parse_setting_text(key, read_setting_answer(key, value))
    return _change_and_report(lambda text: set_key(text or CONFIG_HEADER, key, parsed))


@click.command()
@click.argument("key", shell_complete=complete_names(SETTING_FIELDS))
@json_result(list[ChangedSetting], "Print a JSON array of what changed.")
def unset(key: str) -> list[ChangedSetting]:
    """Remove KEY from config.toml, so that its default applies.

    > assistant config unset context.target
    """
    if key not in SETTING_FIELDS:
        raise unknown_setting_error(key)
    return _change_and_report(lambda text: remove_key(text, key))


@click.command()
def edit() -> None:
    """Edit config.toml in your editor ($VISUAL or $EDITOR). Mistakes are not saved.

    > EDITOR=nano assistant config edit
    """
    home = home_from_environment()
    file = ConfigFile(home.config)
    before = file.read()
    edited = click.edit(before or CONFIG_HEADER, extension=".toml", require_save=True)
    while edited is not None:
        try:
            _report_changes(home, _replace_config(home, before, edited))
            return
        except SettingsError as error:
            print_remark("\n".join(error.problems))
        try:
            click.confirm("Go back to editing?", default=True, err=True, abort=True)
        except click.Abort:
            break
        before = file.read()
        edited = click.edit(edited, extension=".toml", require_save=False)
    print_remark("Nothing was changed.")
    if edited is not None:
        raise click.exceptions.Exit(SettingsError.exit_code)


def _replace_config(home: Home, before: str, text: str) -> list[SettingChange]:
    """Put `text` in place of `before`, and of nothing else. Raises `SettingsError` for any problem that it has."""

    def replace(current: str) -> str:
        problems = list(_problems(home, text))
        if current != before:
            problems.append(f"{home.config} was changed by someone else in the meantime.")
        if problems:
            raise SettingsError("\n".join(problems), problems=problems)
        return text

    return diff_keys(*ConfigFile(home.config).change(replace))


def _problems(home: Home, text: str) -> Sequence[str]:
    """What starting would refuse of config.toml if it held `text`."""
    if problems := settings_problems(home, text):
        return problems
    # Loads every tool, which showing settings does not need.
    from assistant.wire.setting_names import setting_name_problems

    return setting_name_problems(parse_settings_values(home, text)[0])


def _change_and_report(edit_text: Callable[[str], str]) -> list[ChangedSetting]:
    home = home_from_environment()
    changes = change_config_file(home, edit_text)
    _report_changes(home, changes)
    return [ChangedSetting(it.key, _format_value(it.key, it.old), _format_value(it.key, it.new)) for it in changes]


def change_config_file(home: Home, edit_text: Callable[[str], str]) -> list[SettingChange]:
    """Change config.toml; which keys became different. Raises `SettingsError` for what starting would refuse, and then
    nothing is changed; `UsageError`, `HomeError`, `StoreError`."""

    def change(text: str) -> str:
        new, former_problems = edit_text(text), _problems(home, text)
        added = [problem for problem in _problems(home, new) if problem not in former_problems]
        if added:
            raise SettingsError("\n".join([*added, "Nothing was changed."]), problems=added)
        return new

    return diff_keys(*ConfigFile(home.config).change(change))


def _report_changes(home: Home, changes: list[SettingChange]) -> None:
    """Say what became different, what wins over it, and when it holds."""
    if not changes:
        print_text("Nothing changed.")
        return
    print_changes(home, changes)
    if is_home_served(home.path):
        print_remark(describe_when_effective(change.key for change in changes))


def describe_when_effective(changed: Iterable[str]) -> str:
    """When the daemon that runs goes by what was changed."""
    return LIVE_CHANGE_NOTE if all(map(is_live_setting, changed)) else AFTER_RESTART_NOTE


def print_changes(home: Home, changes: list[SettingChange]) -> list[str]:
    """Say what became different, and what wins over it; returns the changed keys."""
    for change in changes:
        print_text(f"{change.key}: {_describe(change.key, change.old)} -> {_describe(change.key, change.new)}")
    try:
        settings = load_settings(home)
    except SettingsError as error:
        for problem in error.problems:
            print_remark(problem)
    else:
        if settings.unused_address and {"model.base_url", "model.provider"} & {change.key for change in changes}:
            print_remark(settings.unused_address)
        origins = settings.origins
        for change in changes:
            origin = origins.get(change.key, "")
            if origin not in ("", "default.toml", str(home.config)):
                print_remark(f"{origin} overrides config.toml: `{change.key}` stays as it is set there.")
    return [change.key for change in changes]


def _describe(key: str, value: Any) -> str:
    if text := _format_value(key, value):
        return text
    if key not in SETTING_FIELDS:
        return "nothing (the default)"
    defaults, _ = parse_settings_values(home_from_environment(), "")
    return f"{format_setting_value(defaults.value_of(key))} (the default)"


def _format_value(key: str, value: Any) -> str | None:
    """As TOML, a secret masked; None for what is not in config.toml."""
    if value is None:
        return None
    field = SETTING_FIELDS.get(key)
    return format_setting_value(SecretStr(value) if field is not None and field.kind is SecretStr else value)


def check_answer(home: Home, key: str, answer: str) -> str:
    """`answer`, where the setting `key` may be that. Raises `UsageError`."""
    if problems := settings_problems(home, set_key("", key, answer)):
        raise settings_refusal(home, key, problems)
    return answer


def settings_refusal(home: Home, key: str, problems: Iterable[str]) -> UsageError:
    """What the settings refuse of an answer for `key`, in words for who was asked a question and knows no setting.
    config.toml is named only where the value is in it already."""
    place = f"{home.config}: `{key}` is "
    told = (_refused_answer(it.removeprefix(place)) if it.startswith(place) else it for it in problems)
    return UsageError("\n".join(told))


def _refused_answer(text: str) -> str:
    """No answer at all is none of the possible ones: it takes what the question offers."""
    return text.replace("; allowed: ", " does not fit here: it takes ", 1).replace(', or ""', "", 1)


# ------------------------------------------------------------------------------------------------------------- secrets

_PLACES = {
    IN_KEYRING: "in the keyring of this machine",
    IN_FILE: "in secrets.toml of your data folder, readable by you alone (0600)",
}


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A secret, and where it comes from; null where it is not set."""

    name: str
    set: bool
    origin: str | None


@click.group(cls=DefaultGroup, default="list")
def secret() -> None:
    """Store API keys, passwords and tokens. They are never printed. Without a command it lists them.

    > assistant config secret set ANTHROPIC_API_KEY
    > assistant config secret list
    """


@secret.command("set")
@click.argument("name", shell_complete=complete_names(SECRET_NAMES))
@click.option("--file", "in_file", is_flag=True, help="Store it in secrets.toml, not in the keyring.")
@json_result(SecretRow)
def set_secret(name: str, in_file: bool) -> SecretRow:
    """Store the secret NAME: type it without echo, or pipe it in.

    It is stored in the keyring of the operating system if that works, else in secrets.toml (mode 0600).

    > assistant config secret set ANTHROPIC_API_KEY
    > pass show anthropic | assistant config secret set ANTHROPIC_API_KEY --file
    """
    spelled = canonical_secret_name(name)
    home = home_from_environment()
    place = store_secret(home, spelled, _read_secret(spelled), in_file=in_file)
    if is_home_served(home.path):
        # The keyring is asked once, at the start.
        print_remark(describe_when_effective([spelled]) if place == IN_FILE else AFTER_RESTART_NOTE)
    return SecretRow(spelled, True, place)


@secret.command("list")
@json_result(list[SecretRow], "Print a JSON array.")
def list_secrets() -> list[SecretRow]:
    """List all secrets, and where each that is set comes from.

    > assistant config secret list
    """
    settings = load_settings()
    origins = {name: _origin(settings, name) for name in (*SECRET_NAMES, *settings.mcp_secrets)}
    widest = max(map(len, origins))
    print_text("\n".join(f"{name:<{widest}}  {origin or 'not set'}" for name, origin in origins.items()))
    for warning in settings.warnings:
        print_remark(warning)
    return [SecretRow(name, bool(origin), origin or None) for name, origin in origins.items()]


@secret.command()
@click.argument("name", shell_complete=complete_names(SECRET_NAMES))
@json_result(SecretRow)
def remove(name: str) -> SecretRow:
    """Remove the secret NAME from the keyring and from secrets.toml.

    One in the environment or in config.toml stays.

    > assistant config secret remove OPENAI_API_KEY
    """
    spelled = canonical_secret_name(name)
    home = home_from_environment()
    if not HomeSecretStore(home.secrets).remove(spelled):
        raise UsageError(f"{spelled} is neither in the keyring nor in secrets.toml. Nothing was changed.")
    print_text(f"{spelled} was removed.")
    if is_home_served(home.path):
        print_remark(AFTER_RESTART_NOTE)
    return SecretRow(spelled, False, None)


def store_secret(home: Home, name: str, value: str, *, in_file: bool = False) -> str:
    """Keep a secret and say where (`IN_KEYRING` or `IN_FILE`), and what wins over it. Raises `UsageError` for what is
    none, `StoreError`."""
    if not value or not is_utf8(value):
        raise UsageError("A secret must be text (UTF-8) and not empty. Nothing was changed.")
    if name in PROVIDER_KEYS or name.endswith(("token", "_key")):
        check_sendable_key(value)
    if name == WEB_TOKEN_KEY and is_weak_token(value):
        raise UsageError(
            f"This web.token could be guessed. Use a random one of {STRONG_TOKEN_LENGTH} characters or more. "
            "Nothing was changed; `assistant web token --new` makes one."
        )
    place = HomeSecretStore(home.secrets).put(name, value, in_file=in_file)
    print_prose(f"{name} is {_PLACES[place]}.")
    try:
        winner = _origin(load_settings(home), name)
    except SettingsError as error:
        print_remark("\n".join(error.problems))
    else:
        if winner not in ("", place):
            where = "The environment" if winner in (name, environment_variable(name)) else winner
            print_remark(f"{where} has another {name}, which overrides this one.")
    return place


def check_sendable_key(value: str) -> None:
    """Raises `UsageError` for what cannot be a key or token that is sent in a header of a request, as where typographic
    quotation marks or an invisible character were copied with it. A provider seems to be away with one."""
    odd = next((sign for sign in value if not "!" <= sign <= "~"), None)
    if odd is not None:
        name = "a blank" if odd.isspace() else repr(odd) if odd.isprintable() else f"an invisible character ({odd!a})"
        raise UsageError(
            f"A key has letters without accents, digits and signs only, and this one has {name} in it. Nothing was "
            "changed; copy it again, without what stands around it."
        )


def _origin(settings: Settings, name: str) -> str:
    """Where a secret that is in force was found; "" where none is."""
    origin = settings.origins.get(name, "")
    if name in PROVIDER_KEYS or MCP_SECRET.fullmatch(name):
        return origin
    return origin if settings.values.value_of(name).get_secret_value() else ""


def _read_secret(name: str) -> str:
    if sys.stdin is not None and sys.stdin.isatty():
        value: str = click.prompt(name, hide_input=True, err=True)
        return value.strip()
    return sys.stdin.read().strip() if sys.stdin is not None else ""
