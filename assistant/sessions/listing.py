"""Lists sessions and their conversations, current and archived, from the stores, with or without a daemon.

A search only covers its scope (I10). The message log keeps archived messages, so the normal search finds them; an
archive is only opened if the log has lost them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    session_name,
)
from assistant.core.store_ports import Conversation
from assistant.sessions.scheduler import ResetPolicies
from assistant.store.archive.archive import StoredArchive
from assistant.store.script.generations import StoredGenerations, StoredResets

_NAMED = 10  # sessions in an error


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A generation in a list."""

    generation: Generation
    info: SessionInfo | None  # of its session, for the current generation
    archive: ArchiveEntry | None
    reset: SessionReset | None = None


class SessionReader:
    """Reads only, with or without a daemon."""

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
        """Return sessions, most recently active first, with at most `limit` generations each, newest first."""
        archived = {(entry.session, entry.generation): entry for entry in self._archive.list_archives()}
        unfinished = self._resets.unfinished_resets()
        for info in self._conversation.list_sessions():
            rows = self._rows_of_session(info, unfinished, lambda session, number: archived.get((session, number)))
            yield from islice(rows, limit)

    def list_generations_of(self, key: str) -> Iterator[SessionRow]:
        """Return the generations of one session, newest first."""
        if info := self._conversation.find_session(key):
            yield from self._rows_of_session(info, self._resets.unfinished_resets(), self._archive.find_entry)

    def get_generation(self, session: str, number: int | None) -> SessionRow:
        """Return a generation, the current one by default. Raises `UsageError`."""
        key = self._find_key(session)
        row = next((row for row in self.list_generations_of(key) if number in (None, row.generation.number)), None)
        if row is None:
            raise UsageError(
                f"{session_name(key)} has no conversation number {number}. `/sessions` lists what there is."
            )
        return row

    def can_resume(self, ended: Generation) -> bool:
        """Return whether it has anything to resume."""
        return bool(ended.messages) or ended.resumed is not None

    def _rows_of_session(
        self,
        info: SessionInfo,
        unfinished: Sequence[SessionReset],
        find_archive: Callable[[str, int], ArchiveEntry | None],
    ) -> Iterator[SessionRow]:
        waiting = next((reset for reset in unfinished if reset.session == info.key), None)
        for generation in reversed(self.generations.list_generations(info.key)):
            archived = find_archive(info.key, generation.number)
            if generation.number == info.generation:
                yield SessionRow(generation, info, archived, waiting)
            else:
                yield SessionRow(generation, None, archived)

    def resolve_session(self, name: str) -> str:
        """Return the key of an existing session that can continue, by a person's name for it. Raises `UsageError`."""
        key = self._find_key(name)
        if is_imported(key):
            raise UsageError(f"{session_name(key)} was imported and has ended; it can be read. Nothing was changed.")
        return key

    def _find_key(self, name: str) -> str:
        """Return the key, also of an imported session. Raises `UsageError`."""
        key = parse_session_name(name)
        if self._conversation.find_session(key) is None:
            keys = [info.key for info in self._conversation.list_sessions()]
            if key == MAIN_SESSION:
                raise NothingYet(NOTHING_SAID)
            more = f" and {len(keys) - _NAMED:,} more" if len(keys) > _NAMED else ""
            names = ", ".join(sorted(keys)[:_NAMED]) + more or "none yet"
            raise UsageError(
                f"There is no session {name!r}. Sessions: {names}. `assistant chat --session NAME` begins one, "
                "`assistant reset NAME` ends one."
            )
        return key

    def handover_note(self, generation: Generation) -> str:
        """Return the handover note to a generation; "" if it is the first, or the note was erased."""
        first = next(iter(self.generations.records_of_generation(generation.session, generation.number)), None)
        return first.content if first is not None and first.kind in ("handover", "resume") else ""


# Only hits in archived generations count.
HITS_PER_RESULT = 5
_AROUND = 120
# Of the best hit's score; lower hits share only a common word with the question, or are near an answer.
_WORTH = 0.5


@dataclass(frozen=True, slots=True)
class ArchiveHit:
    """A matching message of an archived generation; `text` is an excerpt."""

    session: str
    generation: int
    message_id: int
    role: str
    at: datetime
    text: str


def hits_in_log(hits: Sequence[SearchHit], archived: Sequence[ArchiveEntry]) -> list[ArchiveHit]:
    """Return the hits that are in archived generations, best first."""
    archived_generations = {(entry.session, entry.generation) for entry in archived}
    of_these = [hit for hit in hits if (hit.session, hit.generation) in archived_generations]
    worth = _WORTH * max((hit.score for hit in of_these), default=0.0)
    return [
        ArchiveHit(hit.session, hit.generation, hit.message_id, hit.role, hit.ts, hit.text)
        for hit in of_these
        if hit.score >= worth
    ]


def search_archived_records(records: Sequence[LogRecord], text: str) -> Iterator[ArchiveHit]:
    """Return messages with all words of `text`, ignoring case, newest first."""
    words = text.casefold().split()
    for record in reversed(visible_records(records)):
        folded = record.content.casefold()
        if words and all(word in folded for word in words):
            at = max(0, folded.find(words[0]) - _AROUND // 2)
            excerpt = " ".join(record.content[at : at + 2 * _AROUND].split())
            yield ArchiveHit(record.session, record.generation, record.id, record.role, record.ts, excerpt)


def visible_records(records: Sequence[LogRecord]) -> list[LogRecord]:
    """Return records without undone ones, and without records about others."""
    undone = {message_id for record in records if record.kind == "undo" for message_id in record.refs}
    return [record for record in records if record.id not in undone and record.kind not in ("undo", "redaction")]
