"""A model's answer as lines of JSON between tags, and the one call that asks for it.

What always holds: whatever comes back, or does not, is told as an `Answered`: nothing that a model says stops a sleep.
A call's cost is known before its answer is looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assistant.core.errors import ModelError
from assistant.core.messages import Message
from assistant.core.model_api import CallPurpose, ModelRequest, SystemBlock
from assistant.core.ports import Model
from assistant.core.text import lazy_regex
from sleep.compaction.budget import OFFLINE, CostFunction, complete, cost_of_reply

_FRAMING = ("", "[", "]", "```", "```json", "```jsonl")
_ANSWER_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """A model's answer."""

    items: tuple[dict[str, Any], ...] | None  # its JSON objects; None where there is none to use
    cost_usd: float | None = 0.0  # None where no price is known
    failure: str = ""  # why there is none to use


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

    async def request_items(self, words: str, session: str) -> JsonAnswer:
        """Raises `StoreError` where the call cannot be metered."""
        model = self._model()
        limits = await model.limits()
        request = ModelRequest(
            (SystemBlock(self._prompt),),
            (Message("user", words),),
            max_output_tokens=min(_ANSWER_TOKENS, limits.max_output),
        )
        try:
            reply = await complete(model, request, self._purpose, session)
        except ModelError as error:
            return JsonAnswer(None, failure=f"the model failed: {error}")
        by = reply.message.model or model.name
        cost = cost_of_reply(model, reply, self._cost)
        tagged = self._tagged.findall(reply.message.content)
        if by == OFFLINE or reply.stop == "refusal" or reply.message.tool_calls or not tagged:
            why = "only the built-in model answered" if by == OFFLINE else "the model answered no list"
            return JsonAnswer(None, cost, why)
        return JsonAnswer(tuple(one for one in parse_json_lines(tagged[-1]) if isinstance(one, dict)), cost)


def tagged_pattern(tag: str) -> re.Pattern[str]:
    """What stands between two tags, or after the first to the end."""
    return lazy_regex(rf"<{tag}>((?:(?!<{tag}>).)*?)(?:</{tag}>|\Z)", re.DOTALL | re.IGNORECASE)


def parse_json_lines(body: str) -> list[Any]:
    """The JSON values of an answer: those of one array, or one a line. A line that is no JSON stays text."""
    whole = _value("\n".join(line for line in body.strip().splitlines() if not line.strip().startswith("```")))
    if isinstance(whole, str):
        return [_value(line.strip().rstrip(",")) for line in body.splitlines() if line.strip() not in _FRAMING]
    return whole if isinstance(whole, list) else [whole]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
