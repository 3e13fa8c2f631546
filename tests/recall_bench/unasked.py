"""What comes to mind unasked: of questions that memory can answer, how many bring up something; of those of other
people, how many do.

`python -m tests.recall_bench.unasked FILE NUMBER` measures conversation NUMBER (from 1) and prints one JSON object. The
journal of a home has what the file notes about the conversation; asked are its own questions, those of the other
conversations of the same half (the first five, or those behind them) between other people, the same with the names of
this conversation's people in their place, and lines of chatter. Some of the third kind are about something that was
noted after all.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from assistant.core.memories import JournalEntry, Memory, MemoryHit
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.store.character.journal import StoredJournal
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.wire.search import open_memory_search
from tests.bench.chatter import CHATTER
from tests.recall_bench.dataset import ADVERSARIAL, DatasetConversation, read_talks

HALF = 5
_ASKED = 200
_LOOKED_AT = 6


def main(path: str, number: str) -> None:
    talks, place = read_talks(Path(path)), int(number) - 1
    half = talks[:HALF] if place < HALF else talks[HALF:]
    with tempfile.TemporaryDirectory(prefix="recall-") as folder:
        print(json.dumps(_measured(talks[place], half, Path(folder))))


def _measured(talk: DatasetConversation, half: Sequence[DatasetConversation], home: Path) -> dict[str, object]:
    turns = _noted(talk, home)
    search, finder = open_memory_search(home, _no_memories)
    while finder.index_next_batch():
        pass
    seconds: list[float] = []

    def good(question: str) -> list[MemoryHit]:
        began = time.perf_counter()
        found = search.search(question, OWNER_SCOPE, limit=_LOOKED_AT)
        seconds.append(time.perf_counter() - began)
        return [one for one in found if one.is_relevant]

    own = [question for question in talk.questions if question.evidence and question.kind != ADVERSARIAL]
    brought = [(good(one.text), frozenset(one.evidence)) for one in own]
    right = [any(turns[one.memory.entries[0]] & evidence for one in found) for found, evidence in brought]
    strange = list(questions_of_others(talk, half))
    measured = {
        "entries": len(turns),
        "own": len(own),
        "brought": sum(bool(found) for found, _ in brought),
        "right": sum(right),
        "strange": len(strange),
        "unrelated": sum(bool(good(asked)) for asked, _ in strange),
        "renamed": sum(bool(good(asked)) for _, asked in strange),
        "lines": len(CHATTER),
        "chatter": sum(bool(good(line)) for line in CHATTER),
        "seconds": seconds,
    }
    search.close()
    return measured


def _noted(talk: DatasetConversation, home: Path) -> dict[int, frozenset[str]]:
    """A journal with what the file notes: the turns that each entry is of."""
    at = {said.turn: said.at for said in talk.said}
    people = Database.open(home / "character.db", character_migrations, talk.said[0].at)
    entries = [
        JournalEntry(
            f"{number}",
            OWNER_SCOPE,
            MAIN_SESSION,
            1,
            one.text,
            at[one.turns[0]] if one.turns else talk.said[0].at,
            "extraction",
            sources=(number + 1,),
        )
        for number, one in enumerate(talk.observations)
    ]
    kept = StoredJournal(people).add(entries, talk.said[-1].at)
    people.close()
    return {entry.id or 0: frozenset(talk.observations[int(entry.key)].turns) for entry in kept}


def questions_of_others(talk: DatasetConversation, half: Sequence[DatasetConversation]) -> Iterator[tuple[str, str]]:
    """Questions between other people, as they are and with the names of these people in their place."""
    mine = _names(talk)
    asked = [
        (question.text, _renamed(question.text, _names(other), mine))
        for other in half
        if not set(_names(other)) & set(mine)
        for question in other.questions
        if question.kind != ADVERSARIAL
    ]
    yield from random.Random(len(talk.said)).sample(asked, min(_ASKED, len(asked)))


def _names(talk: DatasetConversation) -> list[str]:
    return sorted({said.speaker for said in talk.said})


def _renamed(text: str, others: Sequence[str], mine: Sequence[str]) -> str:
    for name, instead in zip(others, mine, strict=False):
        text = re.sub(rf"\b{re.escape(name)}\b", instead, text)
    return text


def _no_memories(memory_ids: Sequence[str]) -> dict[str, Memory]:
    return {}


if __name__ == "__main__":
    main(*sys.argv[1:])
