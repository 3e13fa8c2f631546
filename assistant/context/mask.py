"""A tool result that is represented in view by one line: what it was, when, what about (a few of its own words), and
where all of it is. Pure.

The line is short enough to be cheap and says enough for the model to know whether it has to look: asking again for what
it knows it has is how assistants go in circles after a compaction (F03).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from assistant.core.messages import Message, ToolCall
from assistant.core.records import LogLocation
from assistant.core.text import lazy_regex, shorten

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
    stands in view, `latest` the message with its newest result, where that is another one."""
    when = f", {message.ts:%Y-%m-%d %H:%M}" if message.ts else ""
    about = topic_words(message.content)
    words = f"; about: {', '.join(about)}" if about else ""
    repetition = f" The same call was made {repeats} times; " if repeats > 1 else ""
    if repetition:
        repetition += (
            f"its newest result is message {latest}." if latest is not None else "do not repeat it, read this."
        )
    span = place.span
    content = (
        f"{ARCHIVED_PREFIX}: {_describe_call(message, call)}{when}, about {tokens} tokens{words}. All of it: "
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
