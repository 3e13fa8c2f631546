"""Long texts as the model sees them: both their ends, what was left out counted, and how to read it back; and a tool
result that is represented by one line. Pure.

The message log keeps every message whole. A view holds at most what the policy allows of a tool result, cut once, when
it is written; a message that turns out too large later is shown by reference in the same way.

What always holds: the result is never longer than the limit, in the unit of the limit; a cut never falls inside a
surrogate pair or between a letter and the marks that belong to it; the same message gives the same result. The one line
is short enough to be cheap and says enough for the model to know whether it has to look: asking again for what it knows
it has is how assistants go in circles after a compaction (F03).
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
from assistant.core.messages import Message, ToolCall
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
    """How tool output is cut when it is written."""

    kind: Literal["tokens", "bytes", "none"]  # unit of `limit`; "none" leaves output whole
    limit: int
    allowance: float = 1.2  # for what JSON adds when it is sent: the limit is multiplied by it
    split: float = 0.5  # share of what is kept that is taken from the start; the rest is from the end

    @property
    def allowed(self) -> int:
        return int(self.limit * self.allowance)


def truncate_for_view(message: Message, place: LogLocation, policy: TruncationPolicy, count: MeasureText) -> Message:
    """The message as it enters the working context: a long tool result cut by the policy, anything else as it is.
    `count` gives the tokens of a text."""
    if message.role != "tool" or policy.kind == "none":
        return message
    if policy.kind == "bytes":
        return _shortened(message, place, policy.allowed, "chars", policy.split, utf8_length)
    return _shortened(message, place, policy.allowed, "tokens", policy.split, count)


def truncate_to_reference(message: Message, place: LogLocation, keep_tokens: int, count: MeasureText) -> Message:
    """A message too large for the context, shown with both its ends in `keep_tokens`. Thinking goes with the rest: it
    is signed for the whole text. The message itself where its words fit already."""
    shortened = _shortened(message, place, keep_tokens, "tokens", 0.5, count)
    return shortened if shortened is message else replace(shortened, thinking=())


def original_words(message: Message) -> str:
    """What was said: without the heading of a scheduled prompt, and of a message that was cut both its ends without the
    words of the cut, which nobody said."""
    if not message.metadata.get("truncated"):
        return strip_schedule_heading(message.content)
    return _MARKER.sub("\n", strip_schedule_heading(_undo_earlier_cut(message, "tokens")[0])).strip()


def without_image_data(message: Message) -> Message:
    """The message with its media named and no longer shown."""
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
    """The text without what an earlier cut wrote around it, the lines of the whole, and (about, where that cut was
    made by another unit) what it left out."""
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
    """One text being cut."""

    text: str
    lines: int
    total: int  # what the whole measures, in `unit`
    unit: LengthUnit
    message: Message
    place: LogLocation

    def fit(self, limit: int, split: float, measure: MeasureText) -> tuple[str, int]:
        """The cut text, within `limit`, and how much of the whole it leaves out."""
        for detail in (2, 1, 0):
            room = limit - measure(self._assembled("", "", self.total, detail))
            if detail == 2 and room < limit // 2:
                # Words of the text tell more than where exactly the rest is.
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
        """Not even the marker fits beside some text: the marker, or the first characters."""
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
        return f"{TOTAL_LINES_PREFIX}{self.lines}\n{head}\n{marker}\n{tail}\n{self._reference(middle, detail)}"

    def _reference(self, left_out: str, detail: int) -> str:
        span = self.place.span
        where = f"{self.place.path} bytes {span.start}-{span.end}"
        if self.message.id is None:
            call = f'read_history(session="{self.place.session}", start={span.start}, end={span.end})'
            whole = "All of it"
        else:
            call, whole = f"read_history(message_id={self.message.id})", f"All of it is message {self.message.id}"
        if detail == 1:
            return f"{SHORTENED_PREFIX}{whole}: {call}]"
        preview = " ".join(left_out[: 4 * _PREVIEW_CHARS].split())[:_PREVIEW_CHARS]
        return f'{SHORTENED_PREFIX}{whole}, in {where}: {call}. What is left out begins: "{preview}"]'


def _prefix(text: str, room: int, measure: MeasureText) -> str:
    """About the longest start of `text` that measures at most `room`."""
    return text[: _boundary(text, _longest(text, room, measure, from_end=False), step=-1)]


def _suffix(text: str, room: int, measure: MeasureText) -> str:
    """About the longest end of `text` that measures at most `room`."""
    length = _longest(text, room, measure, from_end=True)
    return text[_boundary(text, len(text) - length, step=1) :]


def _longest(text: str, room: int, measure: MeasureText, *, from_end: bool) -> int:
    """How many characters from that end fit into `room`: guessed from the density, and corrected by measuring. Looks
    at a few times the answer only, however long the text is."""
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
    """The nearest place from `at` on, in the direction of `step`, at which the text may be cut."""
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
# Words that every text has say nothing of this one.
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
    """The words that stand in it most often and mean something, in the order in which they come; the first characters
    of a text in a script without spaces. The first 4,000 characters are looked at."""
    start = text[:_CHARACTERS_READ]
    folded = start.lower()
    counted = Counter(_WORD.findall(folded))
    telling = [word for word, _ in counted.most_common(_CANDIDATES) if word not in _COMMON]
    if len(telling) < 2:
        first = " ".join(start.split())[:_EXCERPT_LENGTH]
        return (first,) if first else ()
    best = sorted(telling, key=lambda word: (-counted[word], -len(word)))[:limit]
    # Lower case has as many characters in nearly all scripts; where it has not, it is shown as it is.
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
    """The tool result `message` (of `call`, which took `tokens`) by reference. `repeats` is how often the same call
    is in view, `latest` the message with its newest result, where that is another one."""
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
    """The same for calls that ask for the same thing."""
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
