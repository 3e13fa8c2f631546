"""Removes text from script.db.

No row of a view is deleted, so coverage, positions and counts stay valid; the row of an erased message says that it was
erased. Compactions can still be undone: the fingerprints of kept rows are recomputed in the same transaction if they
were valid before. Every view of the scope gets a new `prefix_rev`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sqlite3 import Row

from assistant.core.messages import Message
from assistant.store.database import Database
from assistant.store.erasure.files import mark_outdated_archives
from assistant.store.erasure.own_words import is_said_in_json
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.erasure.word_tables import (
    Change,
    RowChange,
    WordTable,
    apply_changes,
    find_changes,
    join_columns,
    redact_json,
    words_in,
)
from assistant.store.log.redact import redact_message
from assistant.store.rows import FORGOTTEN_PLACEHOLDER, dump_json
from assistant.store.script import sessions as session_rows
from assistant.store.script.dated_texts import erase_dated_texts
from assistant.store.script.undo import is_replaced_intact, list_undoable_checkpoint_rows, measure_replaced
from assistant.store.script.view import CountedMessage, encode_view_row, message_of_view_row


def uncounted_message(message: Message) -> CountedMessage:
    """Return a message without its token count, for changes that are only listed."""
    return CountedMessage(message, 0)


def find_script_changes(
    db: Database, plan: ErasurePlan, with_tokens: Callable[[Message], CountedMessage] = uncounted_message
) -> Iterator[RowChange]:
    """Return the changes to make; changes nothing."""
    return find_changes(db, plan, (*_view_tables(with_tokens), *_SCRIPT_TABLES))


def erase_in_script_db(db: Database, plan: ErasurePlan, with_tokens: Callable[[Message], CountedMessage]) -> None:
    """Erase within `write()`."""
    mark_outdated_archives(db, plan)
    erase_dated_texts(db, plan.scope)
    rows = db.rows("SELECT key, generation, scope FROM sessions WHERE scope = ?", (plan.scope,))
    sessions = [session_rows.Session(*row) for row in rows]
    intact = [
        (session, checkpoint)
        for session in sessions
        for checkpoint in list_undoable_checkpoint_rows(db, session)
        if is_replaced_intact(db, session, checkpoint, checkpoint["set_floor"])
    ]
    # All are found before the first is applied: a row may not change while it is read.
    apply_changes(db, list(find_script_changes(db, plan, with_tokens)))
    for message_id in plan.unlearned:
        db.update_rows("messages", {"id": message_id}, unlearned=1)
    for session, checkpoint in intact:
        again = measure_replaced(db, session, checkpoint["id"], checkpoint["kept_from"], checkpoint["set_floor"])
        db.update_rows("checkpoints", {"id": checkpoint["id"]}, view_hash=again.fingerprint)
    for session in sessions:
        session_rows.recount_totals(db, session)


def _view_tables(with_tokens: Callable[[Message], CountedMessage]) -> tuple[WordTable, WordTable]:
    def change(row: Row, plan: ErasurePlan) -> Change | None:
        message = _redact_view_row(row, plan)
        if message is None:
            return None
        return encode_view_row(with_tokens(message))[1], plan.retelling.excerpt(row["content"])

    made_at = "*, (SELECT created_at FROM checkpoints WHERE id = checkpoint_id) AS ts"
    return (
        WordTable("what the model sees", "conversation_history", change),
        WordTable("what is stored to undo a compaction", "earlier_rows", change, columns=made_at),
    )


def _redact_view_row(row: Row, plan: ErasurePlan) -> Message | None:
    """Return the new content of a view row; None if it is unchanged."""
    message_id = row["message_id"] if row["message_id"] is not None else row["carried_from"]
    if message_id in plan.ids:
        message = message_of_view_row(row)
        redacted = redact_message(message)
        return None if redacted == message else redacted
    # A row that is not a message describes many.
    finds, cuts = (plan.retelling, plan.retelling) if message_id is None else (plan.unique, plan.wording)
    if not finds.matches(join_columns(row, ("content", "parts", "metadata"))):
        return None
    content = cuts.remove_from_text(row["content"]) or (FORGOTTEN_PLACEHOLDER if row["content"] else "")
    changed = {"content": content} | {name: redact_json(row[name], cuts) for name in ("parts", "metadata")}
    is_same = all(row[name] == text for name, text in changed.items())
    return None if is_same else message_of_view_row({**dict(row), **changed})


def _tool_run(row: Row, plan: ErasurePlan) -> Change | None:
    """Redact the arguments of tool calls made for an erased message."""
    if (row["turn"], row["call_id"]) in plan.calls and row["arguments"] != "{}":
        return {"arguments": "{}"}, row["name"]
    return None


def _job(row: Row, plan: ErasurePlan) -> Change | None:
    """A reminder or schedule with nothing left is cancelled as well."""
    change = words_in("name", "text")(row, plan)
    if change is None or (values := change[0]) is None or values.get("text") != "":
        return change
    ended = {"state": "cancelled", "ended_at": row["created_at"]} if row["state"] in ("active", "paused") else {}
    return values | {"text": FORGOTTEN_PLACEHOLDER} | ended, change[1]


def _approval(row: Row, plan: ErasurePlan) -> Change | None:
    """A redacted approval is no longer what was shown, so it is not carried out and permits nothing."""
    columns = ("effect", "result", "pattern", "allows")
    values, shown = words_in(*columns, jsons=("arguments",))(row, plan) or (None, "")
    if values is None:
        return None
    allowed = {"allowed_until": None} if values.keys() & {"pattern", "allows"} else {}
    return values | allowed | {"state": row["state"].replace("pending", "declined")}, shown


def _inbox(row: Row, plan: ErasurePlan) -> Change | None:
    if "body" not in row.keys():  # noqa: SIM118 -- a row iterates over its values
        # Of a version with a separate table for text.
        return None
    placeholder, body = dump_json({"content": FORGOTTEN_PLACEHOLDER, "media": [], "name": None}), row["body"]
    is_erased = body != placeholder and (row["message_id"] in plan.ids or is_said_in_json(body, plan.unique))
    return ({"body": placeholder}, "") if is_erased else None


def _outbox(row: Row, plan: ErasurePlan) -> Change | None:
    body, message_id = (redacted := row["body"]), row["message_id"]
    if message_id in plan.ids:
        redacted = FORGOTTEN_PLACEHOLDER
    elif (plan.wording if message_id is None else plan.unique).matches(body):
        redacted = plan.wording.remove_from_text(body) or FORGOTTEN_PLACEHOLDER
    if not body and message_id in plan.ids:
        # The recording of an answer, whose text is another row.
        return None if row["media"] == "[]" else ({"media": "[]"}, "a spoken answer")
    return None if redacted == body else ({"body": redacted, "parts": "[]"}, plan.wording.excerpt(body))


_INBOX_WORDS = "*, (SELECT message_id FROM inbox WHERE id = inbox_id) AS message_id"
_SCRIPT_TABLES = (
    WordTable("summaries", "checkpoints", words_in("summary_content", "note", jsons=("key_facts",), retells=True)),
    WordTable("archives", "archives", words_in("handover", "summary", retells=True)),
    WordTable("notes on resets", "resets", words_in("note")),
    WordTable("notes for the model", "turns", words_in("volatile", "error", retells=True)),
    WordTable("tool calls", "tool_runs", words_in(jsons=("arguments",))),
    WordTable("approvals", "approvals", _approval),
    WordTable("delegated tasks", "delegations", words_in("task", "result", retells=True)),
    WordTable("messages sent to you", "outbox", words_in("error", jsons=("buttons", "media"))),
    WordTable("messages sent to you", "turn_files", words_in(jsons=("media",))),
    WordTable("edited messages", "changes", words_in("content")),
    WordTable("reminders", "jobs", _job),
    WordTable("reminders", "slots", words_in("note")),
    WordTable("error messages", "breakers", words_in("last_error"), scope=None),
    WordTable("error messages", "model_outages", words_in("reason"), scope=None),
    WordTable("error messages", "pushes", words_in("error"), scope=None),
    WordTable("typed commands", "typed_commands", words_in("text")),
    WordTable("names of imported files", "imports", words_in("name")),
    WordTable("titles of imported conversations", "imported_conversations", words_in("title", "external_id")),
    WordTable("tool calls", "tool_runs", _tool_run),
    WordTable("messages as they arrived", "inbox", _inbox),
    WordTable("messages as they arrived", "inbox_words", _inbox, columns=_INBOX_WORDS),
    WordTable("messages sent to you", "outbox", _outbox),
)
