"""What a compaction costs beside the model: planning a view of ten thousand messages, committing it, and how long a
message that arrives meanwhile waits for it, compared with one that arrives while nothing else happens.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.context.pressure import PromptSize, RequestBudgets
from assistant.context.tokens import TokenCounter
from assistant.core.messages import Message, ToolCall
from assistant.core.records import CountingTier
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app
from sleep.compaction.plan import CompactionPlan
from sleep.compaction.planner import plan_compaction
from sleep.compaction.values import CompactionInputs, CompactionLimits, CompactionPolicy, Summary
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import CACHE, OpenHome, opened
from tests.bench.process import measured
from tests.bench.prose import Prose
from tests.support.imports import import_messages
from tests.support.scripted import RecordingBridge, ScriptedModel, owner_message

VIEW = 10_000
_BEGUN = datetime(2026, 3, 1, tzinfo=UTC)
_ROUNDS = 15
# A context that the whole view fits into, three quarters full.
_WIDE = 450_000
_COUNTER = TokenCounter(CountingTier("estimate", "", ""))
_SUMMARY = (
    "<summary>\nThey talked about many things, and nothing of it was decided.\n</summary>\n<memories>\n</memories>"
)


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    del sizes
    with TemporaryDirectory(dir=CACHE) as directory:
        home = Path(directory) / "home"
        _fill(home)
        found = measured("tests.bench.compaction", home, 0)
    yield _row("planning, p50 / p95 / p99", found["planning"], 50)
    yield _row("commit, p50 / p95 / p99", found["commit"], 20)
    alone, beside = found["alone"], found["beside"]
    yield Row("compaction", VIEW, "a message, nothing else happening", spread(alone))
    yield Row("compaction", VIEW, "a message that arrives as a compaction begins", spread(beside))
    more = 1000 * (percentile(beside, 0.5) - percentile(alone, 0.5))
    yield Row("compaction", VIEW, "how much longer it waits", f"{more:.1f} ms", "<= 20 ms", more <= 20)


def _row(what: str, seconds: Sequence[float], most: int) -> Row:
    return Row("compaction", VIEW, what, spread(seconds), f"p50 <= {most} ms", 1000 * percentile(seconds, 0.5) <= most)


def _fill(home: Path) -> None:
    """A view as it may stand in a large window: short messages, a tool now and then."""
    chance, prose = random.Random(7), Prose(7)
    rows: list[Message] = []
    while len(rows) < VIEW:
        at = _BEGUN + timedelta(minutes=len(rows))
        text = " ".join(prose.message(chance, prose.topic(chance)).split()[:12])
        rows.append(Message("user", text, ts=at))
        if len(rows) % 24 == 1:
            call = ToolCall(f"call_{len(rows)}", "read_file", {"path": f"notes/{len(rows) % 9}.md"})
            rows.append(Message("assistant", "", tool_calls=(call,), ts=at, model="m"))
            rows.append(Message("tool", "a line of notes\n" * 40, tool_call_id=call.id, name=call.name, ts=at))
        rows.append(Message("assistant", f"{text}, I see.", ts=at, model="m"))
    stores = opened(home, _BEGUN)
    import_messages(stores.conversation, MAIN_SESSION, OWNER_SCOPE, rows[:VIEW], _BEGUN, keep=VIEW)
    stores.close()


def _child(home: Path) -> None:
    stores = opened(home, datetime.now(UTC))
    planning, commit = [], []
    for _ in range(_ROUNDS):
        seconds, found = _planned(stores)
        planning.append(seconds)
        commit.append(_committed(stores, found))
    stores.close()
    alone, beside = asyncio.run(_messages(home))
    print(json.dumps({"planning": planning, "commit": commit, "alone": alone, "beside": beside}))


def _planned(stores: OpenHome) -> tuple[float, CompactionPlan]:
    view = stores.conversation.load_view(MAIN_SESSION)
    places = stores.conversation.find_log_places([message.id for message in view.messages if message.id is not None])
    terms = CompactionLimits(RequestBudgets(160_000, 20_000, 32_000_000, 100), _COUNTER, fixed=PromptSize(2_000, 8_000))
    began = time.perf_counter()
    found = plan_compaction(
        view, places, terms, CompactionPolicy(), CompactionInputs(), datetime.now(UTC), trigger="sleep"
    )
    return time.perf_counter() - began, found


def _committed(stores: OpenHome, found: CompactionPlan) -> float:
    """Committed and taken back, for the next round."""
    assert found.pending_summary is not None
    compaction = found.pending_summary.complete(Summary("They talked.", "full", 3), datetime.now(UTC))
    began = time.perf_counter()
    stores.conversation.commit_compaction(compaction, datetime.now(UTC))
    seconds = time.perf_counter() - began
    stores.conversation.undo_compaction(
        stores.conversation.plan_uncompact(MAIN_SESSION), MAIN_SESSION, datetime.now(UTC)
    )
    return seconds


async def _messages(home: Path) -> tuple[list[float], list[float]]:
    bridge = RecordingBridge()
    settings = load_settings(None, {"ASSISTANT_HOME": str(home)})
    values = settings.values
    off = values.compaction.changed(auto=False)
    wide = values.context.changed(max_context_tokens=_WIDE)
    settings = replace(settings, values=values.changed(compaction=off, context=wide))
    model = ScriptedModel("I see.", window=2_000_000)
    app = build_app(
        settings, _now, bridges={"kept": bridge}, model=model, writer=ScriptedModel(_SUMMARY, window=200_000)
    )
    await app.start()
    worker = asyncio.create_task(app.runtime.run())

    async def answered(key: str) -> float:
        bridge.delivered.clear()
        began = time.perf_counter()
        await app.runtime.accept(owner_message("and what of it", external_id=key))
        await bridge.delivered.wait()
        return time.perf_counter() - began

    alone, beside = [], []
    for number in range(_ROUNDS):
        alone.append(await answered(f"alone {number}"))
        compacting = asyncio.create_task(app.commands.run("/compact", MAIN_SESSION))
        await asyncio.sleep(0)
        beside.append(await answered(f"beside {number}"))
        await compacting
        await app.commands.run("/compact --undo", MAIN_SESSION)
    await app.stop(5)
    await worker
    app.close()
    return alone[1:], beside[1:]


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    _child(Path(sys.argv[1]))
