"""Offline mode as a model: no language model, no network, nothing to download, the same answer to the same request.

It keeps notes, answers questions about what it was told in the words it was told, manages the to-do list, and looks up
time, files and messages, all through the tools that any model is offered. It is asked last when no other model can
answer, so that a note is never refused. It says what it is, once, when it starts to answer in a conversation.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from functools import partial

from assistant.context.truncate import original_words
from assistant.core.calendar import month_number
from assistant.core.errors import ModelError
from assistant.core.messages import Message, ToolCall, Usage
from assistant.core.model_api import (
    OFFLINE_MODEL,
    CallPurpose,
    ModelEvent,
    ModelLimits,
    ModelReply,
    ModelRequest,
    StopReason,
    TextDelta,
)
from assistant.core.quoting import NOTE_TAG, SPEAKER_TAG, QuotedMessage
from assistant.core.sessions import OWNER_SCOPE, session_scope
from assistant.core.text import lazy_regex
from assistant.models.encoding import CHARS_PER_TOKEN
from assistant.models.offline.file_answers import can_be_searched, describe_attached
from assistant.models.offline.parse import parse_message
from assistant.models.offline.plans import EarlierCall, ToolStep, only_reads
from assistant.models.offline.steps import (
    INTRODUCTION,
    StepContext,
    describe_tool_results,
    next_step,
    question_of,
)
from assistant.models.offline.told_days import REMINDER_OFFER
from assistant.search.units import split_into_units

LIMITS = ModelLimits(window=32_000, max_output=4_000, max_bytes=10_000_000, max_images=100)
_WORDS = lazy_regex(r"\S+\s*|\s+")
_NOTES = lazy_regex(rf"\A(?:<{NOTE_TAG}>.*?</{NOTE_TAG}>\s*)+", re.DOTALL)
_SPEAKER = lazy_regex(rf'\A<{SPEAKER_TAG} name="([^"]*)">\n(.*)\n</{SPEAKER_TAG}>\s*\Z', re.DOTALL)
_NOW = lazy_regex(r"^Now: \w+ (?P<day>\d{1,2}) (?P<month>\w+) (?P<year>\d{4}), (?P<time>\d\d:\d\d) \(", re.MULTILINE)
_PERSON = lazy_regex(r"^The person you work for is called (.+)\.$", re.MULTILINE)
_MOST_OWN_WORDS = 100


class OfflineModel:
    """A `ports.Model`. Usage is estimated at four characters a token; nothing costs anything."""

    name = OFFLINE_MODEL
    provider = OFFLINE_MODEL

    async def limits(self) -> ModelLimits:
        return LIMITS

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """Raises `ModelError`: `overflow` past the window, `bad_request` for anything but conversation."""
        if purpose not in ("chat", "schedule", "check"):
            raise ModelError(
                f"Offline mode only converses; it makes no {purpose}.", kind="bad_request", provider=OFFLINE_MODEL
            )
        prompt = _prompt_tokens(request)
        if prompt > LIMITS.window:
            text = f"Offline mode takes {LIMITS.window} tokens, and this request has about {prompt}."
            raise ModelError(text, kind="overflow", provider=OFFLINE_MODEL)
        message, stop = _cut(_answer(request, session), min(request.max_output_tokens, LIMITS.max_output))
        for piece in _WORDS.findall(message.content):
            yield TextDelta(piece)
            await asyncio.sleep(0)
        usage = Usage(input=prompt, output=_message_characters(message) // CHARS_PER_TOKEN + 1, cost_usd=0.0)
        yield ModelReply(message, usage, stop, estimated=True)

    async def aclose(self) -> None:
        """Nothing is open."""


def next_calls(request: ModelRequest, session: str | None) -> tuple[ToolCall, ...]:
    """What the words of the person have it call next, given what earlier calls of its own answered."""
    return _answer(request, session).tool_calls


def _answer(request: ModelRequest, session: str | None) -> Message:
    """The next message of the turn: calls while any request of the person still waits for a result, else the words."""
    tools = frozenset(tool.name for tool in request.tools)
    own_calls = _OwnCalls(request.messages)
    calls: dict[str, ToolCall] = {}
    parts: list[str] = []
    now, earlier = _local_time(request.messages), _earlier_calls(request.messages)
    is_owner = session is not None and session_scope(session) == OWNER_SCOPE
    person, has_files = _person(request) if is_owner else "", is_owner and "use_tool" in tools
    knows_offer = any(m.role == "assistant" and REMINDER_OFFER in m.content for m in request.messages)
    for message in _newest_messages(request.messages):
        own_words = _own_words(request.messages, message)
        attached = tuple(str(medium.path) for medium in message.media if has_files and can_be_searched(medium))
        context = StepContext(message, tools, own_words, now, earlier, has_files, attached, person, knows_offer)
        parsed_message = parse_message(message.content)
        for place, parsed in enumerate(parsed_message):
            count, step = own_calls.next_step(message, place, partial(next_step, parsed, context=context))
            if isinstance(step, str):
                parts.append(step)
                continue
            call_id = _call_id(message, place, count)
            # Requests of one turn that look at the same thing look once.
            key = _describe_call(step) if only_reads(step) else call_id
            calls.setdefault(key, ToolCall(call_id, step.tool, step.arguments))
        were_asked = any(map(question_of, parsed_message))
        parts += describe_attached(message.media, has_files=has_files, were_asked=were_asked)
    if calls:
        return Message("assistant", tool_calls=tuple(calls.values()), model=OFFLINE_MODEL)
    if other_results := _results_of_other_models(request.messages):
        parts.append(describe_tool_results(other_results))
    if not any(m.role == "assistant" and m.model == OFFLINE_MODEL and not m.tool_calls for m in request.messages):
        parts.append(INTRODUCTION)
    return Message("assistant", "\n\n".join(dict.fromkeys(parts)), model=OFFLINE_MODEL)


def _newest_messages(messages: Sequence[Message]) -> list[Message]:
    """The newest user message, and before it those that joined the same turn."""
    users = [_own_text(message) for message in messages if _is_from_person(message)]
    if not users:
        return [Message("user")]
    turn = users[-1].metadata.get("turn")
    return [m for m in users if m is users[-1] or (turn is not None and m.metadata.get("turn") == turn)]


def _is_from_person(message: Message) -> bool:
    """Notes of the runtime are in user messages too."""
    return message.role == "user" and not message.metadata.get("note")


def _own_text(message: Message) -> Message:
    """The message without the runtime's notes before it, and with the speaker as its name; nobody else can write their
    boundaries. Of one that was cut, both ends."""
    content = _NOTES.sub("", message.content, count=1)
    speaker = _SPEAKER.match(content)
    own = replace(message, content=speaker[2], name=speaker[1]) if speaker else replace(message, content=content)
    return replace(own, content=original_words(own))


def _person(request: ModelRequest) -> str:
    """What the owner is called, as the persona says it since the set-up."""
    match = next(filter(None, (_PERSON.search(block.text) for block in request.system)), None)
    return match[1].strip() if match else ""


def _local_time(messages: Sequence[Message]) -> datetime | None:
    """What the clock of the person shows, as the request says it."""
    volatile = "\n".join(str(m.metadata.get("volatile", "")) for m in messages if m.role == "user")
    match = _NOW.search(volatile)
    if match is None:
        return None
    day = date(int(match["year"]), month_number(match["month"]), int(match["day"]))
    return datetime.combine(day, time.fromisoformat(match["time"]))


def _earlier_calls(messages: Sequence[Message]) -> tuple[EarlierCall, ...]:
    """What tools did before the newest message of a person, as far as the request still has it."""
    opener = _turn_start(messages)
    before = max((place for place, m in enumerate(messages[:opener]) if _is_from_person(m)), default=0)
    calls = {call.id: call for m in messages[:opener] for call in m.tool_calls}
    return tuple(
        EarlierCall(call.name, call.arguments, m.content, is_latest=place > before)
        for place, m in enumerate(messages[:opener])
        if m.tool_call_id and not m.metadata.get("is_error") and (call := calls.get(m.tool_call_id))
    )


def _turn_start(messages: Sequence[Message]) -> int:
    """Return the index of the message that opened the turn of the newest message of a person."""
    newest = max((place for place, m in enumerate(messages) if _is_from_person(m)), default=0)
    turn = messages[newest].metadata.get("turn") if messages else None
    return next((n for n, m in enumerate(messages) if turn is not None and m.metadata.get("turn") == turn), newest)


class _OwnCalls:
    """The calls that offline mode made in this turn, a round after the other, and their results."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._results = {m.tool_call_id: m.content for m in messages if m.tool_call_id is not None}
        self._places = {m.id: place for place, m in enumerate(messages)}
        self._rounds: list[tuple[int, dict[str, str]]] = []  # place in the request, and ids of calls that only read
        self._round_of: dict[str, int] = {}
        for place, message in enumerate(messages):
            if message.tool_calls and message.model == OFFLINE_MODEL:
                steps = {call.id: ToolStep(call.name, call.arguments) for call in message.tool_calls}
                self._round_of.update(dict.fromkeys(steps, len(self._rounds)))
                reading = {_describe_call(step): call_id for call_id, step in steps.items() if only_reads(step)}
                self._rounds.append((place, reading))

    def next_step(
        self, message: Message, place: int, step_after: Callable[[list[str]], ToolStep | str]
    ) -> tuple[int, ToolStep | str]:
        """Return how many results one request of a message has, and what comes after them. Where another request has
        read the same in the round in which this one would have, that result is its own as well."""
        results: list[str] = []
        begins = self._places.get(message.id, -1)
        turn = next((n for n, (at, _) in enumerate(self._rounds) if at > begins), len(self._rounds))
        while True:
            while (own := self._results.get(call_id := _call_id(message, place, len(results)))) is not None:
                turn = self._round_of.get(call_id, turn) + 1
                results.append(own)
            step = step_after(results)
            if isinstance(step, str) or turn >= len(self._rounds):
                return len(results), step
            shared = self._results.get(self._rounds[turn][1].get(_describe_call(step), ""))
            if shared is None:
                return len(results), step
            results.append(shared)
            turn += 1


def _describe_call(step: ToolStep) -> str:
    return f"{step.tool} {json.dumps(dict(step.arguments), sort_keys=True, default=str)}"


def _own_words(messages: Sequence[Message], newest: Message) -> tuple[QuotedMessage, ...]:
    """What people said earlier and the request still has, a long message in several pieces; oldest first."""
    earlier = [m for m in messages if _is_from_person(m) and m.id is not None and m.id != newest.id]
    quotes = [
        QuotedMessage(m.id or 0, f"{m.ts:%a %Y-%m-%d %H:%M} UTC" if m.ts else "", "user", piece, m.name)
        for m in map(_own_text, earlier[-_MOST_OWN_WORDS:])
        for piece in split_into_units(m.content)
    ]
    return tuple(quotes[-_MOST_OWN_WORDS:])


def _results_of_other_models(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """(tool, result) of the calls since the newest message of a model that could not finish."""
    newest = max((place for place, m in enumerate(messages) if _is_from_person(m)), default=0)
    calls = {call.id: call.name for m in messages[newest:] if m.model != OFFLINE_MODEL for call in m.tool_calls}
    return [
        (calls[m.tool_call_id], m.content.strip())
        for m in messages[newest:]
        if m.tool_call_id in calls and not m.metadata.get("is_error") and m.content.strip()
    ]


def _call_id(message: Message, place: int, number: int) -> str:
    return f"offline_{message.id or 0}_{place}_{number}"


def _cut(message: Message, max_output: int) -> tuple[Message, StopReason]:
    if message.tool_calls:
        return message, "tool_calls"
    if len(message.content) <= max_output * CHARS_PER_TOKEN:
        return message, "end"
    return message.with_content(message.content[: max_output * CHARS_PER_TOKEN]), "max_tokens"


def _prompt_tokens(request: ModelRequest) -> int:
    characters = sum(len(block.text) for block in request.system)
    characters += sum(_message_characters(message) for message in request.messages)
    characters += sum(len(t.name) + len(t.description) + len(json.dumps(t.schema)) for t in request.tools)
    return characters // CHARS_PER_TOKEN + 1


def _message_characters(message: Message) -> int:
    calls = sum(len(call.name) + len(json.dumps(dict(call.arguments), default=str)) for call in message.tool_calls)
    return len(message.content) + len(str(message.metadata.get("volatile", ""))) + calls
