"""A model that answers with what a test wrote down, a bridge that records what it was given, and a clock that steps.
Real implementations of the ports, without network or time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from assistant.core.bridge_api import BridgeCapabilities, InboundMessage, InboundPort, OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError
from assistant.core.messages import Message, ToolCall, Usage
from assistant.core.model_api import (
    CallPurpose,
    ModelEvent,
    ModelLimits,
    ModelReply,
    ModelRequest,
    StopReason,
    TextDelta,
)
from assistant.core.records import InboxReceipt, IncomingMessage, OutboxItem

ScriptStep = str | ToolCall | Sequence[ToolCall] | Exception | ModelReply | Callable[[ModelRequest], "ScriptStep"]


class ScriptedModel:
    """Answers with the next step of its script: a text, tool calls, an error, a whole reply, or a function of the
    request that gives one of these. The last step repeats. `gate`, when set, is waited for before each answer.
    `by_word`: each word comes by itself, as from a network."""

    provider = "scripted"

    def __init__(self, *script: ScriptStep, window: int = 100_000, name: str = "scripted-1") -> None:
        self.name = name
        self.script = list(script) or ["ok"]
        self.requests: list[ModelRequest] = []
        self.window = window
        self.gate: asyncio.Event | None = None
        self.called = asyncio.Event()
        self.by_word = False

    async def limits(self) -> ModelLimits:
        return ModelLimits(self.window, 8192, 32_000_000, 100, "default")

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        self.requests.append(request)
        self.called.set()
        if self.gate is not None:
            await self.gate.wait()
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        while callable(step):
            step = step(request)
        if isinstance(step, Exception):
            raise step
        reply = step if isinstance(step, ModelReply) else self._reply(step, request)
        text = reply.message.content
        for part in re.findall(r"\s*\S+\s*", text) if self.by_word else filter(None, [text]):
            yield TextDelta(part)
            if self.by_word:
                await asyncio.sleep(0)
        yield reply

    def _reply(self, step: ScriptStep, request: ModelRequest) -> ModelReply:
        text = step if isinstance(step, str) else ""
        calls = () if isinstance(step, str) else (step,) if isinstance(step, ToolCall) else tuple(step)  # type: ignore[arg-type]
        stop: StopReason = "tool_calls" if calls else "end"
        prompt = sum(len(m.content) for m in request.messages) // 4
        usage = Usage(input=prompt, output=len(text) // 4 + 1, cost_usd=0.0)
        return ModelReply(Message("assistant", text, tool_calls=calls, model=self.name), usage, stop, estimated=True)

    async def aclose(self) -> None:
        return None


@dataclass
class RecordingBridge:
    """A bridge whose network is a list. `fail` holds errors to raise for the next sends."""

    name: str = "kept"
    capabilities: BridgeCapabilities = field(
        default_factory=lambda: BridgeCapabilities(dedupe_seconds=86_400, shows_sessions=True)
    )
    sent: list[OutboxItem] = field(default_factory=list)
    parts: list[OutgoingPart] = field(default_factory=list)
    events: list[TurnEvent] = field(default_factory=list)
    send_errors: list[BridgeError] = field(default_factory=list)
    delivered: asyncio.Event = field(default_factory=asyncio.Event)
    inbound: InboundPort | None = None

    async def check(self) -> str:
        return self.name

    async def run(self, inbound: InboundPort) -> None:
        self.inbound = inbound
        inbound.mark_connected(self.name)
        await asyncio.get_running_loop().create_future()

    async def receive_message(self, text: str, external_id: str, sender: str, **about: Any) -> InboxReceipt | None:
        """Somebody wrote on the network; replies go to whoever wrote, or to the room."""
        assert self.inbound is not None
        target = about.get("room") or sender
        return await self.inbound.receive(InboundMessage(self.name, external_id, sender, text, target=target, **about))

    async def send(self, part: OutgoingPart) -> None:
        if self.send_errors:
            raise self.send_errors.pop(0)
        self.sent.append(part.item)
        self.parts.append(part)
        self.delivered.set()

    def show(self, event: TurnEvent, target: str) -> None:
        self.events.append(event)

    async def aclose(self) -> None:
        return None

    @property
    def bodies(self) -> list[str]:
        return [item.outgoing.body for item in self.sent]


class SteppingClock:
    """Every reading is a little later than the one before; `now` may be set, backwards too."""

    def __init__(self, now: datetime = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


def owner_message(
    text: str, *, external_id: str, session: str = "main", scope: str = "owner", bridge: str = "kept"
) -> IncomingMessage:
    """A message of the owner."""
    return IncomingMessage(bridge, external_id, session, scope, "owner", "owner", text, target=session)
