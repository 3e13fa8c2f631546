"""A whole sleep over a day of a thousand new messages with the built-in model, phase by phase, in a home of its own:
the rules read, weigh and compare, and Mem0's child process keeps what came of it.

The messages are those of the scripted months, over and over until there are enough, each time about other people and
other numbers, so that each round teaches anew."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assistant.core.messages import Message
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app
from sleep.cycle.cycle import PHASES
from tests.bench.figures import Row
from tests.bench.process import measured
from tests.month.conversation import MONTH, read_month
from tests.support.imports import import_messages

NEW, MOST_SECONDS = 1_000, 20.0
_ENDS = datetime(2026, 11, 20, 23, 0, tzinfo=UTC)
_APART = timedelta(seconds=60)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_NUMBER = re.compile(r"\b\d+\b")


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        found = measured("tests.bench.sleeping", directory)
    for phase, seconds in found["phases"].items():
        yield Row("sleep", NEW, f"{phase}", f"{seconds:.2f} s")
    total = sum(found["phases"].values())
    yield Row(
        "sleep",
        NEW,
        "a whole sleep over new messages, offline",
        f"{total:.1f} s",
        f"<= {MOST_SECONDS:.0f} s",
        total <= MOST_SECONDS,
    )
    yield Row("sleep", NEW, "processor time of it, child included", f"{found['cpu']:.1f} s")
    yield Row("sleep", NEW, "journal entries learned, memories held", f"{found['entries']}, {found['memories']}")


def day() -> list[Message]:
    """The newest is an hour old when the sleep begins."""
    said: list[Message] = []
    months = [read_month(path) for path in sorted(MONTH.parent.glob("*.toml"))]
    told = [one for month in months for one in month.said if one.role != "tool"]
    for number in range(NEW):
        times, place = divmod(number, len(told))
        text = _anew(told[place].text, times)
        said.append(Message(told[place].role, text, ts=_ENDS - (NEW + 60 - number) * _APART))
    return said


def _anew(text: str, times: int) -> str:
    """About others than before, of other numbers: the same for the same number of times."""
    named = _NAME.sub(lambda found: found[0] + times * "o", text)
    return _NUMBER.sub(lambda found: str(int(found[0]) + times), named)


async def _child(path: Path) -> None:
    app = build_app(load_settings(None, {"ASSISTANT_HOME": str(path)}), lambda: _ENDS)
    import_messages(app.stores.conversation, MAIN_SESSION, OWNER_SCOPE, day(), _ENDS)
    phases = {}
    for phase in PHASES:
        began = time.perf_counter()
        await app.sleep.cycle.run(_ENDS, phase=phase)
        phases[phase] = time.perf_counter() - began
    entries = len(app.stores.journal.entries(OWNER_SCOPE, limit=100_000))
    memories = len(await app.stores.memories.all(OWNER_SCOPE))
    await app.stores.memories.aclose()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    print(json.dumps({"phases": phases, "cpu": cpu, "entries": entries, "memories": memories}))
    app.close()


if __name__ == "__main__":
    asyncio.run(_child(Path(sys.argv[1])))
