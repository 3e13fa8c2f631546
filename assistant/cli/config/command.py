"""`assistant config`: each setting, where it came from, whether all of them can be understood, and changing them."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import click

from assistant.cli.lazy import LazyGroup
from assistant.cli.output import json_result, print_text
from assistant.commands.completion import complete_names
from assistant.core.dataclass import dataclass
from assistant.core.errors import SettingsError
from assistant.settings.home import home_from_environment
from assistant.settings.layers import mask_secrets, unknown_setting_error
from assistant.settings.sections import SETTING_FIELDS, is_text_setting
from assistant.settings.settings import DEFAULTS_ORIGIN, SettingRow, Settings, describe_settings, load_settings

# Looking needs next to nothing; changing looks after the daemon too, and loads what that takes.
_NAMES = ("show", "get", "set", "unset", "edit", "check", "path", "secret")


def _load(name: str) -> click.Command:
    command: click.Command
    match name:
        case "set":
            from assistant.cli.config.change import set_ as command
        case "unset":
            from assistant.cli.config.change import unset as command
        case "edit":
            from assistant.cli.config.change import edit as command
        case "secret":
            from assistant.cli.config.change import secret as command
        case _:
            raise LookupError(name)
    return command


@click.group(cls=LazyGroup, names=_NAMES, load=_load, default="show")
def config() -> None:
    """Show and change the settings. Without a command it shows them all.

    They are in config.toml of your data folder (`assistant config path`); a variable such as
    ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS=16000 overrides it. `assistant setup` asks for the important ones.

    > assistant config show
    > assistant config set budget.daily_usd 2
    """


@config.command()
@json_result(list[SettingRow], "Print a JSON array, with what each key means.")
def show() -> list[SettingRow]:
    """Show each value, and where it came from unless it is the default. Of secrets, only whether they are set.

    > assistant config show
    """
    rows = describe_settings(load_settings())
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _COLUMNS
    for _, group in groupby(rows, key=lambda row: row.key.partition(".")[0] if "." in row.key else ""):
        section = list(group)
        widest = max(len(row.key) for row in section)
        about = [f"# {section[0].section}"] if section[0].section else []
        print_text(
            "\n".join([*about, *(line for row in section for line in _setting_lines(row, widest, columns))]) + "\n"
        )
    return rows


# Of output that nobody looks at while it comes.
_COLUMNS = 80


def _setting_lines(row: SettingRow, widest: int, columns: int) -> list[str]:
    """A setting as in a file; where it came from stands above it where there is no room beside it."""
    line, origin = f"{row.key:<{widest}} = {row.value}", "" if row.origin == DEFAULTS_ORIGIN else f"# {row.origin}"
    if origin and len(line) + 2 + len(origin) <= columns:
        return [f"{line}  {origin}"]
    wrapped = textwrap.wrap(line, columns, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return [*filter(None, [origin]), *wrapped]


@config.command()
@click.argument("key", shell_complete=complete_names(SETTING_FIELDS))
@json_result(SettingRow, "Print JSON, with its origin and what is allowed.")
def get(key: str) -> SettingRow:
    """Print one current value; of a secret only whether it is set.

    > assistant config get context.target
    """
    settings = load_settings()
    row = next((row for row in describe_settings(settings) if row.key == key), None)
    if row is None:
        raise unknown_setting_error(key)
    value = _in_force(settings, row)
    print_text(value)
    return replace(row, value=value)


@dataclass(frozen=True, slots=True)
class CheckedSettings:
    """What the settings, which are fine, are for."""

    home: Path
    provider: str


@config.command()
@json_result(CheckedSettings)
def check() -> CheckedSettings:
    """Check the settings. Exits with 2 and names each mistake.

    > assistant config check
    """
    settings = load_settings()
    # Loads every tool, which showing settings does not need.
    from assistant.wire.setting_names import setting_name_problems

    if problems := setting_name_problems(settings.values):
        raise SettingsError("\n".join(problems), problems=problems)
    print_text(f"The settings are fine. Data folder: {settings.home.path}; model: {settings.provider}.")
    return CheckedSettings(settings.home.path, settings.provider)


@config.command()
@json_result(Path)
def path() -> Path:
    """Print the path of config.toml, even where it does not exist yet.

    > $EDITOR "$(assistant config path)"
    """
    file = home_from_environment().config
    print_text(str(file))
    return file


def _in_force(settings: Settings, row: SettingRow) -> str:
    """A value as a script wants it: text without quotes, anything else as TOML; no secret."""
    field = SETTING_FIELDS.get(row.key)
    if field is None:
        return row.value.strip('"')
    text = mask_secrets(settings.values.value_of(row.key))
    return str(json.loads(text)) if is_text_setting(field) and text.startswith('"') else text
