"""Automatic expansion: of facts asked for in other words, how many values stand in the recalled text; how much chat
about nothing recalls anything; how long it takes. Everything but the last messages is out of view."""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assistant.context.tokens import estimate_tokens
from assistant.core.messages import Message, Role
from assistant.core.records import ContextView
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.runtime.recall import HistoryRecall
from assistant.store.search.history import StoredHistory
from assistant.wire.search import open_history
from tests.bench.chatter import CHATTER
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import START, YEARS, home, opened
from tests.bench.paraphrases import paraphrases
from tests.bench.process import measured
from tests.bench.prose import Prose
from tests.support.imports import import_messages

FACTS, ROOM, TAIL = 200, 600, 20
LEAST_FOUND, MOST_TRIGGERED = 0.9, 0.05
_AROUND = 5


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    for size in sizes:
        copy = home(size).copied("recollection")
        try:
            found = measured("tests.bench.recollection", copy)
        finally:
            shutil.rmtree(copy)
        share, triggered = found["found"] / FACTS, found["triggered"] / len(CHATTER)
        what = f"facts recalled, of {FACTS}, in {ROOM} tokens"
        yield Row("recall", size, what, f"{100 * share:.1f} %", f">= {100 * LEAST_FOUND:.0f} %", share >= LEAST_FOUND)
        yield Row(
            "recall",
            size,
            f"of {len(CHATTER)} lines about nothing",
            f"{100 * triggered:.1f} %",
            f"< {100 * MOST_TRIGGERED:.0f} %",
            triggered < MOST_TRIGGERED,
        )
        yield Row("recall", size, "tokens it takes of a request, mean", f"{found['tokens']:.0f}")
        yield Row("recall", size, "a question, p50 / p95 / p99", spread(found["seconds"]))
        yield Row("recall", size, "a line about nothing, p95", f"{1000 * percentile(found['idle'], 0.95):.1f} ms")


def archived_view(history: StoredHistory) -> ContextView:
    """The owner's conversation with all but its last messages compacted."""
    summary = Message("system", "[CONTEXT SUMMARY]\n", metadata={"type": "compaction"})
    tail = [record.to_message() for record in history.recent(OWNER_SCOPE, session=MAIN_SESSION, limit=TAIL)]
    return ContextView(MAIN_SESSION, 1, OWNER_SCOPE, 1, (summary, *tail), 0, 0, 0)


def _child(path: Path) -> None:
    facts = paraphrases(FACTS)
    _plant(path, [fact.said for fact in facts])
    history = open_history(path, patient=True)[0]
    view, now = archived_view(history), datetime.now(UTC)
    recollection = HistoryRecall(history, estimate_tokens, UTC, lambda: ROOM)
    seconds, tokens, found = [], [], 0
    for fact in facts:
        began = time.perf_counter()
        text = recollection.recall(fact.question, MAIN_SESSION, OWNER_SCOPE, view, now)
        seconds.append(time.perf_counter() - began)
        tokens.append(estimate_tokens(text))
        found += fact.value in text
    idle, triggered = [], 0
    for line in CHATTER:
        began = time.perf_counter()
        triggered += bool(recollection.recall(line, MAIN_SESSION, OWNER_SCOPE, view, now))
        idle.append(time.perf_counter() - began)
    mean = sum(tokens) / len(tokens)
    print(json.dumps({"found": found, "triggered": triggered, "tokens": mean, "seconds": seconds, "idle": idle}))


def _plant(path: Path, facts: Sequence[str]) -> None:
    """Every second fact is a message of its own, the others stand within one; talk goes on around and after them."""
    chance, prose, at = random.Random(9), Prose(1), START + YEARS
    roles: tuple[Role, Role] = ("user", "assistant")
    said: list[Message] = []
    topic = prose.topic(chance)
    for number, fact in enumerate((*facts, *[""] * TAIL)):
        if number % 6 == 0:
            topic = prose.topic(chance)
        for place in range(_AROUND):
            text = prose.message(chance, topic)
            if fact and place == 2:
                sentences = text.split(". ")
                sentences.insert(len(sentences) // 2, fact.removesuffix("."))
                text = fact if number % 2 else ". ".join(sentences)
            said.append(Message(roles[place % 2], text, ts=at + timedelta(minutes=len(said))))
    stores = opened(path, at)
    import_messages(stores.conversation, MAIN_SESSION, OWNER_SCOPE, said, said[-1].ts or at)
    stores.close()


if __name__ == "__main__":
    _child(Path(sys.argv[1]))
