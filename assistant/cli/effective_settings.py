"""The settings for a command that looks at the home, or asks whoever serves it.

config.toml may have been edited to nonsense while a daemon runs on. That keeps nobody from looking and talking: such a
command goes on with what the daemon last understood, and says so. Where none runs, a command that changes nothing goes
on with the keys that can be read; every other is refused. A command that starts something, or changes the settings,
loads them itself, and is refused in either case.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from assistant.cli.output import print_remark
from assistant.core.errors import SettingsError
from assistant.service.home_lock import is_listening
from assistant.settings.home import Home, home_from_environment
from assistant.settings.layers import SettingsLayer, read_file_layer
from assistant.settings.settings import Settings, load_settings


def load_effective_settings(*, read_only: bool = False) -> Settings:
    """Those of the home, else those that its daemon last understood; for a command that is `read_only`, and where no
    daemon answers, those that can be read. Raises `SettingsError` where there are none such, or where something else
    than config.toml is wrong."""
    home = home_from_environment()
    try:
        return load_settings(home)
    except SettingsError as error:
        if is_listening(home.socket):
            return _understood(home, error)
        if not read_only:
            raise
        settings, notice = load_readable_settings(home, error)
        print_remark(notice)
        return settings


def load_readable_settings(home: Home, error: SettingsError) -> tuple[Settings, str]:
    """The settings without those keys of config.toml that were refused with `error`, and what there is to say of it.
    Raises `error` where something else is wrong."""
    in_file = read_file_layer(home.config, str(home.config))
    kept: dict[str, Any] = {}
    settings = _loaded(home, kept, error)
    for key, value in in_file.values.items():
        with suppress(SettingsError):
            settings = _loaded(home, {**kept, key: value}, error)
            kept[key] = value
    return settings, f"{_first(error)} The other settings are used; `assistant config edit` fixes it."


def _understood(home: Home, error: SettingsError) -> Settings:
    try:
        settings = load_settings(home, config=read_file_layer(home.last_valid_config, str(home.config)))
    except SettingsError:
        raise error from None
    print_remark(
        f"{_first(error)} The running assistant keeps its last valid settings, and so does this command; "
        "`assistant config edit` fixes the file."
    )
    return settings


def _loaded(home: Home, values: Mapping[str, Any], error: SettingsError) -> Settings:
    try:
        return load_settings(home, config=SettingsLayer(str(home.config), values))
    except SettingsError:
        raise error from None


def _first(error: SettingsError) -> str:
    more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
    return f"{error.problems[0]}{more}"
