"""What one turn costs besides the model: from a bridge's accept to its delivery, through the whole app.

The model is scripted and answers at once, and is metered and reports its usage as a paid one does, so that every
write of real life happens, each of them durable. Tools are not called. Recall is off: what a question's search costs is
the figure `recall`, and statements are not searched for. What a daemon catches up on after it is ready (the search
index, the days that texts mention) is caught up on before, and what the messages say counts as learnt: a home that was
lived in has it, and only a bench's home has ten thousand messages that nothing was made of yet. As in a daemon, what is
loaded is not walked by the collector of cycles.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelReply, ModelRequest
from assistant.daemon import SWITCH_SECONDS, compile_patterns
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import MeteredModel
from assistant.models.prices import Prices
from assistant.service.malloc import keep_for_good
from assistant.settings.sections import SettingsValues
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app
from tests.bench.figures import Row
from tests.bench.process import resident_mib
from tests.bench.prose import Prose
from tests.bench.rounds import turn_costs
from tests.support.running_app import use_model
from tests.support.scripted import RecordingBridge, ScriptedModel, owner_message

_TURNS, _WARM_UP = 150, 10


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    yield from turn_costs("whole-turn", "tests.bench.whole_turn", "accept to delivery", sizes)


def _reply(request: ModelRequest, text: str) -> ModelReply:
    prompt = sum(len(message.content) for message in request.messages) // 4 + 1500
    message = Message("assistant", text, model="scripted-1")
    return ModelReply(message, Usage(input=prompt, output=len(text) // 4), "end")


async def _child(path: Path, number: int) -> None:
    chance, prose = random.Random(number), Prose(1)
    topic = prose.topic(chance)
    model = ScriptedModel(lambda request: _reply(request, prose.message(chance, topic)), window=200_000)
    bridge = RecordingBridge()
    settings = load_settings(None, {"ASSISTANT_HOME": str(path)})
    settings = replace(settings, values=_without_caps_and_recall(settings.values))
    app = build_app(settings, _now, bridges={"kept": bridge}, model=model)
    metered = MeteredModel(
        model.provider,
        model.name,
        lambda: (model, Prices()),
        app.stores.ledger,
        app.estimates.request_tokens,
        _now,
    )
    use_model(app, FailoverModel([metered], RetryPolicy()))
    for info in app.stores.conversation.list_sessions():
        app.stores.conversation.mark_extracted(info.key, info.generation, info.messages)
    await app.start()
    compile_patterns()
    await app.warm()
    keep_for_good()
    sys.setswitchinterval(SWITCH_SECONDS)
    worker = asyncio.create_task(app.runtime.run())
    seconds = []
    for turn in range(_WARM_UP + _TURNS):
        text = prose.message(chance, topic)
        bridge.delivered.clear()
        began = time.perf_counter()
        await app.runtime.accept(owner_message(text, external_id=f"{number}-{turn}"))
        await bridge.delivered.wait()
        seconds.append(time.perf_counter() - began)
        await app.dispatcher.flush()
    print(json.dumps({"seconds": seconds[_WARM_UP:], "resident_mib": resident_mib()}))
    await app.stop(5)
    await worker
    app.close()


def _without_caps_and_recall(values: SettingsValues) -> SettingsValues:
    caps = {"daily_usd": 0.0, "monthly_usd": 0.0, "daily_tokens": 0, "monthly_tokens": 0}
    changed = {
        "budget": values.budget.changed(**caps),
        "compaction": values.compaction.changed(recall_max_tokens=0),
    }
    return values.changed(**changed)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    asyncio.run(_child(Path(sys.argv[1]), int(sys.argv[2])))
