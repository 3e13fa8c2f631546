"""What one erasure removes, once that was found: stored beside the home's databases until it is done (`ErasureStore`),
so that a crash in between can be recovered. The file has the words; nothing else that outlives the erasure does.
"""

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
    """A record that is to be blanked, and where it is in the log of `session`."""

    id: int
    session: str
    span: LogByteRange


@dataclass(frozen=True)
class ErasurePlan:
    """What one erasure removes."""

    scope: str
    # With `everywhere`, every copy of them in `scope`; else they stay in other messages, and are cut out of what was
    # made of `records`.
    phrases: tuple[str, ...]
    records: tuple[RecordLocation, ...] = ()  # messages to blank in the logs
    entries: tuple[int, ...] = ()  # ids of the journal
    memories: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()  # (turn, call id) of the tool runs that these messages asked for
    everywhere: bool = False
    # What the words carried and nothing else said: numbers, names and the like; and runs of words. They go everywhere.
    values: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # paths in the workspace, of files that came or went with these messages alone
    # Files of the owner's own that have the words and stay: they lose their place in the index of files.
    own_files: tuple[str, ...] = ()
    # Words that nobody else said, and sentences of journal entries and memories that go: looked for in texts that were
    # made of messages, not in bytes.
    words: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    mentions: tuple[int, ...] = ()  # answers that have one of `words`, and stay
    unlearned: tuple[int, ...] = ()  # messages that stay, and of which nothing may be learned any more
    keep_backups: bool = False  # backups with the words stay, and are reported
    note: str = ""  # the name of the file that stores the plan until it is done

    @cached_property
    def wording(self) -> PhraseMatcher:
        """What texts that may be made of the messages lose."""
        return PhraseMatcher(self.phrases, (*self.values, *self.runs), self.learned)

    @cached_property
    def retelling(self) -> PhraseMatcher:
        """What texts lose that tell of messages in other words: summaries and the like."""
        return PhraseMatcher(self.phrases, (*self.values, *self.runs), self.learned, self.words)

    @cached_property
    def unique(self) -> PhraseMatcher:
        """What may be left in no message either."""
        return PhraseMatcher(self.phrases[:1] if self.everywhere else (), (*self.values, *self.runs))

    @cached_property
    def in_files(self) -> PhraseMatcher:
        """What files lose their place in the index for: the words themselves, not what messages carried."""
        return PhraseMatcher(self.phrases[:1] if self.everywhere and self.scope == OWNER_SCOPE else ())

    def without_shared_sentences(self) -> ErasurePlan:
        """The same, looking only for what may be left in no message either."""
        return replace(self, phrases=self.phrases[:1] if self.everywhere else ())

    @cached_property
    def ids(self) -> frozenset[int]:
        return frozenset(record.id for record in self.records)

    def records_by_session(self) -> dict[str, list[RecordLocation]]:
        by_session: dict[str, list[RecordLocation]] = {}
        for record in self.records:
            by_session.setdefault(record.session, []).append(record)
        return by_session

    def with_memories(self, memory_ids: Iterable[str]) -> ErasurePlan:
        """The same with these memories too."""
        return replace(self, memories=tuple(dict.fromkeys((*self.memories, *memory_ids))))


def is_plan_file(path: Path) -> bool:
    """Whether a file is a stored plan, or one that was being written."""
    return path.match(PLAN_FILES) or path.match(UNFINISHED_PLAN_FILES)
