"""Databases of earlier versions: one that has every migration that was retired is as a new one and needs none; one that
has only some of them is refused and left as it was; before any later migration a copy is kept."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
import sqlite_utils
from sqlite_utils import Migrations

from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.people import PairingCode, PairingOffer
from assistant.core.records import OutgoingMessage
from assistant.store.database import Database
from assistant.store.files import prepare_home
from assistant.store.schema.migrations import (
    character_migrations,
    files_migrations,
    memory_migrations,
    script_migrations,
    search_migrations,
)
from assistant.store.script.outbox import insert_outgoing
from assistant.store.script.people import Pairings
from assistant.store.script.sessions import Session
from assistant.store.script.view import CountedMessage, Views
from tests.support.home_0_1 import unpack_home_0_1
from tests.support.store_home import NOW

STAMP = "2026-11-20T10:00:00.000000Z"
RETIRED = {
    "script": [
        "0001_initial",
        "0002_compaction",
        "0003_search_moved",
        "0004_people",
        "0005_agenda",
        "0006_resets",
        "0007_bridges",
        "0008_spending",
    ],
    "character": ["0001_initial", "0002_journal", "0003_memory"],
}
EVERY_DATABASE = (
    script_migrations,
    character_migrations,
    memory_migrations,
    search_migrations,
    files_migrations,
)


def names(migrations: Migrations) -> list[str]:
    return [migration.name for migration in migrations.pending(sqlite_utils.Database(memory=True))]


def steps(migrations: Migrations) -> list[str]:
    """The names of the migrations by which databases came to be until these were squashed, in their order."""
    return [*RETIRED[migrations.name], names(migrations)[0]]


def schema(path: Path) -> set[tuple[str, str, str]]:
    """Tables and indexes, without spaces and lines; of which one is made first is no matter."""
    with sqlite_utils.Database(path) as database:
        rows = database.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return {(kind, name, re.sub(r"\s", "", sql)) for kind, name, sql in rows}


def made_with(path: Path, migrations: Migrations, applied: list[str]) -> Path:
    """A database with the tables of today whose migrations are said to be these."""
    Database.open(path, migrations, NOW).close()
    with sqlite_utils.Database(path) as database:
        database["_sqlite_migrations"].delete_where()
        database["_sqlite_migrations"].insert_all(
            {"migration_set": migrations.name, "name": name, "applied_at": STAMP} for name in applied
        )
    return path


@pytest.mark.parametrize("migrations", EVERY_DATABASE, ids=lambda migrations: migrations.name)
def test_a_database_that_was_migrated_step_by_step_is_as_a_new_one(tmp_path: Path, migrations: Migrations) -> None:
    old, new = unpack_home_0_1(tmp_path) / f"{migrations.name}.db", tmp_path / "new" / f"{migrations.name}.db"
    for path in (old, new):
        Database.open(path, migrations, NOW).close()
    assert schema(old) == schema(new)


@pytest.mark.parametrize("migrations", (script_migrations, character_migrations), ids=lambda one: one.name)
def test_where_all_retired_migrations_were_applied_none_is_needed(tmp_path: Path, migrations: Migrations) -> None:
    applied = [*steps(migrations), *names(migrations)[1:]]
    path = made_with(tmp_path / "home" / f"{migrations.name}.db", migrations, applied)
    db = Database.open(path, migrations, NOW)
    db.require_schema(migrations)
    assert db.applied_migrations() == applied
    db.close()
    assert not (path.parent / "backups").exists()


@pytest.mark.parametrize(
    ("migrations", "count"),
    [(each, count) for each in (script_migrations, character_migrations) for count in range(1, len(steps(each)))],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_where_only_some_were_applied_it_is_told_and_left_alone(
    tmp_path: Path, migrations: Migrations, count: int
) -> None:
    path = made_with(tmp_path / "home" / f"{migrations.name}.db", migrations, steps(migrations)[:count])
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"^[^\n]*Nothing was changed; start the version before this one once[^\n]*$"):
        Database.open(path, migrations, NOW)
    reader = Database.open_reader(path)
    with pytest.raises(StoreError, match="start the version before this one once"):
        reader.require_schema(migrations)
    reader.close()
    assert path.read_bytes() == before
    assert not (path.parent / "backups").exists()


def test_conversations_of_every_earlier_version_go_on_and_a_copy_of_what_was_stays(tmp_path: Path) -> None:
    for number, next_one in enumerate(names(script_migrations)[1:]):
        path = tmp_path / str(number) / "script.db"
        prepare_home(path.parent)
        with sqlite_utils.Database(path) as old:
            script_migrations.apply(old, stop_before=next_one)
        add_message(path, "before")
        db = Database.open(path, script_migrations, NOW)
        db.close()
        add_message(path, "after")
        db = Database.open(path, script_migrations, NOW)
        assert [message.content for message in Views(db).read("main").messages] == ["before", "after"]
        db.close()
        (copy_path,) = (path.parent / "backups").iterdir()
        assert copy_path.name.endswith(f"-before-{next_one}.db")
        with sqlite_utils.Database(copy_path) as copy:
            assert next(migration.name for migration in script_migrations.pending(copy)) == next_one
            assert copy["conversation_history"].count == 1


def test_a_number_that_an_earlier_version_gave_a_request_is_not_given_again(tmp_path: Path) -> None:
    path = tmp_path / "home" / "script.db"
    prepare_home(path.parent)
    with sqlite_utils.Database(path) as old:
        script_migrations.apply(old, stop_before="0016_request_numbers")
    db = Database.open_unmigrated(path)
    with db.write():
        # The request of number 3 was denied, and is gone.
        question = OutgoingMessage("knock:3", "main", "owner", "terminal", "main", "Eve asks to talk to me.")
        insert_outgoing(db, [question], NOW)
    db.close()
    db = Database.open(path, script_migrations, NOW)
    code = PairingCode(b"salt", b"hash")
    pairings = Pairings(db)
    for bridge in ("telegram", "matrix"):
        assert pairings.offer_link(bridge, PairingOffer(code, NOW, NOW + timedelta(hours=1), 3))
    assert [pairing.id for pairing in pairings.pending_pairings(NOW)] == [4, 5]
    db.close()


def add_message(path: Path, text: str) -> None:
    db = Database.open_unmigrated(path)
    with db.write():
        db.execute(
            "INSERT OR IGNORE INTO sessions (key, generation, scope, started_at) VALUES ('main', 1, 'owner', ?)",
            (STAMP,),
        )
        Views(db).append(Session("main", 1, "owner"), [CountedMessage(Message("user", text, ts=NOW), 3)])
    db.close()
