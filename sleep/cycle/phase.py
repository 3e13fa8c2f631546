"""What a phase of a sleep works with: what it did, gathered while it runs and told in the report; and a model that is
asked for lines of JSON between tags, on the phase's account.

What always holds: whatever comes back from a model, or does not, is told as a `JsonAnswer`: nothing that a model says
stops a sleep. A call and its cost are counted before its answer is looked at.
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
    """What one phase did."""

    read_count: int = 0  # messages, checkpoints, sessions or entries, as the phase reads them
    written_count: int = 0  # entries, sessions compacted, weights or memories
    repeated_count: int = 0  # entries that the journal had already
    waiting_count: int = 0  # what was not read to its end
    calls: int = 0
    cost_usd: float | None = 0.0  # None once a price is not known
    rejected: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)  # a phase's own counts
    unlearned_count: int = 0  # statements in what nothing was saved from (extract)
    had_learnable: bool = False  # there was something to learn in it for sure (extract)
    # called with each step that is done
    on_progress: Callable[[PhaseResult], None] | None = field(default=None, repr=False, compare=False)

    def report_progress(self) -> None:
        """A step of the phase is done, and more may follow."""
        if self.on_progress is not None:
            self.on_progress(self)

    def add_cost(self, usd: float | None) -> None:
        self.cost_usd = None if self.cost_usd is None or usd is None else self.cost_usd + usd

    def add_count(self, name: str, by: int) -> None:
        """Add to one of the phase's own counts."""
        self.details[name] = self.details.get(name, 0) + by

    def as_json(self) -> dict[str, Any]:
        """As JSON for the report."""
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
    """A model's answer."""

    items: tuple[dict[str, Any], ...] = ()  # its JSON objects
    failure: str = ""  # why there is no answer to use


class JsonLinesModel:
    """Asks a model for lines of JSON. The model is chosen anew at each use; `prompt` asks for `tag`."""

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
        """The call and its cost are counted in `outcome`. Raises `StoreError` where the call cannot be metered."""
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
    """What stands between two tags, or after the first to the end."""
    return lazy_regex(rf"<{tag}>((?:(?!<{tag}>).)*?)(?:</{tag}>|\Z)", re.DOTALL | re.IGNORECASE)


def parse_json_lines(body: str) -> list[Any]:
    """The JSON values of an answer: those of one array, or one a line. A line that is no JSON stays text."""
    whole = _value("\n".join(line for line in body.strip().splitlines() if not line.strip().startswith("```")))
    if isinstance(whole, str):
        return [_value(line.strip().rstrip(",")) for line in body.splitlines() if line.strip() not in _FRAMING]
    return whole if isinstance(whole, list) else [whole]


def is_share(value: object) -> TypeGuard[float]:
    """Whether it is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
