"""The index in memory: what it keeps there of a collection that only grows."""

from __future__ import annotations

import mmap
import sqlite3
import tracemalloc
import zlib
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from assistant.search.candidates import around_units
from assistant.search.dtypes import DIMENSIONS, POSTING_DTYPE, UNIT_DTYPE, Floats, quantise
from assistant.search.engine import SearchEngine
from assistant.search.index import SEAL_AFTER_UNITS, SearchIndex
from assistant.search.index_values import IndexPage, IndexTerm, SearchFilter, SourceText
from assistant.search.query import SearchLimits
from assistant.search.unit_table import UnitTable
from assistant.store.database import Database
from assistant.store.schema.migrations import search_migrations
from assistant.store.scratch import map_scratch
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
    assert most <= _RESIDENT + _RESIDENT // 8 + 4 * SEAL_AFTER_UNITS
    expected = quantise(_embed(texts))
    everything = np.arange(_UNITS)
    assert np.array_equal(index.vectors(everything), expected)
    again = SearchIndex(SqliteIndexStore(with_db, "messages", "toy"), _stems, _embed, resident=_RESIDENT)
    assert np.array_equal(again.vectors(everything), expected)
    with_db.close()


def test_vectors_of_an_index_made_before_they_stood_apart_from_their_keys_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    texts = [f"word{number}" for number in range(3 * SEAL_AFTER_UNITS + 5)]
    said = [SourceText(number, "main", number, "owner", "user", "", _NOW, text) for number, text in enumerate(texts)]
    with_db = Database.open(path, search_migrations, _NOW)
    SearchIndex(SqliteIndexStore(with_db, "messages", "toy"), _stems, _embed, resident=_RESIDENT).append(said, {})
    with_db.close()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            """ALTER TABLE vectors RENAME TO apart;
            CREATE TABLE vectors (collection INTEGER NOT NULL, block INTEGER NOT NULL, body BLOB NOT NULL,
                checksum INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (collection, block)) STRICT, WITHOUT ROWID;
            INSERT INTO vectors SELECT * FROM apart;
            DROP TABLE apart;
            DELETE FROM _sqlite_migrations WHERE name = '0004_vectors_apart_from_keys';"""
        )

    with_db = Database.open(path, search_migrations, _NOW)
    index = SearchIndex(SqliteIndexStore(with_db, "messages", "toy"), _stems, _embed, resident=16)
    assert np.array_equal(index.vectors(np.arange(len(texts))), quantise(_embed(texts)))
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


def test_what_was_embedded_in_advance_is_not_embedded_where_a_search_would_wait_for_it(tmp_path: Path) -> None:
    with_db = Database.open(tmp_path / "search.db", search_migrations, _NOW)
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> Floats:
        asked.extend(texts)
        return _embed(texts)

    def said(start: int, count: int) -> list[SourceText]:
        numbers = range(start, start + count)
        return [SourceText(n, "main", n, "owner", "user", "", _NOW, f"word{n} of {n % 7} said") for n in numbers]

    index = SearchIndex(SqliteIndexStore(with_db, "messages", "toy"), _stems, embed)
    in_advance: set[str] = set()
    for batch in (said(start, 64) for start in range(0, SEAL_AFTER_UNITS + 64, 64)):
        index.embed_in_advance(batch)
        in_advance |= {*asked}
        asked.clear()
        index.append(batch, {})
        assert asked == []
    assert index.sealed >= SEAL_AFTER_UNITS
    assert {"word7 of 0 said", "word7"} <= in_advance
    # The same page is written as if nothing had been embedded before.
    other = Database.open(tmp_path / "other.db", search_migrations, _NOW)
    plain = SearchIndex(SqliteIndexStore(other, "messages", "toy"), _stems, _embed)
    for start in range(0, SEAL_AFTER_UNITS + 64, 64):
        plain.append(said(start, 64), {})
    pages = "SELECT first, units, meta FROM pages", "SELECT stem, sources, vector FROM terms ORDER BY stem"
    for what in (*pages, "SELECT block, body FROM vectors", "SELECT term, page, body FROM postings ORDER BY term"):
        assert [tuple(row) for row in with_db.rows(what)] == [tuple(row) for row in other.rows(what)]
    with_db.close()
    other.close()


def _store_of_many(tmp_path: Path, pages: int, page: int) -> SqliteIndexStore:
    """Units of one stream that follow each other, of which the last page alone has its vectors."""
    store = SqliteIndexStore(Database.open(tmp_path / "search.db", search_migrations, _NOW), "messages", "toy")
    for first in range(0, pages * page, page):
        rows = np.zeros(page, UNIT_DTYPE)
        rows["source"] = rows["second"] = np.arange(first, first + page)
        rows["previous"] = rows["source"] - 1
        rows["stream"] = rows["role"] = 1
        vectors = bytes(page * DIMENSIONS) if first == (pages - 1) * page else b""
        store.seal(IndexPage(first, page, rows.tobytes(), vectors, [], {}), bytes(8 * DIMENSIONS))
    return store


def test_what_is_kept_of_each_unit_of_a_large_collection_is_memory_that_the_system_can_have_back(
    tmp_path: Path,
) -> None:
    pages, page = 50, 8_192
    count = pages * page
    store = _store_of_many(tmp_path, pages, page)
    tracemalloc.start()
    index = SearchIndex(store, _stems, _embed, resident=_RESIDENT)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < count * UNIT_DTYPE.itemsize / 2
    said = [SourceText(count + n, "main", n, "owner", "user", "", _NOW, f"word{n}") for n in range(3)]
    index.append(said, {"main": 2})
    assert index.meta["source"].tolist() == [*range(count + 3)]
    before, after = index.units.previous, index.units.following
    assert before[: count + 3].tolist() == [*range(-1, count - 1), -1, count, count + 1]
    assert after[: count + 3].tolist() == [*range(1, count), -1, count + 1, count + 2, -1]
    assert (before[-1], after[-1]) == (-1, -1)


def _mapped_kilobytes(folder: Path) -> int:
    """How much memory the unnamed files of a folder take of this process."""
    total, is_there = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if not line[0].isupper():
            is_there = str(folder) in line
        elif is_there and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="this system does not tell what is in memory")
def test_what_is_looked_at_all_over_a_large_collection_does_not_stay_in_memory(tmp_path: Path) -> None:
    index = SearchIndex(_store_of_many(tmp_path, 30, 8_192), _stems, _embed, resident=_RESIDENT)
    units = np.arange(index.count)[:: -UNIT_DTYPE.itemsize]
    assert index.units.rows_of(units)["source"].tolist() == units.tolist()
    assert np.flatnonzero(index.units.mask_where(lambda rows: rows["second"] % 1_000 == 7)).tolist() == [
        *range(7, index.count, 1_000)
    ]
    assert around_units(index, units)[3:6].T.tolist() == [
        [unit - 1, unit, unit + 1 if unit + 1 < index.count else -1] for unit in units.tolist()
    ]
    # Of the 11 MB that the rows have.
    assert _mapped_kilobytes(tmp_path) < 1_000


def test_a_question_of_common_words_takes_little_more_memory_than_where_they_stand(tmp_path: Path) -> None:
    words, pages, page = [f"word{letter}" for letter in "abcdefghijkl"], 12, 8_192
    rows = np.zeros(page, UNIT_DTYPE)
    rows["scope"], rows["role"], rows["words"], rows["previous"] = 1, 2, 70, -1
    postings = np.zeros(page, POSTING_DTYPE)
    postings["count"] = 1
    store = SqliteIndexStore(Database.open(tmp_path / "search.db", search_migrations, _NOW), "messages", "toy")
    store.add([], {1: "owner", 2: "role user"}, {})
    for first in range(0, pages * page, page):
        rows["source"] = postings["unit"] = np.arange(first, first + page)
        terms = [IndexTerm(number, word, first + page, bytes(DIMENSIONS)) for number, word in enumerate(words, 1)]
        bodies = {term.id: postings.tobytes() for term in terms}
        vectors = bytes(page * DIMENSIONS)
        store.seal(IndexPage(first, page, rows.tobytes(), vectors, terms, bodies), bytes(8 * DIMENSIONS))
    engine = SearchEngine(store, _stems, _embed, SearchLimits())
    engine.index.prepare()
    tracemalloc.start()
    assert engine.search(" ".join(words), SearchFilter("owner", ["user"]))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * len(words) * pages * page * POSTING_DTYPE.itemsize
    asked = engine.prepare(" ".join(words), SearchFilter("owner", ["user"]))
    assert asked is not None
    # Among equals the newest are scored, besides those nearest in meaning.
    assert np.count_nonzero(asked.candidates >= (pages - 1) * page) == SearchLimits().sources_alone


def test_a_collection_grows_in_its_file(tmp_path: Path) -> None:
    table = UnitTable(partial(map_scratch, tmp_path), 1)
    rows = np.zeros(100_000, UNIT_DTYPE)
    rows["previous"] = -1
    for number in range(5):
        rows["source"] = np.arange(number * len(rows), (number + 1) * len(rows))
        rows["scope"] = number + 1
        table.add(rows)
    assert table.is_in_file and not list(tmp_path.iterdir())
    assert table.meta["source"].tolist() == [*range(5 * len(rows))]
    table.remove(np.arange(len(rows)))
    table.release()
    assert np.flatnonzero(table.kinds).tolist() == [*range(len(rows), 5 * len(rows))]


def test_where_the_disk_has_no_room_a_large_collection_is_in_memory(tmp_path: Path) -> None:
    assert map_scratch(tmp_path, 1 << 61) is None
    table = UnitTable(lambda size: None, 300_000)
    table.add(np.zeros(300_000, UNIT_DTYPE))
    assert (table.count, table.is_in_file) == (300_000, False)


def test_vectors_that_stay_are_in_a_file_once_older_ones_were_let_go_whatever_comes_at_once(tmp_path: Path) -> None:
    with_db = Database.open(tmp_path / "search.db", search_migrations, _NOW)
    index = SearchIndex(SqliteIndexStore(with_db, "messages", "toy"), _stems, _embed, resident=64)
    texts = [f"word{number}" for number in range(2 * SEAL_AFTER_UNITS)]
    long = ". ".join(f"end{number} {'x ' * 80}" for number in range(6_000))
    for start, some in ((0, texts), (len(texts), [long]), (len(texts) + 1, texts)):
        said = [
            SourceText(start + n, "main", start + n, "owner", "user", "", _NOW, text) for n, text in enumerate(some)
        ]
        index.append(said, {})
    last = np.arange(index.count - len(texts), index.count)
    expected = quantise(_embed(texts))
    assert index.count > 6_000 + 2 * len(texts) and np.array_equal(index.vectors(last), expected)
    with_db.close()


def test_of_what_is_erased_no_file_has_the_vector(tmp_path: Path) -> None:
    maps: list[mmap.mmap] = []

    class Watched(SqliteIndexStore):
        def map_file(self, size: int) -> mmap.mmap | None:
            maps.extend(mapped for mapped in [super().map_file(size)] if mapped is not None)
            return maps[-1]

    with_db = Database.open(tmp_path / "search.db", search_migrations, _NOW)
    index = SearchIndex(Watched(with_db, "messages", "toy"), _stems, _embed, resident=64)
    said = [SourceText(n, "main", n, "owner", "user", "", _NOW, f"word{n}") for n in range(1, 2 * SEAL_AFTER_UNITS + 1)]
    index.append(said, {"main": len(said)})
    vector = quantise(_embed(["word2048"]))[0].tobytes()
    assert [vector in mapped[:] for mapped in maps] == [True]
    index.remove_sources([2048], text_of="word{}".format)
    assert len(maps) == 2 and not any(vector in mapped[:] for mapped in maps)
    with_db.close()
