"""The search index on disk: one collection of search.db, for writing, or for reading while another process writes.
Implements the index storage of `assistant.search`; also stems words with SQLite.

Each row has a checksum over all of its columns. A mismatch raises `IndexDamaged`, and the index is rebuilt, since
unnoticed wrong results would be worse.
"""

from __future__ import annotations

import json
import mmap
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from sqlite3 import Row
from threading import Lock
from typing import Any
from zlib import crc32

from assistant.core.errors import CorruptStore, IndexDamaged, StoreError
from assistant.search.index_values import (
    META_BYTES,
    VECTOR_BYTES,
    VECTORS_A_BLOCK,
    IndexContents,
    IndexPage,
    IndexTerm,
    UnitStem,
    UnsealedUnit,
)
from assistant.store.database import Database
from assistant.store.derived import was_set_aside
from assistant.store.rows import dump_json, insert_sql
from assistant.store.scratch import map_scratch

_BLOCKS_AT_ONCE = 2_000
_PAGES_AT_ONCE = 16
_TERMS_AT_ONCE = 2_000
_CHECKSUM_BYTES = 4


class SqliteIndexStore:
    """A collection of search.db. With `reading`, it reads what another process stored; its own additions are kept in
    memory. All methods raise `IndexDamaged` for damaged rows, and `StoreError`."""

    def __init__(self, db: Database | None, name: str, made_by: str, *, reading: bool = False) -> None:
        """Open the collection, created if missing. One made by a program other than `made_by` is discarded, or treated
        as empty with `reading`, like a missing database. Raises `StoreError`."""
        self._db = db
        self._writer = None if reading else db
        self.can_seal = not reading
        with self._noticing_damage():
            row = db.row("SELECT id, made_by FROM collections WHERE name = ?", (name,)) if db else None
        is_same = row is not None and row["made_by"] == made_by
        # No collection has the number 0.
        self._id = row["id"] if row is not None and (is_same or self._writer) else 0
        if self._writer and row is None:
            with self._writing() as writer:
                self._id = writer.insert_row("collections", name=name, made_by=made_by, total=b"")
        elif not is_same:
            self.clear(made_by)

    # ---------------------------------------------------------------------------------------------------------- reading

    def load(self) -> IndexContents:
        """Return all but sealed postings and vectors, which are read when they are needed."""
        pages = self._rows("SELECT total(units) AS units FROM pages WHERE collection = ?")
        sealed = int(pages[0]["units"]) if pages else 0
        fresh = [
            UnsealedUnit(number, meta, vector, _stems(stems))
            for number, meta, vector, stems in self._checked("fresh", "number, meta, vector, stems", "ORDER BY number")
        ]
        if [unit.number for unit in fresh] != [*range(sealed, sealed + len(fresh))]:
            raise _damaged("units are missing")
        total = self._rows("SELECT total FROM collections WHERE id = ?")
        return IndexContents(
            sealed=sealed,
            pages=self._pages(sealed),
            fresh=fresh,
            terms=[IndexTerm(*term) for term in self._checked("terms", "id, stem, sources")],
            names=dict(self._checked("names", "number, text")),
            read_to=dict(self._checked("read_to", "stream, seq")),
            total=_without_checksum(total[0]["total"]) if total and total[0]["total"] else b"",
        )

    def _pages(self, sealed: int) -> Iterator[bytes]:
        """Yield the metadata of all sealed units."""
        place = 0
        while place < sealed:
            where = f"AND first >= {place:d} ORDER BY first LIMIT {_PAGES_AT_ONCE}"
            before = place
            for first, units, meta in self._checked("pages", "first, units, meta", where):
                if first != place or len(meta) != units * META_BYTES:
                    raise _damaged("pages are missing")
                yield meta
                place += units
            if place == before:
                raise _damaged("pages are missing")

    def term_vectors(self, terms: Sequence[int]) -> list[bytes]:
        found: dict[int, bytes] = {}
        for start in range(0, len(terms), _TERMS_AT_ONCE):
            numbers = ", ".join(map(str, terms[start : start + _TERMS_AT_ONCE]))
            rows = self._rows(f"SELECT id, vector FROM terms WHERE collection = ? AND id IN ({numbers})")
            found.update((row["id"], _without_checksum(row["vector"])) for row in rows)
        if len(found) != len(set(terms)):
            raise _damaged("terms are missing")
        return [found[term] for term in terms]

    def map_file(self, size: int) -> mmap.mmap | None:
        return map_scratch(self._db.path.parent, size) if self._db else None

    def postings(self, terms: Sequence[int]) -> dict[int, bytes]:
        numbers = ", ".join(map(str, sorted(terms)))
        where = f"WHERE collection = ? AND term IN ({numbers}) ORDER BY term, page"
        bodies: dict[int, list[bytes]] = {term: [] for term in terms}
        for term, page, body, checksum in self._rows(f"SELECT term, page, body, checksum FROM postings {where}"):
            # The checksum of `_checked`, written out: a question reads hundreds of rows.
            if crc32(body, crc32(b"%d\0%d\0%d\0" % (self._id, term, page))) != checksum:
                raise _damaged("a row of postings is not as it was written")
            bodies[term].append(body)
        return {term: b"".join(parts) for term, parts in bodies.items()}

    def vectors(self, first: int, last: int) -> bytes:
        start = first // VECTORS_A_BLOCK
        where = f"AND block BETWEEN {start:d} AND {(last - 1) // VECTORS_A_BLOCK:d} ORDER BY block"
        body = b"".join(body for _, body in self._checked("vectors", "block, body", where))
        offset = start * VECTORS_A_BLOCK
        found = body[(first - offset) * VECTOR_BYTES : (last - offset) * VECTOR_BYTES]
        if self._db and len(found) != (last - first) * VECTOR_BYTES:
            raise _damaged("vectors are missing")
        return found

    def vector_blocks(self, blocks: Sequence[int]) -> bytes:
        bodies: list[bytes] = []
        for start in range(0, len(blocks), _BLOCKS_AT_ONCE):
            numbers = ", ".join(map(str, blocks[start : start + _BLOCKS_AT_ONCE]))
            where = f"WHERE collection = ? AND block IN ({numbers}) ORDER BY block"
            for block, body, checksum in self._rows(f"SELECT block, body, checksum FROM vectors {where}"):
                # The checksum of `_checked`, written out: a question reads a thousand rows.
                if crc32(body, crc32(b"%d\0%d\0" % (self._id, block))) != checksum:
                    raise _damaged("a row of vectors is not as it was written")
                bodies.append(body)
        if self._db and len(bodies) != len(blocks):
            raise _damaged("vectors are missing")
        return b"".join(bodies).ljust(len(blocks) * VECTORS_A_BLOCK * VECTOR_BYTES, b"\0")

    def _rows(self, sql: str, *values: Any) -> list[Row]:
        with self._noticing_damage():
            return self._db.rows(sql, (self._id, *values)) if self._db else []

    def _checked(self, table: str, columns: str, where: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield these columns of the collection's rows; their checksums cover exactly these."""
        for row in self._rows(f"SELECT {columns}, checksum FROM {table} WHERE collection = ? {where}"):
            *values, checksum = row
            if _checksum(self._id, *values) != checksum:
                raise _damaged(f"a row of {table} is not as it was written")
            yield tuple(values)

    # ---------------------------------------------------------------------------------------------------------- writing

    def add(self, fresh: Sequence[UnsealedUnit], names: Mapping[int, str], read_to: Mapping[str, int]) -> None:
        if self._writer is None:
            return
        with self._writing(durable=False) as db:
            for number, text in names.items():
                self._put(db, "names", number=number, text=text)
            units = [(unit.number, unit.meta, unit.vector, dump_json(unit.stems)) for unit in fresh]
            self._put_all(db, "fresh", units)
            for stream, seq in read_to.items():
                self._put(db, "read_to", stream=stream, seq=seq)

    def seal(self, page: IndexPage, total: bytes) -> None:
        if self._writer is None:
            return
        with self._writing(durable=False) as db:
            self._put(db, "pages", first=page.first, units=page.units, meta=page.meta)
            self._write_vectors(db, page.first, page.vectors)
            self._write_terms(db, page.terms)
            self._put_all(db, "postings", [(term, page.first, body) for term, body in page.postings.items()])
            db.execute(
                "DELETE FROM fresh WHERE collection = ? AND number BETWEEN ? AND ?",
                (self._id, page.first, page.first + page.units - 1),
            )
            db.update_rows("collections", {"id": self._id}, total=_with_checksum(total))

    def mark_removed(
        self, units: Mapping[int, bytes], total: bytes, *, terms: Sequence[IndexTerm] | None = None
    ) -> None:
        if self._writer is None:
            return
        with self._writing() as db:
            for number, meta in units.items():
                self._replace_meta(db, number, meta, blank=terms is not None)
                if terms is not None:
                    self._blank(db, number)
            self._write_terms(db, [term for term in terms or () if term.sources])
            for term in terms or ():
                if not term.sources:
                    db.execute("DELETE FROM postings WHERE collection = ? AND term = ?", (self._id, term.id))
                    db.execute("DELETE FROM terms WHERE collection = ? AND id = ?", (self._id, term.id))
            db.update_rows("collections", {"id": self._id}, total=_with_checksum(total))

    def pass_over(self, source: int, reason: str) -> None:
        """As the port says. Does nothing with `reading`, like the others that write."""
        if self._writer is None:
            return
        with self._writing() as db:
            if reason:
                self._put(db, "passed_over", source=source, reason=reason)
            else:
                db.execute("DELETE FROM passed_over WHERE collection = ? AND source = ?", (self._id, source))

    def passed_over(self) -> dict[int, str]:
        return dict(self._checked("passed_over", "source, reason"))

    def clear(self, made_by: str | None = None) -> None:
        if self._writer is None:
            return
        with self._writing() as db:
            for table in _KEYS:
                db.execute(f"DELETE FROM {table} WHERE collection = ?", (self._id,))
            db.execute(
                "UPDATE collections SET total = x'', made_by = coalesce(?, made_by) WHERE id = ?", (made_by, self._id)
            )

    def _put(self, db: Database, table: str, **columns: Any) -> None:
        """Insert a row, replacing one with the same key."""
        checksum = _checksum(self._id, *columns.values())
        db.upsert_row(table, ("collection", *_KEYS[table]), collection=self._id, **columns, checksum=checksum)

    def _put_all(self, db: Database, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows of all columns of a table, replacing those with the same key."""
        sql = insert_sql(table, ("collection", *_COLUMNS[table], "checksum"), ("collection", *_KEYS[table]))
        db.execute_many(sql, ((self._id, *row, _checksum(self._id, *row)) for row in rows))

    def _write_vectors(self, db: Database, first: int, vectors: bytes) -> None:
        """Write vectors; a page may begin and end in the middle of a row."""
        first_row = self.vectors(first - first % VECTORS_A_BLOCK, first) if first % VECTORS_A_BLOCK else b""
        body = first_row + vectors
        block, size = first // VECTORS_A_BLOCK, VECTORS_A_BLOCK * VECTOR_BYTES
        rows = [(block + i // size, body[i : i + size]) for i in range(0, len(body), size)]
        self._put_all(db, "vectors", rows)

    def _write_terms(self, db: Database, terms: Sequence[IndexTerm]) -> None:
        """Write terms; existing ones keep their vector."""
        db.execute_many(
            "INSERT INTO terms (collection, id, stem, sources, vector, checksum) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET sources = excluded.sources, checksum = excluded.checksum",
            [
                (
                    *(self._id, term.id, term.stem, term.sources, _with_checksum(term.vector)),
                    _checksum(self._id, term.id, term.stem, term.sources),
                )
                for term in terms
            ],
        )

    def _replace_meta(self, db: Database, number: int, meta: bytes, *, blank: bool) -> None:
        for _, _, vector, stems in self._checked("fresh", "number, meta, vector, stems", f"AND number = {number:d}"):
            kept = {"vector": bytes(VECTOR_BYTES), "stems": "[]"} if blank else {"vector": vector, "stems": stems}
            self._put(db, "fresh", number=number, meta=meta, **kept)
        where = f"AND first <= {number:d} ORDER BY first DESC LIMIT 1"
        for first, units, metas in self._checked("pages", "first, units, meta", where):
            at = (number - first) * META_BYTES
            if at < len(metas):
                body = metas[:at] + meta + metas[at + META_BYTES :]
                self._put(db, "pages", first=first, units=units, meta=body)

    def _blank(self, db: Database, number: int) -> None:
        block, place = divmod(number, VECTORS_A_BLOCK)
        at = place * VECTOR_BYTES
        for _, body in self._checked("vectors", "block, body", f"AND block = {block:d}"):
            if len(body) > at:
                self._put(db, "vectors", block=block, body=body[:at] + bytes(VECTOR_BYTES) + body[at + VECTOR_BYTES :])

    @contextmanager
    def _writing(self, *, durable: bool = True) -> Iterator[Database]:
        """`durable` is False where a power cut may take what was written: it is read again then, from where the index
        is, and a search would wait for the disk."""
        assert self._writer is not None
        with self._noticing_damage(), self._writer.write(durable=durable) as db:
            yield db

    @contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            # The other collection may have been found damaged, and the file moved aside.
            aside = self._db is not None and was_set_aside(self._db)
            if not aside and not isinstance(error, CorruptStore):
                raise
            raise IndexDamaged(str(error)) from error


_KEYS = {
    "names": ("number",),
    "fresh": ("number",),
    "pages": ("first",),
    "vectors": ("block",),
    "terms": ("id",),
    "postings": ("term", "page"),
    "read_to": ("stream",),
    "passed_over": ("source",),
}

_COLUMNS = {
    "fresh": ("number", "meta", "vector", "stems"),
    "vectors": ("block", "body"),
    "postings": ("term", "page", "body"),
}


def _damaged(why: str) -> IndexDamaged:
    return IndexDamaged(f"search.db is damaged: {why}. It is made again from what was said.")


def _checksum(*values: Any) -> int:
    return crc32(b"\0".join([value if type(value) is bytes else str(value).encode() for value in values]))


def _with_checksum(body: bytes) -> bytes:
    return body + crc32(body).to_bytes(_CHECKSUM_BYTES)


def _without_checksum(stored: bytes) -> bytes:
    body = stored[:-_CHECKSUM_BYTES]
    if _with_checksum(body) != stored:
        raise _damaged("a value is not as it was written")
    return body


def _stems(text: str) -> tuple[UnitStem, ...]:
    return tuple(UnitStem(*stem) for stem in json.loads(text))


_TOKENIZER = "porter unicode61 remove_diacritics 2"
_MAX_STEMS = 20_000


class Stemmer:
    """Maps words to stems, with a cache of about 20,000 words. For a word that `unicode61` splits, the stems of its
    parts are joined by spaces."""

    def __init__(self) -> None:
        self._stems: dict[str, str] = {}
        self._lock = Lock()
        self._scratch = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._scratch.execute(f"CREATE VIRTUAL TABLE words USING fts5 (word, content='', tokenize='{_TOKENIZER}')")
        self._scratch.execute("CREATE VIRTUAL TABLE terms USING fts5vocab ('words', 'instance')")

    def stem_words(self, words: Iterable[str]) -> dict[str, str]:
        """Return the stem of each word; "" for one without letters and digits."""
        distinct = list(dict.fromkeys(words))
        with self._lock:
            missing = [word for word in distinct if word not in self._stems]
            if missing:
                if len(self._stems) + len(missing) > _MAX_STEMS:
                    self._stems.clear()
                    missing = distinct
                self._stems.update(self._make_stems(missing))
            return {word: self._stems[word] for word in distinct}

    def close(self) -> None:
        self._scratch.close()

    def _make_stems(self, words: list[str]) -> dict[str, str]:
        pieces: list[list[str]] = [[] for _ in words]
        self._scratch.execute("BEGIN")
        self._scratch.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(words))
        for term, row in self._scratch.execute("SELECT term, doc FROM terms ORDER BY doc, offset"):
            pieces[row].append(term)
        self._scratch.execute("ROLLBACK")
        return {word: " ".join(piece) for word, piece in zip(words, pieces, strict=True)}
