"""Words removed from script.db and character.db: which tables have words, and what becomes of a row that has those to
erase. Memories are erased by the memory layer, through its own port.

What always holds:
- Only rows of the scope are read or changed (I10), except in the few tables that belong to nobody; a table or column
  that an older backup lacks is skipped. Repeating it changes nothing but `prefix_rev`.
- No row of a view is removed, so coverage, positions and counts stay; a row of an erased message says that it was
  erased. What can be undone stays so: the fingerprints of what compactions keep are computed again in the same
  transaction, if they were right before. Every view of the scope gets another `prefix_rev`.
- A journal entry is removed whole where nothing of it is left, where it is named, or where it was made only of erased
  messages that were named; what superseded it, or was superseded by it, stays. What a profile says only because of such
  entries is removed with them, in whatever words. A change that would bring the words back when a sleep is undone is no
  longer part of its plan; a plan that waits is made anew from what its entries are then. Texts of profiles and files
  lose the same sentences in every version, so edits can still be undone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from sqlite3 import Row
from typing import Any

from assistant.core.erasure_phrases import PhraseMatcher
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.profiles import Profile
from assistant.store.character.edits import PROFILE_TARGET
from assistant.store.character.journal import entry_subject
from assistant.store.character.profiles import profile_columns, profile_from_text, profile_to_text, read_profile
from assistant.store.database import Database
from assistant.store.erasure.files import mark_outdated_archives
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.log.redact import redact_message
from assistant.store.rows import FORGOTTEN_PLACEHOLDER, dump_json
from assistant.store.script import sessions as session_rows
from assistant.store.script.undo import is_replaced_intact, list_undoable_checkpoint_rows, measure_replaced
from assistant.store.script.view import CountedMessage, encode_view_row, message_of_view_row

# Other values of a row by column (None: it is removed), and what tells a person which one it is, "" for nothing.
_Change = tuple[dict[str, Any] | None, str]
_ChangeRow = Callable[[Row, ErasurePlan], _Change | None]  # None where it stays as it is


@dataclass(frozen=True, slots=True)
class _WordTable:
    """A table that has words."""

    place: str  # what a person calls it
    name: str
    change: _ChangeRow
    scope: str | None = "scope"  # the column that tells whose a row is, or an SQL expression; None: nobody's
    columns: str = "*"


@dataclass(frozen=True, slots=True)
class RowChange:
    """What becomes of a row."""

    place: str
    table: str
    row: int  # its rowid
    values: dict[str, Any] | None  # by column; None: it is removed
    shown: str


def _find_changes(db: Database, plan: ErasurePlan, tables: Iterable[_WordTable]) -> Iterator[RowChange]:
    for table in tables:
        for row in _scoped_rows(db, table.name, plan, scope=table.scope, columns=table.columns):
            if (change := table.change(row, plan)) is not None:
                yield RowChange(table.place, table.name, row["row_number"], *change)


def _scoped_rows(
    db: Database, table: str, plan: ErasurePlan, *, scope: str | None = "scope", columns: str = "*"
) -> Iterator[Row]:
    """Rows of the plan's scope, each with its rowid as `row_number`."""
    if not db.column_names(table):
        return iter(())
    sql = f"SELECT rowid AS row_number, {columns} FROM {table}"
    return db.iterate(sql) if scope is None else db.iterate(f"{sql} WHERE {scope} = ? ORDER BY rowid", (plan.scope,))


def _apply_changes(db: Database, changes: Sequence[RowChange]) -> None:
    """Inside `write()`."""
    for change in changes:
        if change.values is None:
            db.execute(f"DELETE FROM {change.table} WHERE rowid = ?", (change.row,))
        else:
            db.update_rows(change.table, {"rowid": change.row}, **change.values)


def _words_in(*texts: str, jsons: tuple[str, ...] = (), goes: bool = False, retells: bool = False) -> _ChangeRow:
    """The sentences with the words are cut out of these columns, and out of texts within the JSON of `jsons`; with
    `goes` a row whose first text is left empty is removed. `retells`: they tell of messages in other words."""

    def change(row: Row, plan: ErasurePlan) -> _Change | None:
        wording = plan.retelling if retells else plan.wording
        present = row.keys()
        columns = [name for name in (*texts, *jsons) if name in present]
        if not wording.matches(_joined(row, columns)):
            return None
        redacted = {
            name: _redact_json(row[name], wording) if name in jsons else wording.remove_from_text(row[name])
            for name in columns
            if row[name]
        }
        values = {name: text for name, text in redacted.items() if text != row[name]}
        if not values:
            return None
        return None if goes and values.get(texts[0]) == "" else values, wording.excerpt(row[next(iter(values))])

    return change


def _joined(row: Row, columns: Iterable[str]) -> str:
    """To be searched at once. Nothing that is looked for goes across the signs between."""
    return "\0".join(row[name] or "" for name in columns)


# Somebody may say "arguments", and a message without them could not be read any more.
_OWN_KEYS = frozenset(field.name for kind in (Message, ToolCall, Media) for field in fields(kind))


def _redact_json(text: str, wording: PhraseMatcher) -> str:
    """A JSON text whose texts have lost the words. What is no JSON is taken for plain text."""
    try:
        value = json.loads(text)
    except ValueError:
        return wording.remove_from_text(text)
    redacted = wording.remove_from_json(value, FORGOTTEN_PLACEHOLDER, _OWN_KEYS)
    return text if redacted == value else dump_json(redacted)


# ---------------------------------------------------------------------------------------------------------- script.db


def uncounted_message(message: Message) -> CountedMessage:
    """For changes that are looked for and never applied."""
    return CountedMessage(message, 0)


def find_script_changes(
    db: Database, plan: ErasurePlan, with_tokens: Callable[[Message], CountedMessage] = uncounted_message
) -> Iterator[RowChange]:
    """What would be changed, nothing yet."""
    return _find_changes(db, plan, (*_view_tables(with_tokens), *_SCRIPT_TABLES))


def erase_in_script_db(db: Database, plan: ErasurePlan, with_tokens: Callable[[Message], CountedMessage]) -> None:
    """Inside `write()`."""
    mark_outdated_archives(db, plan)
    rows = db.rows("SELECT key, generation, scope FROM sessions WHERE scope = ?", (plan.scope,))
    sessions = [session_rows.Session(*row) for row in rows]
    intact = [
        (session, checkpoint)
        for session in sessions
        for checkpoint in list_undoable_checkpoint_rows(db, session)
        if is_replaced_intact(db, session, checkpoint, checkpoint["set_floor"])
    ]
    # All are found before the first is carried out: a row may not be changed while it is read.
    _apply_changes(db, list(find_script_changes(db, plan, with_tokens)))
    for message_id in plan.unlearned:
        db.update_rows("messages", {"id": message_id}, unlearned=1)
    for session, checkpoint in intact:
        again = measure_replaced(db, session, checkpoint["id"], checkpoint["kept_from"], checkpoint["set_floor"])
        db.update_rows("checkpoints", {"id": checkpoint["id"]}, view_hash=again.fingerprint)
    for session in sessions:
        session_rows.recount_totals(db, session)


def _view_tables(with_tokens: Callable[[Message], CountedMessage]) -> tuple[_WordTable, _WordTable]:
    def change(row: Row, plan: ErasurePlan) -> _Change | None:
        message = _redact_view_row(row, plan)
        if message is None:
            return None
        return encode_view_row(with_tokens(message))[1], plan.retelling.excerpt(row["content"])

    made_at = "*, (SELECT created_at FROM checkpoints WHERE id = checkpoint_id) AS ts"
    return (
        _WordTable("what the model sees", "conversation_history", change),
        _WordTable("what is stored to undo a compaction", "earlier_rows", change, columns=made_at),
    )


def _redact_view_row(row: Row, plan: ErasurePlan) -> Message | None:
    """What a row is to say; None where it stays as it is."""
    message_id = row["message_id"] if row["message_id"] is not None else row["carried_from"]
    if message_id in plan.ids:
        message = message_of_view_row(row)
        redacted = redact_message(message)
        return None if redacted == message else redacted
    # What stands for no message tells of many.
    finds, cuts = (plan.retelling, plan.retelling) if message_id is None else (plan.unique, plan.wording)
    if not finds.matches(_joined(row, ("content", "parts", "metadata"))):
        return None
    content = cuts.remove_from_text(row["content"]) or (FORGOTTEN_PLACEHOLDER if row["content"] else "")
    changed = {"content": content} | {name: _redact_json(row[name], cuts) for name in ("parts", "metadata")}
    is_same = all(row[name] == text for name, text in changed.items())
    return None if is_same else message_of_view_row({**dict(row), **changed})


def _tool_run(row: Row, plan: ErasurePlan) -> _Change | None:
    """What tools were run with, as a forgotten message had asked for it."""
    if (row["turn"], row["call_id"]) in plan.calls and row["arguments"] != "{}":
        return {"arguments": "{}"}, row["name"]
    return None


def _job(row: Row, plan: ErasurePlan) -> _Change | None:
    """Of a reminder or schedule of which nothing is left, nothing is to come either."""
    change = _words_in("name", "text")(row, plan)
    if change is None or (values := change[0]) is None or values.get("text") != "":
        return change
    ended = {"state": "cancelled", "ended_at": row["created_at"]} if row["state"] in ("active", "paused") else {}
    return values | {"text": FORGOTTEN_PLACEHOLDER} | ended, change[1]


def _approval(row: Row, plan: ErasurePlan) -> _Change | None:
    """What is not whole any more is not what was shown, so it is not done."""
    values, shown = _words_in("effect", "result", jsons=("arguments",))(row, plan) or (None, "")
    return None if values is None else (values | {"state": row["state"].replace("pending", "declined")}, shown)


def _inbox(row: Row, plan: ErasurePlan) -> _Change | None:
    placeholder, body = dump_json({"content": FORGOTTEN_PLACEHOLDER, "media": [], "name": None}), row["body"]
    is_erased = body != placeholder and (row["message_id"] in plan.ids or plan.unique.matches(body))
    return ({"body": placeholder}, "") if is_erased else None


def _outbox(row: Row, plan: ErasurePlan) -> _Change | None:
    body, message_id = (redacted := row["body"]), row["message_id"]
    if message_id in plan.ids:
        redacted = FORGOTTEN_PLACEHOLDER
    elif (plan.wording if message_id is None else plan.unique).matches(body):
        redacted = plan.wording.remove_from_text(body) or FORGOTTEN_PLACEHOLDER
    return None if redacted == body else ({"body": redacted, "parts": "[]"}, plan.wording.excerpt(body))


_SCRIPT_TABLES = (
    _WordTable("summaries", "checkpoints", _words_in("summary_content", "note", jsons=("key_facts",), retells=True)),
    _WordTable("archives", "archives", _words_in("handover", "summary", retells=True)),
    _WordTable("notes on resets", "resets", _words_in("note")),
    _WordTable("notes for the model", "turns", _words_in("volatile", "error", retells=True)),
    _WordTable("tool calls", "tool_runs", _words_in(jsons=("arguments",))),
    _WordTable("approvals", "approvals", _approval),
    _WordTable("delegated tasks", "delegations", _words_in("task", "result", retells=True)),
    _WordTable("messages sent to you", "outbox", _words_in("error", jsons=("buttons", "media"))),
    _WordTable("messages sent to you", "turn_files", _words_in(jsons=("media",))),
    _WordTable("edited messages", "changes", _words_in("content")),
    _WordTable("reminders", "jobs", _job),
    _WordTable("reminders", "slots", _words_in("note")),
    _WordTable("error messages", "breakers", _words_in("last_error"), scope=None),
    _WordTable("error messages", "model_outages", _words_in("reason"), scope=None),
    _WordTable("typed commands", "typed_commands", _words_in("text")),
    _WordTable("names of imported files", "imports", _words_in("name")),
    _WordTable("titles of imported conversations", "imported_conversations", _words_in("title", "external_id")),
    _WordTable("tool calls", "tool_runs", _tool_run),
    _WordTable("messages as they arrived", "inbox", _inbox),
    _WordTable("messages sent to you", "outbox", _outbox),
)


# ------------------------------------------------------------------------------------------------------- character.db

RANGE_ENTRIES = ("context_synthesis", "compaction")
"""Journal entries made of a whole range of messages, whose sources are its first and its last."""


def find_character_changes(db: Database, plan: ErasurePlan) -> Iterator[RowChange]:
    """What would be changed, nothing yet."""
    return _find_changes(db, plan, _CHARACTER_TABLES)


def erase_in_character_db(db: Database, plan: ErasurePlan) -> bool:
    """Inside `write()`: whether the journal had something of it."""
    changes = list(find_character_changes(db, plan))
    for entry_id in (entry for entry, left in changed_entries(changes).items() if not left):
        db.execute("UPDATE journal SET superseded_by = NULL WHERE superseded_by = ?", (entry_id,))
        db.execute("DELETE FROM consolidated_entry_ids WHERE entry_id = ?", (entry_id,))
    for memory_id in plan.memories:
        # Other entries of a memory that goes: the next sleep makes a memory of them again.
        db.execute("DELETE FROM consolidated_entry_ids WHERE memory_id = ?", (memory_id,))
    _apply_changes(db, changes)
    for subject in (*plan.memories, *map(entry_subject, plan.entries)):
        # A memory's id is made of words: who guesses them could prove it.
        db.execute("DELETE FROM plan_subjects WHERE subject = ?", (subject,))
    return any(change.table == "journal" for change in changes)


def changed_entries(changes: Iterable[RowChange]) -> dict[int, str]:
    """What is left of the journal entries that change, by id; "" of those that go whole."""
    of_journal = (change for change in changes if change.table == "journal")
    return {change.row: (change.values or {}).get("content", "") for change in of_journal}


def _journal_entry(row: Row, plan: ErasurePlan) -> _Change | None:
    content = row["content"]
    if row["id"] in plan.entries:
        return None, " ".join(content.split())[:80]
    retells = row["source_type"] in RANGE_ENTRIES or not plan.ids.isdisjoint(json.loads(row["sources"]))
    wording = plan.retelling if retells else plan.wording
    if not (wording.matches(content) or plan.wording.matches(row["tags"])):
        return None
    redacted = wording.remove_from_text(content)
    # The old key is made of the words: who guesses them could prove it.
    values = {"key": f"forgotten:{row['id']}", "content": redacted, "tags": _redact_json(row["tags"], plan.wording)}
    return values if redacted else None, wording.excerpt(content)


def _change_plan(row: Row, plan: ErasurePlan) -> _Change | None:
    body = json.loads(row["body"])
    changes = [change for change in body["changes"] if not _is_about(change, plan)]
    entries = [entry for entry in body["entries"] if entry not in plan.entries]
    is_same = (changes, entries) == (body["changes"], body["entries"])
    if is_same and not plan.wording.matches(row["body"]):
        return None
    redacted = plan.wording.remove_from_json({**body, "changes": changes, "entries": entries}, FORGOTTEN_PLACEHOLDER)
    return None if row["state"] == "planned" else {"body": dump_json(redacted)}, ""


def _is_about(change: dict[str, Any], plan: ErasurePlan) -> bool:
    ids = {change["memory"]["id"], (change["before"] or {}).get("id")}
    return not ids.isdisjoint(plan.memories) or plan.wording.matches(dump_json(change))


def _pin(row: Row, plan: ErasurePlan) -> _Change | None:
    shown = plan.wording.excerpt(row["text"])
    if row["message_id"] in plan.ids:
        return None, shown
    if (plan.wording if row["message_id"] is None else plan.unique).matches(row["text"]):
        redacted = plan.wording.remove_from_text(row["text"])
        return {"text": redacted} if redacted else None, shown
    return None


def _profile(row: Row, plan: ErasurePlan) -> _Change | None:
    profile = read_profile(row)
    redacted = _redact_profile(profile, plan)
    if redacted == profile:
        return None
    return None if redacted is None else profile_columns(redacted), profile.name


def _redact_profile(profile: Profile, plan: ErasurePlan) -> Profile | None:
    """Without every alias and attribute that has the words, or was learned from entries that go and from no other; None
    where the name has them."""
    wording = plan.wording
    if wording.matches(profile.name):
        return None
    return replace(
        profile,
        aliases=tuple(alias for alias in profile.aliases if not wording.matches(alias)),
        summary=plan.retelling.remove_from_text(profile.summary),
        attributes=tuple(
            attribute
            for attribute in profile.attributes
            if not wording.matches(f"{attribute.name}\n{attribute.value}")
            and not (attribute.sources and set(attribute.sources) <= set(plan.entries))
        ),
    )


def _edit(row: Row, plan: ErasurePlan) -> _Change | None:
    is_profile = row["target"].startswith(PROFILE_TARGET)
    before, after = (_redact_version(row, column, plan) for column in ("before", "after"))
    if (before, after) == (row["before"], row["after"]):
        return None
    # A change that was about nothing else has nothing to take back.
    is_empty = before == after or (after == "" and is_profile)
    shown = "" if is_profile else row["target"].partition(":")[2]
    return None if is_empty else {"before": before, "after": after}, shown


def _redact_version(row: Row, column: str, plan: ErasurePlan) -> str:
    text: str = row[column]
    if not row["target"].startswith(PROFILE_TARGET):
        return plan.wording.remove_from_text(text)
    if not text or not (plan.entries or plan.retelling.matches(text)):
        return text
    profile = profile_from_text(text, row["scope"])
    redacted = _redact_profile(profile, plan)
    if redacted == profile:
        return text
    return "" if redacted is None else profile_to_text(redacted)


_CHARACTER_TABLES = (
    _WordTable("to-dos", "todos", _words_in("text", "list", goes=True)),
    _WordTable("to-dos", "effects", _words_in(jsons=("result",))),
    _WordTable(
        "journal", "consolidated_entry_ids", _words_in("note"), scope="(SELECT scope FROM journal WHERE id = entry_id)"
    ),
    _WordTable("sleep reports", "sleep_cycles", _words_in(jsons=("phases",)), scope=None),
    _WordTable("pins", "pins", _pin),
    _WordTable("journal", "journal", _journal_entry),
    _WordTable("what sleep changed", "change_plans", _change_plan),
    _WordTable("profiles", "entity_profiles", _profile),
    _WordTable("earlier versions of files and profiles", "edits", _edit),
)
