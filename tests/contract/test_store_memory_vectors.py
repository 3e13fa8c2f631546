"""Memories, vectors and full text in memory.db."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assistant.core.errors import StoreError
from assistant.store.database import Database
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.schema.migrations import memory_migrations
from tests.support.semantic_memory import NOW, words_in_files

ONE, OTHER = b"\x01\x00", b"\x02\x00"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryVectors]:
    db = Database.open(tmp_path / "memory.db", memory_migrations, NOW)
    yield MemoryVectors(db)
    db.close()


def payload(text: str, scope: str = "main", **rest: Any) -> dict[str, Any]:
    return {"data": text, "user_id": scope, **rest}


def put(store: MemoryVectors, **texts: str) -> None:
    for name, text in texts.items():
        store.put(name, payload(text), "e", ONE)


def test_a_scope_sees_its_own_alone(store: MemoryVectors) -> None:
    store.put("a", payload("The code is 1234.", "main"), "e", ONE)
    store.put("b", payload("The code is 9999.", "peer:x"), "e", OTHER)
    assert [name for name, _ in store.list_memories("peer:x")] == ["b"]
    assert list(store.vectors("e", "peer:x")) == [("b", OTHER)]
    assert [name for name, _ in store.list_memories()] == ["a", "b"]


def test_what_is_replaced_is_found_no_longer(store: MemoryVectors) -> None:
    put(store, a="I live in Oslo.")
    store.put("a", payload("I live in Bergen.", "elsewhere"), "e", OTHER)
    assert store.list_memories() == [("a", payload("I live in Bergen.", "elsewhere"))]
    assert list(store.vectors("e")) == [("a", OTHER)]
    store.remove(["a", "never was"])
    assert (store.list_memories(), list(store.vectors("e"))) == ([], [])


def test_a_payload_alone_leaves_the_vector(store: MemoryVectors) -> None:
    put(store, a="I live in Oslo.")
    store.put("a", payload("I live in Oslo.", kind="task"), "e", None)
    assert list(store.vectors("e")) == [("a", ONE)]
    assert store.get("a") == ("a", payload("I live in Oslo.", kind="task"))


def test_what_is_written_together_is_there_as_a_whole_or_not_at_all(store: MemoryVectors) -> None:
    with pytest.raises(LookupError), store.writing():
        put(store, a="I live in Oslo.")
        store.add_history([{"memory_id": "a", "event": "ADD", "new_memory": "I live in Oslo."}])
        raise LookupError
    assert (store.get("a"), store.history_of_memory("a")) == (None, [])
    put(store, b="Cake is nice.")
    assert store.get("b") is not None


def test_another_process_reads_what_was_committed_while_one_writes(store: MemoryVectors, tmp_path: Path) -> None:
    put(store, a="I live in Oslo.")
    beside = MemoryVectors(Database.open_reader(tmp_path / "memory.db"))
    with store.writing():
        put(store, b="Cake is nice.")
        assert [name for name, _ in beside.list_memories()] == ["a"]
    assert [name for name, _ in beside.list_memories()] == ["a", "b"]


def test_vectors_of_another_embedder_wait_beside_those_that_answer(store: MemoryVectors) -> None:
    put(store, a="one", b="two", c="three")
    store.activate_embedder("e", {"kind": "e"})
    assert store.memories_without_vector("f", limit=2) == ([("a", "one"), ("b", "two")], 3)
    store.add_vectors("f", [("a", "one", OTHER), ("b", "words that were changed", OTHER), ("gone", "x", OTHER)])
    assert (list(store.vectors("f")), len(list(store.vectors("e")))) == ([("a", OTHER)], 3)
    assert store.memories_without_vector("f", limit=9) == ([("b", "two"), ("c", "three")], 2)
    put(store, a="one, changed")
    assert list(store.vectors("f")) == []
    store.activate_embedder("f", {"kind": "f"})
    assert (store.active_embedder(), list(store.vectors("e"))) == (("f", {"kind": "f"}), [])


def test_what_is_erased_is_gone_from_file_and_log(store: MemoryVectors, tmp_path: Path) -> None:
    put(store, a="The password is swordfish.", b="Cake is nice.")
    store.add_history([{"memory_id": name, "event": "ADD", "new_memory": f"{name}: marlin{name}"} for name in "ab"])
    store.erase(["a"])
    assert words_in_files(tmp_path, "swordfish", "marlina", "Cake", "marlinb") == ["Cake", "marlinb"]
    assert (store.history_of_memory("a"), [name for name, _ in store.list_memories()]) == ([], ["b"])


def test_a_reader_in_the_way_of_forgetting_is_told(store: MemoryVectors, tmp_path: Path) -> None:
    put(store, a="The password is swordfish.")
    reader = Database.open_reader(tmp_path / "memory.db")
    store._db.rows("PRAGMA busy_timeout = 1")
    with reader.snapshot():
        reader.rows("SELECT * FROM memories")
        with pytest.raises(StoreError, match="memories are removed"):
            store.erase(["a"])
    store.erase(["a"])
    assert words_in_files(tmp_path, "swordfish") == []
    reader.close()
