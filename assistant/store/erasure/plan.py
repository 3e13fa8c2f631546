"""The plan of one erasure: stored next to the databases until the erasure is done (`ErasureStore`), so that it can be
continued after a crash. The file has the text; nothing else with it outlives the erasure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.erasure_phrases import PhraseMatcher
from assistant.core.messages import LogByteRange
from assistant.core.sessions import OWNER_SCOPE

PLAN_FILES = "forgetting-*.json"
UNFINISHED_PLAN_FILES = f".{PLAN_FILES}.*"
"""Plans that are being written or removed."""


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """A record to blank, and where it is in the log of `session`."""

    id: int
    session: str
    span: LogByteRange


@dataclass(frozen=True)
class ErasurePlan:
    """What one erasure removes."""

    scope: str
    # With `everywhere`, every copy of them in `scope`; otherwise they stay in other messages, and are cut out of what
    # was made of `records`.
    phrases: tuple[str, ...]
    records: tuple[RecordLocation, ...] = ()  # messages to blank in the logs
    entries: tuple[int, ...] = ()  # ids of the journal
    memories: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()  # (turn, call id) of the tool runs these messages requested
    everywhere: bool = False
    # Values that only the erased text contained: numbers, names and the like; and sequences of words. Erased
    # everywhere.
    values: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # paths in the workspace, of files that only came or were sent with these messages
    # The owner's own files with the text, which stay: they are removed from the index of files.
    own_files: tuple[str, ...] = ()
    # Words that nobody else said, and sentences of deleted journal entries and memories: searched in texts derived from
    # messages, not in bytes.
    words: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    mentions: tuple[int, ...] = ()  # answers that have one of `words`, and stay
    unlearned: tuple[int, ...] = ()  # messages that stay, but from which nothing may be learned any more
    keep_backups: bool = False  # backups with the text stay, and are reported
    note: str = ""  # file name of the stored plan, until it is done

    @cached_property
    def wording(self) -> PhraseMatcher:
        """Return what is removed from texts that may be derived from the messages."""
        return PhraseMatcher(self.phrases, (*self.values, *self.runs), self.learned)

    @cached_property
    def retelling(self) -> PhraseMatcher:
        """Return what is removed from texts that retell messages in other words: summaries and the like."""
        return PhraseMatcher(self.phrases, (*self.values, *self.runs), self.learned, self.words)

    @cached_property
    def unique(self) -> PhraseMatcher:
        """Return what no remaining message may contain either."""
        return PhraseMatcher(self.phrases[:1] if self.everywhere else (), (*self.values, *self.runs))

    @cached_property
    def in_files(self) -> PhraseMatcher:
        """Return what removes files from the index: the text itself, not values of messages."""
        return PhraseMatcher(self.phrases[:1] if self.everywhere and self.scope == OWNER_SCOPE else ())

    def without_shared_sentences(self) -> ErasurePlan:
        """Return the plan reduced to what no remaining message may contain."""
        return replace(self, phrases=self.phrases[:1] if self.everywhere else ())

    @cached_property
    def ids(self) -> frozenset[int]:
        return frozenset(record.id for record in self.records)

    def records_by_session(self) -> dict[str, list[RecordLocation]]:
        """Return the records grouped by session, in the order of the plan."""
        by_session: dict[str, list[RecordLocation]] = {}
        for record in self.records:
            by_session.setdefault(record.session, []).append(record)
        return by_session

    def with_memories(self, memory_ids: Iterable[str]) -> ErasurePlan:
        """Return the plan with these memories added."""
        return replace(self, memories=tuple(dict.fromkeys((*self.memories, *memory_ids))))


def is_plan_file(path: Path) -> bool:
    """Return whether a file is a stored plan, or an unfinished one."""
    return path.match(PLAN_FILES) or path.match(UNFINISHED_PLAN_FILES)
