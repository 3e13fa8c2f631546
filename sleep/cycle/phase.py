"""Shared by phases: the result collected while a phase runs, and a model queried for tagged JSON lines.

Every outcome of a model call is a `JsonAnswer`: nothing a model says can stop a cycle. Calls and cost are counted
before the answer is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeGuard

from assistant.core.dataclass import dataclass
from assistant.core.errors import ModelError
from assistant.core.messages import Message
from assistant.core.model_api import CallPurpose, ModelRequest, SystemBlock
from assistant.core.ports import Model
from assistant.core.text import lazy_regex
from sleep.compaction.budget import OFFLINE, CostFunction, complete, cost_of_reply

_MOST_REASONS = 10
_FRAMING = ("", "[", "]", "```", "```json", "```jsonl")
_ANSWER_TOKENS = 4_000


@dataclass(slots=True)
class PhaseResult:
    """The result of one phase."""

    read_count: int = 0  # messages, checkpoints, sessions or entries, depending on the phase
    written_count: int = 0  # entries, compacted sessions, scores or memories
    repeated_count: int = 0  # entries already in the journal
    waiting_count: int = 0  # items not read to the end
    calls: int = 0
    cost_usd: float | None = 0.0  # None once a price is unknown
    rejected: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)  # phase-specific counts
    unlearned_count: int = 0  # statements in messages from which nothing was saved (extract)
    had_learnable: bool = False  # there was certainly something to learn (extract)
    # called after each step
    on_progress: Callable[[PhaseResult], None] | None = field(default=None, repr=False, compare=False)

    def report_progress(self) -> None:
        """Report progress after a step."""
        if self.on_progress is not None:
            self.on_progress(self)

    def add_cost(self, usd: float | None) -> None:
        """None, for a price that is not known, makes the sum unknown."""
        self.cost_usd = None if self.cost_usd is None or usd is None else self.cost_usd + usd

    def add_count(self, name: str, by: int) -> None:
        """Add to a phase-specific count."""
        self.details[name] = self.details.get(name, 0) + by

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON for the report."""
        return {
            "state": "failed" if self.errors else "done",
            "read": self.read_count,
            "written": self.written_count,
            "repeated": self.repeated_count,
            "waiting": self.waiting_count,
            "calls": self.calls,
            "cost_usd": self.cost_usd,
            "rejected": list(dict.fromkeys(self.rejected))[:_MOST_REASONS],
            "error": "; ".join(dict.fromkeys(self.errors)),
            **self.details,
        }


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """A parsed model answer."""

    items: tuple[dict[str, Any], ...] = ()  # its JSON objects
    failure: str = ""  # why there is no usable answer


class JsonLinesModel:
    """Queries a model for JSON lines. The model is looked up at each use; `prompt` asks for `tag`."""

    def __init__(
        self, model: Callable[[], Model], prompt: str, tag: str, purpose: CallPurpose, cost: CostFunction
    ) -> None:
        self._model = model
        self._prompt = prompt.strip()
        self._tagged = tagged_pattern(tag)
        self._purpose: CallPurpose = purpose
        self._cost = cost

    @property
    def has_model(self) -> bool:
        return self._model().provider != OFFLINE

    async def request_items(self, words: str, session: str, outcome: PhaseResult) -> JsonAnswer:
        """Query the model; call and cost are counted in `outcome`. Raises `StoreError` if the call cannot be
        metered."""
        model = self._model()
        outcome.calls += 1
        limits = await model.limits()
        request = ModelRequest(
            (SystemBlock(self._prompt),),
            (Message("user", words),),
            max_output_tokens=min(_ANSWER_TOKENS, limits.max_output),
        )
        try:
            reply = await complete(model, request, self._purpose, session)
        except ModelError as error:
            return JsonAnswer(failure=f"the model failed: {error.reason}")
        outcome.add_cost(cost_of_reply(model, reply, self._cost))
        if (reply.message.model or model.name) == OFFLINE:
            return JsonAnswer(failure="only the built-in model answered")
        tagged = self._tagged.findall(reply.message.content)
        if reply.stop == "refusal" or reply.message.tool_calls or not tagged:
            return JsonAnswer(failure="the model answered no list")
        return JsonAnswer(tuple(item for item in parse_json_lines(tagged[-1]) if isinstance(item, dict)))


def tagged_pattern(tag: str) -> re.Pattern[str]:
    """Return a pattern for the content of a tag, which may be unterminated."""
    return lazy_regex(rf"<{tag}>((?:(?!<{tag}>).)*?)(?:</{tag}>|\Z)", re.DOTALL | re.IGNORECASE)


def parse_json_lines(body: str) -> list[Any]:
    """Parse the JSON values of an answer: one array, or one value per line. An invalid line is returned as text."""
    whole = _value("\n".join(line for line in body.strip().splitlines() if not line.strip().startswith("```")))
    if isinstance(whole, str):
        return [_value(line.strip().rstrip(",")) for line in body.splitlines() if line.strip() not in _FRAMING]
    return whole if isinstance(whole, list) else [whole]


def is_share(value: object) -> TypeGuard[float]:
    """Return whether a value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
