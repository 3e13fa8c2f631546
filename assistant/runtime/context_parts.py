"""Shows what the model is currently sent of a session, part by part, with tokens and prices. Read-only.

If the prompt is likely `cached` by the provider it is read from the cache; otherwise the next call writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from assistant.core.checkpoints import Checkpoint
from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.ports import Model
from assistant.core.store_ports import Conversation
from assistant.runtime.context_economy import ContextEconomy
from assistant.runtime.context_meter import ContextMeter
from assistant.runtime.context_window import ContextWindow
from assistant.runtime.current_models import CurrentModels

PartKind = Literal["persona", "rules", "tools", "pins", "memory", "summary", "message"]


@dataclass(frozen=True, slots=True)
class ContextPart:
    """A part of the prompt. `message_id` is its message, `compaction` the checkpoint of a summary."""

    kind: PartKind
    text: str
    tokens: int
    role: str = ""
    message_id: int | None = None
    compaction: int | None = None


@dataclass(frozen=True, slots=True)
class ContextReport:
    """What the model sees of a session, in order. `cached`: likely in the provider's cache. Prices per token in US
    dollars, null if unknown."""

    session: str
    model: str
    window_tokens: int
    tokens: int
    pressure: float  # 0-1 and above, including the reserve for the answer
    cached: bool
    read_price: float | None
    write_price: float | None
    parts: tuple[ContextPart, ...]


class ContextParts:
    def __init__(
        self,
        conversation: Conversation,
        models: CurrentModels,
        meter: ContextMeter,
        window: ContextWindow,
        economy: ContextEconomy,
    ) -> None:
        self._conversation = conversation
        self._models = models
        self._meter = meter
        self._window = window
        self._economy = economy

    async def load(self, session: str, now: datetime) -> ContextReport:
        """Build the report; queries the model's limits if necessary. Raises `StoreError`."""
        terms = await self._meter.load_terms(session)
        model = self._models.answering
        view = self._conversation.load_view(session)
        parts = (*self._frame_parts(session, model), *self._view_parts(session, view.messages, model))
        call = self._window.last_cached_call(session, view)
        prices = self._economy.call_prices(model, model, call.lifetime if call else "5m")
        known = prices is not None and prices.known
        return ContextReport(
            session,
            model.name,
            self._meter.effective_window(),
            sum(part.tokens for part in parts),
            round(self._meter.pressure(view, terms).ratio, 4),
            call is not None and call.may_be_cached(now),
            prices.cache_read if prices and known else None,
            prices.cache_write if prices and known else None,
            parts,
        )

    def _frame_parts(self, session: str, model: Model) -> Iterator[ContextPart]:
        frame, _ = self._meter.frame(session, model.name)
        counter = self._meter.counter(model.name)
        tools = "\n".join(f"{tool.name}: {tool.description}" for tool in frame.tools)
        texts: list[tuple[PartKind, str, int]] = [
            ("tools", tools, counter.count_tools(frame.tools)),
            ("persona", frame.persona, counter.count_text(frame.persona)),
            ("rules", frame.rules, counter.count_text(frame.rules)),
            *(("pins", text, counter.count_text(text)) for _, text in frame.pins),
            ("memory", frame.memory, counter.count_text(frame.memory)),
        ]
        return (ContextPart(kind, text, tokens) for kind, text, tokens in texts if text.strip())

    def _view_parts(self, session: str, messages: tuple[Message, ...], model: Model) -> Iterator[ContextPart]:
        counter = self._meter.counter(model.name)
        made = [it for it in self._conversation.checkpoints(session, "live") if it.summary]
        for message in messages:
            kind: PartKind = "summary" if message.is_summary else "message"
            yield ContextPart(
                kind,
                message.content or ", ".join(call.name for call in message.tool_calls),
                counter.count_message(message),
                message.role,
                message.id,
                _compaction_of(message, made) if message.is_summary else None,
            )


def _compaction_of(message: Message, made: list[Checkpoint]) -> int | None:
    return next((it.id for it in made if it.summary.strip() and it.summary.strip() in message.content), None)
