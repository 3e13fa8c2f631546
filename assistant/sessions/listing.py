"""Sessions and their conversations, current and archived: read from the stores, whether a daemon runs or not, searched,
and rendered for a chat, a command line or JSON.

What always holds: a search looks through its scope only (I10). The message log keeps what was archived, so that the
home's own search finds it; an archive is opened only where the log lost it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import islice
from typing import Any

from assistant.core.archives import ArchiveEntry
from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import UsageError
from assistant.core.records import LogRecord, SearchHit, SessionInfo
from assistant.core.sessions import Generation, SessionReset, parse_session_name, session_kind
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.sessions.reset import ResetResult
from assistant.sessions.scheduler import ResetPolicies
from assistant.store.archive.archive import StoredArchive
from assistant.store.script.generations import StoredGenerations, StoredResets

SESSION_COLUMNS = ("session", "kind", "generation", "messages", "context", "from", "until", "ended", "archive")
NUMERIC_COLUMNS = ("generation", "messages")
_WHY = {
    "manual": "by hand",
    "daily": "daily",
    "idle": "idle",
    "end": "put away",
    "resume": "for an earlier one",
}


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One generation as it is listed: `info` of its session where it is the current one."""

    generation: Generation
    info: SessionInfo | None
    archive: ArchiveEntry | None
    reset: SessionReset | None = None


def session_cells(one: SessionRow, zone: tzinfo) -> tuple[str, ...]:
    """A row, under `COLUMNS`. `until` is when it ended, or when something was said last."""
    known = one.generation
    until = known.ended_at or known.last_at
    return (
        known.session,
        session_kind(known.session),
        str(known.number),
        f"{known.messages:,}",
        _context(one),
        _time(known.started_at, zone),
        _time(until, zone),
        _ended(one),
        one.archive.url if one.archive else "",
    )


def session_json(one: SessionRow) -> dict[str, Any]:
    """Stable keys; times in UTC."""
    known = one.generation
    return {
        "session": known.session,
        "generation": known.number,
        "scope": known.scope,
        "started_at": known.started_at.isoformat(),
        "last_at": _iso(known.last_at),
        "messages": known.messages,
        "view_messages": one.info.view_messages if one.info else 0,
        "view_tokens": one.info.view_tokens if one.info else 0,
        "checkpoints": one.info.checkpoints if one.info else 0,
        "kind": session_kind(known.session),
        "first_at": _iso(known.first_at),
        "ended_at": _iso(known.ended_at),
        "ended": known.end_reason or None,
        "pressure": known.pressure,
        "resumed": known.resumed,
        "archive": one.archive.url if one.archive else None,
    }


def sessions_markdown(rows: Sequence[SessionRow], zone: tzinfo) -> str:
    lines = [
        f"| {' | '.join(SESSION_COLUMNS)} |",
        "|" + "|".join("---:" if name in NUMERIC_COLUMNS else "---" for name in SESSION_COLUMNS) + "|",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(session_cells(one, zone))} |" for one in rows)])


def describe_generation(one: SessionRow, note: str, checkpoints: Sequence[Checkpoint], zone: tzinfo) -> str:
    """Everything about one generation; `note` is what handed over to it."""
    return "\n\n".join(_sections(one, note, checkpoints, zone))


def reset_done_text(done: ResetResult) -> str:
    """What a person is told of a reset that was carried out."""
    ended = done.ended
    read = "Everything worth keeping was written down first."
    if done.unread:
        read = f"{pluralize(done.unread, 'message')} could not be read for memories now and wait for the next sleep."
    if done.unread and done.is_reading_on:
        read = (
            f"{pluralize(done.unread, 'message')} are still to be read for memories, from now on or at the next sleep."
        )
    kept = f" Archived at {done.archive.url}, read back and proved." if done.archive.url else ""
    again = ""
    if can_resume(ended):
        again = f" `/sessions resume {ended.session} {ended.number}` takes the conversation up again."
    return (
        f"{ended.session} begins afresh (number {done.generation}). {read} The "
        f"{pluralize(ended.messages, 'message')} of "
        f"number {ended.number} stay in the master log.{kept} Open requests, to-dos and pins go on.{again}"
    )


def can_resume(ended: Generation) -> bool:
    """Whether there is something in it to take up again."""
    return bool(ended.messages) or ended.resumed is not None


def _sections(one: SessionRow, note: str, checkpoints: Sequence[Checkpoint], zone: tzinfo) -> Iterator[str]:
    known = one.generation
    begun = (
        f"{known.session}, number {known.number} ({session_kind(known.session)}): "
        f"{pluralize(known.messages, 'message')}"
    )
    going_on = f", going on from number {known.resumed}" if known.resumed is not None else ""
    since = f"begun {_time(known.started_at, zone)}{going_on}"
    ended = f"ended {_time(known.ended_at, zone)}, {_ended(one)}" if known.ended_at else _ended(one) or "going on"
    yield f"{begun}, {since}, {ended}. Context: {_context(one) or 'empty'}."
    if one.archive:
        yield f"Archived at {one.archive.url} ({one.archive.bytes:,} bytes, {_time(one.archive.archived_at, zone)})."
    if note:
        yield f"Handed over to it:\n{note}"
    live = [row for row in checkpoints if row.state == "live" and row.summary]
    if live:
        yield f"Its newest summary:\n{live[-1].summary}"
    if checkpoints:
        listed = ", ".join(f"{row.id} ({row.tier}, {row.state})" for row in checkpoints)
        yield f"Compactions, as `aihistory show ID` tells more of: {listed}."


def _context(one: SessionRow) -> str:
    if one.info is not None:
        return f"{one.info.view_tokens:,} tokens"
    return "" if one.generation.pressure is None else f"{one.generation.pressure:.0%}"


def _ended(one: SessionRow) -> str:
    if one.generation.ended_at is not None:
        return _WHY.get(one.generation.end_reason, one.generation.end_reason)
    if one.reset is not None and one.reset.state == "waiting":
        return "reset waits for the archive"
    return ""


def _time(moment: datetime | None, zone: tzinfo) -> str:
    return "" if moment is None else f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


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

    def list_generations(self, most: int) -> Iterator[SessionRow]:
        """The sessions, the latest spoken in first; of each at most so many generations, newest first."""
        for info in self._conversation.list_sessions():
            yield from islice(self._of(info), most)

    def list_generations_of(self, key: str) -> Iterator[SessionRow]:
        """The generations of one session, newest first."""
        for info in self._conversation.list_sessions():
            if info.key == key:
                yield from self._of(info)

    def get_generation(self, session: str, number: int | None) -> SessionRow:
        """A generation, the current one unless named. Raises `UsageError`."""
        key = self.resolve_session(session)
        found = next((one for one in self.list_generations_of(key) if number in (None, one.generation.number)), None)
        if found is None:
            raise UsageError(f"{key} has no conversation number {number}. `/sessions` lists what there is.")
        return found

    def _of(self, info: SessionInfo) -> Iterator[SessionRow]:
        waiting = next((one for one in self._resets.unfinished_resets() if one.session == info.key), None)
        for known in reversed(self.generations.list_generations(info.key)):
            archived = self._archive.find_entry(info.key, known.number)
            if known.number == info.generation:
                yield SessionRow(known, info, archived, waiting)
            else:
                yield SessionRow(known, None, archived)

    def resolve_session(self, name: str) -> str:
        """The key of a session that there is, as a person names it. Raises `UsageError`."""
        key = parse_session_name(name)
        keys = [info.key for info in self._conversation.list_sessions()]
        if key not in keys:
            raise UsageError(f"There is no session {name!r}. Sessions: {', '.join(sorted(keys)) or 'none yet'}.")
        return key

    def handover_note(self, known: Generation) -> str:
        """The words that handed over to a generation; "" where it is the first, or they were forgotten."""
        first = next(iter(self.generations.records_of_generation(known.session, known.number)), None)
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
    known = {(one.session, one.generation) for one in archived}
    of_these = [hit for hit in hits if (hit.session, hit.generation) in known]
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
    undone = {one for record in records if record.kind == "undo" for one in record.refs}
    return [record for record in records if record.id not in undone and record.kind not in ("undo", "redaction")]
