"""Watches config.toml, which may be edited at any time and to anything, and decides which changes apply while the
daemon runs.

The daemon always runs on valid settings. When the file changes it is read again: a few keys apply at once, others are
reported until the next start. An invalid file changes nothing, and makes the status red until it is fixed. So does
another time zone of the machine, where the settings name none. While nothing changed, a check costs four system calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from assistant.core.errors import SettingsError
from assistant.core.logger import get_logger, set_log_level
from assistant.core.secret_text import SecretStr
from assistant.settings.home import file_stamp, settings_stamps
from assistant.settings.secrets import IN_KEYRING
from assistant.settings.sections import SETTING_FIELDS, WEB_TOKEN_KEY, SettingsValues
from assistant.settings.settings import Settings, read_machine_zone

log = get_logger()

_LIVE_SECTIONS = ("budget.", "brief.", "telegram.", "matrix.", "discord.", "slack.", "mail.", "calendar.", "notify.")
_LOG_LEVEL = "log.level"
_ZONE_FILES = (Path("/etc/localtime"), Path("/etc/timezone"))
_LIVE = (_LOG_LEVEL, WEB_TOKEN_KEY)


def is_live_setting(key: str) -> bool:
    """Return whether a changed setting applies while the daemon runs."""
    return key.startswith(_LIVE_SECTIONS) or key in _LIVE


class SettingsWatch:
    """The settings of a running daemon: `settings` are the current ones."""

    def __init__(
        self,
        settings: Settings,
        read: Callable[[], Settings],
        take_over: Callable[[Settings], None],
        on_understood: Callable[[Settings], None] = lambda settings: None,
    ) -> None:
        """`read` reads the files again; `take_over` is called with settings that apply from now on; `on_understood`
        with all that were read without an error."""
        self.settings = settings
        self._read = read
        self._on_understood = on_understood
        self._take_over = take_over
        self._seen = settings.file_stamps
        # Read once, at the start.
        self._persona = file_stamp(settings.home.persona)
        self._refused: tuple[str, ...] = ()
        self._waiting: tuple[str, ...] = ()
        self._zone_files = _zone_stamps()
        self._machine_zone = settings.zone.key
        on_understood(settings)

    def check_files(self) -> None:
        """Read config.toml and the secrets again if one of them changed, and the machine's time zone if that did."""
        if not self.settings.values.home.timezone and (zone_files := _zone_stamps()) != self._zone_files:
            self._zone_files, self._machine_zone = zone_files, read_machine_zone().key
        seen = settings_stamps(self.settings.home)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            new = self._read()
            self._on_understood(new)
        except SettingsError as error:
            self._refused = error.problems
            log.warning("changed settings are not understood; the old ones stay", problems=len(error.problems))
            return
        if self._refused:
            log.info("settings are understood again")
        self._refused = ()
        self._compare(new)

    def problems(self) -> list[str]:
        """Return the problems of the files."""
        zone, moved = self.settings.zone.key, self._machine_zone
        elsewhere = (
            f"The time zone of this machine is {moved} now, and the assistant still goes by {zone}. Restart it to go "
            "by that; `home.timezone` in the settings keeps one wherever the machine is."
        )
        return ([elsewhere] if moved != zone else []) + [
            f"{problem} The settings that the daemon was started with stay; correct it with `assistant config edit`."
            for problem in self._refused
        ]

    def keys_for_next_start(self) -> list[str]:
        """Return the changed keys, and files, that take effect at the next start."""
        persona = self.settings.home.persona
        return [*self._waiting, *([persona.name] if file_stamp(persona) != self._persona else [])]

    # ----------------------------------------------------------------------------------------------------------- within

    def _compare(self, new: Settings) -> None:
        keys = list(_differing(self.settings, new))
        live = [key for key in keys if is_live_setting(key) and not _is_gone(key, new)]
        self._waiting = (*(key for key in keys if key not in live), *_changed_keys(self.settings, new))
        if live:
            origins = {key: new.origins[key] for key in live}
            values = _with(self.settings.values, {key: new.values.value_of(key) for key in live})
            self.settings = replace(self.settings, values=values, origins={**self.settings.origins, **origins})
            if _LOG_LEVEL in live:
                set_log_level(self.settings.values.log.level)
            self._take_over(self.settings)
            log.info("changed settings apply from now on", keys=", ".join(live))
        if self._waiting:
            log.info("changed settings take effect at the next start", keys=", ".join(self._waiting))


def _zone_stamps() -> tuple[object, ...]:
    return tuple(map(file_stamp, _ZONE_FILES))


def _differing(old: Settings, new: Settings) -> Iterator[str]:
    """Return the keys whose value differs. The keyring was not asked again."""
    for key, spec in SETTING_FIELDS.items():
        in_keyring = spec.kind is SecretStr and IN_KEYRING in (old.origins[key], new.origins[key])
        unasked = in_keyring and not new.values.value_of(key).get_secret_value()
        if not unasked and old.values.value_of(key) != new.values.value_of(key):
            yield key


def _changed_keys(old: Settings, new: Settings) -> Iterator[str]:
    """Return the changed keys of providers, by the usual names; the keyring is not asked."""
    for name, before, after in (
        ("ANTHROPIC_API_KEY", old.anthropic_key, new.anthropic_key),
        ("OPENAI_API_KEY", old.openai_key, new.openai_key),
    ):
        if before != after and IN_KEYRING not in (old.origins.get(name), new.origins.get(name)):
            yield name


def _is_gone(key: str, new: Settings) -> bool:
    """Return whether a key is missing now. Without a token nobody would be admitted, so the old one stays valid until
    the next start, which creates one or asks the keyring."""
    return key == WEB_TOKEN_KEY and not new.values.value_of(key).get_secret_value()


def _with(values: SettingsValues, changed: Mapping[str, Any]) -> SettingsValues:
    """Return `values` with some values from another validated object."""
    sections: dict[str, dict[str, Any]] = {}
    for key, value in changed.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    return values.changed(
        **{section: getattr(values, section).changed(**update) for section, update in sections.items()}
    )
