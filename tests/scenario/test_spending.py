"""F43, I9: every call of every kind is counted, and what becomes of a conversation when the budget is used up: through
the whole app, with the real SDK against a strict server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from assistant.core.messages import Message, ToolCall
from assistant.core.model_api import BACKGROUND_PURPOSES, CallPurpose
from assistant.models.offline.model import OfflineModel
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from assistant.wire.checks import try_model
from assistant.wire.models import ModelDeps, build_model_chain
from tests.strict.asking import call_model, make_request
from tests.strict.behaviour import Behaviour, ErrorStatus, ScriptedAnswer, ToolUse
from tests.strict.server import StrictServer
from tests.support.outboxes import recent_items
from tests.support.running_app import run_app
from tests.support.scripted import RecordingBridge, SteppingClock, owner_message
from tests.support.semantic_memory import run_embedder_server

SUMMARY = (
    "<summary>\nThe two of them talked about walks along the shore and over the hill, day after day.\n</summary>\n"
    "<memories>\n</memories>\n<facts>\n</facts>"
)
WALK = "I went along the shore and back over the hill today. " * 80
Say = Callable[[dict[str, Any]], Behaviour]


class PromptDrivenServer(StrictServer):
    """A provider that reads what it is asked."""

    says: Say | None = None

    def behaviour_for(self, body: dict[str, Any]) -> Behaviour:
        return self.says(body) if self.says is not None else super().behaviour_for(body)


@pytest.fixture(scope="module")
def shared() -> Iterator[PromptDrivenServer]:
    with PromptDrivenServer() as server:
        yield server


@pytest.fixture
def server(shared: PromptDrivenServer) -> PromptDrivenServer:
    shared.says = None
    shared.play()
    return shared


@dataclass
class SpendingSetup:
    app: App
    bridge: RecordingBridge
    clock: SteppingClock
    server: PromptDrivenServer
    home: Path

    async def say(self, text: str, session: str = "main", scope: str = "owner") -> str:
        """What was said, and the answer."""
        before = len(self.bridge.bodies)
        number = f"{session} {self.clock()}"
        await self.app.runtime.accept(owner_message(text, external_id=number, session=session, scope=scope))
        await self.answered()
        return "\n".join(self.bridge.bodies[before:])

    async def answered(self) -> None:
        await self.app.runtime.wait_until_idle()
        await self.app.dispatcher.flush()

    def kinds(self) -> dict[str, int]:
        """Calls by kind, as the ledger has them."""
        return {kind: spent.calls for kind, spent in self.app.stores.ledger.spent_by("kind", self.clock.now - _LONG)}

    def notices(self) -> list[str]:
        """What went out to the owner beside answers."""
        items = recent_items(self.app.stores.outbox, "main", limit=200)
        return [item.outgoing.body for item in items if item.outgoing.key.startswith("budget:")]


_LONG = timedelta(days=60)


@asynccontextmanager
async def open_app(home: Path, server: PromptDrivenServer, **environ: str) -> AsyncIterator[SpendingSetup]:
    settings = {
        "ASSISTANT_HOME": str(home),
        "ASSISTANT_MODEL__PROVIDER": "anthropic",
        "ASSISTANT_MODEL__RETRIES": "0",
        "ANTHROPIC_API_KEY": server.key,
        "ANTHROPIC_BASE_URL": server.url,
        "ASSISTANT_MODEL__THINKING": "off",
        **environ,
    }
    bridge, clock = RecordingBridge(), SteppingClock()
    read = load_settings(None, settings)
    built = build_app(
        read, clock, bridges={"kept": bridge}, reread=lambda: load_settings(read.home, settings, ring=None)
    )
    try:
        await built.start()
        yield SpendingSetup(built, bridge, clock, server, home)
        assert built.stores.verifier.verify().ok
    finally:
        await built.stop(5)
        await built.models.aclose()
        await built.stores.memories.aclose()
        built.close()


def text_of(body: dict[str, Any]) -> str:
    return json.dumps(body)


# ---------------------------------------------------------------------------------------------------- every call counts


def _as_it_is_asked(body: dict[str, Any]) -> Behaviour:
    asking = text_of(body)
    if "</decisions>" in asking:
        return ScriptedAnswer('<decisions>\n{"entry": "E1", "decision": "new", "of": []}\n</decisions>')
    if "</scores>" in asking:
        return ScriptedAnswer('<scores>\n{"entry": "E1", "importance": 0.5}\n</scores>')
    if "</summary>" in asking:
        return ScriptedAnswer(SUMMARY)
    return ScriptedAnswer("I leave that to the rules.") if "</memories>" in asking else ScriptedAnswer("A fine walk.")


async def test_f43_a_day_of_an_app_calls_for_every_purpose_and_each_call_is_in_the_ledger(
    tmp_path: Path, server: PromptDrivenServer
) -> None:
    server.says = _as_it_is_asked
    with run_embedder_server() as embedder:
        memory = {"EMBEDDER": "openai", "EMBEDDER_URL": embedder.url, "EMBEDDER_KEY": "k", "EMBEDDER_MODEL": "letters"}
        environ = {f"ASSISTANT_MEMORY__{name}": value for name, value in memory.items()}
        environ["ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS"] = "15000"
        async with open_app(tmp_path, server, **environ) as it:
            await asyncio.to_thread(try_model, it.app.settings, it.clock, served=True)
            await it.say("I live in Oslo. I like long walks by the sea, and I work as a carpenter.")
            await it.app.commands.run('/schedule add news "What is new?" --every "day at 10"', "main", bridge="kept")
            it.clock.now += timedelta(hours=1, minutes=5)
            await it.app.agenda_scheduler.fire_due()
            await it.answered()
            for number in range(5):
                await it.say(f"walk {number}: {WALK}")
            await it.say("I moved from Oslo to Bergen. I like long walks in the hills now.")
            await it.app.commands.run("/compact", "main")
            for number in range(5, 8):
                await it.say(f"walk {number}: {WALK}")
            await it.app.sleep.scheduler.run_now("sleep")
            kinds = it.kinds()
            # A voice message has tests of its own.
            assert set(kinds) == {*get_args(CallPurpose)} - {"transcription", "speech"}, kinds
            # No request left that the ledger does not have, and none is there that was not sent.
            assert not server.complaints
            assert sum(kinds.values()) - kinds["embedding"] == len(server.requests)
            assert kinds["embedding"] == len(embedder.request_bodies) > 0
            standing = it.app.stores.ledger.budget_status(it.clock.now)
            # Who embeds reads the clock by itself.
            assert standing.day.calls == sum(kinds.values()) - kinds["embedding"]
            quiet = [
                spent.usd
                for kind, spent in it.app.stores.ledger.spent_by("kind", it.clock.now - _LONG)
                if kind in BACKGROUND_PURPOSES
            ]
            assert [cap.used for cap in standing.background] == pytest.approx([sum(quiet)] * 2)


@pytest.mark.parametrize("name", ["anthropic", "openai"])
async def test_f43_each_attempt_is_a_row_and_the_sdk_makes_none_by_itself(
    tmp_path: Path, server: PromptDrivenServer, name: str
) -> None:
    """Statuses and headers on which the SDKs would try again."""
    headers = {"retry-after": "0", "x-should-retry": "true"}
    server.play(
        ErrorStatus(500, "api_error", "oops", headers),
        ErrorStatus(529, "overloaded_error", "busy", headers),
        ErrorStatus(429, "rate_limit_error", "slow", headers),
        ScriptedAnswer("here I am"),
    )
    key = name.upper()
    address = server.url if name == "anthropic" else f"{server.url}/v1"
    environ = {
        "ASSISTANT_HOME": str(tmp_path),
        "ASSISTANT_MODEL__PROVIDER": name,
        "ASSISTANT_MODEL__RETRIES": "3",
        f"{key}_API_KEY": server.key,
        f"{key}_BASE_URL": address,
        "ASSISTANT_MODEL__NAME": "claude-sonnet-5-5",
    }
    app = build_app(load_settings(None, environ), SteppingClock())

    async def at_once(seconds: float) -> None:
        """Nobody waits."""

    ledger = app.stores.ledger
    means = ModelDeps(
        ledger, app.stores.model_facts, lambda request, model: 100, SteppingClock(), OfflineModel, sleep=at_once
    )
    chain = build_model_chain(app.settings, means)
    try:
        heard = await call_model(chain, make_request("hi"))
        assert heard.reply.message.content == "here I am"
        ((kind, spent),) = ledger.spent_by("kind", SteppingClock().now - _LONG)
        assert (kind, spent.calls, spent.failed, len(server.requests)) == ("chat", 1, 3, 4)
    finally:
        await chain.aclose()
        await app.models.aclose()
        app.close()


# --------------------------------------------------------------------------------------------------- the cap is reached


def _looks_and_looks(body: dict[str, Any]) -> Behaviour:
    """Looks something up in every round, as a model that never has enough."""
    rounds = sum(message["role"] == "assistant" for message in body["messages"])
    return ScriptedAnswer(
        f"Let me see {rounds}.", calls=[ToolUse("search_history", {"query": f"ferry {rounds}"}, f"c{rounds}")]
    )


async def test_f43_a_budget_that_ends_in_mid_turn_ends_it_well_formed_and_loses_nothing(
    tmp_path: Path, server: PromptDrivenServer
) -> None:
    async with open_app(tmp_path, server, ASSISTANT_BUDGET__DAILY_USD="0.10") as it:
        await it.say("the ferry leaves at nine from the north quay")
        server.says = _looks_and_looks
        reply = await it.say("when does the ferry leave?")
        # The chosen model was asked some rounds, then the built-in one finished with what was found.
        made = it.kinds()["chat"]
        assert 2 < made < 20
        assert (
            "This was found before the model stopped:" in reply
            and "`search_history`:" in reply
            and "north quay" in reply
        )
        assert "The daily budget has too little left for a call: $" in reply and "in the middle of this answer" in reply
        assert "`go on`" in reply and "`/usage`" in reply
        messages = it.app.stores.conversation.load_view("main").messages
        calls = [call.id for message in messages for call in message.tool_calls]
        results = [message.tool_call_id for message in messages if message.role == "tool"]
        assert sorted(calls) == sorted(results) and len(calls) >= 2
        assert messages[-1].role == "assistant" and not messages[-1].tool_calls
        assert reply.count("The daily budget has too little left for a call") == 1 and it.notices() == []
        assert any("daily budget has too little left for a call" in problem for problem in it.app.status()["problems"])
        # Nobody is asked beyond the cap, however often somebody tries.
        await it.say("and now?")
        assert it.kinds()["chat"] == made and it.app.stores.ledger.budget_status(it.clock.now).day.usd <= 0.10
        # A raised cap takes effect at once: no look of the daemon between.
        (tmp_path / "config.toml").write_text("[budget]\nmonthly_usd = 90.0\n")
        server.says = lambda body: ScriptedAnswer("At nine.")
        it.app.stores.ledger.budget = it.app.stores.ledger.budget.model_copy(update={"daily_usd": 5.0})
        assert await it.say("go on") == "At nine."


async def test_f43_a_cap_raised_in_the_file_holds_for_the_very_next_call(
    tmp_path: Path, server: PromptDrivenServer
) -> None:
    (tmp_path / "config.toml").write_text("[budget]\ndaily_usd = 0.0001\n")
    async with open_app(tmp_path, server) as it:
        assert "too little left for a call" in await it.say("are you there?")
        (tmp_path / "config.toml").write_text("[budget]\ndaily_usd = 5.0\n")
        server.play(ScriptedAnswer("Here again."))
        assert await it.say("and now?") == "Here again."


async def test_f43_why_the_built_in_model_answers_is_said_once_a_day_and_to_guests_without_sums(
    tmp_path: Path, server: PromptDrivenServer
) -> None:
    async with open_app(tmp_path, server, ASSISTANT_BUDGET__DAILY_USD="0.0001") as it:
        first = await it.say("hello")
        assert "(The daily budget has too little left for a call: $0.00 of $0.0001 is used" in first
        assert (
            "Raise the budget with `assistant config set budget.daily_usd NUMBER`, or wait for the next day." in first
        )
        assert "This is said once a day." in first and it.notices() == []
        assert "budget" not in await it.say("hello again")
        guest = await it.say("hello", session="peer:kept:7", scope="peer:kept:7")
        assert "used up" in guest and "A simpler model answered" in guest
        assert not any(letter in guest.partition("(The")[2] for letter in "$0123456789`/")
        it.clock.now += timedelta(days=1)
        assert "This is said once a day." in await it.say("good morning")
        assert server.requests == []
        # In live view it is told with each, as progress that no transcript keeps.
        shown = [event for event in it.bridge.events if event.kind == "notice" and event.session == "main"]
        assert sum("budget has too little left" in event.data["text"] for event in shown) == 3
        assert all(event.data["progress"] for event in shown)


# ----------------------------------------------------------------------------------------------------------- background


async def test_f43_a_sleep_whose_part_is_used_up_goes_on_by_rules_after_one_refusal(
    tmp_path: Path, server: PromptDrivenServer
) -> None:
    server.says = _as_it_is_asked
    environ = {"ASSISTANT_BUDGET__BACKGROUND_SHARE": "0.0001", "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "15000"}
    async with open_app(tmp_path, server, **environ) as it:
        await it.say("I live in Oslo. I work as a carpenter.")
        for number in range(7):
            await it.say(f"walk {number}: {WALK}")
        asked_before, refused = len(server.requests), list[str]()
        it.app.stores.ledger.reload_budget = lambda: refused.append("asked again")
        report = await it.app.sleep.scheduler.run_now("nap")
        assert report is not None and report.state == "done"
        assert len(server.requests) == asked_before and refused == ["asked again"]
        assert {"extract", "compact"} <= set(report.phases)
        assert "work in the background" in report.phases["extract"]["budget"]
        assert report.phases["extract"]["written"] >= 1
        status = it.app.status()
        assert "budget" not in str(status["problems"])
        assert "sleep works without a model" in str(status["spent"]["notes"])
        assert "work in the background" in (notice := it.notices()[0]) and "you are answered as before" in notice
        await it.app.sleep.scheduler.run_now("nap")
        assert it.notices() == [notice]
        # What would be asked is refused: a dry run says that the rules would do it.
        await it.say("I moved from Oslo to Bergen.")
        assert "The rules would do it, without a model." in await it.app.commands.run("/sleep --dry-run", "main")
        # Answers are none of it.
        assert "A fine walk." in await it.say("how was it?")


async def test_what_naps_and_nights_do_over_the_budget_is_told_once_where_the_person_wrote_last(
    tmp_path: Path, server: PromptDrivenServer
) -> None:
    server.says = _as_it_is_asked
    async with open_app(tmp_path, server) as it:
        await it.say("I live in Oslo. I work as a carpenter.")
        it.app.stores.ledger.budget = it.app.stores.ledger.budget.model_copy(update={"daily_usd": 0.0001})
        asked_before = len(server.requests)
        for trigger in ("nap", "nap", "manual"):
            report = await it.app.sleep.scheduler.run_now(trigger)
            assert report is not None and report.state == "done"
        assert len(server.requests) == asked_before
        (notice,) = it.notices()
        assert "The daily budget is used up: $" in notice and "sleep and naps work by rules" in notice
        assert "`assistant config set budget.daily_usd NUMBER`" in notice


async def test_a_schedule_over_the_part_of_the_background_is_answered_by_the_built_in_model(
    tmp_path: Path, server: PromptDrivenServer
) -> None:
    async with open_app(tmp_path, server, ASSISTANT_BUDGET__BACKGROUND_SHARE="0.0") as it:
        await it.app.commands.run('/schedule add news "What is new?" --every "day at 10"', "main", bridge="kept")
        it.clock.now += timedelta(hours=1, minutes=5)
        await it.app.agenda_scheduler.fire_due()
        await it.answered()
        assert server.requests == [] and "work in the background may use is used up" in it.bridge.bodies[-1]
        await it.app.commands.run("/schedule run news", "main", bridge="kept")
        await it.answered()
        # Somebody waits for that one.
        assert it.kinds() == {"chat": 1} and len(server.requests) == 1


def _delegates(body: dict[str, Any]) -> Behaviour:
    """Whoever is asked for news sends somebody to look."""
    asking = text_of(body)
    if "Your task:" in asking:
        return ScriptedAnswer("Nothing in the paper.")
    looked = any(part.get("type") == "tool_result" for part in _parts(body))
    return (
        ScriptedAnswer("No news.")
        if looked
        else ScriptedAnswer(calls=[ToolUse("delegate", {"tasks": ["read the paper"]})])
    )


def _parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in body["messages"]:
        if isinstance(message["content"], list):
            yield from message["content"]


async def test_helpers_of_a_schedule_are_the_background_too_and_those_of_an_answer_are_not(
    tmp_path: Path, server: PromptDrivenServer
) -> None:
    server.says = _delegates
    async with open_app(tmp_path, server) as it:
        await it.app.commands.run('/schedule add news "What is new?" --every "day at 10"', "main", bridge="kept")
        it.clock.now += timedelta(hours=1, minutes=5)
        await it.app.agenda_scheduler.fire_due()
        await it.answered()
        # The turn, its helper, the turn again.
        assert it.kinds() == {"schedule": 3}
        await it.say("What is new?", session="thread:news")
        assert it.kinds() == {"schedule": 3, "chat": 3}


# -------------------------------------------------------------------------------------------------------------- runaway


async def test_f43_a_turn_that_goes_round_in_circles_ends_with_what_it_repeated(tmp_path: Path) -> None:
    def again(request: Any) -> ToolCall:
        return ToolCall(f"c{len(request.messages)}", "search_history", {"query": "the lost key"})

    async with run_app(tmp_path, again, ASSISTANT_BUDGET__RUNAWAY_CALLS="4") as it:
        await it.say("find the lost key")
        await it.wait_idle()
        assert len(it.model.requests) == 4
        (body,) = it.bridge.bodies
        assert body.startswith("I was repeating myself, so I stopped: I called `search_history` with {")
        assert "the lost key" in body and "4 times" in body
        messages: tuple[Message, ...] = it.app.stores.conversation.load_view("main").messages
        assert sum(message.role == "tool" for message in messages) == 4
        it.model.script = ["It is under the blue pot."]
        await it.say("try something else")
        await it.wait_idle()
        assert it.bridge.bodies[-1] == "It is under the blue pot."
