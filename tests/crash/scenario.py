"""What a crash scenario is, and how a run that was broken is held against the one that was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Snapshot = Mapping[str, Any]
"""What stands in a home and what the world saw, as plain JSON by part; see `pictures.py`."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What happened to a run: how often its process was killed (or the power cut), how many calls failed."""

    kills: int = 0
    errors: int = 0

    @property
    def all(self) -> int:
        return self.kills + self.errors


@dataclass(frozen=True, slots=True)
class AllowedDifference:
    """One part of the picture that need not be as in the unbroken run. `allowed(unbroken, broken, faults)` decides;
    `why` is for people."""

    part: str
    why: str
    allowed: Callable[[Any, Any, Faults], bool]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Work that may be killed at any call.

    `prepare` fills a new home, once, untouched by faults. `work` does the work in a process of its own; the restart
    after a fault runs `work` again, as a restarted service would, so it must ask the home what is left to do.
    `look` tells what came of it. `within` is how many seconds a process may take. `ready` is called once in the process
    that the others are forked from. `apart` are files of the home, by their paths in it, that a process of their own
    writes: where a fault is for that one, the other lives on.
    """

    name: str
    about: str
    prepare: Callable[[Path], None]
    work: Callable[[Path], None]
    look: Callable[[Path], Snapshot]
    differ: tuple[AllowedDifference, ...] = ()
    within: int = 60
    ready: Callable[[], None] | None = None
    apart: tuple[str, ...] = ()

    def problems(self, unbroken: Snapshot, broken: Snapshot, faults: Faults) -> list[str]:
        """What differs and must not, one line for each part."""
        rules = {rule.part: rule for rule in self.differ}
        found = []
        for part in sorted({*unbroken, *broken}):
            before, after = unbroken.get(part), broken.get(part)
            if before == after or (part in rules and rules[part].allowed(before, after, faults)):
                continue
            found.append(f"{part}: {_difference(before, after)}")
        return found


def _difference(before: Any, after: Any) -> str:
    if isinstance(before, list) and isinstance(after, list):
        gone = [item for item in before if item not in after]
        new = [item for item in after if item not in before]
        if gone or new:
            return f"missing {_short(gone)}, extra {_short(new)}"
    return f"unbroken {_short(before)}, now {_short(after)}"


def _short(value: Any, most: int = 600) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"
