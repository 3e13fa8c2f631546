"""Scenarios of compaction by hand: made, taken back, and a conversation that branches off; then a sleep, which reads
what left the view for the journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import ModelError, StoreError
from assistant.core.model_api import ModelRequest
from tests.crash.comparison import but, look
from tests.crash.scenario import AllowedDifference, Faults, Scenario
from tests.crash.world import AppRun, CrashEnvironment, live, message
from tests.support.scripted import ScriptStep

_TRIES = 40
_A_WHILE = timedelta(seconds=30)
_FACTS = ("I moved to Bergen in March.", "My sister Ines keeps the spare key.", "We decided to sell the boat.")


def _answer(request: ModelRequest) -> ScriptStep:
    return "Noted. " + "The road goes on along the shore and over the hill. " * 30


def _no_summary(request: ModelRequest) -> ScriptStep:
    """Summaries alone fail, which is told in the transaction of the compaction."""
    asks = " ".join(block.text for block in request.system).casefold()
    is_summary = "summar" in asks and not request.tools
    return ModelError("no summary today", kind="bad_request") if is_summary else _answer(request)


_LONG = CrashEnvironment(
    tuple(message(f"{_FACTS[n % 3]} Number {n}. " + "And so on along the shore. " * 30, n) for n in range(12)),
    _answer,
    settings={"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "20000"},
)


async def _persistently(life: AppRun, do: Callable[[], Awaitable[object]], done: Callable[[], bool]) -> None:
    """A person asks for it until it is done: a disk that refuses is tried again, and again once a lease that it kept
    from being given back has run out."""
    for _ in range(_TRIES):
        if done():
            return
        life.clock.now += _A_WHILE
        try:
            await do()
        except StoreError:
            continue
    raise AssertionError("what was asked for was never done")


def _committed(life: AppRun) -> list[Checkpoint]:
    return [one for one in life.app.stores.conversation.checkpoints("main") if one.state not in ("started", "failed")]


async def _command(life: AppRun, text: str) -> None:
    await life.app.commands.run(text, "main", bridge="network")


async def _compact(life: AppRun) -> None:
    """The person compacts, unless the home says that this was done before the crash; then it sleeps."""
    await life.app.runtime.wait_until_idle()
    await _persistently(life, lambda: _command(life, "/compact"), lambda: bool(_committed(life)))
    await _sleep(life)


async def _sleep(life: AppRun) -> None:
    """Until everything that left the view was read."""

    def read() -> bool:
        stores = life.app.stores
        waiting = sum(info.unextracted for info in stores.conversation.list_sessions())
        slept = any(cycle.state == "done" for cycle in stores.journal.list_cycles())
        return slept and not waiting and not stores.conversation.list_unjournaled_checkpoints()

    await _persistently(life, lambda: life.app.sleep.scheduler.run_now("nap"), read)


async def _take_back(life: AppRun) -> None:
    def undone() -> bool:
        return any(one.state == "undone" for one in _committed(life))

    await _persistently(life, lambda: _command(life, "/compact --undo"), undone)


async def _branch(life: AppRun) -> None:
    def branched() -> bool:
        return any(info.parent for info in life.app.stores.conversation.list_sessions())

    await _persistently(life, lambda: _command(life, "/branch"), branched)


def _failed_more(before: list[list[object]], after: list[list[object]], faults: Faults) -> bool:
    """Attempts that a fault cut off are noted as failed, one a fault at most (a fault can cut off its retry's note)."""
    kept = [row for row in after if row[-1] != "failed"]
    same = [row[:1] + row[2:] for row in before] == [row[:1] + row[2:] for row in kept]
    return same and len(after) - len(kept) <= 2 * faults.all


_CUT_OFF = "what a fault cut off is noted as failed, and done again"
CARRIED_OUT = but(AllowedDifference("checkpoints", _CUT_OFF, _failed_more))


def _scenario(name: str, about: str, before: CrashEnvironment, doing: Callable[[AppRun], Awaitable[None]]) -> Scenario:
    return Scenario(
        name,
        about,
        lambda home: live(home, before),
        lambda home: live(home, replace(before, meanwhile=doing)),
        look,
        CARRIED_OUT,
    )


_COMPACTED = replace(_LONG, meanwhile=_compact)

COMPACTION = _scenario("compaction", "the person compacts, and the assistant sleeps", _LONG, _compact)
COMPACTION_TOLD = _scenario(
    "compaction-told",
    "a compaction sends a notice: no model could summarise",
    replace(_LONG, answer=_no_summary, writes_summaries=True),
    _compact,
)
UNCOMPACTION = _scenario("compaction-undone", "a compaction is taken back", _COMPACTED, _take_back)
BRANCHED = _scenario("branch", "a conversation branches off", _LONG, _branch)
