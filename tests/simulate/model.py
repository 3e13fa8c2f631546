"""The model of a simulated life: it answers from the request alone, does what the person's newest message asks for by
calling tools, keeps to the forms that sleeps and compactions ask for, and fails as providers do.

Whether and how a call fails is drawn from the seed and the number of the call. Every request is looked at before it is
answered: whether a provider would accept it (I5), and whose words it has (I10).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from assistant.core.errors import ModelError
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
from assistant.models import anthropic_format, openai_format
from tests.simulate.words import FACT, LIST_ITEM, QUESTION, REMIND, WORD, scopes_of
from tests.strict.validate import RequestLimits, validate_chat, validate_messages
from tests.support.consolidation_home import decisions_answer, scores_answer
from tests.support.sleep_home import memories_answer
from tests.support.summaries import summary_answer

WINDOW = 120_000
_LIMITS = RequestLimits(window=WINDOW)
_OVERFLOW = "prompt is too long"
_SHOWN = re.compile(r"^#(\d+) .*?\buser\b[^:]*: ?(.*)$", re.MULTILINE)
_ENTRY = re.compile(r"^(E\d+) \([^)]*\): (.*)$")
_MEMORY = re.compile(r"^  (M\d+) \(([^)]*)\): (.*)$")
_BUDGET = re.compile(r"at most (\d+)\s+tokens")
# What a result says of how to read on, where it was too long for the context or for itself.
_MORE = re.compile(
    r"(?:Shortened to fit\.[^\]]*|more: )read_history\(message_id=(?P<message_id>\d+)(?:, offset=(?P<offset>\d+))?\)"
)
_MOST_LOOKS, _STEP = 6, 300
_CALL_SECONDS = 2.0


@dataclass
class Provider:
    """What the models of a life have in common. `trouble`, when set, is what every call fails with; `faults` makes some
    calls fail. `complain` is told of whatever must not be. `find_answers` says what answers a question, as those words
    that are right at this moment; none for a question that has no answer. `on_billed` is told what a call used, and of
    which model, `on_result` what a tool said. `find_forgotten` says which words of a text were forgotten."""

    seed: int
    complain: Callable[[str], None]
    find_answers: Callable[[str], frozenset[str]]
    on_billed: Callable[[str, Usage], None]
    on_result: Callable[[str], None]
    find_forgotten: Callable[[str], set[str]]
    trouble: str = ""
    faults: bool = True
    calls: int = 0
    refused_calls: int = 0
    calls_by_purpose: Counter[str] = field(default_factory=Counter)
    recalled: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)  # since the last outage, by model and by purpose


class LifeModel:
    """One model of the provider."""

    provider = "anthropic"

    def __init__(self, name: str, provider: Provider) -> None:
        self.name = name
        self._provider = provider
        self._complain = provider.complain

    async def limits(self) -> ModelLimits:
        return ModelLimits(WINDOW, 8192, 32_000_000, 100, "default")

    async def aclose(self) -> None:
        return None

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        self._provider.calls += 1
        self._provider.calls_by_purpose[purpose] += 1
        # Whoever was asked and fails has not answered since.
        for name in (self.name, purpose):
            self._provider.answered[name] = 0
        luck = Random(f"{self._provider.seed} {self._provider.calls}")
        tokens = self._check(request, purpose, session)
        await asyncio.sleep(_CALL_SECONDS * luck.uniform(0.5, 2))
        if trouble := self._provider.trouble:
            self._provider.refused_calls += 1
            raise ModelError(f"the provider is down ({trouble})", kind=trouble)  # type: ignore[arg-type]
        if tokens is None:
            raise ModelError(_OVERFLOW, kind="overflow")
        reply = await self._reply(request, purpose, luck, tokens)
        if reply.message.content:
            yield TextDelta(reply.message.content[:20])
            await asyncio.sleep(0.5)
            if self._provider.faults and luck.random() < 0.01:
                raise ModelError("the connection broke", kind="network", partial=reply.message.content[:20])
        self._provider.answered.update((self.name, purpose))
        yield reply

    # ---------------------------------------------------------------------------------------------------- what is asked

    def _check(self, request: ModelRequest, purpose: CallPurpose, session: str | None) -> int | None:
        """About how many tokens it has; None where that is more than the window."""
        text = request_text(request)
        scopes = scopes_of(text)
        if len(scopes) > 1:
            self._complain(f"I10: a request ({purpose}, {session}) has words of {', '.join(sorted(scopes))}")
        for word in self._provider.find_forgotten(text):
            self._complain(f"forget: {word} is forgotten, and a request ({purpose}, {session}) has it")
        owner = session is not None and not session.startswith(("peer:", "room:"))
        if session is not None and scopes and ("owner" in scopes) is not owner:
            self._complain(f"I10: a request of {session} ({purpose}) has words of {', '.join(scopes)}")
        body = anthropic_format.render_anthropic_request(request, self.name)
        chat = openai_format.render_openai_request(request, self.name)
        complaints = validate_messages(body, _LIMITS) + validate_chat(chat, _LIMITS)
        if any("too long" in complaint or "maximum context" in complaint for complaint in complaints):
            return None
        for complaint in complaints:
            self._complain(f"I5: a request ({purpose}, {session}) is refused: {complaint}")
        return len(text) // 4 + 200 * len(request.tools)

    # ------------------------------------------------------------------------------------------------- what is answered

    async def _reply(self, request: ModelRequest, purpose: CallPurpose, luck: Random, tokens: int) -> ModelReply:
        stop: StopReason = "end"
        calls: tuple[ToolCall, ...] = ()
        if self._provider.faults and (fault := luck.random()) < 0.03:
            text, stop = self._fault(fault, luck)
        elif purpose in ("summary", "sleep_summary"):
            text = _summary(request)
        elif purpose == "extraction":
            text = _learn(request)
        elif purpose in ("consolidation", "scoring"):
            text = _judge(request)
        else:
            text, calls = self._converse(request)
            stop = "tool_calls" if calls else "end"
        usage = Usage(input=tokens, output=len(text) // 4 + 20 * len(calls) + 1)
        self._provider.on_billed(self.name, usage)
        return ModelReply(Message("assistant", text, tool_calls=calls, model=self.name), usage, stop)

    def _fault(self, fault: float, luck: Random) -> tuple[str, StopReason]:
        if fault < 0.005:
            raise ModelError("slow down", kind="rate_limit", retry_after=luck.choice([1.0, 20.0, 600.0]))
        if fault < 0.010:
            raise ModelError("overloaded", kind="overload")
        if fault < 0.015:
            raise ModelError(_OVERFLOW, kind="overflow")
        if fault < 0.020:
            return "I cannot help with that.", "refusal"
        if fault < 0.025:
            return "", "end"
        return "<summary>", "max_tokens"

    def _converse(self, request: ModelRequest) -> tuple[str, tuple[ToolCall, ...]]:
        newest = max((n for n, one in enumerate(request.messages) if one.role == "user"), default=-1)
        said = request.messages[newest].content if newest >= 0 else ""
        tail = request.messages[newest + 1 :]
        if match := QUESTION.search(said):
            return self._answer(match[0], said, request, tail)
        if tail:
            for message in tail:
                self._provider.on_result(message.content)
            return "That is done.", ()
        call_id = f"call_{self._provider.calls}"
        if match := REMIND.search(said):
            order = {"text": match["text"], "when": match["when"]}
            return "", (ToolCall(call_id, "set_reminder", order),)
        if match := LIST_ITEM.search(said):
            return "", (ToolCall(call_id, "manage_todo_list", {"action": "add", "items": [match["text"]]}),)
        return "I see. I keep that in mind.", ()

    def _answer(
        self, question: str, said: str, request: ModelRequest, tail: tuple[Message, ...]
    ) -> tuple[str, tuple[ToolCall, ...]]:
        """From what is shown, else from what a search finds."""
        wanted = self._provider.find_answers(question)
        if not wanted:
            return "I do not know that.", ()
        shown = request_text(request)
        found = [word for word in WORD.findall(shown) if word in wanted]
        if found:
            self._provider.recalled["searched" if tail else "shown"] += 1
            return f"It is {found[-1]}.", ()
        call_id = f"call_{self._provider.calls}"
        if not tail and any(tool.name == "search_history" for tool in request.tools):
            return "", (ToolCall(call_id, "search_history", {"query": question}),)
        if tail and len(tail) <= 2 * _MOST_LOOKS and (more := _MORE.search(tail[-1].content)):
            # What was shortened in its middle is read on from a little later each time.
            offset = int(more["offset"] or _STEP * (len(tail) // 2))
            place = {"message_id": int(more["message_id"]), "offset": offset}
            return "", (ToolCall(call_id, "read_history", place),)
        self._provider.recalled["missing"] += 1
        self._complain(f"recall: {question!r} is not found in {said[:80]!r}")
        return "I cannot find that.", ()


def request_text(request: ModelRequest) -> str:
    parts = [block.text for block in request.system]
    for message in request.messages:
        parts.append(message.content)
        parts += [json.dumps(dict(call.arguments), ensure_ascii=False) for call in message.tool_calls]
    return "\n".join(parts)


def _asked(request: ModelRequest) -> str:
    return request.messages[-1].content if request.messages else ""


def _summary(request: ModelRequest) -> str:
    """The newest facts of what is summarised, a line each."""
    facts = {match["key"]: match[0] for match in FACT.finditer(request_text(request))}
    asked = _BUDGET.search(request_text(request))
    lines = [f"- {fact}" for fact in facts.values()][-(int(asked[1]) if asked else 200) // 30 :]
    listed = "\n".join(lines) or "- They talked about the day."
    return summary_answer(f"They talked about the day and about what is where.\n{listed}")


def _learn(request: ModelRequest) -> str:
    found = ((number, FACT.search(text)) for number, text in _SHOWN.findall(_asked(request)))
    return memories_answer(
        *(
            {"kind": "fact", "content": fact[0], "importance": 0.7, "sources": [int(number)]}
            for number, fact in found
            if fact
        )
    )


def _judge(request: ModelRequest) -> str:
    """Each entry is new, the same as a memory with its words, or in the place of those that say something else of the
    same thing."""
    decisions: list[dict[str, Any]] = []
    told: re.Match[str] | None = None
    for line in _asked(request).splitlines():
        if match := _ENTRY.match(line):
            told = FACT.search(match[2])
            decisions.append({"entry": match[1], "decision": "new"})
        elif (match := _MEMORY.match(line)) and told and (held := FACT.search(match[3])) and held["key"] == told["key"]:
            decision = decisions[-1]
            if held[0] == told[0]:
                decision |= {"decision": "same", "of": [match[1]]}
            elif "until" not in match[2] and decision["decision"] != "same":
                decision |= {"decision": "supersedes", "of": [*decision.get("of", ()), match[1]]}
    return decisions_answer(*decisions) + "\n" + scores_answer()
