"""Everything around the app in a crash scenario: a network with people on it, a model, a bell, a clock.

All of it is deterministic, and whatever it sees is noted by the witness, outside the home, before anybody goes on. The
model decides from the request alone, as a real one does, so a restarted process gets the answers it would have got.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from assistant.core.bridge_api import BridgeCapabilities, InboundPort, OutgoingPart, TurnEvent
from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.model_api import ModelRequest
from assistant.core.ports import ModelPair, Tool, ToolContext
from assistant.core.records import InboxReceipt, IncomingMessage
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import MeteredModel
from assistant.models.prices import Price, Prices
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.wire.app import App, build_app
from tests.crash.witness import EffectLog
from tests.support.scripted import ScriptedModel, ScriptStep, SteppingClock
from tools.declaration import tool

BRIDGE = "network"
RANG = "The bell rang."
BEGUN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
_A_DAY = 86_400.0
_MOST_TRIES = 60
_A_WHILE = timedelta(seconds=30)
_PRICES = Prices({"scripted-1": Price(input=1, output=5, cache_read=0.1, cache_write=1.25)})

Answer = Callable[[ModelRequest], ScriptStep]


@dataclass(frozen=True, slots=True)
class CrashEnvironment:
    """What is around the app: the messages on the network, what the model answers, whether the network shows a
    message once if it is sent again under the same key (for a day, or whenever that is), whether each message is
    answered before the next one comes, settings beside the defaults, what else happens once the messages were taken
    in, whether the model is still thinking then, and whether it writes the summaries too."""

    messages: Sequence[IncomingMessage]
    answer: Answer
    deduplicates: bool = True
    shows_key_once: bool = False
    waits_for_answers: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    meanwhile: Callable[[AppRun], Awaitable[None]] | None = None
    model_waits: bool = False
    writes_summaries: bool = False


@dataclass(frozen=True, slots=True)
class AppRun:
    """One life of the process, for what happens in it meanwhile."""

    app: App
    model: ScriptedModel
    clock: SteppingClock

    async def is_busy(self) -> bool:
        """Look for work after a while; whether there is any left. A disk in trouble gets time to come right."""
        self.clock.now += _A_WHILE
        await self.app.runtime.tick(self.clock())
        status = self.app.runtime.status()
        return bool(status["running_turns"] or status["blocked"] or status["waiting_sessions"])


class EffectNetwork:
    """A bridge whose network is the witness. It hands in a message until it was acknowledged, as networks do."""

    name = BRIDGE

    def __init__(self, witness: EffectLog, deduplicates: bool, shows_key_once: bool = False) -> None:
        self.capabilities = BridgeCapabilities(
            dedupe_seconds=_A_DAY if deduplicates else 0, shows_sessions=True, shows_key_once=shows_key_once
        )
        self._witness = witness

    async def check(self) -> str:
        return self.name

    async def run(self, inbound: InboundPort) -> None:
        inbound.mark_connected(self.name)
        await asyncio.get_running_loop().create_future()

    async def hand_in(
        self, messages: Sequence[IncomingMessage], accept: Callable[[IncomingMessage], Awaitable[InboxReceipt]]
    ) -> None:
        acknowledged = {seen["id"] for seen in self._witness.recorded("acknowledged")}
        for message in messages:
            for _ in range(_MOST_TRIES):
                if message.external_id in acknowledged:
                    break
                try:
                    await accept(message)
                except StoreError as error:
                    self._witness.record("told", text=str(error))
                else:
                    acknowledged.add(message.external_id)
                    self._witness.record("acknowledged", id=message.external_id)

    async def send(self, part: OutgoingPart) -> None:
        self._witness.record("sent", key=part.key, body=part.text, kind=part.item.outgoing.kind)

    def show(self, event: TurnEvent, target: str) -> None:
        if event.kind == "notice":
            self._witness.record("told", text=event.data["text"])

    async def aclose(self) -> None:
        return None


def bell(witness: EffectLog) -> Tool:
    """A tool whose effect cannot be taken back nor recognised: it must never be run a second time blindly."""

    @tool(effects="once")
    def ring_bell(context: ToolContext) -> str:
        """Ring the bell at the door."""
        witness.record("rang", key=context.key)
        return RANG

    return ring_bell


def settings_of(home: Path, **variables: str) -> Settings:
    """The settings of a home whose surroundings set nothing but `variables`."""
    fixed = {"ASSISTANT_HOME__TIMEZONE": "UTC", "TIKTOKEN_CACHE_DIR": "", **variables}
    return load_settings(Home(home), fixed)


def live(home: Path, world: CrashEnvironment) -> None:
    """One life of the process: start, take in what the network has, answer and deliver it all, stop.

    Raises `AssistantError` when it cannot start."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    asyncio.run(live_once(home, world))


async def live_once(home: Path, world: CrashEnvironment) -> None:
    """As `live`, in a loop that runs other things, too."""
    witness = EffectLog(home)
    lives = len(witness.recorded("began"))
    witness.record("began")
    clock = SteppingClock(BEGUN + timedelta(hours=lives))
    network = EffectNetwork(witness, world.deduplicates, world.shows_key_once)
    settings = settings_of(home, **world.settings)
    model = ScriptedModel(partial(noted, world.answer, witness))
    app = build_app(settings, clock, bridges={BRIDGE: network}, model=model)
    try:
        metered = MeteredModel(
            model.provider,
            model.name,
            lambda: (model, _PRICES),
            app.stores.ledger,
            app.estimates.request_tokens,
            clock,
        )
        chain = FailoverModel([metered], RetryPolicy(retries=0))
        app.models.replace(ModelPair(chain, chain if world.writes_summaries else app.models.writing))
        app.toolbox._tools["ring_bell"] = bell(witness)  # type: ignore[attr-defined]
        # A turn that an earlier life left goes on as soon as the runtime starts.
        model.gate = asyncio.Event() if world.model_waits else None
        await app.start()
        witness.record("ready")
        for said in [[it] for it in world.messages] if world.waits_for_answers else [world.messages]:
            await network.hand_in(said, app.runtime.accept)
            if world.waits_for_answers:
                await app.runtime.wait_until_idle()
        life = AppRun(app, model, clock)
        if world.meanwhile is not None:
            await world.meanwhile(life)
            model.gate = None
        await _until_quiet(life)
        await app.stop(drain_seconds=0)
    finally:
        await app.models.aclose()
        app.close()


async def _until_quiet(life: AppRun) -> None:
    """Everything is answered and delivered, or was tried often enough."""
    for _ in range(_MOST_TRIES):
        busy = await life.is_busy()
        await life.app.runtime.wait_until_idle()
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name().startswith("sleep (")))
        if not busy and not life.app.stores.outbox.pending_items(BRIDGE):
            return


def noted(answer: Answer, witness: EffectLog, request: ModelRequest) -> ScriptStep:
    step = answer(request)
    witness.record("asked", messages=len(request.messages))
    return step


# ------------------------------------------------------------------------------------------------------------- answers


def tail(request: ModelRequest) -> list[Message]:
    """What was said since the newest user message."""
    last = max(n for n, message in enumerate(request.messages) if message.role == "user")
    return list(request.messages[last + 1 :])


def message(text: str, number: int, session: str = "main", **about: Any) -> IncomingMessage:
    """A message of the owner, over the network."""
    fields = {"bridge": BRIDGE, "scope": "owner", "sender": "owner", "trust": "owner", "target": session, **about}
    return IncomingMessage(external_id=f"m{number}", session=session, content=text, **fields)
