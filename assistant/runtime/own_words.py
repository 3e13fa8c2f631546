"""Determines whether the user's own messages requested a tool call.

Only the messages that the turn answers count, without quoted or pasted text and without their questions. A call is
recognised in two ways, both without a model: the offline mode's rules derive the same call, or the message contains
every value of the call (`WordsOfCall`). If in doubt, it was not requested.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

from assistant.agenda.time_phrases import parse_moment
from assistant.context.build import PromptFrame, build_request
from assistant.core.calendar import MONTHS, WEEKDAYS
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.messages import Message, ToolCall
from assistant.core.model_api import OFFLINE_MODEL, ModelRequest, ToolSpec
from assistant.core.ports import ToolContext, WordsOfCall
from assistant.core.records import ContextView, Turn, strip_schedule_heading
from assistant.core.text import STOP_WORDS, distinct_words, fold_text
from assistant.core.time_pieces import find_times
from assistant.models.offline.intents import rank_without_items
from assistant.models.offline.model import LIMITS, next_calls
from assistant.models.offline.parse import parse_sentence
from assistant.models.offline.requests import AboutMe, DoOrder, Question
from sleep.rules.sentences import Sentence, split_sentences

_LOOKED_AT = 8_000
_MOST_SENTENCES = 100
_MOST_STEPS = 8
_TELLING = frozenset(["question", "ask", "statement"])
# Words with which a model refers to the user.
_PERSON = frozenset(["user", "owner", "person", "they", "their", "them", "theirs", "he", "she", "his", "her"])

RunReading = Callable[[ToolCall], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class OwnWords:
    """The user's text in a turn, without questions and quotations. `whole` includes the questions."""

    text: str
    whole: str
    said_at: datetime
    zone: ZoneInfo

    def ask_for(self, form: WordsOfCall, arguments: Mapping[str, Any], context: ToolContext) -> bool:
        """Return whether the text contains every value of a call, or mentions each of its subjects."""
        words = frozenset(distinct_words(self.whole if form.in_questions else self.text))
        if form.subjects is not None:
            subjects = [_content_words(text) for text in form.subjects(context, arguments)]
            return bool(subjects) and not any(map(words.isdisjoint, subjects))
        given = {name: value for name, value in arguments.items() if value not in (None, "", [], {})}
        known = {*form.words, *form.times, *form.files, *form.addresses, *form.free, *form.fixed}
        if not given.keys() <= known or any(arguments.get(name, "") != value for name, value in form.fixed.items()):
            return False
        has_all = (
            all(self._has_words(words, given[name]) for name in form.words if name in given)
            and all(self._has_time(words, str(given[name])) for name in form.times if name in given)
            and all(self._has_file(words, str(given[name])) for name in form.files if name in given)
            and all(self._has_address(str(given[name])) for name in form.addresses if name in given)
        )
        return has_all and any(name in given for name in (*form.words, *form.files, *form.addresses))

    def _has_words(self, words: frozenset[str], value: Any) -> bool:
        texts = list(_texts(value))
        content = [word for text in texts for word in _content_words(text)]
        today = _words_of_day(self.said_at, self.zone)
        return (
            bool(content)
            and all(word in words or word in today for word in content)
            and any(word in words for word in content)
        )

    def _has_time(self, words: frozenset[str], phrase: str) -> bool:
        asked = distinct_words(phrase)
        if asked and words.issuperset(asked):
            return True
        found = find_times(self.text)
        if found.rule and found.rule == (find_times(phrase).rule or phrase.strip().upper().removeprefix("RRULE:")):
            return True
        try:
            said = parse_moment(found.phrase, self.zone, self.said_at)
            return parse_moment(phrase, self.zone, self.said_at).at == said.at
        except UsageError:
            return False

    def _has_file(self, words: frozenset[str], path: str) -> bool:
        asked = distinct_words(PurePosixPath(path).stem)
        return bool(asked) and words.issuperset(asked)

    def _has_address(self, address: str) -> bool:
        """Return whether the text contains the address verbatim, ignoring the scheme and surrounding punctuation:
        nothing may be appended to it."""
        return _plain_address(address) in map(_plain_address, self.whole.split())


def _plain_address(word: str) -> str:
    address = word.strip("<>()[]{}\"'.,;:!?*_")
    scheme, _, rest = address.partition("://") if "://" in address else ("https", "", address)
    host, slash, path = rest.partition("/")
    return f"{host.lower()}{slash}{path}".rstrip("/") if scheme.lower() in ("http", "https") else ""


def read_own_words(turn: Turn, zone: ZoneInfo) -> OwnWords:
    """Return what the person said in the messages of the turn, without quotations and headings of schedules. Only the
    first `_LOOKED_AT` characters are read."""
    whole = "\n".join(strip_schedule_heading(item.incoming.content) for item in turn.items)[:_LOOKED_AT]
    said_at = turn.items[-1].received_at if turn.items else turn.started_at
    unquoted = "\n".join(line for line in whole.splitlines() if not line.lstrip().startswith(">"))
    return OwnWords(_words_of_orders(whole), unquoted, said_at, zone)


@lru_cache(maxsize=16)  # a turn asks for each of its calls
def _words_of_orders(text: str) -> str:
    return "\n".join(_words_of_order(sentence) for sentence in split_sentences(text)[:_MOST_SENTENCES])


def _words_of_order(sentence: Sentence) -> str:
    """Return the words of a sentence that count: none of a question; of a statement, those not quoted."""
    request = parse_sentence(sentence)
    if isinstance(request, Question | AboutMe):
        return ""
    intent = rank_without_items(sentence.text)[0][0] if isinstance(request, DoOrder) else "statement"
    asks = isinstance(request, DoOrder) and isinstance(request.otherwise, Question | AboutMe)
    if intent in _TELLING:
        return "" if asks else sentence.own_text
    # The argument of an order may be in quotation marks.
    return sentence.text


async def rules_read(
    call: ToolCall, turn: Turn, view: ContextView, tools: Sequence[ToolSpec], own: OwnWords, run_reading: RunReading
) -> bool:
    """Return whether the offline mode's rules derive the call from the turn's messages. Their lookups are answered by
    `run_reading`, which raises `LookupError` for calls that are not read-only."""
    messages = [_own_only(message, turn) for message in view.messages if not message.is_summary]
    # Calls that the model made in this turn are removed: the rules look things up themselves.
    request = build_request(
        replace(view, messages=tuple(messages)), PromptFrame("", tools=tuple(tools)), LIMITS, volatile=turn.volatile
    )
    request = _without_open_calls(request)
    for _ in range(_MOST_STEPS):
        calls = next_calls(request, turn.session)
        if any(is_same_call(read, call, own) for read in calls):
            return True
        results: list[Message] = []
        for read in calls:
            try:
                results.append(Message("tool", await run_reading(read), tool_call_id=read.id, name=read.name))
            except LookupError:
                continue
        if not results:
            return False
        answered = tuple(read for read in calls if read.id in {result.tool_call_id for result in results})
        asked = Message("assistant", tool_calls=answered, model=OFFLINE_MODEL)
        request = replace(request, messages=(*request.messages, asked, *results))
    return False


def is_same_call(one: ToolCall, other: ToolCall, own: OwnWords) -> bool:
    """Return whether two calls are equivalent; texts and times may be spelled differently."""
    if one.name != other.name:
        return False
    first, second = (
        {name: value for name, value in call.arguments.items() if value not in (None, "", [], {})}
        for call in (one, other)
    )
    return first.keys() == second.keys() and all(_is_same(first[name], second[name], own) for name in first)


def _is_same(one: Any, other: Any, own: OwnWords) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return distinct_words(one) == distinct_words(other) or _is_same_moment(one, other, own)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(_is_same(a, b, own) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _is_same_moment(one: str, other: str, own: OwnWords) -> bool:
    try:
        first, second = (parse_moment(text, own.zone, own.said_at) for text in (one, other))
    except UsageError:
        return False
    return first.at == second.at


def _own_only(message: Message, turn: Turn) -> Message:
    """Remove quoted lines from the user's messages of the turn."""
    if message.role != "user" or message.metadata.get("turn") != turn.id:
        return message
    lines = (line for line in message.content.splitlines() if not line.lstrip().startswith(">"))
    return replace(message, content="\n".join(lines))


def _without_open_calls(request: ModelRequest) -> ModelRequest:
    """Remove the newest calls, which are being reviewed, and their results."""
    messages = request.messages
    newest = next((n for n in reversed(range(len(messages))) if messages[n].tool_calls), None)
    if newest is None or any(
        message.role == "user" and not message.metadata.get("note") for message in messages[newest:]
    ):
        return request
    return replace(request, messages=messages[:newest])


def _content_words(text: str) -> list[str]:
    return [word for word in distinct_words(text) if word not in STOP_WORDS | _PERSON]


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from (str(name), *_texts(item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)


def _words_of_day(moment: datetime, zone: ZoneInfo) -> frozenset[str]:
    """Return the words of a date, since a note may contain it."""
    local = moment.astimezone(zone)
    names = (MONTHS[local.month - 1], WEEKDAYS[local.weekday()])
    return frozenset(map(fold_text, (str(local.year), str(local.day), f"{local:%m}", f"{local:%d}", *names)))
