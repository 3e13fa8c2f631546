"""Erasure: what a person wants forgotten, what was found of it, what became of it. Pure.

A report never has more of the words than a person needs to see what would go; after the erasure it has none.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from assistant.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What to erase in `scope`: either messages, journal entries and memories, with everything made of them, or every
    copy of a text."""

    scope: str
    messages: tuple[int, ...] = ()
    entries: tuple[int, ...] = ()
    memories: tuple[str, ...] = ()  # ids, or the beginnings of ids
    text: str = ""  # found in any case, and however its words are spaced or broken into lines
    digits: str = ""  # the beginning of a memory's id (eight), or the number of a message, or else words
    keep_backups: bool = False  # backups that have the words are listed, not removed
    keep_messages: bool = False  # of a memory or entry: messages that it came from stay, and nothing is learned of them

    def __bool__(self) -> bool:
        return bool(self.messages or self.entries or self.memories or self.text.strip() or self.digits)


MESSAGES_PLACE = "messages"


@dataclass(frozen=True, slots=True)
class ErasureMatches:
    """What was found in one place."""

    kind: str  # the place ("messages", "summaries", "journal", ...)
    count: int
    examples: tuple[str, ...] = ()  # some of it, one line each


@dataclass(frozen=True, slots=True)
class ErasedMessage:
    """A message that would be blanked, as a person knows it: by its day and its first words."""

    id: int
    at: datetime
    excerpt: str
    is_said: bool = True  # or else it is what a tool was asked or answered


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """What an erasure would remove; nothing was changed yet. False where there is nothing to remove."""

    request: ErasureRequest
    messages: tuple[int, ...]  # blanked in the log
    places: tuple[ErasureMatches, ...]
    first_messages: tuple[ErasedMessage, ...] = ()  # some of `messages`
    related: tuple[str, ...] = ()  # journal entries learned from these messages in other words; they stay unless named
    backups: tuple[str, ...] = ()  # backups and copies of databases that have the words
    finished: tuple[ErasureResult, ...] = ()  # interrupted erasures of the scope that were finished just now
    values: tuple[str, ...] = ()  # what these messages alone said: numbers, names and the like
    leftovers: tuple[ErasureLeftover, ...] = ()  # where nothing can be removed: what still has the words
    came_from: tuple[ErasedMessage, ...] = ()  # what a memory or entry came from

    def __bool__(self) -> bool:
        return bool(self.places) or (bool(self.backups) and not self.request.keep_backups)


LeftoverKind = Literal[
    "not_done", "own_file", "other_scope", "same_words", "former_home", "kept_backup", "conversation_name"
]
"""Why words are still there: work that has to be repeated, a person's own file, another person's words, another message
that says the same, a data folder put aside by a restore, a backup that the request keeps, a name that the log has."""


@dataclass(frozen=True, slots=True)
class ErasureLeftover:
    """Words that are still there."""

    where: str  # the file (relative to the data folder) or the store
    count: int  # how often
    why: str  # or what to do; a text for people
    kind: LeftoverKind = "not_done"


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What was removed, and what a search through every byte of the data folder still found."""

    messages: tuple[int, ...]
    places: tuple[ErasureMatches, ...]
    leftovers: tuple[ErasureLeftover, ...]
    complete: bool  # everything the program may remove is removed; what is left is for a person to decide
    files_searched: int
    value_kinds: tuple[str, ...] = ()  # of each value that was searched for ("number")
    was_resumed: bool = False  # this finished an interrupted erasure, and `places` are what was still there
