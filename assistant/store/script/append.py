"""Appends messages: log first, then index and view. Everything that adds a message goes through here.

Invariant (I1): a record is in the log, fsynced, before the index, the view or a model has it. Index and view are
written in one transaction, which the caller may extend. If that transaction fails, or the process crashes before it,
the log is ahead of the index; `catch_up_index` adds the missing records before the session is next written, with the
same result as an undisturbed call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.messages import Message, RecordKind, Trust
from assistant.core.records import InboxItem, LogLocation, LogRecord
from assistant.core.sessions import is_imported
from assistant.store.database import Database
from assistant.store.log.format import hash_header
from assistant.store.log.redact import redact_message
from assistant.store.log.writer import LogHead, MessageLog
from assistant.store.rows import clean_message
from assistant.store.script import sessions as session_rows
from assistant.store.script.checkpoints import check_tail_coverage, first_uncovered_seq
from assistant.store.script.compact import cover_old_messages
from assistant.store.script.generations import ROLLOVER_KINDS, begin_next_generation, copy_parent_view
from assistant.store.script.index import (
    hide_messages,
    insert_records,
    is_indexed,
    largest_message_id,
    last_indexed,
    span_of_row,
    withdrawn_ids,
)
from assistant.store.script.sessions import Session, ViewSize
from assistant.store.script.turns import withdraw_requests
from assistant.store.script.view import CountedMessage, Views

ToViewMessage = Callable[[Message, LogLocation], Message]
CountMessageTokens = Callable[[Message], int]

_BATCH_RECORDS = 500
_BATCH_BYTES = 1 << 24
BULK_TAIL_ROWS = 200
BULK_MAX_ROWS = 2000


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """Sender, medium and turn of a record."""

    kind: RecordKind = "message"
    bridge: str | None = None
    sender: str | None = None
    trust: Trust = "model"
    turn: str | None = None
    refs: tuple[int, ...] = ()  # the messages it refers to
    external_id: str | None = None  # its id in the program it was imported from


def inbox_item_origin(item: InboxItem, turn: str | None) -> RecordOrigin:
    """Return the origin of an accepted message."""
    incoming = item.incoming
    return RecordOrigin("message", incoming.bridge, incoming.sender, incoming.trust, turn)


@dataclass(frozen=True, slots=True)
class RecordDraft:
    """A record that is not in the log yet."""

    record: LogRecord
    metadata: Mapping[str, Any] = field(default_factory=dict)  # further fields of its view row


@dataclass(frozen=True, slots=True)
class CatchUpResult:
    """How many records of the log the index lacked, and where a torn last line was set aside (None: there was none)."""

    adopted_records: int
    torn_file: Path | None


class Appender:
    """Writes the log, the index and the view, in that order; allocates message ids."""

    def __init__(
        self,
        db: Database,
        log: MessageLog,
        views: Views,
        *,
        to_view_message: ToViewMessage,
        count_tokens: CountMessageTokens,
    ) -> None:
        self._db = db
        self._log = log
        self._views = views
        self._to_view_message = to_view_message
        self._count_tokens = count_tokens
        self._caught_up: set[str] = set()
        # Records that a failed transaction left in the log, by session.
        self._unindexed: dict[str, tuple[LogRecord, ...]] = {}
        self._last_id = largest_message_id(db)

    def current_session(self, key: str, now: datetime) -> Session:
        """Return the current generation of a session, also if its start is in the log but not in the index yet. Raises
        `StoreError`."""
        if any(record.kind in ROLLOVER_KINDS for record in self._unindexed.get(key, ())):
            self.catch_up_index(key, now)
        return session_rows.require_session(self._db, key)

    def next_id(self) -> int:
        """Return a new, unused message id."""
        self._last_id += 1
        return self._last_id

    def reserve_ids(self, records: Sequence[LogRecord]) -> None:
        """Mark the ids of existing records as used."""
        self._last_id = max(self._last_id, *(record.id for record in records))

    def draft_record(self, session: Session, message: Message, origin: RecordOrigin, now: datetime) -> RecordDraft:
        """Return a record for `message`, with a new id unless it has one. Its time is `message.ts`, or `now` without
        it."""
        message = clean_message(message)
        record = LogRecord(
            id=self.next_id() if message.id is None else message.id,
            seq=0,
            ts=message.ts or now,
            session=session.key,
            generation=session.generation,
            scope=session.scope,
            kind=origin.kind,
            role=message.role,
            content=message.content,
            commit="",
            prev="",
            name=message.name,
            tool_calls=message.tool_calls,
            tool_call_id=message.tool_call_id,
            media=message.media,
            thinking=message.thinking,
            bridge=origin.bridge,
            sender=origin.sender,
            trust=origin.trust,
            model=message.model,
            turn=origin.turn,
            refs=origin.refs,
            external_id=origin.external_id,
        )
        return RecordDraft(record, message.metadata)

    @contextmanager
    def appending(
        self, session: Session, drafts: Sequence[RecordDraft], now: datetime, *, durable: bool = True
    ) -> Iterator[tuple[Message, ...]]:
        """Log the drafts, then open the transaction that indexes them and adds them to the view; the caller's writes
        inside the context join it. Yields the messages as the view has them. The log is always fsynced; `durable` as in
        `Database.write`."""
        records = self._place(session.key, [draft.record for draft in drafts], now)
        metadata = {record.id: draft.metadata for record, draft in zip(records, drafts, strict=True)}
        try:
            with self._db.write(durable=durable):
                yield self._show(session, records, metadata)
        except BaseException:
            if records:
                self._caught_up.discard(session.key)
                self._unindexed[session.key] = records
            raise

    def _place(self, session: str, records: Sequence[LogRecord], now: datetime) -> tuple[LogRecord, ...]:
        """Log the records and return them. A call repeated after its transaction failed finds them in the log."""
        unindexed = self._unindexed.pop(session, ())
        if (
            unindexed
            and not is_indexed(self._db, unindexed[0].id)
            and list(map(_record_content, unindexed)) == list(map(_record_content, records))
        ):
            return unindexed
        self.catch_up_index(session, now)
        return self._log.append(records) if records else ()

    def view_record(self, record: LogRecord, metadata: Mapping[str, Any] | None = None) -> CountedMessage | None:
        """Return a record as a view message; None for kinds without a view row, and for imported messages."""
        if record.kind in ("undo", "redaction") or is_imported(record.session):
            return None
        kind = {} if record.kind == "message" else {"type": record.kind, "refs": list(record.refs)}
        more = {**kind, **(metadata or {})}
        if record.salt.isspace():
            message = redact_message(record.to_message())
            message = replace(message, metadata={**message.metadata, **more})
        else:
            message = record.to_message(more)
        return self.with_tokens(self._to_view_message(message, self._log.log_place(record.session, record.span)))

    def with_tokens(self, message: Message) -> CountedMessage:
        return CountedMessage(message, self._count_tokens(message))

    # ----------------------------------------------------------------------------------------------------- catching up

    def catch_up_index(self, session: str, now: datetime, *, force: bool = False) -> CatchUpResult:
        """Bring the index and the view up to the end of a session's log, reading only what the index lacks. Runs once
        per process and session, after a failure, or with `force`. Raises `CorruptStore` if the log is shorter than the
        index."""
        if session in self._caught_up and not force:
            return CatchUpResult(0, None)
        last = last_indexed(self._db, session)
        indexed = LogHead()
        if last is not None:
            header = self._log.read_header(session, span_of_row(last))
            indexed = LogHead(last["byte_end"], last["seq"], last["id"], hash_header(header))
        torn = self._log.recover_tail(session, indexed, now)
        adopted = sum(self._adopt(batch, now) for batch in batch_records(self._log.scan(session, indexed.end)))
        self._caught_up.add(session)
        return CatchUpResult(adopted, torn)

    def _adopt(self, records: Sequence[LogRecord], now: datetime) -> int:
        """Index records that are only in the log, and add them to the view."""
        with self._db.write():
            for generation in dict.fromkeys(record.generation for record in records):
                group = [record for record in records if record.generation == generation]
                first = group[0]
                session_rows.insert_session(self._db, first.session, generation, first.scope, first.ts)
                self._show(Session(first.session, generation, first.scope), group, {})
            session = session_rows.require_session(self._db, records[0].session)
            if len(records) == _BATCH_RECORDS:
                self.shorten_view(session, BULK_MAX_ROWS, BULK_TAIL_ROWS, "adopted", now)
        self.reserve_ids(records)
        return len(records)

    def shorten_view(self, session: Session, max_rows: int, keep: int, trigger: str, now: datetime) -> None:
        """Within a transaction: if the view has more than `max_rows` messages, remove all but the last `keep`."""
        if cover_old_messages(self._db, session, max_rows, keep, trigger, now):
            removed = self._views.remove_message_rows(session, first_uncovered_seq(self._db, session))
            session_rows.add_to_totals_and_bump(self._db, session, ViewSize() - removed)
            check_tail_coverage(self._db, session)

    # ------------------------------------------------------------------------------------------------------ showing

    def _show(
        self, session: Session, records: Sequence[LogRecord], metadata: Mapping[int, Mapping[str, Any]]
    ) -> tuple[Message, ...]:
        if not records:
            return ()
        rows = [self.view_record(record, metadata.get(record.id)) for record in records]
        insert_records(self._db, records, [0 if row is None else row.tokens for row in rows])
        for record in records:
            self.begin_generation(record)
        shown = [row for row in rows if row is not None]
        self._views.append(session, shown)
        if is_imported(session.key):
            session_rows.extend_import(self._db, session, [record.ts for record in records if record.kind == "message"])
        for record in records:
            if withdrawn := withdrawn_ids(self._db, record):
                self._hide(session, replace(record, refs=withdrawn))
            elif record.role == "tool" and record.turn is not None:
                self._end_tool(record, metadata.get(record.id, {}))
        return tuple(row.message for row in shown)

    def begin_generation(self, record: LogRecord) -> None:
        """Apply the effects of a record that starts a branch or a later generation; other records have none."""
        if record.kind == "branch":
            copy_parent_view(self._db, self._views, record)
        elif record.kind in ROLLOVER_KINDS:
            begin_next_generation(self._db, self._log, self._views, record, self.view_record)

    def _hide(self, session: Session, undo: LogRecord) -> None:
        """Remove undone messages from the view and withdraw the requests they made; log and index keep them."""
        hide_messages(self._db, undo)
        withdraw_requests(self._db, undo)
        session_rows.add_to_totals_and_bump(self._db, session, ViewSize() - self._views.remove(session, undo.refs))

    def _end_tool(self, result: LogRecord, metadata: Mapping[str, Any]) -> None:
        started = {"turn": result.turn, "call_id": result.tool_call_id, "state": "started"}
        state = "interrupted" if metadata.get("interrupted") else "done"
        self._db.update_rows("tool_runs", started, state=state, ended_at=result.ts)


# The content of a record, without position and time.
_record_content = attrgetter(
    "kind",
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "media",
    "thinking",
    "model",
    "turn",
    "refs",
    "external_id",
)


def batch_records(records: Iterator[LogRecord]) -> Iterator[list[LogRecord]]:
    """Yield the records in lists of at most `_BATCH_RECORDS`, or a little over `_BATCH_BYTES` of the log."""
    batch: list[LogRecord] = []
    size = 0
    for record in records:
        batch.append(record)
        size += record.span.end - record.span.start
        if len(batch) == _BATCH_RECORDS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
