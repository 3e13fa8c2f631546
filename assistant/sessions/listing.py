"""Sessions and their conversations, current and archived: read from the stores, whether a daemon runs or not.

What always holds: a search looks through its scope only (I10). The message log keeps what was archived, so that the
home's own search finds it; an archive is opened only where the log lost it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from assistant.core.archives import ArchiveEntry
from assistant.core.dataclass import dataclass
from assistant.core.errors import NothingYet, UsageError
from assistant.core.records import LogRecord, SearchHit, SessionInfo
from assistant.core.sessions import (
    MAIN_SESSION,
    NOTHING_SAID,
    Generation,
    SessionReset,
    is_imported,
    parse_session_name,
)
from assistant.core.store_ports import Conversation
from assistant.sessions.scheduler import ResetPolicies
from assistant.store.archive.archive import StoredArchive
from assistant.store.script.generations import StoredGenerations, StoredResets


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One generation as it is listed."""

    generation: Generation
    info: SessionInfo | None  # of its session, where this is the current generation
    archive: ArchiveEntry | None
    reset: SessionReset | None = None


class SessionReader:
    """Reads alone, whether a daemon runs or not."""

    def __init__(
        self,
        conversation: Conversation,
        generations: StoredGenerations,
        resets: StoredResets,
        archive: StoredArchive,
        policies: ResetPolicies,
    ) -> None:
        self._conversation = conversation
        self.generations = generations
        self._resets = resets
        self._archive = archive
        self.policies = policies

    def list_generations(self, limit: int) -> Iterator[SessionRow]:
        """The sessions, the latest spoken in first; of each at most so many generations, newest first."""
        for info in self._conversation.list_sessions():
            yield from islice(self._rows_of_session(info), limit)

    def list_generations_of(self, key: str) -> Iterator[SessionRow]:
        """The generations of one session, newest first."""
        if info := self._conversation.find_session(key):
            yield from self._rows_of_session(info)

    def get_generation(self, session: str, number: int | None) -> SessionRow:
        """A generation, the current one unless named. Raises `UsageError`."""
        key = self._find_key(session)
        row = next((row for row in self.list_generations_of(key) if number in (None, row.generation.number)), None)
        if row is None:
            raise UsageError(f"{key} has no conversation number {number}. `/sessions` lists what there is.")
        return row

    def can_resume(self, ended: Generation) -> bool:
        """Whether there is something in it to take up again."""
        return bool(ended.messages) or ended.resumed is not None

    def _rows_of_session(self, info: SessionInfo) -> Iterator[SessionRow]:
        waiting = next((reset for reset in self._resets.unfinished_resets() if reset.session == info.key), None)
        for generation in reversed(self.generations.list_generations(info.key)):
            archived = self._archive.find_entry(info.key, generation.number)
            if generation.number == info.generation:
                yield SessionRow(generation, info, archived, waiting)
            else:
                yield SessionRow(generation, None, archived)

    def resolve_session(self, name: str) -> str:
        """The key of a session that there is and that continues, as a person names it. Raises `UsageError`."""
        key = self._find_key(name)
        if is_imported(key):
            raise UsageError(f"{key} was imported and has ended; it can be read. Nothing was changed.")
        return key

    def _find_key(self, name: str) -> str:
        """Also of one that was imported. Raises `UsageError`."""
        key = parse_session_name(name)
        if self._conversation.find_session(key) is None:
            keys = [info.key for info in self._conversation.list_sessions()]
            if key == MAIN_SESSION:
                raise NothingYet(NOTHING_SAID)
            raise UsageError(f"There is no session {name!r}. Sessions: {', '.join(sorted(keys)) or 'none yet'}.")
        return key

    def handover_note(self, generation: Generation) -> str:
        """The words that handed over to a generation; "" where it is the first, or they were forgotten."""
        first = next(iter(self.generations.records_of_generation(generation.session, generation.number)), None)
        return first.content if first is not None and first.kind in ("handover", "resume") else ""


# Of the home's hits only those of archived generations count.
HITS_PER_RESULT = 5
_AROUND = 120
# Of the best hit's score; what is worth less shares a common word with the question, or stands near an answer.
_WORTH = 0.5


@dataclass(frozen=True, slots=True)
class ArchiveHit:
    """A message of an archived generation that has the words; `text` is an excerpt."""

    session: str
    generation: int
    message_id: int
    role: str
    at: datetime
    text: str


def hits_in_log(hits: Sequence[SearchHit], archived: Sequence[ArchiveEntry]) -> list[ArchiveHit]:
    """Those hits of the home's search that are of an archived generation, best first."""
    archived_generations = {(entry.session, entry.generation) for entry in archived}
    of_these = [hit for hit in hits if (hit.session, hit.generation) in archived_generations]
    worth = _WORTH * max((hit.score for hit in of_these), default=0.0)
    return [
        ArchiveHit(hit.session, hit.generation, hit.message_id, hit.role, hit.ts, hit.text)
        for hit in of_these
        if hit.score >= worth
    ]


def search_archived_records(records: Sequence[LogRecord], text: str) -> Iterator[ArchiveHit]:
    """Messages that have all the words of `text`, in any case, newest first."""
    words = text.casefold().split()
    for record in reversed(visible_records(records)):
        folded = record.content.casefold()
        if words and all(word in folded for word in words):
            at = max(0, folded.find(words[0]) - _AROUND // 2)
            excerpt = " ".join(record.content[at : at + 2 * _AROUND].split())
            yield ArchiveHit(record.session, record.generation, record.id, record.role, record.ts, excerpt)


def visible_records(records: Sequence[LogRecord]) -> list[LogRecord]:
    """Without what was undone, and without the records that only say what became of others."""
    undone = {message_id for record in records if record.kind == "undo" for message_id in record.refs}
    return [record for record in records if record.id not in undone and record.kind not in ("undo", "redaction")]
