"""The list of sessions is read from the database again only after something changed, whoever changed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.store.database import Database
from assistant.store.script.conversation import StoredConversation
from tests.support.store_home import NOW, StoreHome


def listed(conversation: StoredConversation) -> list[str]:
    return sorted(info.key for info in conversation.list_sessions())


def test_sessions_are_read_again_only_after_a_change(tmp_path: Path) -> None:
    home = StoreHome(tmp_path).open()
    queries: list[str] = []
    try:
        home.say("hello", "good day")
        first = home.conversation.list_sessions()
        home.db.connection.set_trace_callback(queries.append)
        assert home.conversation.list_sessions() == first
        assert not any("FROM sessions" in query for query in queries), queries
        home.say("of the garden", "yes", "thread:garden")
        assert listed(home.conversation) == ["main", "thread:garden"]
        home.conversation.list_sessions().clear()
        assert listed(home.conversation) == ["main", "thread:garden"], "what a caller does with the list is its own"
    finally:
        home.close()


def test_a_change_of_another_connection_is_seen_and_one_that_is_rolled_back_is_not(tmp_path: Path) -> None:
    home = StoreHome(tmp_path).open()
    try:
        home.say("hello", "good day")
        before = home.conversation.list_sessions()
        with pytest.raises(LookupError), home.db.write() as db:
            db.execute("UPDATE sessions SET started_at = ?", (NOW.replace(year=1999),))
            assert [info.started_at.year for info in home.conversation.list_sessions()] == [1999]
            raise LookupError
        assert home.conversation.list_sessions() == before
        other = Database.open_unmigrated(tmp_path / "script.db")
        with other.write() as db:
            db.execute("UPDATE sessions SET started_at = ?", (NOW.replace(year=2001),))
        other.close()
        assert [info.started_at.year for info in home.conversation.list_sessions()] == [2001]
    finally:
        home.close()


def test_sessions_are_listed_with_their_counts(tmp_path: Path) -> None:
    home = StoreHome(tmp_path).open()
    try:
        home.say("a", "b")
        home.say("c", "d", "peer:x")
        first, second = sorted(home.conversation.list_sessions(), key=lambda info: info.key)
        assert (first.key, first.messages, first.view_messages, first.checkpoints) == ("main", 2, 2, 0)
        assert (second.key, second.last_at, second.generation) == ("peer:x", NOW, 1)
    finally:
        home.close()
