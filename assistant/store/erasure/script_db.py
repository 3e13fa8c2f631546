"""Words removed from script.db: the working context with all that compactions keep of it, summaries, inbox and outbox,
turns, tool runs, delegated tasks, jobs.

What always holds: no row of a view is removed, so coverage, positions and counts stay; a row of an erased message says
that it was erased. What can be undone stays so: the fingerprints of what compactions keep are computed again in the
same transaction, if they were right before. Every view of the scope gets another `prefix_rev`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from sqlite3 import Row

from assistant.core.messages import Message
from assistant.store.database import Database, column_names
from assistant.store.erasure.archives import mark_outdated_archives
from assistant.store.erasure.columns import RowChange, TextColumns, apply_row_changes, find_row_changes, scoped_rows
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.log.redact import redact_message
from assistant.store.rows import FORGOTTEN_PLACEHOLDER, dump_json
from assistant.store.script import sessions as session_rows
from assistant.store.script.sessions import Session
from assistant.store.script.undo import is_replaced_intact, list_undoable_checkpoint_rows, measure_replaced
from assistant.store.script.view import CountedMessage, encode_view_row, message_of_view_row

_COLUMNS = (
    TextColumns("summaries", "checkpoints", ("summary_content", "note"), ("key_facts",)),
    TextColumns("archives", "archives", ("handover", "summary")),
    TextColumns("resets", "resets", ("note",)),
    TextColumns("turns", "turns", ("volatile", "error")),
    TextColumns("tool runs", "tool_runs", (), ("arguments",)),
    TextColumns("helpers' tasks", "delegations", ("task", "result")),
    TextColumns("outbox", "outbox", ("error",)),
    TextColumns("outbox", "outbox", (), ("buttons", "media")),
    TextColumns("outbox", "turn_files", (), ("media",)),
    TextColumns("edits", "changes", ("content",)),
    TextColumns("reminders", "jobs", ("name", "text")),
    TextColumns("reminders", "slots", ("note",)),
    TextColumns("faults", "breakers", ("last_error",), scope=None),
)


def find_script_changes(
    db: Database, plan: ErasurePlan, with_tokens: Callable[[Message], CountedMessage]
) -> Iterator[RowChange]:
    """What would be changed, nothing yet."""
    yield from _views(db, plan, with_tokens)
    yield from _earlier(db, plan, with_tokens)
    for columns in _COLUMNS:
        yield from find_row_changes(db, columns, plan)
    yield from _tool_runs(db, plan)
    yield from _inbox(db, plan)
    yield from _outbox(db, plan)


def erase_in_script_db(db: Database, plan: ErasurePlan, with_tokens: Callable[[Message], CountedMessage]) -> None:
    """Inside `write()`. Repeating it changes nothing but `prefix_rev`."""
    mark_outdated_archives(db, plan)
    intact = [(session, row) for session in _sessions(db, plan) for row in _intact_checkpoints(db, session)]
    # All are found before the first is carried out: a row may not be changed while it is read.
    apply_row_changes(db, list(find_script_changes(db, plan, with_tokens)))
    for session, row in intact:
        again = measure_replaced(db, session, row["id"], row["kept_from"], row["set_floor"])
        db.execute("UPDATE checkpoints SET view_hash = ? WHERE id = ?", (again.fingerprint, row["id"]))
    for session in _sessions(db, plan):
        session_rows.recount_totals(db, session)


def _sessions(db: Database, plan: ErasurePlan) -> list[Session]:
    rows = db.rows("SELECT key, generation, scope FROM sessions WHERE scope = ?", (plan.scope,))
    return [Session(row["key"], row["generation"], row["scope"]) for row in rows]


def _intact_checkpoints(db: Database, session: Session) -> list[Row]:
    """Checkpoints of which all that they replaced is still kept as it was."""
    return [
        row
        for row in list_undoable_checkpoint_rows(db, session)
        if is_replaced_intact(db, session, row, row["set_floor"])
    ]


# -------------------------------------------------------------------------------------------------------------- views


def _views(db: Database, plan: ErasurePlan, with_tokens: Callable[[Message], CountedMessage]) -> Iterator[RowChange]:
    for row in scoped_rows(db, "conversation_history", "scope", plan):
        message_id = row["message_id"] if row["message_id"] is not None else row["carried_from"]
        redacted = _redact_row(row, message_id, message_of_view_row(row), plan)
        if redacted is not None:
            yield _view_change("what the model sees", "conversation_history", row, with_tokens(redacted), plan)


def _earlier(db: Database, plan: ErasurePlan, with_tokens: Callable[[Message], CountedMessage]) -> Iterator[RowChange]:
    if not column_names(db, "earlier_rows"):
        return
    rows = db.iterate(
        "SELECT e.rowid AS row_number, e.*, c.created_at AS ts FROM earlier_rows e"
        " JOIN checkpoints c ON c.id = e.checkpoint_id WHERE e.scope = ?",
        (plan.scope,),
    )
    for row in rows:
        redacted = _redact_row(row, row["message_id"], message_of_view_row(row), plan)
        if redacted is not None:
            yield _view_change("kept for undo", "earlier_rows", row, with_tokens(redacted), plan)


def _redact_row(row: Row, message_id: int | None, message: Message, plan: ErasurePlan) -> Message | None:
    """What a row is to say; None where it stays as it is."""
    if message_id is not None and message_id in plan.ids:
        redacted = redact_message(message)
        return None if redacted == message else redacted
    if message_id is not None and not plan.everywhere:
        return None
    if not any(plan.wording.matches(row[column]) for column in ("content", "parts", "metadata")):
        return None
    wording = plan.wording
    parts = wording.remove_from_json(json.loads(row["parts"]), FORGOTTEN_PLACEHOLDER)
    about = wording.remove_from_json(json.loads(row["metadata"]), FORGOTTEN_PLACEHOLDER)
    columns = {key: row[key] for key in row.keys()} | {"parts": dump_json(parts)}  # noqa: SIM118 - a Row iterates values
    redacted = message_of_view_row(columns)
    words = wording.remove_from_text(message.content) if wording.matches(message.content) else message.content
    return replace(redacted, content=words or (FORGOTTEN_PLACEHOLDER if message.content else ""), metadata=about)


def _view_change(place: str, table: str, row: Row, redacted: CountedMessage, plan: ErasurePlan) -> RowChange:
    _, columns = encode_view_row(redacted)
    shown = f"message {redacted.message.id}" if redacted.message.id else plan.wording.excerpt(row["content"])
    return RowChange(place, table, row["row_number"], columns, shown)


# ----------------------------------------------------------------------------------------------- inbox, outbox, calls


def _tool_runs(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    """What tools were run with, as a forgotten message had asked for it."""
    calls = set(plan.calls)
    for row in scoped_rows(db, "tool_runs", "scope", plan) if calls else ():
        if (row["turn"], row["call_id"]) in calls and row["arguments"] != "{}":
            yield RowChange("tool runs", "tool_runs", row["row_number"], {"arguments": "{}"}, row["name"])


def _inbox(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    placeholder = dump_json({"content": FORGOTTEN_PLACEHOLDER, "media": [], "name": None})
    for row in scoped_rows(db, "inbox", "scope", plan):
        is_erased = row["message_id"] in plan.ids
        if row["body"] != placeholder and (is_erased or (plan.everywhere and plan.wording.matches(row["body"]))):
            yield RowChange("inbox", "inbox", row["row_number"], {"body": placeholder}, f"message {row['message_id']}")


def _outbox(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    for row in scoped_rows(db, "outbox", "scope", plan):
        body, message_id = row["body"], row["message_id"]
        if message_id in plan.ids:
            redacted, shown = FORGOTTEN_PLACEHOLDER, f"message {message_id}"
        elif plan.wording.matches(body) and (message_id is None or plan.everywhere):
            redacted, shown = plan.wording.remove_from_text(body) or FORGOTTEN_PLACEHOLDER, plan.wording.excerpt(body)
        else:
            continue
        if redacted != body:
            yield RowChange("outbox", "outbox", row["row_number"], {"body": redacted, "parts": "[]"}, shown)
