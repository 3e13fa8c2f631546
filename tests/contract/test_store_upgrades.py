"""Homes of earlier versions: what stood in a view stands there still, in its order, and the conversation goes on; of
each database that changes a copy is kept as it was."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import sqlite_utils
from sqlite_utils import Migrations

from assistant.core.messages import Message
from assistant.store.database import Database
from assistant.store.files import prepare_home
from assistant.store.schema.character import character_migrations
from assistant.store.schema.script import script_migrations
from assistant.store.script.sessions import Session
from assistant.store.script.view import POSITION_STRIDE, CountedMessage, Views
from tests.support.store_home import NOW

STAMP = "2026-11-20T10:00:00.000000Z"


def before_compactions(path: Path, positions: range) -> None:
    """A script.db as the first version left it: rows at these positions, which a compaction moved below 1."""
    prepare_home(path.parent)
    old = sqlite_utils.Database(path)
    script_migrations.apply(old, stop_before="0002_compaction")
    with old.conn:
        old.execute(
            "INSERT INTO sessions (key, generation, scope, started_at, view_messages, view_tokens) VALUES"
            " ('main', 1, 'owner', ?, ?, ?)",
            (STAMP, len(positions), 3 * len(positions)),
        )
        for position in positions:
            old.execute(
                "INSERT INTO conversation_history (session, generation, scope, position, role, content, parts,"
                " metadata, ts, tokens, bytes, images)"
                " VALUES ('main', 1, 'owner', ?, 'user', ?, '{}', '{}', ?, 3, 4, 0)",
                (position, f"row {position}", STAMP),
            )
    old.close()


def test_rows_of_the_first_version_keep_their_order(tmp_path: Path) -> None:
    before_compactions(tmp_path / "home" / "script.db", range(-3, 6))
    db = Database.open(tmp_path / "home" / "script.db", script_migrations, NOW)
    views = Views(db)
    assert [row.content for row in views.read("main").messages] == [f"row {position}" for position in range(-3, 6)]
    with db.write():
        views.append(Session("main", 1, "owner"), [CountedMessage(Message("user", "next", ts=NOW), 3)])
    view = views.read("main")
    assert (view.messages[-1].content, view.tokens, len(view.sizes)) == ("next", 30, 10)
    positions = [row[0] for row in db.rows("SELECT position FROM conversation_history ORDER BY position")]
    assert min(later - earlier for earlier, later in pairwise(positions)) == POSITION_STRIDE
    db.close()


def versions(migrations: Migrations) -> list[str]:
    """The names of its migrations but the first: what a database of each earlier version would be given next."""
    return [one.name for one in migrations.pending(sqlite_utils.Database(memory=True))][1:]


@pytest.mark.parametrize("next_one", versions(script_migrations))
def test_conversations_of_every_earlier_version_go_on_and_a_copy_of_what_was_stays(
    tmp_path: Path, next_one: str
) -> None:
    path = tmp_path / "home" / "script.db"
    before_compactions(path, range(4))
    with sqlite_utils.Database(path) as old:
        script_migrations.apply(old, stop_before=next_one)
    db = Database.open(path, script_migrations, NOW)
    assert [row.content for row in Views(db).read("main").messages] == [f"row {position}" for position in range(4)]
    db.close()
    with sqlite_utils.Database(next(path.parent.glob(f"backups/script-*-before-{next_one}.db"))) as copy:
        assert next(one.name for one in script_migrations.pending(copy)) == next_one
        assert copy["conversation_history"].count == 4
    assert len(list((path.parent / "backups").iterdir())) == 1


@pytest.mark.parametrize("next_one", versions(character_migrations))
def test_lists_of_every_earlier_version_stay_and_a_copy_of_what_was_too(tmp_path: Path, next_one: str) -> None:
    path = tmp_path / "home" / "character.db"
    prepare_home(path.parent)
    with sqlite_utils.Database(path) as old:
        character_migrations.apply(old, stop_before=next_one)
        old.execute(
            "INSERT INTO todos (scope, text, state, created_at) VALUES ('owner', 'lamp oil', 'open', ?)", (STAMP,)
        )
        old.conn.commit()
    db = Database.open(path, character_migrations, NOW)
    assert [row["text"] for row in db.rows("SELECT text FROM todos")] == ["lamp oil"]
    db.close()
    with sqlite_utils.Database(next(path.parent.glob(f"backups/character-*-before-{next_one}.db"))) as copy:
        assert next(one.name for one in character_migrations.pending(copy)) == next_one
        assert copy["todos"].count == 1
