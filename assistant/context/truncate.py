"""Truncates long texts for the model, keeping both ends, with the omitted amount and a reference; and replaces old tool
results by one line. Pure.

The message log keeps every message complete. The view keeps at most what the policy allows of a tool result, cut once
when it is written; messages that turn out too large later are truncated the same way.

The result never exceeds the limit, in the limit's unit; cuts never separate surrogate pairs or combining marks; output
is deterministic. The one-line form is cheap but tells the model whether it has to look: repeating a call for known
results is how assistants loop after a compaction (F03).
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from assistant.context.pressure import utf8_length
from assistant.core.dataclass import dataclass
from assistant.core.messages import LOOKUP_TOOLS, Message, ToolCall
from assistant.core.quoting import quoted_words
from assistant.core.records import LogLocation, strip_schedule_heading
from assistant.core.text import lazy_regex, shorten

MeasureText = Callable[[str], int]
LengthUnit = Literal["tokens", "chars"]

TOTAL_LINES_PREFIX = "Total output lines: "
SHORTENED_PREFIX = "[Shortened to fit. "
_PREVIEW_CHARS = 80
_CHARS_PER_TOKEN = 4
_MARKER = lazy_regex(r"\n?…\d+ (?:tokens|chars) truncated…\n?")
_JOINERS = "\u200d\ufe0e\ufe0f"
_LONGEST_CLUSTER = 32


@dataclass(frozen=True, slots=True)
class TruncationPolicy:
    """How tool output is truncated on write."""

    kind: Literal["tokens", "bytes", "none"]  # unit of `limit`; "none": no truncation
    limit: int
    allowance: float = 1.2  # factor on the limit for JSON overhead when sent
    split: float = 0.5  # share of the kept text taken from the start, the rest from the end

    @property
    def allowed(self) -> int:
        """In the unit of `kind`."""
        return int(self.limit * self.allowance)


def truncate_for_view(message: Message, place: LogLocation, policy: TruncationPolicy, count: MeasureText) -> Message:
    """Return the message as added to the view: long tool results truncated by the policy. `count` counts the tokens of
    a text."""
    if message.role != "tool" or policy.kind == "none":
        return message
    if policy.kind == "bytes":
        return _shortened(message, place, policy.allowed, "chars", policy.split, utf8_length)
    return _shortened(message, place, policy.allowed, "tokens", policy.split, count)


def truncate_to_reference(message: Message, place: LogLocation, keep_tokens: int, count: MeasureText) -> Message:
    """Truncate a message that is too large for the context to both its ends in `keep_tokens`, the result of a lookup to
    its beginning, where the best is; unchanged if it fits. Thinking is dropped: it is signed for the full text."""
    split = 1.0 if message.role == "tool" and message.name in LOOKUP_TOOLS else 0.5
    shortened = _shortened(message, place, keep_tokens, "tokens", split, count)
    return shortened if shortened is message else replace(shortened, thinking=())


def original_words(message: Message) -> str:
    """Return what was originally said: without schedule headings, and without truncation markers."""
    if not message.metadata.get("truncated"):
        return strip_schedule_heading(message.content)
    return _MARKER.sub("\n", strip_schedule_heading(_undo_earlier_cut(message, "tokens")[0])).strip()


def without_image_data(message: Message) -> Message:
    """Return the message with its media named but without data."""
    return replace(message, media=tuple(replace(medium, data=None) for medium in message.media))


def _shortened(
    message: Message, place: LogLocation, limit: int, unit: LengthUnit, split: float, measure: MeasureText
) -> Message:
    if measure(message.content) <= limit:
        return message
    text, lines, lost = _undo_earlier_cut(message, unit)
    cut = _Truncation(text, lines, lost + (measure(text) if unit == "tokens" else len(text)), unit, message, place)
    content, removed = cut.fit(limit, split, measure)
    return message.with_content(content, truncated={"removed": removed, "unit": unit, "lines": lines})


def _undo_earlier_cut(message: Message, unit: LengthUnit) -> tuple[str, int, int]:
    """Return the text without the markers of an earlier cut, the line count of the full text, and the amount cut
    (approximate if measured in the other unit)."""
    text = message.content
    earlier = message.metadata.get("truncated")
    if not isinstance(earlier, dict):
        return text, text.count("\n") + (not text.endswith("\n")), 0
    if text.startswith(TOTAL_LINES_PREFIX):
        text = text.partition("\n")[2]
    body, separator, _ = text.rpartition(f"\n{SHORTENED_PREFIX}")
    lost = int(earlier.get("removed", 0))
    if earlier.get("unit") != unit:
        lost = lost // _CHARS_PER_TOKEN if unit == "tokens" else lost * _CHARS_PER_TOKEN
    return body if separator else text, int(earlier.get("lines", 0)), lost


@dataclass(frozen=True, slots=True)
class _Truncation:
    """A truncation in progress."""

    text: str
    lines: int
    total: int  # size of the full text in `unit`
    unit: LengthUnit
    message: Message
    place: LogLocation

    def fit(self, limit: int, split: float, measure: MeasureText) -> tuple[str, int]:
        """Return the truncated text within `limit`, and the omitted amount."""
        for detail in (2, 1, 0):
            room = limit - measure(self._assembled("", "", self.total, detail))
            if detail == 2 and room < limit // 2:
                # Text is more useful than the exact location of the rest.
                continue
            while room > 0:
                head = _prefix(self.text, int(room * split), measure)
                tail = _suffix(self.text[len(head) :], room - int(room * split), measure)
                removed = self._removed(head, tail, measure)
                content = self._assembled(head, tail, removed, detail)
                if (over := measure(content) - limit) <= 0:
                    if detail == 0 or head or tail:
                        return content, removed
                    break
                room -= over + 1
        return self._bare(limit, measure)

    def _bare(self, limit: int, measure: MeasureText) -> tuple[str, int]:
        """If not even the marker fits next to some text: return the marker alone, or the first characters."""
        marker = f"…{self.total} {self.unit} truncated…"
        content = marker if measure(marker) <= limit else _prefix(self.text, limit, measure)
        return content, self.total

    def _removed(self, head: str, tail: str, measure: MeasureText) -> int:
        shown = measure(head) + measure(tail) if self.unit == "tokens" else len(head) + len(tail)
        return max(1, self.total - shown)

    def _assembled(self, head: str, tail: str, removed: int, detail: int) -> str:
        marker = f"…{removed} {self.unit} truncated…"
        if detail == 0:
            return f"{head}{marker}{tail}"
        middle = self.text[len(head) : len(self.text) - len(tail)]
        reference = self._reference(middle, detail, "" if tail else f", offset={len(head)}")
        end = f"{tail}\n{reference}" if tail else reference
        return f"{TOTAL_LINES_PREFIX}{self.lines}\n{head}\n{marker}\n{end}"

    def _reference(self, left_out: str, detail: int, offset: str) -> str:
        span = self.place.span
        where = f"{self.place.path} bytes {span.start}-{span.end}"
        if self.message.id is None:
            call = f'read_history(session="{self.place.session}", start={span.start}, end={span.end})'
            whole = "All of it"
        else:
            call = f"read_history(message_id={self.message.id}{offset})"
            whole = f"The rest is in message {self.message.id}" if offset else f"All of it is message {self.message.id}"
        if detail == 1:
            return f"{SHORTENED_PREFIX}{whole}: {call}]"
        preview = " ".join(left_out[: 4 * _PREVIEW_CHARS].split())[:_PREVIEW_CHARS]
        return f'{SHORTENED_PREFIX}{whole}, in {where}: {call}. What is left out begins: "{preview}"]'


def _prefix(text: str, room: int, measure: MeasureText) -> str:
    """Return about the longest prefix of size at most `room`."""
    return text[: _boundary(text, _longest(text, room, measure, from_end=False), step=-1)]


def _suffix(text: str, room: int, measure: MeasureText) -> str:
    """Return about the longest suffix of size at most `room`."""
    length = _longest(text, room, measure, from_end=True)
    return text[_boundary(text, len(text) - length, step=1) :]


def _longest(text: str, room: int, measure: MeasureText, *, from_end: bool) -> int:
    """Return how many characters from one end fit into `room`, extrapolated from density and corrected by measuring;
    examines only a few times the result, however long the text is."""
    if room <= 0 or not text:
        return 0

    def measured(size: int) -> int:
        return measure(text[len(text) - size :] if from_end else text[:size])

    fits, size = 0, min(len(text), room * 4)
    least_too_long = len(text) + 1
    for _ in range(12):
        used = measured(size)
        if used <= room:
            fits = max(fits, size)
            if size == len(text) or used >= room * 0.97:
                break
            size = min(len(text), least_too_long - 1, max(size + 1, int(size * room / max(1, used))))
        else:
            least_too_long = min(least_too_long, size)
            size = max(fits, min(size - 1, int(size * room / used)))
        if size <= fits:
            break
    return fits


def _boundary(text: str, at: int, *, step: int) -> int:
    """Return the nearest valid cut position from `at` in the direction of `step`."""
    for _ in range(_LONGEST_CLUSTER):
        if not 0 < at < len(text) or not _holds_together(text[at - 1], text[at]):
            break
        at += step
    return at


def _holds_together(before: str, after: str) -> bool:
    if after in _JOINERS or before == "\u200d" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if "\udc00" <= after <= "\udfff":
        return "\ud800" <= before <= "\udbff"
    return after > "\u02ff" and unicodedata.category(after) in ("Mn", "Mc", "Me")


# ----------------------------------------------------------------------------------------------------- tool results

_WORD = lazy_regex(r"(?<!\w)[^\W\d_][\w'’-]{3,30}(?!\w)")
_CHARACTERS_READ = 4_000
_EXCERPT_LENGTH = 24
_CANDIDATES = 40
# Common words that do not characterise a text.
_COMMON_WORDS = """
about above after again against also been before being below between both cannot could does doing down during each else
every from further have having here into itself just like line lines made make many more most much must name none null
only other over same shall should since some such than that their them then there these they this those through true
false type under until value very want were what when where which while will with within without would your yours
aber auch dass dies dieser doch eine einem einen einer haben kann mehr nach nicht noch oder schon sein sich sind über
unter wenn wird dans avec cette être leur mais pour plus sont tout como esta este para pero porque sobre todo ikke eller
hvis også skal være noen dette https http
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def topic_words(text: str, limit: int = 5) -> tuple[str, ...]:
    """Return the most frequent significant words in order of occurrence, or the first characters of a text without such
    words (scripts without spaces). Only the first 4,000 characters are examined."""
    start = text[:_CHARACTERS_READ]
    folded = start.lower()
    counted = Counter(_WORD.findall(folded))
    telling = [word for word, _ in counted.most_common(_CANDIDATES) if word not in _COMMON]
    if len(telling) < 2:
        first = " ".join(start.split())[:_EXCERPT_LENGTH]
        return (first,) if first else ()
    best = sorted(telling, key=lambda word: (-counted[word], -len(word)))[:limit]
    # Lower case may differ in length in a few scripts; then it is shown in lower case.
    spelled = start if len(start) == len(folded) else folded
    places = sorted((folded.find(word), len(word)) for word in best)
    return tuple(spelled[place : place + length] for place, length in places)


ARCHIVED_PREFIX = "[TOOL OUTPUT ARCHIVED"
_CALL_LENGTH = 80


def mask_tool_result(
    message: Message,
    call: ToolCall | None,
    place: LogLocation,
    tokens: int,
    *,
    repeats: int = 1,
    latest: int | None = None,
) -> Message:
    """Return a one-line replacement for a tool result of `tokens` tokens. `repeats` counts the same call in the view,
    `latest` is the message with its newest result, if another one."""
    when = f", {message.ts:%Y-%m-%d %H:%M}" if message.ts else ""
    topics = topic_words(quoted_words(original_words(message)))
    about = f"; about: {', '.join(topics)}" if topics else ""
    repetition = ""
    if repeats > 1:
        newest = "do not repeat it, read this." if latest is None else f"its newest result is message {latest}."
        repetition = f" The same call was made {repeats} times; {newest}"
    span = place.span
    content = (
        f"{ARCHIVED_PREFIX}: {_describe_call(message, call)}{when}, about {tokens} tokens{about}. All of it: "
        f"read_history(message_id={message.id}), {place.path} bytes {span.start}-{span.end}.{repetition}]"
    )
    return message.with_content(content, archived=True)


def call_signature(call: ToolCall) -> str:
    """Return a key that is equal for equivalent calls."""
    return f"{call.name}({json.dumps(dict(call.arguments), sort_keys=True, ensure_ascii=False, default=str)})"


def calls_by_id(messages: list[Message]) -> Mapping[str, ToolCall]:
    return {call.id: call for message in messages for call in message.tool_calls}


def _describe_call(message: Message, call: ToolCall | None) -> str:
    if call is None:
        return message.name or "a tool"
    shown = ", ".join(f"{key}={_short(value)}" for key, value in call.arguments.items())
    return f"{call.name}({shorten(shown, _CALL_LENGTH)})"


def _short(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, default=str), _CALL_LENGTH)
