"""Opens search: over what was said, and over memories. The engine and its embedder are loaded when something is first
searched or indexed.

The index always uses the built-in embedder, whatever embeds memories: every message is embedded as it is said, and none
leaves the machine for that.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.core.errors import HomeError, NewerSchema, StoreError
from assistant.search.finder import SourceFinder
from assistant.search.index_values import IndexStore, TextSource
from assistant.search.query import SearchLimits
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.memory.search import MemoriesById, StoredMemorySearch
from assistant.store.schema.migrations import search_migrations
from assistant.store.search.history import StoredHistory
from assistant.store.search.index_store import SqliteIndexStore, Stemmer
from assistant.store.search.sources import JournalSearchSource, LogSearchSource

if TYPE_CHECKING:
    from assistant.mem0.embedders import WordLlamaEmbedder
    from assistant.search.engine import SearchEngine

# An index that another version made is made again.
_INDEX_VERSION = 3

DEFAULT_SEARCH_LIMITS = SearchLimits()


def open_history(
    home: Path,
    zone: tzinfo = UTC,
    *,
    reading: bool = False,
    patient: bool = False,
    bounds: SearchLimits = DEFAULT_SEARCH_LIMITS,
) -> tuple[StoredHistory, SourceFinder]:
    """The history of a home, and what finds messages in it; `reading` beside a running daemon, which writes the index;
    `patient`: a search waits until everything is taken in. Raises `StoreError`."""
    source = LogSearchSource(Database.open_reader(home / "script.db"), LogFiles(home))
    finder = _finder(home, "messages", source, zone, bounds, reading, patient=patient)
    return StoredHistory(home, finder), finder


def open_memory_search(
    home: Path, memories: MemoriesById, zone: tzinfo = UTC, *, reading: bool = False
) -> tuple[StoredMemorySearch, SourceFinder]:
    """What finds memories and journal entries of a home, and the index that it looks in; `reading` as for the history.
    Raises `StoreError`."""
    finder = _finder(
        home,
        "journal",
        JournalSearchSource(Database.open_reader(home / "character.db")),
        zone,
        DEFAULT_SEARCH_LIMITS,
        reading,
    )
    return StoredMemorySearch(Database.open_reader(home / "character.db"), finder, memories), finder


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
    """A collection of search.db over its source, which is closed with it."""
    stemmer = Stemmer()
    opened: list[Database] = []

    def open_index(made_by: str) -> IndexStore:
        path = home / "search.db"
        if reading:
            opened.extend([Database.open_reader(path)] if path.exists() else [])
            return SqliteIndexStore(opened[0] if opened else None, collection, made_by, reading=True)
        try:
            opened.append(Database.open(path, search_migrations, datetime.now(UTC)))
        except (HomeError, NewerSchema) as error:
            # What is derived may be missing; the assistant answers without it.
            raise StoreError(str(error)) from error
        return SqliteIndexStore(opened[0], collection, made_by)

    def close() -> None:
        source.close()
        stemmer.close()
        for database in opened:
            database.close()

    def engine() -> SearchEngine:
        # The embedder and all that scores: a start need not wait for them.
        from assistant.search.engine import SearchEngine
        from assistant.search.query import with_irregular_forms

        embedder = builtin_embedder()
        index = open_index(f"{_INDEX_VERSION} {embedder.name}")
        return SearchEngine(index, with_irregular_forms(stemmer.of), embedder.embed, bounds)

    return SourceFinder(engine, stemmer.of, source, zone, patient=patient or reading, on_close=close)


@cache
def builtin_embedder() -> WordLlamaEmbedder:
    """Loaded when the first text is embedded, and shared by all of this process."""
    from assistant.mem0.embedders import WordLlamaEmbedder

    return WordLlamaEmbedder()
