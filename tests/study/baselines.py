"""The same conversation as assistants with a sliding window would send it, billed in the same way.

They have the app's own system blocks and tools, the same words, the same tool output, at the same times, and nothing
else: no summary, nothing recalled, no search for what was forgotten (their model answers at once, as if it knew). Their
breakpoints for the cache are as good as can be. A conversation is full when its next request and the room kept for the
answer would pass the window; what is dropped are the oldest messages, never a tool call without its result, and what
is left begins with words of the person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.strict.behaviour import ScriptedAnswer, ToolUse
from tests.strict.cache import PromptCache
from tests.strict.count import block_tokens, count_tokens
from tests.study.answerer import QuestionOutcomes
from tests.study.conversation import StudyConversation, StudyTurn
from tests.study.measure import LEAST_CACHED, MODEL, MeasuredRequest, answer_tokens, list_prices, price_of, usage_of

Message = dict[str, Any]

_MARK = {"cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """How a sliding window slides. `tokens` is what a prompt may have at most, `down_to` what it is brought down to
    when it has more."""

    tokens: int
    down_to: int

    @classmethod
    def halving(cls, tokens: int) -> SlidingWindow:
        """Drops to half when full."""
        return cls(tokens, tokens // 2)

    @classmethod
    def creeping(cls, tokens: int) -> SlidingWindow:
        """Drops as little as is needed."""
        return cls(tokens, tokens)


def replayed(
    conversation: StudyConversation, outcomes: QuestionOutcomes, frame: Mapping[str, Any], window: SlidingWindow
) -> tuple[MeasuredRequest, ...]:
    """The requests that an assistant with this window would have made. `outcomes` has what the tools brought; `frame`
    are the system blocks and tools of every request."""
    sliding = _Sliding(frame, window)
    for turn in conversation.turns:
        sliding.hold(turn, outcomes.outputs.get(turn.number, ""))
    return tuple(sliding.seen)


class _Sliding:
    def __init__(self, frame: Mapping[str, Any], window: SlidingWindow) -> None:
        self._frame = {"model": MODEL, "tools": frame["tools"], "system": _marked(frame["system"])}
        self._around = count_tokens({**self._frame, "messages": []})
        self._window = window
        self._now = datetime.min
        self._cache = PromptCache(lambda: self._now.timestamp(), least_tokens=LEAST_CACHED)
        self._prices = list_prices()
        self._messages: list[Message] = []
        self.seen: list[MeasuredRequest] = []

    def hold(self, turn: StudyTurn, output: str) -> None:
        self._now = turn.at
        begun = len(self._messages)
        self._messages.append(_message("user", {"type": "text", "text": turn.text}))
        if turn.call is not None and output:
            call = {"type": "tool_use", "id": "toolu_0000", "name": turn.call.name, "input": dict(turn.call.arguments)}
            begun = self._ask(turn, begun, ScriptedAnswer(calls=[ToolUse(turn.call.name, turn.call.arguments)]))
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": output}]}
            self._messages += [_message("assistant", call), _message("user", result)]
        self._ask(turn, begun, ScriptedAnswer(turn.reply))
        self._messages.append(_message("assistant", {"type": "text", "text": turn.reply}))

    def _ask(self, turn: StudyTurn, begun: int, answer: ScriptedAnswer) -> int:
        """One request, of which the messages from `begun` on may not be dropped; where they begin afterwards."""
        dropped = self._slide(begun)
        last = self._messages[-1]
        messages = [*self._messages[:-1], {**last, "content": _marked(last["content"])}]
        used = self._cache.use({**self._frame, "messages": messages})
        usage = usage_of(used, answer_tokens(answer))
        usd = price_of(MODEL, usage, self._prices)
        self.seen.append(MeasuredRequest(turn.number, "chat", MODEL, usage, usd, first=bool(dropped)))
        return begun - dropped

    def _slide(self, begun: int) -> int:
        """Drop what has to be; how many messages that were."""
        sizes = [sum(map(block_tokens, message["content"])) for message in self._messages]
        held = self._around + sum(sizes)
        if held <= self._window.tokens:
            return 0
        dropped = 0
        while dropped < begun and (held > self._window.down_to or not _opens(self._messages[dropped])):
            held -= sizes[dropped]
            dropped += 1
        del self._messages[:dropped]
        return dropped


def _message(role: str, block: dict[str, Any]) -> Message:
    return {"role": role, "content": [block]}


def _marked(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks, the last one with a breakpoint and no other."""
    plain = [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks]
    return [*plain[:-1], {**plain[-1], **_MARK}]


def _opens(message: Message) -> bool:
    """Whether a conversation can begin with this."""
    return (message["role"], message["content"][0]["type"]) == ("user", "text")
