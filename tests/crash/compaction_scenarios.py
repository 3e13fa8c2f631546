"""Scenarios of compaction by hand: made, taken back, and a conversation that branches off; then a sleep, which reads
what left the view for the journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

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


def _with_summary(request: ModelRequest) -> ScriptStep:
    asks = " ".join(block.text for block in request.system).casefold()
    if "summar" not in asks or request.tools:
        return _answer(request)
    told = "They went along the shore and over the hill, and some of what they said is noted here."
    return f"<summary>\n{told}\n</summary>\n<memories>\n- {_FACTS[0]}\n</memories>\n<facts>\n</facts>"


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


_PASTED = message("The minutes: " + "and item after item of the pier. " * 500, 90)


async def _paste(life: AppRun) -> None:
    """The person pastes more than there is room for; room is made without a model, and its summary follows, in the
    background, in this life or in the next one."""
    work = life.app.background_compaction

    async def paste() -> None:
        await life.app.runtime.accept(_PASTED)
        await life.is_busy()
        await life.app.runtime.wait_until_idle()
        if _committed(life):
            work.after_turn("main")
        await work.wait_until_idle()

    def summarised() -> bool:
        live = [one for one in _committed(life) if one.state == "live"]
        return bool(live) and {one.tier for one in live} == {"full"}

    await _persistently(life, paste, summarised)


_MANY_MESSAGES = tuple(
    message(f"{_FACTS[n % 3]} Number {n}. " + "And so on along the shore. " * 60, n) for n in range(36)
)


async def _go_cold(life: AppRun) -> None:
    """Hours pass, and the background looks again at whatever happens."""
    await life.app.runtime.wait_until_idle()
    life.clock.now += timedelta(hours=2)

    async def look_again() -> None:
        life.app.background_compaction.after_turn("main")
        await life.app.background_compaction.wait_until_idle()

    await _persistently(life, look_again, lambda: bool(_committed(life)))


def _failed_more(before: list[list[object]], after: list[list[object]], faults: Faults) -> bool:
    """Attempts that a fault cut off are noted as failed, one a fault at most (a fault can cut off its retry's note)."""
    kept = [row for row in after if row[-1] != "failed"]
    same = [row[:1] + row[2:] for row in before] == [row[:1] + row[2:] for row in kept]
    return same and len(after) - len(kept) <= 2 * faults.all


_CUT_OFF = "what a fault cut off is noted as failed, and done again"
CARRIED_OUT = but(AllowedDifference("checkpoints", _CUT_OFF, _failed_more))


def _asked_again(before: int, after: int, faults: Faults) -> bool:
    return before <= after <= before + _CALLS_OF_ONE * faults.all


def _paid_again(before: list[Any], after: list[Any], faults: Faults) -> bool:
    made, calls = (sum(row[3] for row in rows) for rows in (before, after))
    return made <= calls <= made + _CALLS_OF_ONE * faults.all


def _made_at_once(before: list[list[object]], after: list[list[object]], faults: Faults) -> bool:
    """As `_failed_more`; after an error the summary may have been ready for the commit that the disk had refused."""
    at_once = [row for row in before if row[-1] != "absorbed"]
    return _failed_more(before, after, faults) or (faults.errors > 0 and _failed_more(at_once, after, faults))


def _one_record_less(before: list[list[object]], after: list[list[object]], faults: Faults) -> bool:
    left = [row for row in before if row not in after]
    return faults.errors > 0 and len(before) - len(after) == len(left) == 1 and left[0][2] == "context_synthesis"


# Its chunks are summarised side by side.
_CALLS_OF_ONE = 4
_AGAIN = "a summary that a fault cut off is made again, all its calls"
_AT_ONCE = "what the disk refused to do without a model is done with the summary, at once"
IN_BACKGROUND_CARRIED_OUT = but(
    AllowedDifference("checkpoints", f"{_CUT_OFF}; {_AT_ONCE}", _made_at_once),
    AllowedDifference("journal", _AT_ONCE, _one_record_less),
    AllowedDifference("model calls", _AGAIN, _asked_again),
    AllowedDifference("spending", _AGAIN, _paid_again),
)


def _scenario(
    name: str,
    about: str,
    before: CrashEnvironment,
    doing: Callable[[AppRun], Awaitable[None]],
    differ: tuple[AllowedDifference, ...] = CARRIED_OUT,
) -> Scenario:
    return Scenario(
        name,
        about,
        lambda home: live(home, before),
        lambda home: live(home, replace(before, meanwhile=doing)),
        look,
        differ,
    )


_COMPACTED = replace(_LONG, meanwhile=_compact)

COMPACTION = _scenario("compaction", "the person compacts, and the assistant sleeps", _LONG, _compact)
COMPACTION_TOLD = _scenario(
    "compaction-told",
    "a compaction sends a notice: no model could summarise",
    replace(_LONG, answer=_no_summary, writes_summaries=True),
    _compact,
)
_SUMMARISED = replace(_LONG, answer=_with_summary, writes_summaries=True)
IN_BACKGROUND = _scenario(
    "compaction-background",
    "room is made without a model in a turn, and the model's summary takes its place in the background",
    replace(_SUMMARISED, settings={**_LONG.settings, "ASSISTANT_COMPACTION__ECONOMY": "off"}),
    _paste,
    IN_BACKGROUND_CARRIED_OUT,
)
BY_ECONOMY = _scenario(
    "compaction-economy",
    "hours after a conversation its context is compacted, because that is cheaper",
    replace(_SUMMARISED, messages=_MANY_MESSAGES, settings={}),
    _go_cold,
    IN_BACKGROUND_CARRIED_OUT,
)
UNCOMPACTION = _scenario("compaction-undone", "a compaction is taken back", _COMPACTED, _take_back)
BRANCHED = _scenario("branch", "a conversation branches off", _LONG, _branch)
