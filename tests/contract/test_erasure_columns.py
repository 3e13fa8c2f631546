"""Every column that can have words, as SQLite itself lists them: forgetting takes the words out of it, or it is
declared here as one that has none, and why. A new table or column fails until one of both is so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Migrations

from assistant.store.database import Database
from assistant.store.erasure.character_rows import erase_in_character_db
from assistant.store.erasure.copies import find_memories
from assistant.store.erasure.plan import ErasurePlan
from assistant.store.erasure.script_rows import erase_in_script_db, uncounted_message
from assistant.store.files import prepare_home
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.schema.migrations import (
    character_migrations,
    files_migrations,
    memory_migrations,
    script_migrations,
    search_migrations,
)
from tests.support.store_home import NOW

STAMP = NOW.isoformat()
WORDS = "The gate of Zanzibar opens with 48213"
PLAN = ErasurePlan("owner", (WORDS,), values=("48213",), everywhere=True)
MIGRATIONS = (script_migrations, character_migrations, memory_migrations, search_migrations, files_migrations)

# Of no table: what the program itself makes up, counts, and numbers.
_OF_THE_PROGRAM = (
    "scope session session_id kind state role trust turn call_id tool_call_id key change_key end_key next_key local_key"
    " external_id change_id bridge sender target room source_type tier trigger purpose provider model source"
    " embedder zone catch_up url sha256 lines_sha256 view_hash commitment salt hash period phase by event"
)
OF_THE_PROGRAM = frozenset(_OF_THE_PROGRAM.split())
# Nothing of these is changed by forgetting.
WORDLESS = {
    "script.sessions": "names of conversations, as people gave them; why and after which one each ended",
    "script.messages": "where each message stands; its words are in the log",
    "script.checkpoints.absorbs": "numbers of checkpoints",
    "script.requests": "where a request stands and what closed it: ids, numbers of messages",
    "script.turns.id": "a number",
    "script.turns.untrusted": "kinds of what a model has read",
    "script.approvals.tool": "the name of a tool",
    "script.mcp_tools": "what servers of others say of their tools; `assistant mcp remove` removes it",
    "script.approvals.allowed_until": "a time",
    "script.approvals.decided_by": "the number of a turn",
    "script.tool_runs.name": "the name of a tool",
    "script.people": "names that people gave; `assistant people` changes them",
    "script.identities": "accounts of people",
    "script.rooms": "names of rooms; `assistant people` changes them",
    "script.pairings": "names that accounts give themselves; they go with the request",
    "script.places": "where people write",
    "script.accounts_at": "accounts of people",
    "script.told": "which conversations were told something",
    "script.bridge_states": "how far a network was read",
    "script.jobs.spec": "when something is due: days, times and lengths, no text",
    "script.slots.told": "the key of the reminder that went out",
    "script.resets.reason": "one of a few words of the program",
    "script.archives.reason": "one of a few words of the program",
    "script.usage": "tokens and money",
    "script.usage_totals": "tokens and money",
    "script.usage_by_role": "tokens and money",
    "script.model_facts": "what was learned of models",
    "script.breakers.name": "the name of a part",
    "script.notice_marks": "which notices were sent",
    "script.pushes": "which notifications were sent, and why a service refused one",
    "script.repeated_requests": "fingerprints of whole requests",
    "script.dated_texts.made_of": "a digest; all rows of the scope go",
    "script.model_outages.name": "the name of a model",
    "script.model_outage_places": "where an outage was told",
    "character.todos.due": "a day, or a time of it",
    "character.readings": "how far each conversation was read",
    "character.journal.sources": "numbers of messages",
    "character.consolidated_entry_ids.memory_id": "ids; the rows of a memory or entry that goes are removed",
    "character.plan_subjects": "ids; those of what goes are removed",
    "character.edits.target": "a file's name, or a profile's number",
    "memory.memories.id": "ids; the whole row goes",
    "memory.vectors": "numbers; they go with their memory",
    "memory.history.memory_id": "ids; the rows go with their memory",
    "memory.history.actor_id": "who said it, by number",
    "memory.answering": "settings of an embedder",
    "files": "made of files: what has the words loses its text, and the names of files are the owner's "
    "(test_erasure_of_files.py)",
    "search": "made of the log, journal and memories; what the log blanks is taken out by its own words, the journal's "
    "index is made anew, and the search through every byte ends in it (test_erasure.py)",
}
# What the words stand in, where it is no plain text.
FORMS = {
    "parts": json.dumps({"tool_calls": [{"id": "c1", "name": "x", "arguments": {"text": WORDS}}]}),
    "outbox.parts": json.dumps([WORDS]),
    "metadata": json.dumps({"note": WORDS}),
    "key_facts": json.dumps([WORDS]),
    "arguments": json.dumps({"text": WORDS}),
    "buttons": json.dumps([{"label": WORDS}]),
    "media": json.dumps([{"path": WORDS}]),
    "result": json.dumps({"text": WORDS}),
    "tags": json.dumps([WORDS]),
    "phases": json.dumps([{"name": "x", "note": WORDS}]),
    "aliases": json.dumps([WORDS]),
    "attributes": json.dumps([{"name": "gate", "value": WORDS, "since": STAMP, "sources": []}]),
    "payload": json.dumps({"data": WORDS}),
    "change_plans.body": json.dumps(
        {"changes": [{"memory": {"id": "m1", "text": WORDS}, "before": None}], "entries": []}
    ),
}
# Columns made of another, with which they go.
MADE_OF = {"outbox.parts": "body", "entity_profiles.folded": "name"}
# Whose rows tell whose a row is, or when it was made.
PARENTS = {"consolidated_entry_ids": "journal", "earlier_rows": "checkpoints"}
EMPTY = {
    **dict.fromkeys(
        ("outbox.parts", "key_facts", "buttons", "media", "tags", "aliases", "attributes", "sources"), "[]"
    ),
    **dict.fromkeys(("parts", "metadata", "arguments", "result", "phases", "payload"), "{}"),
    "scope": "owner",
    "role": "user",
    "kind": "person",
    "state": "done",
}


def _is_time(column: str) -> bool:
    return column.endswith("_at") or column in ("at", "ts", "from_ts", "to_ts", "timestamp", "lease_until")


def _word_columns(db: Database, name: str) -> Iterator[tuple[str, str]]:
    """Tables and columns that can have words and are not declared to have none."""
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    for table in (row["name"] for row in db.rows(tables) if row["name"] != "_sqlite_migrations"):
        for column in db.rows("SELECT name, type FROM pragma_table_info(?)", (table,)):
            places = (name, f"{name}.{table}", f"{name}.{table}.{column['name']}")
            is_declared = _is_time(column["name"]) or column["name"] in OF_THE_PROGRAM or any(map(WORDLESS.get, places))
            if column["type"] in ("TEXT", "BLOB") and not is_declared:
                yield table, column["name"]


def _row(db: Database, table: str) -> dict[str, object]:
    """Values that the program can read, and no words."""
    row: dict[str, object] = {}
    for about in db.rows("SELECT name, type FROM pragma_table_info(?)", (table,)):
        name = about["name"]
        text = STAMP if _is_time(name) else EMPTY.get(f"{table}.{name}", EMPTY.get(name, "x"))
        row[name] = {"TEXT": text, "BLOB": b""}.get(about["type"], 1)
    return row


def _erase(db: Database, name: str) -> None:
    if name == "memory":
        MemoryVectors(db).erase(list(find_memories(db, PLAN)))
        return
    with db.write(references=False):
        if name == "script":
            erase_in_script_db(db, PLAN, uncounted_message)
        elif name == "character":
            erase_in_character_db(db, PLAN)


@pytest.mark.parametrize("migrations", MIGRATIONS, ids=lambda one: one.name)
def test_forgetting_reaches_every_column_that_has_words(tmp_path: Path, migrations: Migrations) -> None:
    prepare_home(tmp_path)
    missed = []
    with closing(Database.open(tmp_path / f"{migrations.name}.db", migrations, NOW)) as db:
        db.rows("PRAGMA ignore_check_constraints = ON")
        for table, column in _word_columns(db, migrations.name):
            with db.write(references=False):
                if table in PARENTS:
                    db.insert_row(PARENTS[table], **_row(db, PARENTS[table]))
                place = f"{table}.{column}"
                words = {MADE_OF.get(place, column): WORDS, column: FORMS.get(place, FORMS.get(column, WORDS))}
                db.insert_row(table, **{**_row(db, table), **words})
            _erase(db, migrations.name)
            left = [value for row in db.rows(f'SELECT "{column}" AS value FROM {table}') if (value := row["value"])]
            if any("48213" in str(value) for value in left):
                missed.append(f"{table}.{column}: {left}")
            with db.write(references=False):
                for filled in (table, PARENTS.get(table, table)):
                    db.execute(f"DELETE FROM {filled}")
    assert missed == []


def test_what_is_declared_to_have_no_words_is_there(tmp_path: Path) -> None:
    prepare_home(tmp_path)
    known = {migrations.name for migrations in MIGRATIONS}
    for migrations in MIGRATIONS:
        with closing(Database.open(tmp_path / f"{migrations.name}.db", migrations, NOW)) as db:
            for table in db.rows("SELECT name FROM sqlite_master WHERE type = 'table'"):
                place = f"{migrations.name}.{table['name']}"
                columns = db.rows("SELECT name FROM pragma_table_info(?)", (table["name"],))
                known |= {place, *(f"{place}.{column['name']}" for column in columns)}
    assert WORDLESS.keys() <= known
