"""What a reset of a session of ten thousand messages takes beside model calls, with nothing of it read for the journal
before: by a model that answers at once, and by the rules that read where there is none (what does not fit into
`reset.learn_seconds` is read after); and what a step of clearing it takes.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.core.ports import Model
from assistant.core.sessions import MAIN_SESSION
from assistant.models.offline.model import OfflineModel
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app
from tests.bench.compaction import VIEW, _fill, _now
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import CACHE
from tests.bench.process import measured
from tests.support.scripted import RecordingBridge, ScriptedModel

_AT_ONCE = "<memories>\n</memories>"
_MOST_SECONDS = 5.0


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    del sizes
    with TemporaryDirectory(dir=CACHE) as directory:
        home = Path(directory) / "home"
        _fill(home)
        for how, words in (("model", "read by a model that answers at once"), ("rules", "read by rules")):
            copy = Path(directory) / how
            shutil.copytree(home, copy)
            found = measured("tests.bench.resetting", copy, how)
            seconds = found["reset"]
            target = f"<= {_MOST_SECONDS:g} s"
            yield Row("reset", VIEW, words, f"{seconds:.2f} s", target, seconds <= _MOST_SECONDS)
    longest = 1000 * percentile(found["upkeep"], 1.0)
    yield Row("reset", VIEW, "clearing, a step", spread(found["upkeep"]), "<= 50 ms", longest <= 50)


async def _child(home: Path, how: str) -> None:
    settings = load_settings(None, {"ASSISTANT_HOME": str(home)})
    writer: Model = ScriptedModel(_AT_ONCE, window=200_000) if how == "model" else OfflineModel()
    app = build_app(
        settings,
        _now,
        bridges={"kept": RecordingBridge()},
        model=ScriptedModel("I see.", window=2_000_000),
        writer=writer,
    )
    await app.start()
    began = time.perf_counter()
    await app.commands.run("/reset", MAIN_SESSION)
    seconds = time.perf_counter() - began
    steps = []
    for _ in range(VIEW // 500 + 1):
        began = time.perf_counter()
        app.stores.conversation.run_maintenance()
        steps.append(time.perf_counter() - began)
    await app.sleep.scheduler.stop()
    await app.stop(5)
    app.close()
    print(json.dumps({"reset": seconds, "upkeep": steps}))


if __name__ == "__main__":
    asyncio.run(_child(Path(sys.argv[1]), sys.argv[2]))
