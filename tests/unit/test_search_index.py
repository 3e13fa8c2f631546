"""The index in memory: what it keeps there of a collection that only grows."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from assistant.search.dtypes import DIMENSIONS, Floats, quantise
from assistant.search.index import SEAL_AFTER_UNITS, SearchIndex
from assistant.search.index_values import SourceText
from assistant.store.database import Database
from assistant.store.schema.migrations import search_migrations
from assistant.store.search.index_store import SqliteIndexStore

_NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_RESIDENT, _UNITS, _AT_ONCE = 2_048, 8 * SEAL_AFTER_UNITS, 256


def _embed(texts: Sequence[str]) -> Floats:
    rows = np.stack([np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSIONS) for text in texts])
    found: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def _stems(words: Iterable[str]) -> dict[str, str]:
    return {word: word for word in words}


def test_vectors_of_old_units_leave_memory_and_are_read_from_the_shelf(tmp_path: Path) -> None:
    texts = [f"word{number % 500}" for number in range(_UNITS)]
    with_db = Database.open(tmp_path / "search.db", search_migrations, _NOW)
    index = SearchIndex(SqliteIndexStore(with_db, "messages", "toy"), _stems, _embed, resident=_RESIDENT)
    most = 0
    for start in range(0, _UNITS, _AT_ONCE):
        index.append(
            [
                SourceText(number, "main", number, "owner", "user", "", _NOW, texts[number])
                for number in range(start, start + _AT_ONCE)
            ],
            {},
        )
        most = max(most, index.resident)

    assert (index.count, index.sealed) == (_UNITS, _UNITS)
    assert most <= _RESIDENT + _RESIDENT // 8 + 2 * SEAL_AFTER_UNITS
    expected = quantise(_embed(texts)).astype(np.float32) / np.float32(127)
    everything = np.arange(_UNITS)
    assert np.array_equal(index.vectors(everything), expected)
    again = SearchIndex(SqliteIndexStore(with_db, "messages", "toy"), _stems, _embed, resident=_RESIDENT)
    assert np.array_equal(again.vectors(everything), expected)
    with_db.close()


def test_an_index_of_another_version_is_empty_and_made_again(tmp_path: Path) -> None:
    said = [SourceText(number, "main", number, "owner", "user", "", _NOW, f"word{number}") for number in range(9)]
    with_db = Database.open(tmp_path / "search.db", search_migrations, _NOW)
    index = SearchIndex(SqliteIndexStore(with_db, "messages", "4 toy"), _stems, _embed)
    index.append(said, {"main": 8})
    assert SearchIndex(SqliteIndexStore(with_db, "messages", "4 toy"), _stems, _embed).count == 9

    newer = SearchIndex(SqliteIndexStore(with_db, "messages", "5 toy"), _stems, _embed)
    assert (newer.count, newer.read_to) == (0, {})
    with_db.close()


def test_sketches_bring_in_the_nearest_also_after_old_vectors_left_memory(tmp_path: Path) -> None:
    with_db = Database.open(tmp_path / "search.db", search_migrations, _NOW)
    index = SearchIndex(SqliteIndexStore(with_db, "messages", "toy"), _stems, _embed, resident=_RESIDENT)
    for start in range(0, _UNITS, _AT_ONCE):
        numbers = range(start, start + _AT_ONCE)
        said = [SourceText(n, "main", n, "owner", "user", "", _NOW, f"word{n}") for n in numbers]
        index.append(said, {})
        wanted = _embed([f"word{numbers[-7]}"])[0] - index.mean
        allowed = np.ones(index.count, bool)
        nearest = index.nearest(wanted, allowed, 20)
        assert numbers[-7] in nearest
        assert len(nearest) == 20
        allowed[numbers[-7]] = False
        assert numbers[-7] not in index.nearest(wanted, allowed, 20)
    with_db.close()


def test_a_search_leaves_sealing_to_the_background_until_twice_as_many_wait(tmp_path: Path) -> None:
    with_db = Database.open(tmp_path / "search.db", search_migrations, _NOW)
    index = SearchIndex(SqliteIndexStore(with_db, "messages", "toy"), _stems, _embed)

    def said(start: int, count: int) -> list[SourceText]:
        return [
            SourceText(n, "main", n, "owner", "user", "", _NOW, f"word{n % 500}") for n in range(start, start + count)
        ]

    index.append(said(0, SEAL_AFTER_UNITS), {}, is_search=True)
    assert (index.count, index.sealed) == (SEAL_AFTER_UNITS, 0)
    index.append(said(SEAL_AFTER_UNITS, SEAL_AFTER_UNITS), {}, is_search=True)
    assert index.sealed == index.count == 2 * SEAL_AFTER_UNITS
    with_db.close()
