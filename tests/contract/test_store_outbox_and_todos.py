"""The small stores: outbox, to-dos, what was learned of models."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import StoreError, UsageError
from assistant.core.model_api import ModelLimits
from assistant.core.records import OutgoingMessage, TokenCalibration
from assistant.store.character.todos import StoredTodos
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations, script_migrations
from assistant.store.script.outbox import StoredOutbox
from assistant.store.script.usage import ModelFacts
from tests.support.outboxes import recent_items
from tests.support.store_home import NOW


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database.open(tmp_path / "script.db", script_migrations, NOW)
    yield db
    db.close()


@pytest.fixture
def todos(tmp_path: Path) -> Iterator[StoredTodos]:
    db = Database.open(tmp_path / "character.db", character_migrations, NOW)
    yield StoredTodos(db)
    db.close()


def notice(key: str, body: str = "hello", bridge: str = "terminal", session: str = "main") -> OutgoingMessage:
    return OutgoingMessage(key, session, "owner", bridge, "t", body, "notice")


# -------------------------------------------------------------------------------------------------------------- outbox


def test_a_state_that_a_later_commit_took_to_the_disk_is_not_synced_again(db: Database) -> None:
    outbox = StoredOutbox(db)
    item = outbox.push(notice("k"), NOW)
    log, elsewhere = Path(f"{db.path}-wal"), Path(f"{db.path}-elsewhere")
    outbox.set_state(item.id, "sending", NOW, durable=False)
    log.rename(elsewhere)
    with pytest.raises(StoreError, match="was not written"):
        outbox.sync()
    elsewhere.rename(log)
    outbox.sync()
    outbox.set_state(item.id, "sent", NOW)
    outbox.push(notice("another"), NOW)
    log.rename(elsewhere)
    outbox.sync()
    elsewhere.rename(log)


def test_i8_a_key_keeps_its_first_body(db: Database) -> None:
    outbox = StoredOutbox(db)
    first = outbox.push(notice("k", "first"), NOW)
    again = outbox.push(notice("k", "second"), NOW + timedelta(hours=1))
    assert again == first
    assert again.outgoing.body == "first"


def test_pending_are_in_order_and_of_one_bridge(db: Database) -> None:
    outbox = StoredOutbox(db)
    items = [outbox.push(notice(f"k{n}", bridge="terminal" if n % 2 else "matrix"), NOW) for n in range(6)]
    outbox.set_state(items[1].id, "sent", NOW)
    outbox.set_state(items[3].id, "sending", NOW)
    assert [(item.outgoing.key, item.state, item.attempts) for item in outbox.pending_items("terminal")] == [
        ("k3", "sending", 1),
        ("k5", "pending", 0),
    ]
    assert [item.outgoing.key for item in outbox.pending_items("matrix", limit=2)] == ["k0", "k2"]


def test_each_attempt_is_counted(db: Database) -> None:
    outbox = StoredOutbox(db)
    item = outbox.push(notice("k"), NOW)
    for state in ("sending", "pending", "sending", "sent"):
        outbox.set_state(item.id, state, NOW, error="no network" if state == "pending" else "")  # type: ignore[arg-type]
    (after,) = recent_items(outbox, "main")
    assert (after.state, after.attempts, after.created_at) == ("sent", 2, NOW)


def test_counts_are_by_state(db: Database) -> None:
    outbox = StoredOutbox(db)
    assert outbox.count_by_state() == {}
    items = [outbox.push(notice(f"k{n}"), NOW) for n in range(4)]
    outbox.set_state(items[0].id, "sent", NOW)
    outbox.set_state(items[1].id, "ambiguous", NOW)
    assert outbox.count_by_state() == {"pending": 2, "ambiguous": 1, "sent": 1}


def test_recent_are_the_newest_oldest_first(db: Database) -> None:
    outbox = StoredOutbox(db)
    for n in range(5):
        outbox.push(notice(f"k{n}"), NOW)
        outbox.push(notice(f"other{n}", session="peer:x"), NOW)
    assert [item.outgoing.key for item in recent_items(outbox, "main", limit=2)] == ["k3", "k4"]


# --------------------------------------------------------------------------------------------------------------- to-dos


def test_a_todo_is_added_done_and_removed(todos: StoredTodos) -> None:
    milk, bread = todos.add("owner", ["milk", "bread"], "k1", NOW)
    (done,) = todos.complete("owner", [milk.id], "k2", NOW + timedelta(hours=1))
    assert (done.done, done.done_at) == (True, NOW + timedelta(hours=1))
    assert [todo.text for todo in todos.list_todos("owner")] == ["bread"]
    assert [todo.text for todo in todos.list_todos("owner", include_done=True)] == ["milk", "bread"]
    todos.remove("owner", [bread.id], "k3", NOW)
    assert [todo.text for todo in todos.list_todos("owner", include_done=True)] == ["milk"]


def test_a_change_under_the_same_key_is_made_once(todos: StoredTodos) -> None:
    first = todos.add("owner", ["milk"], "t1:c1", NOW)
    assert todos.add("owner", ["milk"], "t1:c1", NOW + timedelta(days=1)) == first
    done = todos.complete("owner", [first[0].id], "t1:c2", NOW)
    assert todos.complete("owner", [first[0].id], "t1:c2", NOW + timedelta(days=1)) == done
    assert len(todos.list_todos("owner", include_done=True)) == 1


def test_unknown_todos_are_named_and_none_is_changed(todos: StoredTodos) -> None:
    (milk,) = todos.add("owner", ["milk"], "k1", NOW)
    with pytest.raises(UsageError, match=r"no to-do 98, 99\."):
        todos.complete("owner", [milk.id, 98, 99], "k2", NOW)
    assert len(todos.list_todos("owner")) == 1
    (done,) = todos.complete("owner", [milk.id], "k2", NOW)
    assert done.done


def test_i10_a_scope_sees_and_changes_its_own_alone(todos: StoredTodos) -> None:
    (mine,) = todos.add("owner", ["secret"], "k1", NOW)
    (theirs,) = todos.add("guest", ["theirs"], "k1", NOW)
    assert [todo.text for todo in todos.list_todos("guest")] == ["theirs"]
    for change in (todos.complete, todos.remove):
        with pytest.raises(UsageError):
            change("guest", [mine.id], "k2", NOW)
    assert theirs.id != mine.id
    assert not todos.list_todos("owner")[0].done


# ---------------------------------------------------------------------------------------------------------------- facts


def test_what_was_learned_of_a_model_is_remembered(db: Database) -> None:
    facts = ModelFacts(db)
    assert facts.calibration("m") is None
    assert facts.limits("m") is None
    facts.set_calibration(TokenCalibration("m", 1.25, 3), NOW)
    assert facts.limits("m") is None
    facts.set_limits("m", ModelLimits(200_000, 8_000, 32 << 20, 100, "provider"), NOW)
    facts.set_calibration(TokenCalibration("m", 1.5, 4), NOW)
    assert facts.calibration("m") == TokenCalibration("m", 1.5, 4)
    assert facts.limits("m") == ModelLimits(200_000, 8_000, 32 << 20, 100, "provider")
