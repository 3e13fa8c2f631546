"""Scenarios of turns: from a message's arrival to the delivery of its answer, and the ways in which one can end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from assistant.core.sessions import peer_session_key
from tests.crash import comparison
from tests.crash.comparison import CUT_ELSEWHERE, DIFFER, SENT_ONCE, look
from tests.crash.pictures import rows
from tests.crash.scenario import AllowedDifference, Scenario, Snapshot
from tests.crash.witness import EffectLog
from tests.crash.world import AppRun, CrashEnvironment, live, message, tail
from tests.support.scripted import ScriptStep

_EARLIER = (
    message("The spare key of the cabin lies under the blue flowerpot.", 1),
    message("And the boat is at Lund for the winter.", 2),
)
_REQUEST = message("Where is the spare key? Put 'call the plumber' on my list, and ring the bell.", 3)


def _plain(request: ModelRequest) -> ScriptStep:
    """Counts what people said: tools that a fault has called again do not change the answer."""
    return f"Noted, message {sum(m.role == 'user' for m in request.messages)}."


def _two_rounds(request: ModelRequest) -> ScriptStep:
    """Search; then note the plumber and ring; then answer. An error of the to-do list is tried again."""
    if "spare key?" not in next(m.content for m in reversed(request.messages) if m.role == "user"):
        return _plain(request)
    results = [m for m in tail(request) if m.role == "tool"]
    noted = [m for m in results if m.name == "manage_todo_list"]
    todo = ToolCall(f"todo{len(noted)}", "manage_todo_list", {"action": "add", "items": ["Call the plumber"]})
    if not results:
        return ToolCall("search", "search_history", {"query": "spare key cabin"})
    if not noted:
        return [todo, ToolCall("bell", "ring_bell", {})]
    if noted[-1].content.startswith("Error"):
        return todo
    return "Under the blue flowerpot. The plumber is on the list, and I rang."


def _ring(request: ModelRequest) -> ScriptStep:
    """Ring where somebody asks for it; what a search finds says when it was accepted, which a fault may change."""
    if "Ring" not in next(m.content for m in reversed(request.messages) if m.role == "user"):
        return _plain(request)
    return "I rang." if tail(request) else ToolCall("bell", "ring_bell", {})


def _scenario(
    name: str,
    about: str,
    world: CrashEnvironment,
    earlier: CrashEnvironment | None,
    differ: tuple[AllowedDifference, ...] = DIFFER,
) -> Scenario:
    """`earlier` has lived in the home before; None: there is no home yet."""

    def prepare(home: Path) -> None:
        if earlier is not None:
            live(home, earlier)

    return Scenario(name, about, prepare, lambda home: live(home, world), _look, differ)


def _look(home: Path) -> Snapshot:
    """As `look`, and that each call that was made counts, whatever became of the row that was reserved for it."""
    made, counted = len(EffectLog(home).recorded("asked")), rows(home / "script.db", "SELECT count(*) FROM usage")[0][0]
    return {**look(home), "calls that do not count": max(0, made - counted)}


LIVED = CrashEnvironment(_EARLIER, _plain)
_TURN = CrashEnvironment((*_EARLIER, _REQUEST), _two_rounds)

TURN = _scenario("turn", "a message, two rounds of tools, an answer delivered", _TURN, LIVED)

TURN_SENT_ONCE = _scenario(
    "turn-sent-once",
    "the same over a network that shows whatever it is sent: what may have arrived is not sent again",
    replace(_TURN, deduplicates=False),
    replace(LIVED, deduplicates=False),
    SENT_ONCE,
)

TURN_ON_TERMINAL = _scenario(
    "turn-on-terminal",
    "messages one after another on a terminal, which shows a key once: neither mark of a delivery waits for the disk,"
    " and the second message's call is reserved with the message",
    replace(
        _TURN,
        messages=(*_EARLIER, message("Good evening.", 4), message("Ring the bell for the spare key, please.", 5)),
        answer=_ring,
        shows_key_once=True,
        waits_for_answers=True,
    ),
    replace(LIVED, shows_key_once=True),
)

FIRST_START = _scenario(
    "first-start", "no home yet; the first message makes it", CrashEnvironment(_EARLIER[:1], _plain), None
)

FAILED_TURN = _scenario(
    "turn-failed",
    "a turn that ends with a notice, its last call unanswered",
    replace(_TURN, settings={"ASSISTANT_TURN__MAX_STEPS": "1"}),
    LIVED,
)


async def _stop_it(life: AppRun) -> None:
    """The person stops the turn once the model is thinking; after a crash it may have been stopped before."""
    while await life.is_busy():
        thinking = asyncio.create_task(life.model.called.wait())
        ended = asyncio.create_task(life.app.runtime.wait_until_idle())
        await asyncio.wait([thinking, ended], return_when=asyncio.FIRST_COMPLETED)
        if life.model.called.is_set():
            await life.app.runtime.stop_turn("main")
        thinking.cancel()
        ended.cancel()


STOPPED_TURN = _scenario(
    "turn-stopped",
    "a turn that the person stops while the model is thinking",
    CrashEnvironment((*_EARLIER, _REQUEST), _two_rounds, meanwhile=_stop_it, model_waits=True),
    LIVED,
)

SIDE_BY_SIDE = _scenario(
    "side-by-side",
    "messages of three people at once, one of them two",
    CrashEnvironment(
        (
            _REQUEST,
            message("Hello, is anybody there?", 4, peer_session_key("network", "ada"), trust="guest"),
            message("Bring the boat to Lund, please.", 5),
            message("What time is it?", 6, peer_session_key("network", "ivo"), trust="guest"),
        ),
        _two_rounds,
    ),
    LIVED,
    differ=comparison.SIDE_BY_SIDE,
)


def _long(request: ModelRequest) -> ScriptStep:
    return "It is as I said: " + "the road goes on and on, " * 120


FLOOR = _scenario(
    "floor",
    "turns in a context that is full: the oldest messages leave the view before the model is asked, and the newest is"
    " shortened; both are told",
    CrashEnvironment(
        (
            *_EARLIER,
            *(message("Go on" + " and on" * 200, n) for n in range(3, 7)),
            message("Go on" + " and on" * 4_000, 7),
        ),
        _long,
        settings={"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "6000"},
    ),
    LIVED,
    CUT_ELSEWHERE,
)
