"""Asking a model under test: requests in short form, and everything that came back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from assistant.core.errors import BudgetExceeded, ModelError
from assistant.core.messages import Message, ToolCall, Usage
from assistant.core.model_api import (
    ModelCall,
    ModelEvent,
    ModelLimits,
    ModelNotice,
    ModelReply,
    ModelRequest,
    PromptPart,
    Reservation,
    SystemBlock,
    TextDelta,
    ToolSpec,
)
from assistant.core.ports import Model

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LOOK_TOOL = ToolSpec("look", "Looks at something.", {"type": "object", "properties": {"at": {"type": "string"}}})


def clock() -> datetime:
    return NOW


def make_request(*messages: Message | str, **changes: Any) -> ModelRequest:
    """A request; texts stand for what the user says."""
    said = tuple(Message("user", one) if isinstance(one, str) else one for one in messages)
    fields: dict[str, Any] = {"system": (SystemBlock("Be kind.", True),), "tools": (LOOK_TOOL,), **changes}
    return ModelRequest(**{"messages": said, **fields})


def call(call_id: str, **arguments: Any) -> Message:
    return Message("assistant", tool_calls=(ToolCall(call_id, "look", arguments),))


def result(call_id: str, text: str = "seen") -> Message:
    return Message("tool", text, tool_call_id=call_id, name="look")


@dataclass
class ModelOutput:
    """What a model gave: shown text (withdrawn text taken out), notices, the reply or the error."""

    text: str = ""
    notices: list[ModelNotice] = field(default_factory=list)
    replies: list[ModelReply] = field(default_factory=list)
    error: ModelError | None = None

    @property
    def reply(self) -> ModelReply:
        assert self.error is None, self.error
        assert len(self.replies) == 1
        return self.replies[0]

    @property
    def kind(self) -> str:
        return self.error.kind if self.error else ""


async def call_model(model: Model, request: ModelRequest | str = "hi") -> ModelOutput:
    """Read a model's stream to its end, and close it."""
    heard = ModelOutput()
    wanted = make_request(request) if isinstance(request, str) else request
    try:
        async with aclosing(model.stream(wanted, session="main", turn="t1")) as events:
            await _listen(events, heard)
    except ModelError as error:
        heard.error = error
    return heard


async def _listen(events: AsyncGenerator[ModelEvent, None], heard: ModelOutput) -> None:
    async for event in events:
        assert not heard.replies, "something came after the reply"
        match event:
            case TextDelta(text):
                heard.text += text
            case ModelNotice():
                heard.notices.append(event)
                heard.text = "" if event.restarted else heard.text
            case ModelReply():
                heard.replies.append(event)


class InMemoryModelFacts:
    """`ports.ModelFacts` in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, ModelLimits] = {}

    def limits(self, model: str) -> ModelLimits | None:
        return self.kept.get(model)

    def set_limits(self, model: str, limits: ModelLimits, now: datetime) -> None:
        self.kept[model] = limits

    def calibration(self, model: str) -> None:
        return None

    def set_calibration(self, calibration: Any, now: datetime) -> None:
        raise AssertionError("adapters learn no factors")


@dataclass
class InMemoryLedger:
    """`ports.Ledger` in memory, with one cap in US dollars."""

    cap: float = 1.0
    open: dict[int, ModelCall] = field(default_factory=dict)
    settled: list[Usage] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)

    def reserve(self, call: ModelCall, now: datetime) -> Reservation:
        if (call.usd or 0) > self.cap:
            raise BudgetExceeded
        self.calls.append(call)
        self.open[len(self.calls)] = call
        return Reservation(len(self.calls), call.usd, call.input_tokens + call.max_output)

    def settle_reservation(
        self, reservation: Reservation, usage: Usage, now: datetime, parts: Mapping[PromptPart, Usage] = {}
    ) -> None:
        del self.open[reservation.id]
        self.settled.append(usage)
