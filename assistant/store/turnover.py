"""Where one generation of a session ends and the next begins.

What always holds: the first record of a later generation, of kind `handover` or `resume`, makes the turn: in the
transaction that shows it the former generation is ended, what the journal has not read of it is queued (F28), and the
next has counters of its own, whether that is the call that reset the session or a start that finds the record without
them. So until that record is in the log the old generation stands whole, and from then on the new one does.
`prefix_rev` goes on growing, so that what was planned on the old view is never committed to the new one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assistant.core.errors import StaleView, UsageError
from assistant.core.messages import LogByteRange, Message
from assistant.core.records import LogRecord
from assistant.core.sessions import GenerationEnd
from assistant.store import checkpoints, extraction, index, session_rows
from assistant.store.branch import inherited
from assistant.store.checkpoints import BELONGS_IN_VIEW
from assistant.store.database import Database
from assistant.store.log_files import LogFiles
from assistant.store.rows import view_message
from assistant.store.session_rows import Session, total
from assistant.store.text import stamp
from assistant.store.view import LIVE_ROW, OF_VIEW, Counted, Views, place

KINDS = ("handover", "resume")
Viewed = Callable[[LogRecord], Message | None]
Counting = Callable[[Message], Counted]


def check(db: Database, session: Session, ending: GenerationEnd) -> None:
    """Raises `StaleView` or `UsageError` where this generation may not end so now."""
    last = index.last(db, session.key)
    if session.generation != ending.generation or (0 if last is None else last.seq) != ending.seq:
        raise StaleView
    if db.row("SELECT 1 FROM turns WHERE session = ? AND state = 'running'", (session.key,)) is not None:
        raise UsageError(f"A message in {session.key!r} is still being answered. Nothing was changed; try again then.")


def resumable(db: Database, session: Session, generation: int) -> int:
    """The id of the last message of an earlier generation. Raises `UsageError` where there is none."""
    row = db.row(
        "SELECT id FROM messages WHERE session = ? AND generation = ? ORDER BY seq DESC LIMIT 1",
        (session.key, generation),
    )
    if row is None or generation >= session.generation:
        raise UsageError(
            f"{session.key!r} has no earlier conversation {generation}. Nothing was changed; "
            f"`assistant sessions show {session.key}` lists them."
        )
    return int(row["id"])


def begin_next(db: Database, log: LogFiles, views: Views, record: LogRecord, viewed: Viewed, counted: Counting) -> None:
    """Inside the transaction that indexes the record, before it is shown. Repeating it changes nothing."""
    session = Session(record.session, record.generation, record.scope)
    end_former(db, record)
    if record.kind != "resume" or not record.refs:
        return
    said = index.find(db, record.refs[0])
    begun = session_rows.current_row(db, session.key)
    if said is None or said["session"] != session.key or begun is None or begun["resumed"] is not None:
        return
    copies = last_view(db, log, Session(session.key, said["generation"], session.scope), viewed, counted)
    copies = [replace(row, message=inherited(row.message)) for row in copies]
    db.execute(
        "UPDATE sessions SET resumed = ? WHERE key = ? AND generation = ?",
        (said["generation"], session.key, session.generation),
    )
    session_rows.grow(db, session, total(views.insert(session, 1, copies)))


def end_former(db: Database, record: LogRecord) -> None:
    """Inside a transaction: the generation before the record's is ended, and the record's begun. `sender` of the
    record is why."""
    former = Session(record.session, record.generation - 1, record.scope)
    session_rows.begin(db, record.session, record.generation, record.scope, record.ts)
    db.execute(
        "UPDATE sessions SET from_seq = ?, prefix_rev = max(prefix_rev, (SELECT f.prefix_rev + 1 FROM sessions f"
        " WHERE f.key = sessions.key AND f.generation = ?)) WHERE key = ? AND generation = ?",
        (record.seq, former.generation, record.session, record.generation),
    )
    db.execute(
        "UPDATE sessions SET ended_at = ?, end_reason = ?, lease_holder = NULL, lease_until = NULL"
        " WHERE key = ? AND generation = ? AND ended_at IS NULL",
        (stamp(record.ts), record.sender or "", former.key, former.generation),
    )
    db.execute(
        "UPDATE resets SET state = 'done', ended_at = ?, note = '', retry_at = NULL WHERE session = ?"
        " AND generation = ? AND state <> 'done'",
        (stamp(record.ts), former.key, former.generation),
    )
    _queue(db, former, record)


def _queue(db: Database, former: Session, record: LogRecord) -> None:
    row = db.row(
        "SELECT from_seq FROM sessions WHERE key = ? AND generation = ?", (former.key, former.generation)
    )  # fmt: skip
    if row is not None and row["from_seq"] < record.seq:
        extraction.queue(db, former, (row["from_seq"], record.seq - 1), "reset", record.ts)
        extraction.read_up_to(db, former.key, former.generation, 0, record.ts)


def last_view(db: Database, log: LogFiles, former: Session, viewed: Viewed, counted: Counting) -> list[Counted]:
    """What a generation showed last: what compactions had put in front, which is kept, then its messages anew from the
    log, but for those undone."""
    rows = db.rows(f"SELECT h.*{OF_VIEW} AND NOT ({LIVE_ROW}) ORDER BY h.position", place(former))
    shown = [Counted(view_message(row), row["tokens"]) for row in rows]
    for row in db.rows(
        "SELECT m.byte_start, m.byte_end FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.generation = ?"
        f" AND {BELONGS_IN_VIEW} ORDER BY m.seq",
        (former.key, checkpoints.first_uncovered(db, former), former.generation),
    ):
        message = viewed(log.read(former.key, LogByteRange(row["byte_start"], row["byte_end"])))
        if message is not None:
            shown.append(counted(message))
    return shown
