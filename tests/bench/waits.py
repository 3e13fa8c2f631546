"""How long people wait for an answer where every call of a model takes two seconds: turns of conversations whose
context is compacted again and again, beside the same turns in a context that has room for all of it.

All conversations are held side by side, so that a busy machine is busy for both kinds; each in a home of its own. Every
ninth message is long enough that nothing can have been prepared for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.core.model_api import CallPurpose, ModelEvent, ModelRequest
from tests.bench.figures import Row, percentile
from tests.support.compaction_app import LONG_MESSAGE, SUMMARY_ANSWER, checkpoints_in
from tests.support.running_app import run_app
from tests.support.scripted import ScriptedModel

_SECONDS = 2.0
_CONVERSATIONS, _TURNS = 3, 45
_SHARES = (0.5, 0.95, 0.99)
_MOST = 1.10


class SlowModel(ScriptedModel):
    """Takes two seconds for each answer."""

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        await asyncio.sleep(_SECONDS)
        async for event in super().stream(request, purpose, session=session, turn=turn):
            yield event


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    del sizes
    roomy, small, compactions = asyncio.run(_hold_all())
    for share in _SHARES:
        without, with_them = percentile(roomy, share), percentile(small, share)
        result = f"{with_them:.2f} s, {with_them / without:.2f} x {without:.2f} s"
        what = f"p{share * 100:.0f} of a turn, {compactions} compactions in {len(small)} turns"
        yield Row("waits", None, what, result, f"<= {_MOST:.2f} x", with_them <= _MOST * without)


async def _hold_all() -> tuple[list[float], list[float], int]:
    """The seconds of all turns with room, of those without, and how many compactions these had."""
    contexts = [0, 15_000] * _CONVERSATIONS
    with TemporaryDirectory() as folder:
        homes = [Path(folder) / str(number) for number in range(len(contexts))]
        for home in homes:
            home.mkdir()
        held = await asyncio.gather(*map(_hold, homes, contexts))
    roomy, small = ([seconds for waited, _ in held[first::2] for seconds in waited] for first in (0, 1))
    return roomy, small, sum(made for _, made in held[1::2])


async def _hold(home: Path, context: int) -> tuple[list[float], int]:
    """The seconds from each message to its answer, and how many compactions there were."""
    settings = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": str(context)}
    model = SlowModel("A fine walk.", window=200_000)
    writer = SlowModel(SUMMARY_ANSWER, window=32_000, name="writer-1")
    waited: list[float] = []
    async with run_app(home, model=model, writer=writer, **settings) as it:
        for number in range(_TURNS):
            long = number % 9 == 8
            await it.app.runtime.wait_until_idle()
            began = time.perf_counter()
            await it.say(f"walk {number}: {LONG_MESSAGE * (12 if long else 1)}")
            await it.wait_answered()
            waited.append(time.perf_counter() - began)
        made = len(checkpoints_in(it)) + len(checkpoints_in(it, "absorbed"))
    return waited, made
