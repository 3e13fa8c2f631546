"""What a search among a hundred thousand memories costs a process that has just started.

`python -m tests.recall_bench.many build FOLDER` makes the collection, `... ask FOLDER` opens and asks it; both print
one JSON object. Memories are of this project's own prose, with facts among them that the questions ask for in a
person's words, the common ones included.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assistant.core.sessions import OWNER_SCOPE
from assistant.mem0.embedders import WordLlamaEmbedder
from assistant.search.engine import SearchEngine
from assistant.search.index_values import SearchFilter, SourceText
from assistant.search.query import SearchLimits
from assistant.store.database import Database
from assistant.store.schema.migrations import search_migrations
from assistant.store.search.index_store import SqliteIndexStore, Stemmer
from tests.bench.process import resident_mib
from tests.bench.prose import Prose

MEMORIES, FACTS, APPENDED = 100_000, 400, 500
_START, _STEP = datetime(2021, 11, 20, tzinfo=UTC), timedelta(minutes=26)
_AT_ONCE, _WARM_UP = 256, 20
_SHORTEST, _LONGEST = 8, 30


def build(folder: Path) -> dict[str, object]:
    """Seconds that it takes to index everything, in batches."""
    index = _engine(folder).index
    seconds = 0.0
    batch: list[SourceText] = []
    for record in _records(0, MEMORIES):
        batch.append(record)
        if len(batch) == _AT_ONCE or record.id == MEMORIES - 1:
            began = time.perf_counter()
            index.append(batch, {})
            seconds += time.perf_counter() - began
            batch = []
    return {"seconds": seconds, "bytes": sum(path.stat().st_size for path in folder.iterdir())}


def ask(folder: Path) -> dict[str, object]:
    """Times of opening, of questions and of new memories, in seconds; how much memory they take, in MB; the share of
    the facts that are found among the first ten."""
    embedder = WordLlamaEmbedder()
    embedder.embed(["What stands here already is no part of the collection."])
    before, began = resident_mib(), time.perf_counter()
    engine = _engine(folder)
    where = SearchFilter(OWNER_SCOPE, ("memory",))
    engine.search("Where did we say the meeting is?", where)
    opened = time.perf_counter() - began
    asked, processor, found = [], [], 0
    for number, fact in enumerate(Prose(1).facts(1, FACTS)):
        began, used = time.perf_counter(), time.thread_time()
        hits = engine.search(fact.question, where, limit=10)
        asked.append(time.perf_counter() - began)
        processor.append(time.thread_time() - used)
        found += _place_of(number) in [hit.source for hit in hits]
    added = resident_mib() - before
    appended = []
    for record in list(_records(MEMORIES, APPENDED)):
        began = time.perf_counter()
        engine.index.append([record], {})
        appended.append(time.perf_counter() - began)
    return {
        "opened": opened,
        "asked": asked[_WARM_UP:],
        "processor": processor[_WARM_UP:],
        "found": found / FACTS,
        "added_mb": added,
        "appended": appended,
    }


def _records(first: int, count: int) -> Iterator[SourceText]:
    """Memories, a fact standing in every 250th or so of the collection."""
    chance, prose = random.Random(first), Prose(1)
    facts = {_place_of(number): " ".join(fact.said) for number, fact in enumerate(prose.facts(1, FACTS))}
    topic = prose.topic(chance)
    for number in range(first, first + count):
        if number % 30 == 0:
            topic = prose.topic(chance)
        text = facts.get(number) or prose.message(chance, topic, _SHORTEST, _LONGEST)
        at = _START + number * _STEP
        yield SourceText(number, "", number, OWNER_SCOPE, "memory", "", at, text)


def _place_of(fact: int) -> int:
    return fact * (MEMORIES // FACTS) + 7


def _engine(folder: Path) -> SearchEngine:
    stems, embedder = Stemmer(), WordLlamaEmbedder()
    shelf = SqliteIndexStore(
        Database.open(folder / "search.db", search_migrations, datetime.now(UTC)), "memories", embedder.name
    )
    return SearchEngine(shelf, stems.stem_words, embedder.embed, SearchLimits(), is_word=embedder.is_word)


_STEPS: Mapping[str, Callable[[Path], dict[str, object]]] = {"build": build, "ask": ask}

if __name__ == "__main__":
    print(json.dumps(_STEPS[sys.argv[1]](Path(sys.argv[2]))))
