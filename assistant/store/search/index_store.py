"""The search index on disk: one collection of search.db, to write, or to read while another process writes. Implements
the storage port of the search index. Stems of words are SQLite's, too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Row
from threading import Lock
from typing import Any

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


class SqliteIndexStore:
    """A collection of search.db. A search that writes none (`reading`) has what another process stored there; what it
    adds is gone with it."""

    def __init__(self, db: Database | None, name: str, made_by: str, *, reading: bool = False) -> None:
        """Opens the collection, made anew where there is none. What was made by something else than `made_by` is thrown
        away; `reading` finds nothing of it, nor where there is no database. Raises `StoreError`."""
        self._db = db
        self._writer = None if reading else db
        self.can_seal = not reading
        row = db.row("SELECT id, made_by FROM collections WHERE name = ?", (name,)) if db else None
        is_same = row is not None and row["made_by"] == made_by
        # No collection has the number 0.
        self._id = row["id"] if row is not None and (is_same or self._writer) else 0
        if self._writer and row is None:
            with self._writer.write() as writer:
                self._id = writer.insert_row("collections", name=name, made_by=made_by, total=b"")
        elif not is_same:
            self.clear(made_by)

    def _rows(self, sql: str, *values: Any) -> list[Row]:
        return self._db.rows(sql, (self._id, *values)) if self._db else []

    def load(self) -> IndexContents:
        fresh = self._rows("SELECT number, meta, vector, stems FROM fresh WHERE collection = ? ORDER BY number")
        terms = self._rows("SELECT id, stem, sources, vector FROM terms WHERE collection = ?")
        read_to = self._rows("SELECT stream, seq FROM read_to WHERE collection = ?")
        names = self._rows("SELECT number, text FROM names WHERE collection = ?")
        return IndexContents(
            meta=_joined(self._rows("SELECT meta FROM pages WHERE collection = ? ORDER BY first")),
            fresh=[UnsealedUnit(row["number"], row["meta"], row["vector"], _stems(row["stems"])) for row in fresh],
            terms=[IndexTerm(row["id"], row["stem"], row["sources"], row["vector"]) for row in terms],
            names={row["number"]: row["text"] for row in names},
            read_to={row["stream"]: row["seq"] for row in read_to},
            total=_joined(self._rows("SELECT total FROM collections WHERE id = ?")),
        )

    def postings(self, term: int) -> bytes:
        return _joined(self._rows("SELECT body FROM postings WHERE collection = ? AND term = ? ORDER BY page", term))

    def vectors(self, first: int, last: int) -> bytes:
        start = first // _VECTORS_A_ROW
        sql = "SELECT body FROM vectors WHERE collection = ? AND block BETWEEN ? AND ? ORDER BY block"
        body = _joined(self._rows(sql, start, (last - 1) // _VECTORS_A_ROW))
        offset = start * _VECTORS_A_ROW
        return body[(first - offset) * VECTOR_BYTES : (last - offset) * VECTOR_BYTES]

    def add(self, fresh: Sequence[UnsealedUnit], names: Mapping[int, str], read_to: Mapping[str, int]) -> None:
        if self._writer is None:
            return
        own = self._id
        with self._writer.write() as db:
            for number, text in names.items():
                db.insert_row("names", collection=own, number=number, text=text)
            for unit in fresh:
                columns = {"number": unit.number, "meta": unit.meta, "vector": unit.vector}
                db.insert_row("fresh", collection=own, **columns, stems=dump_json(unit.stems))
            for stream, seq in read_to.items():
                db.upsert_row("read_to", ("collection", "stream"), collection=own, stream=stream, seq=seq)

    def seal(self, page: IndexPage, total: bytes) -> None:
        if self._writer is None:
            return
        own = self._id
        with self._writer.write() as db:
            db.insert_row("pages", collection=own, first=page.first, units=page.units, meta=page.meta)
            self._write_vectors(db, page.first, page.vectors)
            self._write_terms(db, page.terms)
            for term, body in page.postings.items():
                db.insert_row("postings", collection=own, term=term, page=page.first, body=body)
            db.execute(
                "DELETE FROM fresh WHERE collection = ? AND number BETWEEN ? AND ?",
                (own, page.first, page.first + page.units - 1),
            )
            db.update_rows("collections", {"id": own}, total=total)

    def mark_removed(
        self, units: Mapping[int, bytes], total: bytes, *, terms: Sequence[IndexTerm] | None = None
    ) -> None:
        if self._writer is None:
            return
        with self._writer.write() as db:
            for number, meta in units.items():
                self._replace_meta(db, number, meta)
                if terms is not None:
                    self._blank(db, number)
            self._write_terms(db, [term for term in terms or () if term.sources])
            for term in terms or ():
                if not term.sources:
                    db.execute("DELETE FROM postings WHERE collection = ? AND term = ?", (self._id, term.id))
                    db.execute("DELETE FROM terms WHERE collection = ? AND id = ?", (self._id, term.id))
            db.update_rows("collections", {"id": self._id}, total=total)

    def clear(self, made_by: str | None = None) -> None:
        if self._writer is None:
            return
        with self._writer.write() as db:
            for table in ("names", "fresh", "pages", "vectors", "terms", "postings", "read_to"):
                db.execute(f"DELETE FROM {table} WHERE collection = ?", (self._id,))
            db.execute(
                "UPDATE collections SET total = x'', made_by = coalesce(?, made_by) WHERE id = ?", (made_by, self._id)
            )

    def _write_vectors(self, db: Database, first: int, vectors: bytes) -> None:
        """A page may begin and end in the middle of a row."""
        first_row = self.vectors(first - first % _VECTORS_A_ROW, first) if first % _VECTORS_A_ROW else b""
        body = first_row + vectors
        block, size = first // _VECTORS_A_ROW, _VECTORS_A_ROW * VECTOR_BYTES
        for i in range(0, len(body), size):
            place = {"collection": self._id, "block": block + i // size}
            db.upsert_row("vectors", ("collection", "block"), **place, body=body[i : i + size])

    def _write_terms(self, db: Database, terms: Sequence[IndexTerm]) -> None:
        db.execute_many(
            "INSERT INTO terms (collection, id, stem, sources, vector) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET sources = excluded.sources",
            [(self._id, term.id, term.stem, term.sources, term.vector) for term in terms],
        )

    def _replace_meta(self, db: Database, number: int, meta: bytes) -> None:
        db.update_rows("fresh", {"collection": self._id, "number": number}, meta=meta)
        page = db.row(
            "SELECT first, meta FROM pages WHERE collection = ? AND first <= ? ORDER BY first DESC LIMIT 1",
            (self._id, number),
        )
        at = (number - page["first"]) * META_BYTES if page else 0
        if page and at < len(page["meta"]):
            body = page["meta"][:at] + meta + page["meta"][at + META_BYTES :]
            db.update_rows("pages", {"collection": self._id, "first": page["first"]}, meta=body)

    def _blank(self, db: Database, number: int) -> None:
        nothing = bytes(VECTOR_BYTES)
        db.update_rows("fresh", {"collection": self._id, "number": number}, vector=nothing, stems="[]")
        block, place = divmod(number, _VECTORS_A_ROW)
        row = db.row("SELECT body FROM vectors WHERE collection = ? AND block = ?", (self._id, block))
        at = place * VECTOR_BYTES
        if row is not None and len(row["body"]) > at:
            body = row["body"][:at] + nothing + row["body"][at + VECTOR_BYTES :]
            db.update_rows("vectors", {"collection": self._id, "block": block}, body=body)


def _joined(rows: Sequence[Row]) -> bytes:
    """The one column of all rows."""
    return b"".join(row[0] for row in rows)


def _stems(text: str) -> tuple[UnitStem, ...]:
    return tuple(UnitStem(*stem) for stem in json.loads(text))


_TOKENIZER = "porter unicode61 remove_diacritics 2"
_MAX_STEMS = 20_000


class Stemmer:
    """Word -> stem, remembered for the last 20,000 words or so. A word that `unicode61` takes apart has its pieces'
    stems joined by spaces."""

    def __init__(self) -> None:
        self._stems: dict[str, str] = {}
        self._lock = Lock()
        self._scratch = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._scratch.execute(f"CREATE VIRTUAL TABLE words USING fts5 (word, content='', tokenize='{_TOKENIZER}')")
        self._scratch.execute("CREATE VIRTUAL TABLE terms USING fts5vocab ('words', 'instance')")

    def of(self, words: Iterable[str]) -> dict[str, str]:
        """The stem of each word; "" for one that has no letter or digit."""
        distinct = list(dict.fromkeys(words))
        with self._lock:
            missing = [word for word in distinct if word not in self._stems]
            if missing:
                if len(self._stems) + len(missing) > _MAX_STEMS:
                    self._stems.clear()
                    missing = distinct
                self._stems.update(self._made(missing))
            return {word: self._stems[word] for word in distinct}

    def close(self) -> None:
        self._scratch.close()

    def _made(self, words: list[str]) -> dict[str, str]:
        pieces: list[list[str]] = [[] for _ in words]
        self._scratch.execute("BEGIN")
        self._scratch.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(words))
        for term, row in self._scratch.execute("SELECT term, doc FROM terms ORDER BY doc, offset"):
            pieces[row].append(term)
        self._scratch.execute("ROLLBACK")
        return {word: " ".join(piece) for word, piece in zip(words, pieces, strict=True)}
