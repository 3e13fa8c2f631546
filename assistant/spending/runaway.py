"""Turns and requests that get nowhere, told by what they repeat. Pure.

What always holds: what a turn repeats is counted in what the log has of it, so that a turn that is taken up after a
crash has no more tries than any other; whatever the person says within a turn begins anew. Two requests are the same
where purpose, model and the whole prompt are.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assistant.core.messages import Message, ToolCall
from assistant.core.requests import Purpose, Request

_LONGEST = 200
_LETTERS = 24


@dataclass(frozen=True, slots=True)
class Circle:
    """What a turn repeats: a tool `name` with its `arguments` as JSON, `times` with the same outcome, or as many rounds
    that brought nothing new."""

    name: str
    arguments: str
    times: int
    rounds: bool = False

    def told(self, *, owner: bool) -> str:
        if not owner:
            return "I went round in circles with this, so I stopped. Your message is kept; say it in other words."
        what = f"`{self.name}` with {self.arguments}" if self.arguments != "{}" else f"`{self.name}`"
        how = (
            f"{self.times} rounds brought nothing that was not known, the last one by {what}"
            if self.rounds
            else f"I called {what} {self.times} times, and the outcome was the same each time"
        )
        return (
            f"I went round in circles, so I stopped: {how} (budget.runaway_calls). What was found is kept; say how to "
            "go on, or put it in other words."
        )


def circle(said: Sequence[Message], most: int) -> Circle | None:
    """What the turn whose messages these are has repeated `most` times since the person last said something; None
    where it gets on."""
    outcomes = {m.tool_call_id: m for m in said if m.role == "tool"}
    seen: Counter[tuple[str, str, str]] = Counter()
    idle = 0
    for message in _since_person(said):
        known = [_known(call, outcomes) for call in message.tool_calls]
        done = [one for one in known if one is not None]
        if not done:
            continue
        idle = 0 if any(one not in seen for one in done) else idle + 1
        seen.update(done)
        again = max(done, key=lambda one: seen[one])
        if seen[again] >= most:
            return Circle(again[0], _short(again[1]), seen[again])
        if idle >= most:
            return Circle(again[0], _short(again[1]), idle, rounds=True)
    return None


def fingerprint(request: Request, purpose: Purpose, model: str) -> str:
    """A few letters that are the same for the same request."""
    return digest(purpose, model, [*(block.text for block in request.system), *map(_words, request.messages)])


def digest(purpose: Purpose, model: str, texts: Iterable[str]) -> str:
    """The same for the same texts."""
    told = hashlib.sha256(f"{purpose}\0{model}\0".encode())
    for text in texts:
        told.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return told.hexdigest()[:_LETTERS]


def _since_person(said: Sequence[Message]) -> list[Message]:
    last = max((place for place, m in enumerate(said) if m.role == "user"), default=-1)
    return [m for m in said[last + 1 :] if m.role == "assistant"]


def _known(call: ToolCall, outcomes: dict[str | None, Message]) -> tuple[str, str, str] | None:
    """(tool, arguments, outcome) of a call that has one."""
    outcome = outcomes.get(call.id)
    if outcome is None:
        return None
    return call.name, json.dumps(dict(call.arguments), sort_keys=True, default=str), outcome.content


def _words(message: Message) -> str:
    calls = [[call.name, dict(call.arguments)] for call in message.tool_calls]
    return json.dumps([message.role, message.content, calls], sort_keys=True, default=str)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
