"""Renders the files of service managers: a systemd unit and a launchd agent, from templates in `config/service/`. Pure.

Values are quoted as required by the format, for any characters in paths. Each file ends with a hash of its text, so
that a later install detects edits by a person.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.text import lazy_regex

_MARK = "Written by `assistant service install`"
_SEAL = lazy_regex(rf"^(?:# |<!-- ){re.escape(_MARK)}; what stands above: sha256 ([0-9a-f]{{64}})(?: -->)?\n\Z", re.M)
# Control characters and bytes that are not UTF-8 cannot be represented.
_CONTROL = lazy_regex("[\x00-\x1f\x7f\ud800-\udfff]")

_NO_FIRST_WORD = lazy_regex(r"""["'\\]""")


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What a service runs."""

    program: Path  # absolute
    home: Path
    label: str  # its name for launchd
    stop_seconds: int
    watchdog_seconds: float
    user: str = ""  # the user of a system unit
    log: Path = Path()  # where launchd writes its output
    protect_home: str = "yes"

    def __post_init__(self) -> None:
        """Raises `UsageError` for a path that cannot be represented."""
        for path in (self.program, self.home, self.log):
            if _CONTROL.search(str(path)):
                raise UsageError(f"{str(path)!r} has a character that no such file can contain. Nothing was done.")


def render_systemd_unit(template: str, service: ServiceSpec) -> str:
    """Return the text of the unit."""
    filled = Template(template).substitute(
        program=_started(str(service.program)),
        home_variable=quote_unit_word(f"ASSISTANT_HOME={service.home}"),
        home=quote_unit_word(str(service.home)),
        user=service.user,
        protect_home=service.protect_home,
        watchdog_seconds=f"{service.watchdog_seconds:g}",
        stop_seconds=service.stop_seconds,
    )
    return filled + f"\n# {_seal(filled + chr(10))}\n"


def render_launchd_plist(template: str, service: ServiceSpec) -> str:
    """Return the text of the agent."""
    import plistlib  # not needed by a daemon, and loads a parser of XML

    values = {
        "label": service.label,
        "program": str(service.program),
        "home": str(service.home),
        "log": str(service.log),
        # launchd has no watchdog: the daemon uses its own.
        "watchdog_microseconds": str(round(service.watchdog_seconds * 1_000_000)),
    }
    agent = _filled(plistlib.loads(template.encode()), values)
    agent["ExitTimeOut"] = service.stop_seconds
    text = plistlib.dumps(agent, sort_keys=False).decode()
    return text + f"<!-- {_seal(text)} -->\n"


def quote_unit_word(value: str) -> str:
    """Quote one word of a systemd unit: quotes and backslashes escaped, without specifiers."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _started(program: str) -> str:
    """Return the words that start a program. systemd does not permit quotes and backslashes in the first one."""
    if not _NO_FIRST_WORD.search(program):
        return quote_unit_word(program)
    if "=" in program:
        raise UsageError(
            f"{program} cannot be started by systemd: its path has quotes or backslashes, and an equals sign. Nothing "
            "was done."
        )
    return f"/usr/bin/env {quote_unit_word(program)}"


def was_edited_by_hand(text: str) -> bool:
    """Return whether a file was edited, or written, by a person."""
    seal = _SEAL.search(text)
    return seal is None or seal[1] != _digest(text[: seal.start()])


def _seal(text: str) -> str:
    return f"{_MARK}; what stands above: sha256 {_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return Template(value).substitute(values)
    if isinstance(value, list):
        return [_filled(entry, values) for entry in value]
    if isinstance(value, dict):
        return {name: _filled(entry, values) for name, entry in value.items()}
    return value
