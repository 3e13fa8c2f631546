"""The index of files, files.db: the files in the workspace and in the owner's folders, and their text by page. The
search index reads it (as a `TextSource`), and search results are read from it.

- It is derived from the files alone: if deleted or damaged, it is rebuilt. It is opened at first use.
- A page is found as long as its file exists unchanged. A row records removed passages, so that the search index, which
  follows, removes them too.
- Erased text does not return with a file read earlier: `put` rejects text read before the last erasure (`epoch`), and
  an excluded file of the owner stays excluded until it changes.
- All content is the owner's. May be called from any thread, one call at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from sqlite3 import Row
from threading import RLock
from typing import Any, Literal

from assistant.core.dataclass import dataclass
from assistant.core.erasure_phrases import PhraseMatcher
from assistant.core.errors import CorruptStore, StoreError
from assistant.core.logger import get_logger
from assistant.core.sessions import OWNER_SCOPE
from assistant.documents.folders import FoundFile
from assistant.documents.passages import Passage, count_places
from assistant.search.finder import SourceFinder
from assistant.search.index_values import SearchFilter, SourceText
from assistant.search.match import make_excerpt, prepare_query
from assistant.search.query import query_words
from assistant.store.database import Database
from assistant.store.derived import open_derived, set_aside
from assistant.store.schema.migrations import files_migrations

log = get_logger()

FileState = Literal["read", "unreadable", "left_out"]
PASSAGE_ROLE = "passage"
_LEFT_OUT = "it has words that you forgot; change it, or remove it"
_SEPARATORS = re.compile(r"[/_.@-]+")
_MAX_QUERY = 4_000


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file of the index."""

    path: str
    size: int  # in bytes
    changed_at: datetime
    pages: int  # number of pages, slides, sheets or parts with text; 0 without pages
    state: FileState
    reason: str  # why it cannot be searched; "" if it can


@dataclass(frozen=True, slots=True)
class FileHit:
    """A passage found by a search."""

    path: str
    place: str  # as in "page 3"; "" for a file without pages
    start: int  # byte offset in its text, as `read_file` takes it
    excerpt: str
    changed_at: datetime
    share: float  # share of the question's words in the excerpt, weighted by rarity: 0 to 1


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Size of the index."""

    files: int
    pages: int
    unreadable: int
    bytes: int  # of the database


class FileIndex:
    """files.db. All methods except for `close` raise `StoreError`."""

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        """`reading`: read while the daemon writes; empty if the file does not exist."""
        self._path = path
        self._reading = reading
        self._db: Database | None = None
        self._lock = RLock()
        self._is_closed = False
        self.epoch = 0  # number of erasures so far

    # ---------------------------------------------------------------------------------------------------------- reading

    def known_files(self) -> dict[str, FoundFile]:
        """Return all indexed files as they were when read, by path."""
        rows = self._rows("SELECT path, size, changed_ns, inode FROM files")
        return {row["path"]: FoundFile(row["path"], row["size"], row["changed_ns"], row["inode"]) for row in rows}

    def list_files(
        self, *, state: FileState | None = None, except_reason: str = "", limit: int = 1_000_000
    ) -> list[IndexedFile]:
        """Return files by path, without those that cannot be searched for this reason."""
        sql = "SELECT * FROM files WHERE ? IN ('', state) AND (? = '' OR reason <> ?) ORDER BY path LIMIT ?"
        rows = self._rows(sql, state or "", except_reason, except_reason, limit)
        return [_indexed_file(row) for row in rows]

    def files_by_path(self, paths: Sequence[str]) -> list[IndexedFile]:
        """Return those of these files that are indexed, by path."""
        sql = "SELECT * FROM files WHERE path IN (SELECT value FROM json_each(?)) ORDER BY path"
        return [_indexed_file(row) for row in self._rows(sql, json.dumps(list(paths)))]

    def counts(self) -> FileCounts:
        """Return zeros if nothing was indexed yet."""
        rows = self._rows(
            "SELECT count(*) AS files, coalesce(sum(pages), 0) AS pages,"
            " coalesce(sum(state <> 'read'), 0) AS unreadable FROM files"
        )
        size = self._path.stat().st_size if self._path.exists() else 0
        return FileCounts(rows[0]["files"], rows[0]["pages"], rows[0]["unreadable"], size) if rows else _NOTHING

    def passages_by_id(self, ids: Sequence[int]) -> dict[int, tuple[str, datetime, Passage]]:
        """Return path, time of change of the file, and passage, of those that still exist."""
        rows = self._rows(
            "SELECT p.id, p.place, p.start, p.text, f.path, f.changed_ns FROM passages p JOIN files f ON f.id = p.file"
            " WHERE p.id IN (SELECT value FROM json_each(?))",
            json.dumps(list(ids)),
        )
        return {
            row["id"]: (row["path"], _moment(row["changed_ns"]), Passage(row["place"], row["start"], row["text"]))
            for row in rows
        }

    def streams_behind(self, read_to: Mapping[str, int]) -> dict[str, int]:
        rows = self._rows("SELECT token, (SELECT max(id) FROM passages) AS last FROM origin")
        return {
            stream: row["last"]
            for row in rows
            if (row["last"] or 0) > read_to.get(stream := f"files {row['token']}", 0)
        }

    def records_after(self, stream: str, seq: int, *, limit: int) -> list[SourceText]:
        """As the port says. The first passage of a file also has its path as text; a passage without text takes back
        earlier ones."""
        rows = self._rows(
            "SELECT p.*, f.path, f.changed_ns,"
            " p.id = (SELECT min(first.id) FROM passages first WHERE first.file = f.id) AS is_first"
            " FROM passages p LEFT JOIN files f ON f.id = p.file WHERE p.id > ? ORDER BY p.id LIMIT ?",
            seq,
            limit,
        )
        return [
            SourceText(
                row["id"],
                f"file {row['file']}" if row["file"] else "",
                row["id"],
                row["scope"],
                PASSAGE_ROLE,
                "",
                _moment(row["changed_ns"] or 0),
                # A file is also found by its name.
                f"{_SEPARATORS.sub(' ', row['path'])}\n{row['text']}" if row["is_first"] else row["text"],
                takes_back=tuple(json.loads(row["takes_back"])),
            )
            for row in rows
        ]

    def has_until(self, stream: str, seq: int, until: datetime) -> bool:
        """Passages have no order of time."""
        return True

    def files_with_words(self, words: PhraseMatcher) -> list[str]:
        """Return the paths of files whose text or name has the words, in order."""
        with self._lock:
            rows = self._iterate(
                "SELECT f.path, p.text FROM files f LEFT JOIN passages p ON f.id = p.file ORDER BY f.path"
            )
            return list(
                dict.fromkeys(
                    row["path"] for row in rows if words.matches(row["text"] or "") or words.matches(row["path"])
                )
            )

    def texts(self) -> Iterator[str]:
        """Yield all searchable text."""
        with self._lock:
            for row in self._iterate("SELECT f.path, p.text FROM passages p JOIN files f ON f.id = p.file"):
                yield f"{row['path']}\n{row['text']}"

    # ---------------------------------------------------------------------------------------------------------- writing

    def put(self, file: FoundFile, passages: Sequence[Passage], reason: str = "", *, epoch: int) -> bool:
        """Index a file, replacing its earlier content; `reason`: why its text cannot be read. Returns False without
        doing so if something was erased since `epoch`."""
        with self._lock:
            if epoch != self.epoch:
                return False
            with self._writer().write(durable=False) as db:
                row = db.row("SELECT id FROM files WHERE path = ?", (file.path,))
                if row is not None:
                    _take_back(db, row["id"])
                columns = {
                    "scope": OWNER_SCOPE,
                    "size": file.size,
                    "changed_ns": file.changed_ns,
                    "inode": file.inode,
                    "pages": count_places(passages),
                    "state": "unreadable" if reason else "read",
                    "reason": reason,
                }
                db.upsert_row("files", ("path",), path=file.path, **columns)
                file_id = db.value("SELECT id FROM files WHERE path = ?", (file.path,))
                # A file without text is found by its name.
                for passage in passages or [Passage("", 0, "")]:
                    _insert_passage(db, file=file_id, place=passage.place, start=passage.start, text=passage.text)
        return True

    def remove(self, paths: Sequence[str]) -> None:
        """Remove deleted files."""
        with self._lock, self._writer().write(durable=False) as db:
            for path in paths:
                file_id = db.value("SELECT id FROM files WHERE path = ?", (path,))
                if file_id is not None:
                    _take_back(db, file_id)
                    db.execute("DELETE FROM files WHERE id = ?", (file_id,))

    def erase(self, words: PhraseMatcher, removed: Sequence[str]) -> bool:
        """Remove the words: everything of `removed` files, and the text of files that have them. Returns whether the
        search index may still have such words."""
        with self._lock:
            self.epoch += 1
            paths = self.files_with_words(words)
            database = self._writer()
            database.overwrite_deleted()
            with database.write() as db:
                # The search index may still have words of removed passages.
                was_gone = db.execute("DELETE FROM passages WHERE file IS NULL") > 0
                for path in {*paths, *removed}:
                    file_id = db.value("SELECT id FROM files WHERE path = ?", (path,))
                    if file_id is not None:
                        was_gone |= db.execute("DELETE FROM passages WHERE file = ?", (file_id,)) > 0
                        db.update_rows("files", {"id": file_id}, state="left_out", reason=_LEFT_OUT, pages=0)
                for path in removed:
                    db.execute("DELETE FROM files WHERE path = ?", (path,))
            return was_gone

    def vacuum(self) -> None:
        """Remove deleted content from the file."""
        if self._path.exists():
            with self._lock:
                self._writer().vacuum()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._db is not None:
                self._db.close()
                self._db = None

    # --------------------------------------------------------------------------------------------------------- database

    def _writer(self) -> Database:
        if self._reading:
            raise RuntimeError("an index that is open for reading is written")
        self._require_open()
        if self._db is None:
            open_files = partial(open_derived, self._path, files_migrations, datetime.now(UTC))
            try:
                self._db = open_files()
            except CorruptStore as error:
                log.warning("files.db was damaged and is made again from the files", error=str(error))
                set_aside(self._path)
                self._db = open_files()
        return self._db

    def _reader(self) -> Database | None:
        if not self._reading:
            return self._writer()
        self._require_open()
        if self._db is None and self._path.exists():
            self._db = Database.open_reader(self._path)
        return self._db

    def _require_open(self) -> None:
        """Raise if closed: a worker thread may call during shutdown."""
        if self._is_closed:
            raise StoreError(f"{self._path} is closed.")

    def _rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        with self._lock:
            database = self._reader()
            return [] if database is None else [dict(row) for row in database.rows(sql, values)]

    def _iterate(self, sql: str) -> Iterator[Row]:
        database = self._reader()
        return iter(()) if database is None else database.iterate(sql)


_NOTHING = FileCounts(0, 0, 0, 0)


def _take_back(db: Database, file_id: int) -> None:
    ids = [row["id"] for row in db.rows("SELECT id FROM passages WHERE file = ?", (file_id,))]
    db.execute("DELETE FROM passages WHERE file = ?", (file_id,))
    if ids:
        _insert_passage(db, file=None, place="", start=0, text="", takes_back=json.dumps(ids))


def _insert_passage(db: Database, *, takes_back: str = "[]", **columns: object) -> None:
    db.insert_row("passages", scope=OWNER_SCOPE, takes_back=takes_back, **columns)


def _indexed_file(row: Mapping[str, Any]) -> IndexedFile:
    changed_at = _moment(row["changed_ns"])
    return IndexedFile(row["path"], row["size"], changed_at, row["pages"], row["state"], row["reason"])


def _moment(nanoseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (OverflowError, ValueError, OSError):  # a file system may report any time
        return datetime.fromtimestamp(0, UTC)


class StoredFileSearch:
    """Searches passages of files by content. May be called from any thread; slow, so not in the event loop."""

    def __init__(self, index: FileIndex, finder: SourceFinder) -> None:
        """`finder` searches `index`; both are closed with this object."""
        self.index = index
        self._finder = finder

    def close(self) -> None:
        self._finder.close()

    def search(self, question: str, *, limit: int = 8, inside: str = "") -> list[FileHit]:
        """Return hits, best first; `inside`: a folder, or a file. Raises `StoreError`."""
        words = query_words(question[:_MAX_QUERY])
        if not words or limit <= 0:
            return []
        many = limit if not inside else _MOST_LOOKED_AT
        hits = self._finder.find(question[:_MAX_QUERY], SearchFilter(OWNER_SCOPE, (PASSAGE_ROLE,)), limit=many)
        query = prepare_query(self._finder, words)
        # A search by meaning always has a next best; what shares neither a word nor a meaning is no hit.
        hits = [hit for hit in hits if hit.nearby > 0 or hit.similarity >= _LIKE_ENOUGH]
        passages = self.index.passages_by_id([hit.source for hit in hits])
        found = []
        for path, changed_at, passage in (passages[hit.source] for hit in hits if hit.source in passages):
            if inside in ("", path) or path.startswith(f"{inside}/"):
                text = passage.text or path
                spots, idf = query.matcher.find_spots(text), query.significance.idf
                excerpt = make_excerpt(text, spots, idf, keep_lines=True).text
                fit = query.significance.measure_fit(query.matcher.words_in(f"{path} {text}"))
                found.append(FileHit(path, passage.place, passage.start, excerpt, changed_at, fit.share))
        return found[:limit]


_MOST_LOOKED_AT = 200
_LIKE_ENOUGH = 0.1  # cosine; where words of the question are near, none is needed
