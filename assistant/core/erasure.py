"""Value types for erasure: the request, the matches, and the result. Pure.

A report quotes only as much as the person needs to recognise what would be removed; after the erasure it quotes
nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from assistant.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What to erase in `scope`: either messages, journal entries and memories with everything derived from them, or
    every copy of a text."""

    scope: str
    messages: tuple[int, ...] = ()
    entries: tuple[int, ...] = ()
    memories: tuple[str, ...] = ()  # ids or id prefixes
    text: str = ""  # matched ignoring case and white space
    digits: str = ""  # ambiguous: a memory id prefix (eight digits), a message number, or text
    keep_backups: bool = False  # backups that contain the words are listed, not removed
    keep_messages: bool = False  # for a memory or entry: keep its source messages, but learn nothing from them again

    def __bool__(self) -> bool:
        return bool(self.messages or self.entries or self.memories or self.text.strip() or self.digits)


MESSAGES_PLACE = "messages"


@dataclass(frozen=True, slots=True)
class ErasureMatches:
    """Matches in one place."""

    kind: str  # the place ("messages", "summaries", "journal", ...)
    count: int
    examples: tuple[str, ...] = ()  # some matches, one line each


@dataclass(frozen=True, slots=True)
class ErasedMessage:
    """A message that would be blanked, identified for people by day and first words."""

    id: int
    at: datetime
    excerpt: str
    is_said: bool = True  # otherwise a tool call or result


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """A preview of an erasure. Falsy if there is nothing to remove."""

    request: ErasureRequest
    messages: tuple[int, ...]  # to be blanked in the log
    places: tuple[ErasureMatches, ...]
    first_messages: tuple[ErasedMessage, ...] = ()  # some of `messages`
    related: tuple[str, ...] = ()  # entries learned from these messages in other words; kept unless named
    backups: tuple[str, ...] = ()  # backups and database copies that contain the words
    finished: tuple[ErasureResult, ...] = ()  # interrupted erasures of the scope that were just completed
    values: tuple[str, ...] = ()  # values found in these messages only: numbers, names and the like
    leftovers: tuple[ErasureLeftover, ...] = ()  # if nothing can be removed: what still contains the words
    came_from: tuple[ErasedMessage, ...] = ()  # the sources of a memory or entry

    def __bool__(self) -> bool:
        return bool(self.places) or (bool(self.backups) and not self.request.keep_backups)


LeftoverKind = Literal[
    "not_done", "own_file", "other_scope", "same_words", "former_home", "kept_backup", "conversation_name"
]
"""Why words remain: unfinished work, the user's own file, another person's words, another message with the same words,
a data folder put aside by a restore, a backup that the request keeps, a session name in the log."""


@dataclass(frozen=True, slots=True)
class ErasureLeftover:
    """A place that still contains the words."""

    where: str  # file (relative to the data folder) or store
    count: int  # number of occurrences
    why: str  # or what to do; shown to people
    kind: LeftoverKind = "not_done"


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What was removed, and what a full search of the data folder still found."""

    messages: tuple[int, ...]
    places: tuple[ErasureMatches, ...]
    leftovers: tuple[ErasureLeftover, ...]
    complete: bool  # all that the program may remove is gone; leftovers need a person's decision
    files_searched: int
    value_kinds: tuple[str, ...] = ()  # kind of each searched value, e.g. "number"
    was_resumed: bool = False  # it completed an interrupted erasure; `places` has only what was still there
