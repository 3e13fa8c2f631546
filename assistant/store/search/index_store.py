"""The search index on disk: one collection of search.db, to write, or to read while another process writes. Implements
the storage port of the search index.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from assistant.search.index_values import (
    META_BYTES,
    VECTOR_BYTES,
    IndexContents,
    IndexPage,
    IndexTerm,
    UnitStem,
    UnsealedUnit,
)
from assistant.store.database import Database
from assistant.store.rows import dump_json

_VECTORS_A_ROW = 16


class _CollectionReader:
    """What a collection has, for reading."""

    def __init__(self, db: Database, number: int) -> None:
        self._db = db
        self._id = number

    def load(self) -> IndexContents:
        db, values = self._db, (self._id,)
        collection = db.row("SELECT total FROM collections WHERE id = ?", values)
        pages = db.rows("SELECT meta FROM pages WHERE collection = ? ORDER BY first", values)
        fresh = db.rows("SELECT number, meta, vector, stems FROM fresh WHERE collection = ? ORDER BY number", values)
        terms = db.rows("SELECT id, stem, sources, vector FROM terms WHERE collection = ?", values)
        read_to = db.rows("SELECT stream, seq FROM read_to WHERE collection = ?", values)
        names = db.rows("SELECT number, text FROM names WHERE collection = ?", values)
        return IndexContents(
            meta=b"".join(row["meta"] for row in pages),
            fresh=[UnsealedUnit(row["number"], row["meta"], row["vector"], _stems(row["stems"])) for row in fresh],
            terms=[IndexTerm(row["id"], row["stem"], row["sources"], row["vector"]) for row in terms],
            names={row["number"]: row["text"] for row in names},
            read_to={row["stream"]: row["seq"] for row in read_to},
            total=collection["total"] if collection else b"",
        )

    def postings(self, term: int) -> bytes:
        rows = self._db.rows(
            "SELECT body FROM postings WHERE collection = ? AND term = ? ORDER BY page", (self._id, term)
        )
        return b"".join(row["body"] for row in rows)

    def vectors(self, first: int, last: int) -> bytes:
        start = first // _VECTORS_A_ROW
        rows = self._db.rows(
            "SELECT body FROM vectors WHERE collection = ? AND block BETWEEN ? AND ? ORDER BY block",
            (self._id, start, (last - 1) // _VECTORS_A_ROW),
        )
        body = b"".join(row["body"] for row in rows)
        offset = start * _VECTORS_A_ROW
        return body[(first - offset) * VECTOR_BYTES : (last - offset) * VECTOR_BYTES]


class SqliteIndexStore(_CollectionReader):
    """A collection to write."""

    can_seal = True

    def __init__(self, db: Database, name: str, made_by: str) -> None:
        """Opens the collection. What was made by something else than `made_by` is thrown away, to be made anew. Raises
        `StoreError`."""
        row = db.row("SELECT id, made_by FROM collections WHERE name = ?", (name,))
        if row is None:
            with db.write():
                number = db.insert_row("collections", name=name, made_by=made_by, total=b"")
            super().__init__(db, number)
            return
        super().__init__(db, int(row["id"]))
        if row["made_by"] != made_by:
            self.clear(made_by)

    def add(self, fresh: Sequence[UnsealedUnit], names: Mapping[int, str], read_to: Mapping[str, int]) -> None:
        with self._db.write() as db:
            db.execute_many(
                "INSERT INTO names (collection, number, text) VALUES (?, ?, ?)",
                [(self._id, number, text) for number, text in names.items()],
            )
            db.execute_many(
                "INSERT INTO fresh (collection, number, meta, vector, stems) VALUES (?, ?, ?, ?, ?)",
                [
                    (
                        self._id,
                        unit.number,
                        unit.meta,
                        unit.vector,
                        dump_json([[s.stem, s.word, s.count] for s in unit.stems]),
                    )
                    for unit in fresh
                ],
            )
            db.execute_many(
                "INSERT INTO read_to (collection, stream, seq) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET seq = excluded.seq",
                [(self._id, stream, seq) for stream, seq in read_to.items()],
            )

    def seal(self, page: IndexPage, total: bytes) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO pages (collection, first, units, meta) VALUES (?, ?, ?, ?)",
                (self._id, page.first, page.units, page.meta),
            )
            self._write_vectors(page.first, page.vectors)
            self._write_terms(page.terms)
            db.execute_many(
                "INSERT INTO postings (collection, term, page, body) VALUES (?, ?, ?, ?)",
                [(self._id, term, page.first, body) for term, body in page.postings.items()],
            )
            db.execute(
                "DELETE FROM fresh WHERE collection = ? AND number BETWEEN ? AND ?",
                (self._id, page.first, page.first + page.units - 1),
            )
            db.execute("UPDATE collections SET total = ? WHERE id = ?", (total, self._id))

    def mark_removed(
        self, units: Mapping[int, bytes], total: bytes, *, terms: Sequence[IndexTerm] | None = None
    ) -> None:
        with self._db.write() as db:
            for number, meta in units.items():
                self._replace_meta(number, meta)
                if terms is not None:
                    self._blank(number)
            self._write_terms([term for term in terms or () if term.sources])
            for term in terms or ():
                if not term.sources:
                    db.execute("DELETE FROM postings WHERE collection = ? AND term = ?", (self._id, term.id))
                    db.execute("DELETE FROM terms WHERE collection = ? AND id = ?", (self._id, term.id))
            db.execute("UPDATE collections SET total = ? WHERE id = ?", (total, self._id))

    def clear(self, made_by: str | None = None) -> None:
        with self._db.write() as db:
            for table in ("names", "fresh", "pages", "vectors", "terms", "postings", "read_to"):
                db.execute(f"DELETE FROM {table} WHERE collection = ?", (self._id,))
            db.execute(
                "UPDATE collections SET total = x'', made_by = coalesce(?, made_by) WHERE id = ?",
                (made_by, self._id),
            )

    def _write_vectors(self, first: int, vectors: bytes) -> None:
        """A page may begin and end in the middle of a row."""
        first_row = self.vectors(first - first % _VECTORS_A_ROW, first) if first % _VECTORS_A_ROW else b""
        body = first_row + vectors
        block, size = first // _VECTORS_A_ROW, _VECTORS_A_ROW * VECTOR_BYTES
        self._db.execute_many(
            "INSERT OR REPLACE INTO vectors (collection, block, body) VALUES (?, ?, ?)",
            [(self._id, block + i // size, body[i : i + size]) for i in range(0, len(body), size)],
        )

    def _write_terms(self, terms: Sequence[IndexTerm]) -> None:
        self._db.execute_many(
            "INSERT INTO terms (collection, id, stem, sources, vector) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET sources = excluded.sources",
            [(self._id, term.id, term.stem, term.sources, term.vector) for term in terms],
        )

    def _replace_meta(self, number: int, meta: bytes) -> None:
        self._db.execute("UPDATE fresh SET meta = ? WHERE collection = ? AND number = ?", (meta, self._id, number))
        page = self._db.row(
            "SELECT first, meta FROM pages WHERE collection = ? AND first <= ? ORDER BY first DESC LIMIT 1",
            (self._id, number),
        )
        at = (number - page["first"]) * META_BYTES if page else 0
        if page and at < len(page["meta"]):
            body = page["meta"][:at] + meta + page["meta"][at + META_BYTES :]
            self._db.execute(
                "UPDATE pages SET meta = ? WHERE collection = ? AND first = ?", (body, self._id, page["first"])
            )

    def _blank(self, number: int) -> None:
        nothing = bytes(VECTOR_BYTES)
        self._db.execute(
            "UPDATE fresh SET vector = ?, stems = '[]' WHERE collection = ? AND number = ?", (nothing, self._id, number)
        )
        block, place = divmod(number, _VECTORS_A_ROW)
        row = self._db.row("SELECT body FROM vectors WHERE collection = ? AND block = ?", (self._id, block))
        if row is not None and len(row["body"]) > place * VECTOR_BYTES:
            at = place * VECTOR_BYTES
            body = row["body"][:at] + nothing + row["body"][at + VECTOR_BYTES :]
            self._db.execute("UPDATE vectors SET body = ? WHERE collection = ? AND block = ?", (body, self._id, block))


class ReadOnlyIndexStore:
    """A collection that another process writes, or none: what is added is not stored."""

    can_seal = False

    def __init__(self, db: Database | None, name: str, made_by: str) -> None:
        row = None if db is None else db.row("SELECT id, made_by FROM collections WHERE name = ?", (name,))
        is_usable = db is not None and row is not None and row["made_by"] == made_by
        self._kept = _CollectionReader(db, int(row["id"])) if is_usable and db is not None and row is not None else None

    def load(self) -> IndexContents:
        return self._kept.load() if self._kept else IndexContents(b"", (), (), {}, {}, b"")

    def add(self, fresh: Sequence[UnsealedUnit], names: Mapping[int, str], read_to: Mapping[str, int]) -> None: ...

    def seal(self, page: IndexPage, total: bytes) -> None: ...

    def mark_removed(
        self, units: Mapping[int, bytes], total: bytes, *, terms: Sequence[IndexTerm] | None = None
    ) -> None: ...

    def postings(self, term: int) -> bytes:
        return self._kept.postings(term) if self._kept else b""

    def vectors(self, first: int, last: int) -> bytes:
        return self._kept.vectors(first, last) if self._kept else b""

    def clear(self) -> None: ...


def _stems(text: str) -> tuple[UnitStem, ...]:
    return tuple(UnitStem(stem, word, count) for stem, word, count in json.loads(text))
