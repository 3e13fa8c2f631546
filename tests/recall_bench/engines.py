"""A conversation of a file in an index of its own, without a home around it: what fitting and ablations need, which ask
the same questions again and again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.search.engine import SearchEngine
from assistant.search.index_values import SearchFilter, SourceText
from assistant.search.query import SearchLimits, with_irregular_forms
from assistant.store.database import Database
from assistant.store.schema.migrations import search_migrations
from assistant.store.search.index_store import SqliteIndexStore, Stemmer
from assistant.wire.search import builtin_embedder
from tests.recall_bench.dataset import DatasetConversation

EVERYTHING = SearchFilter(OWNER_SCOPE, ("user", "assistant"))
_AT_ONCE = 64


def open_engine(talk: DatasetConversation, path: Path) -> SearchEngine:
    """An engine in which turn number N is source N; what stands in the file is not indexed again."""
    stems, embedder = with_irregular_forms(Stemmer().stem_words), builtin_embedder()
    store = SqliteIndexStore(Database.open(path, search_migrations, datetime.now(UTC)), "turns", embedder.name)
    engine = SearchEngine(store, stems, embedder.embed, SearchLimits(), is_word=embedder.is_word)
    records = [
        SourceText(number, MAIN_SESSION, number, OWNER_SCOPE, said.role, said.speaker, said.at, said.text)
        for number, said in enumerate(talk.said)
    ]
    done = engine.index.read_to.get(MAIN_SESSION, -1) + 1
    for start in range(done, len(records), _AT_ONCE):
        batch = records[start : start + _AT_ONCE]
        engine.index.append(batch, {MAIN_SESSION: batch[-1].seq})
    return engine
