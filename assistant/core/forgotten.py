"""What a person wants forgotten, what was found of it, and what became of it. Frozen values.

A report never holds more of the words than a person needs to see what would go; after the forgetting it holds none.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be forgotten in `scope`: messages, journal entries and memories by their ids (of memories their
    beginnings will do), with what was made of them, or every copy of a `text`, in any case and however its words are
    spaced or broken into lines. `digits` alone are the beginning of a memory's id, or else the number of a message."""

    scope: str
    messages: tuple[int, ...] = ()
    entries: tuple[int, ...] = ()
    memories: tuple[str, ...] = ()
    text: str = ""
    digits: str = ""

    def __bool__(self) -> bool:
        return bool(self.messages or self.entries or self.memories or self.text.strip() or self.digits)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something of it lies: `kind` ("messages", "summaries", "journal", ...), how many there, and some of them
    as a person may know them, one line each."""

    kind: str
    count: int
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What would go, nothing changed yet. `messages` are blanked in the log; `related` are journal entries that were
    learned from these messages in other words: they stay unless they are named. `finished` is what earlier forgettings
    of the scope, cut off before, did just now."""

    wanted: Wanted
    messages: tuple[int, ...]
    places: tuple[Place, ...]
    related: tuple[str, ...] = ()
    finished: tuple[Forgotten, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.places)


@dataclass(frozen=True, slots=True)
class Left:
    """What is still there: the file (relative to the home) or store, how often, and why or what to do."""

    where: str
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was done, by place, and whatever a search through every byte of the home still found. `complete`: all that
    is this house's to do was done; what is `left` then is somebody else's. `again`: it went on with what an earlier
    attempt had begun, and `places` are what was still there."""

    messages: tuple[int, ...]
    places: tuple[Place, ...]
    left: tuple[Left, ...]
    complete: bool
    files_searched: int
    again: bool = False
