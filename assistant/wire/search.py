"""Opens search over messages and over memories. The engine and its embedder are loaded when something is first searched
or indexed.

The index always uses the built-in embedder, whatever embeds memories: every message is embedded at once, and none is
sent to another machine for it.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from assistant.core.errors import CorruptStore, IndexDamaged, NewerSchema, OlderSchema, StoreError
from assistant.core.logger import get_logger
from assistant.search.finder import SourceFinder
from assistant.search.index_values import IndexStore, TextSource
from assistant.search.query import SearchLimits
from assistant.service.malloc import loaded_for_good, trim_heap
from assistant.store.database import Database
from assistant.store.derived import FILES_DB, SEARCH_DB, open_derived, set_aside
from assistant.store.log.reader import LogFiles
from assistant.store.memory.search import MemoriesById, StoredMemorySearch
from assistant.store.schema.migrations import search_migrations
from assistant.store.search.files import FileIndex, StoredFileSearch
from assistant.store.search.history import StoredHistory
from assistant.store.search.index_store import SqliteIndexStore, Stemmer
from assistant.store.search.sources import JournalSearchSource, LogSearchSource

if TYPE_CHECKING:
    from assistant.mem0.embedders import WordLlamaEmbedder
    from assistant.search.embedding_cache import EmbeddingCache
    from assistant.search.engine import SearchEngine

log = get_logger()

# An index made by another version is rebuilt.
_INDEX_VERSION = 7

DEFAULT_SEARCH_LIMITS = SearchLimits()
_LOADING = Lock()


def open_history(
    home: Path,
    zone: tzinfo = UTC,
    *,
    reading: bool = False,
    patient: bool = False,
    bounds: SearchLimits = DEFAULT_SEARCH_LIMITS,
) -> tuple[StoredHistory, SourceFinder]:
    """Open the history of a data folder, and its message search; `reading` next to a running daemon, which writes the
    index; `patient`: a search waits until everything is indexed. Raises `StoreError`."""
    source = LogSearchSource(Database.open_reader(home / "script.db"), LogFiles(home))
    finder = _finder(home, "messages", source, zone, bounds, reading, patient=patient)
    return StoredHistory(home, finder), finder


def open_memory_search(
    home: Path, memories: MemoriesById, zone: tzinfo = UTC, *, reading: bool = False
) -> tuple[StoredMemorySearch, SourceFinder]:
    """Open the search of memories and journal entries, and its index; `reading` as in `open_history`. Raises
    `StoreError`."""
    finder = _finder(
        home,
        "journal",
        JournalSearchSource(Database.open_reader(home / "character.db")),
        zone,
        DEFAULT_SEARCH_LIMITS,
        reading,
    )
    return StoredMemorySearch(Database.open_reader(home / "character.db"), finder, memories), finder


def open_files(home: Path, zone: tzinfo = UTC, *, reading: bool = False) -> tuple[StoredFileSearch, SourceFinder]:
    """Open the search of passages of files, and its index; `reading` as in `open_history`."""
    index = FileIndex(home / FILES_DB, reading=reading)
    finder = _finder(home, "files", index, zone, DEFAULT_SEARCH_LIMITS, reading)
    return StoredFileSearch(index, finder), finder


def _finder(
    home: Path,
    collection: str,
    source: TextSource,
    zone: tzinfo,
    bounds: SearchLimits,
    reading: bool,
    *,
    patient: bool = False,
) -> SourceFinder:
    """Return a collection of search.db over its source, which is closed with it."""
    stemmer = Stemmer()
    index = _IndexFile(home / SEARCH_DB, collection, reading=reading)

    def close() -> None:
        source.close()
        stemmer.close()
        index.close()

    def engine() -> SearchEngine:
        # The embedder and the scoring: not needed at start-up.
        with loaded_for_good():
            from assistant.search.engine import SearchEngine
            from assistant.search.query import with_irregular_forms

            embedder, questions = builtin_embedder(), _question_embeddings()
        # Reading its tokenizer takes some megabytes more than keeping it.
        trim_heap()
        store = index.open(f"{_INDEX_VERSION} {embedder.name}")
        stems = with_irregular_forms(stemmer.stem_words)
        return SearchEngine(store, stems, embedder.embed, bounds, questions, is_word=embedder.is_word)

    return SourceFinder(
        engine, stemmer.stem_words, source, zone, patient=patient or reading, on_damage=index.replace, on_close=close
    )


class _IndexFile:
    """Opens search.db for one of its collections."""

    def __init__(self, path: Path, collection: str, *, reading: bool) -> None:
        self._path = path
        self._collection = collection
        self._reading = reading
        self._is_usable = True
        self._db: Database | None = None

    def open(self, made_by: str) -> IndexStore:
        """Raises `IndexDamaged`, `StoreError`."""
        try:
            if not self._reading:
                self._db = open_derived(self._path, search_migrations, datetime.now(UTC))
            elif self._path.exists() and self._is_usable:
                self._db = Database.open_reader(self._path)
                self._db.require_schema(search_migrations)
        except OlderSchema:
            # The daemon rebuilds it; until then a search uses what is there.
            self.close()
        except CorruptStore as error:
            raise IndexDamaged(str(error)) from error
        except NewerSchema as error:
            # Derived data may be missing; the assistant answers without it.
            raise StoreError(str(error)) from error
        return SqliteIndexStore(self._db, self._collection, made_by, reading=self._reading)

    def replace(self) -> None:
        """Set a damaged database aside; readers continue without it. Raises `StoreError`."""
        is_ours = self._db is None or self._db.is_at(self._path)
        self.close()
        self._is_usable = False
        if not self._reading and is_ours:
            log.warning("the search index was damaged and is made again", file=str(self._path))
            set_aside(self._path)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def builtin_embedder() -> WordLlamaEmbedder:
    """Return the built-in embedder, loaded at first use and shared by this process, since each instance takes 13 MB."""
    with _LOADING:
        return _load_embedder()


def _question_embeddings() -> EmbeddingCache:
    """Return what embeds questions in all collections, so that a turn's question is embedded once."""
    embedder = builtin_embedder()
    with _LOADING:
        return _load_question_embeddings(embedder)


@cache
def _load_question_embeddings(embedder: WordLlamaEmbedder) -> EmbeddingCache:
    from assistant.search.embedding_cache import EmbeddingCache

    return EmbeddingCache(embedder.embed)


@cache
def _load_embedder() -> WordLlamaEmbedder:
    from assistant.mem0.embedders import WordLlamaEmbedder

    return WordLlamaEmbedder()
