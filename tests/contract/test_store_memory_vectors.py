"""Memories, vectors and full text in memory.db."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assistant.core.errors import StoreError
from assistant.store.database import Database
from assistant.store.memory.vectors import MemoryHistory, MemoryTransaction, MemoryVectors
from assistant.store.schema.indexes import memory_migrations
from tests.support.semantic_memory import NOW, words_in_files

ONE, OTHER = b"\x01\x00", b"\x02\x00"
AWKWARD = (
    "'); DROP TABLE memories; --",
    '"unbalanced',
    "a AND OR NOT NEAR(",
    "* ^ - : ( )",
    "{a b} : c",
    "\0",
    "",
    "\ud83d",
    "scope : main",
)


@pytest.fixture
def batch(tmp_path: Path) -> Iterator[MemoryTransaction]:
    db = Database.open(tmp_path / "memory.db", memory_migrations, NOW)
    yield MemoryTransaction(db)
    db.close()


@pytest.fixture
def store(batch: MemoryTransaction) -> MemoryVectors:
    return MemoryVectors(batch)


def payload(text: str, scope: str = "main", **rest: Any) -> dict[str, Any]:
    return {"data": text, "user_id": scope, **rest}


def put(store: MemoryVectors, **texts: str) -> None:
    for name, text in texts.items():
        store.put(name, payload(text), "e", ONE)


def found(store: MemoryVectors, query: str, scope: str | None = "main", **rest: Any) -> list[str]:
    return [name for name, _ in store.search_text(query, scope, **rest)]


def test_words_are_found_by_their_stems_best_first(store: MemoryVectors) -> None:
    put(store, a="She likes swimming in lakes.", b="A lake, a lake, a lake!", c="Nothing of it.")
    assert found(store, "swim lake") == ["a", "b"]
    assert found(store, "lakes", limit=1) == ["b"]
    assert all(score > 0 for _, score in store.search_text("lake", "main"))


@pytest.mark.parametrize("query", ["东京", "京", "喜欢吃寿", "住在东", "寿司"])
def test_any_part_of_a_run_without_spaces_is_found(store: MemoryVectors, query: str) -> None:
    put(store, a="我住在东京,喜欢吃寿司", b="彼は大阪に住んでいます")
    assert found(store, query) == ["a"]


def test_words_of_other_scripts_and_with_accents_are_found(store: MemoryVectors) -> None:
    put(store, a="Zoë a déménagé à Brünn", b="אני גר בתל אביב", c="Кошка спит")
    assert [found(store, query) for query in ("zoe", "brunn", "אביב", "КОШКА")] == [["a"], ["a"], ["b"], ["c"]]


@pytest.mark.parametrize("query", AWKWARD)
def test_a_question_is_never_read_as_syntax(store: MemoryVectors, query: str) -> None:
    put(store, a="Cake is nice.")
    assert found(store, query) == []
    assert found(store, f"{query} cake") == ["a"]


def test_a_scope_sees_its_own_alone(store: MemoryVectors) -> None:
    store.put("a", payload("The code is 1234.", "main"), "e", ONE)
    store.put("b", payload("The code is 9999.", "peer:x"), "e", OTHER)
    assert found(store, "code", "peer:x") == ["b"]
    assert [name for name, _ in store.list_memories("peer:x")] == ["b"]
    assert list(store.vectors("e", "peer:x")) == [("b", OTHER)]
    assert sorted(found(store, "code", None)) == ["a", "b"]


def test_values_of_a_payload_narrow_a_search(store: MemoryVectors) -> None:
    store.put("a", payload("Tea.", kind="fact", until=None), "e", ONE)
    store.put("b", payload("Tea!", kind="task", until="2026"), "e", ONE)
    assert [name for name, _ in store.list_memories("main", {"kind": "task"})] == ["b"]
    assert found(store, "tea", equal={"until": None}) == ["a"]
    assert [name for name, _ in store.vectors("e", None, {"kind": "fact"})] == ["a"]
    assert store.list_memories("main", {"kind' OR 1": "x"}) == []


def test_what_is_replaced_is_found_no_longer(store: MemoryVectors) -> None:
    put(store, a="I live in Oslo.")
    store.put("a", payload("I live in Bergen.", "elsewhere"), "e", OTHER)
    assert (found(store, "Oslo", None), found(store, "Bergen", "elsewhere")) == ([], ["a"])
    assert list(store.vectors("e")) == [("a", OTHER)]
    store.remove(["a", "never was"])
    assert (found(store, "Bergen", None), store.list_memories(), list(store.vectors("e"))) == ([], [], [])


def test_a_payload_alone_leaves_the_vector(store: MemoryVectors) -> None:
    put(store, a="I live in Oslo.")
    store.put("a", payload("I live in Oslo.", kind="task"), "e", None)
    assert list(store.vectors("e")) == [("a", ONE)]
    assert store.get("a") == ("a", payload("I live in Oslo.", kind="task"))


def test_what_is_written_together_is_there_as_a_whole_or_not_at_all(
    batch: MemoryTransaction, store: MemoryVectors
) -> None:
    history = MemoryHistory(batch)
    with pytest.raises(LookupError), batch.writing():
        put(store, a="I live in Oslo.")
        history.add([{"memory_id": "a", "event": "ADD", "new_memory": "I live in Oslo."}])
        raise LookupError
    assert (store.get("a"), history.history_of_memory("a")) == (None, [])
    put(store, b="Cake is nice.")
    assert store.get("b") is not None


def test_another_process_reads_what_was_committed_while_one_writes(
    batch: MemoryTransaction, store: MemoryVectors, tmp_path: Path
) -> None:
    put(store, a="I live in Oslo.")
    beside = MemoryVectors(MemoryTransaction(Database.open_reader(tmp_path / "memory.db")))
    with batch.writing():
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


def test_what_is_erased_is_gone_from_file_and_log(
    batch: MemoryTransaction, store: MemoryVectors, tmp_path: Path
) -> None:
    history = MemoryHistory(batch)
    put(store, a="The password is swordfish.", b="Cake is nice.")
    history.add([{"memory_id": name, "event": "ADD", "new_memory": f"{name}: marlin{name}"} for name in "ab"])
    store.erase(["a"])
    assert words_in_files(tmp_path, "swordfish", "marlina", "Cake", "marlinb") == ["Cake", "marlinb"]
    assert (history.history_of_memory("a"), found(store, "password", None), found(store, "cake")) == ([], [], ["b"])


def test_a_reader_in_the_way_of_forgetting_is_told(store: MemoryVectors, tmp_path: Path) -> None:
    put(store, a="The password is swordfish.")
    reader = Database.open_reader(tmp_path / "memory.db")
    store._db.rows("PRAGMA busy_timeout = 1")
    with reader.snapshot():
        reader.rows("SELECT * FROM memories")
        with pytest.raises(StoreError, match="Forget them"):
            store.erase(["a"])
    store.erase(["a"])
    assert words_in_files(tmp_path, "swordfish") == []
    reader.close()
