"""What was noted of a conversation, on its way through journal and consolidation into Mem0, searched for the turns that
answer a question.

`python -m tests.recall_bench.learned FILE NUMBER` measures conversation NUMBER (from 1) and prints one JSON object. A
scripted model says what the file notes about each session; extraction, vetting, consolidation by rules and Mem0 are the
real ones. A turn is found where a memory was made of it, so `most` bounds what any search could find.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from assistant.core.memories import JournalEntry, Memory
from assistant.core.model_api import ModelRequest
from assistant.core.records import LogRecord
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.mem0.embedders import WordLlamaEmbedder
from assistant.search.engine import SearchEngine
from assistant.search.index_values import SearchFilter, SourceText
from assistant.search.query import SearchLimits, with_irregular_forms
from assistant.store.database import Database
from assistant.store.schema.migrations import search_migrations
from assistant.store.search.index_store import SqliteIndexStore, Stemmer
from sleep.cycle.extract import Extractor
from tests.recall_bench.dataset import DatasetConversation, DatasetQuestion, read_talks
from tests.recall_bench.homes import DatasetHome, make_dataset_home
from tests.recall_bench.turns import DEPTHS
from tests.support.consolidation_home import NOW, ConsolidationHome, open_consolidation_home
from tests.support.scripted import ScriptedModel
from tests.support.sleep_home import memories_answer

_SHOWN = re.compile(r"^#(\d+) ", re.MULTILINE)
_AT_ONCE = 200
_READ_AT_ONCE = 1_000


def main(path: str, number: str) -> None:
    talk = read_talks(Path(path))[int(number) - 1]
    with tempfile.TemporaryDirectory(prefix="recall-") as folder, make_dataset_home(talk, Path(folder)) as home:
        print(json.dumps(asyncio.run(_measured(talk, home, Path(folder)))))


async def _measured(talk: DatasetConversation, home: DatasetHome, path: Path) -> dict[str, object]:
    async with open_consolidation_home(path) as asleep:
        entries = await _journal(talk, home, asleep)
        began = time.perf_counter()
        outcome = await asleep.consolidate()
        seconds = time.perf_counter() - began
        memories = await asleep.memories.all(OWNER_SCOPE)
        turns = _turns_of(memories, entries, home)
        asked = [question for question in talk.questions if question.evidence]
        near = await asleep.memories.nearest([one.text for one in asked], OWNER_SCOPE, limit=DEPTHS[-1])
        engine = _engine(memories, path)
        where = SearchFilter(OWNER_SCOPE, ("memory",))
        rows = []
        for question, by_meaning in zip(asked, near, strict=True):
            found = engine.search(question.text, where, limit=DEPTHS[-1])
            rows.append(
                {
                    "kind": question.kind,
                    "nearest": _shares(question, [turns[memory.id] for memory, _ in by_meaning]),
                    "engine": _shares(question, [turns[memories[one.source].id] for one in found]),
                    "most": _shares(question, list(turns.values()))[-1],
                }
            )
        return {
            "asked": rows,
            "noted": len(talk.observations),
            "entries": len(entries),
            "memories": len(memories),
            "seconds": seconds,
            "outcome": {"read": outcome.read_count, **outcome.details},
        }


async def _journal(talk: DatasetConversation, home: DatasetHome, asleep: ConsolidationHome) -> dict[int, JournalEntry]:
    """Entries by id, extracted from the log by a model that says what the file notes."""
    ids = {said.turn: message_id for message_id, said in home.turns.items()}
    noted: dict[int, list[tuple[str, list[int]]]] = defaultdict(list)
    for one in talk.observations:
        if one.turns:
            noted[ids[one.turns[0]]].append((one.text, [ids[turn] for turn in one.turns]))

    def attentive(request: ModelRequest) -> str:
        shown = [int(found) for found in _SHOWN.findall(request.messages[-1].content)]
        return memories_answer(*({"content": text, "sources": of} for one in shown for text, of in noted[one]))

    extractor = Extractor(lambda: ScriptedModel(attentive), "Write down what to keep.", batch_tokens=8_000)
    records = _records(home)
    entries: list[JournalEntry] = []
    while records:
        batch = await extractor.next_batch(records)
        records = records[len(batch) :]
        found = await extractor.extract(batch, [])
        entries += asleep.journal.add(found.entries, NOW)
    return {entry.id or 0: entry for entry in entries}


def _records(home: DatasetHome) -> list[LogRecord]:
    """Everything that was said, oldest first."""
    records = home.history.recent(OWNER_SCOPE, session=MAIN_SESSION, limit=_READ_AT_ONCE)
    while page := home.history.recent(OWNER_SCOPE, session=MAIN_SESSION, limit=_READ_AT_ONCE, before_id=records[0].id):
        records = [*page, *records]
    return records


def _turns_of(
    memories: Sequence[Memory], entries: dict[int, JournalEntry], home: DatasetHome
) -> dict[str, frozenset[str]]:
    """The turns that each memory was made of."""
    return {
        memory.id: frozenset(home.turns[source].turn for one in memory.entries for source in entries[one].sources)
        for memory in memories
    }


def _engine(memories: Sequence[Memory], path: Path) -> SearchEngine:
    """The search engine over the memories' words, which stand by themselves."""
    stems, embedder = with_irregular_forms(Stemmer().stem_words), WordLlamaEmbedder()
    shelf = SqliteIndexStore(
        Database.open(path / "memories.db", search_migrations, datetime.now(UTC)), "memories", embedder.name
    )
    engine = SearchEngine(shelf, stems, embedder.embed, SearchLimits(), is_word=embedder.is_word)
    records = [
        SourceText(number, "", number, memory.scope, "memory", "", memory.said_at, memory.text)
        for number, memory in enumerate(memories)
    ]
    for start in range(0, len(records), _AT_ONCE):
        engine.index.append(records[start : start + _AT_ONCE], {})
    return engine


def _shares(question: DatasetQuestion, found: Sequence[frozenset[str]]) -> list[float]:
    """At each depth the share of the evidence; at last that of all that is given."""
    wanted = frozenset(question.evidence)
    return [len(wanted.intersection(*[frozenset().union(*found[:depth])])) / len(wanted) for depth in (*DEPTHS, None)]


if __name__ == "__main__":
    main(*sys.argv[1:])
