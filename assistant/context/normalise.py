"""Converts a stored view to messages that every provider accepts, before every model call (I5).

Views may be inconsistent: a crash between call and result, an undone message, a cut by an older version. A message that
a provider rejects would be rejected forever, so the output is always well-formed:
- every tool call has exactly one result, directly after it; missing ones become `aborted`, results without a call and
  duplicates are dropped;
- internal rows, duplicates, and copies whose original is present are dropped;
- old user messages kept by a compaction are marked as history (F18);
- runtime notes (role system) become labelled text in the next user message, never instructions;
- in a room, each message names its speaker;
- no message is empty; NUL and lone surrogates are removed; no text can forge our tags;
- a user message is first, and a user message or tool result is last;
- thinking is kept, verbatim, in the open tool loop only;
- pictures beyond the limit keep their name but lose their data, oldest first.

The order never changes, adjacent messages are not merged (the adapters do that), and unchanged messages are passed on
as the same object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from assistant.context.structure import describe_change, is_edit_or_deletion, is_retained_request, tool_loop_start
from assistant.core.dataclass import dataclass
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.quoting import (
    NOTE_TAG,
    escape_own_tags,
    is_sendable_json,
    quote_in_tag,
    quote_speaker,
    replace_unsendable,
    replace_unsendable_in_json,
)

ABORTED_RESULT = "aborted: this call was interrupted before it returned; whether it took effect is not known."
EMPTY_REQUEST = "(a message without text)"
NO_OUTPUT = "(no output)"
EARLIER_NOT_SHOWN = "What was said before this point is not shown."
NO_NEW_MESSAGE = "The user has said nothing since."
RETAINED_WORDS_START = (
    "Up to the next note: earlier messages of the user, kept word for word when what surrounded them was summarised. "
    "They are history, and were dealt with at the time unless they are listed as open; they ask for nothing now."
)
RETAINED_WORDS_END = "The conversation goes on here."


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """Limits of one request. None: unlimited."""

    images: int | None = None  # number of pictures
    bytes: int | None = None  # text and pictures together


_NO_MEDIA_LIMITS = MediaLimits()
_SPEAKERS = frozenset({"user", "assistant"})
_ONLY_TURN = frozenset({"turn"})


def normalise(messages: Sequence[Message], limits: MediaLimits = _NO_MEDIA_LIMITS) -> tuple[Message, ...]:
    """Return the messages of a request. Pure and total: any input gives a well-formed result."""
    rows = _spoken(_paired(_visible(messages)))
    return tuple(_within_media_limits(_thinking_in_loop(_framed(list(rows))), limits))


def _visible(messages: Sequence[Message]) -> list[Message]:
    present = {message.id for message in messages if message.id is not None}
    seen_ids: set[int] = set()
    rows: list[Message] = []
    for message in messages:
        if message.metadata and (message.metadata.get("internal") or message.metadata.get("carried_from") in present):
            continue
        if message.id is not None:
            if message.id in seen_ids:
                continue
            seen_ids.add(message.id)
        rows.append(message)
    return rows


def _paired(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield each call followed by its results, in call order."""
    results = _results(messages)
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        yield message
        if message.tool_calls and message.role == "assistant":
            for place, call in enumerate(message.tool_calls):
                yield results.get((index, place)) or _aborted(call)


def _results(messages: Sequence[Message]) -> dict[tuple[int, int], Message]:
    """Map (assistant message index, call position) to the call's first result. A reused id belongs to the latest
    message that used it."""
    waiting: dict[str, list[tuple[int, int]]] = {}
    results: dict[tuple[int, int], Message] = {}
    for index, message in enumerate(messages):
        if message.role == "assistant":
            if not message.tool_calls:
                continue
            for call in message.tool_calls:
                waiting[call.id] = []
            for place, call in enumerate(message.tool_calls):
                waiting[call.id].append((index, place))
        elif message.role == "tool" and (places := waiting.get(message.tool_call_id or "")):
            results[places.pop(0)] = message
    return results


def _aborted(call: ToolCall) -> Message:
    return Message("tool", ABORTED_RESULT, tool_call_id=call.id, name=call.name, metadata={"is_error": True})


def _spoken(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield all rows with sendable text; notes are merged into the following user message. User messages kept by a
    compaction are enclosed in notes (F18)."""
    notes: list[str] = []
    within_retained = False
    words_by_id: dict[int, str] = {}
    for message in messages:
        if not (notes or within_retained) and _is_plain(message):
            # Nearly all of a view, at each call.
            if message.role == "user":
                words_by_id[message.id or 0] = message.content
            yield message
            continue
        is_retained = is_retained_request(message)
        if is_retained != within_retained and message.role != "system":
            notes.append(quote_in_tag(NOTE_TAG, RETAINED_WORDS_START if is_retained else RETAINED_WORDS_END))
            within_retained = is_retained
        if message.role == "system":
            is_change = is_edit_or_deletion(message)
            text = describe_change(message, words_by_id) if is_change else message.content.strip()
            if text:
                notes.append(quote_in_tag(NOTE_TAG, replace_unsendable(text)))
            continue
        if message.role == "user":
            words_by_id[message.metadata.get("carried_from") or message.id or 0] = message.content
        row = _worded(message)
        if row is None:
            continue
        if notes and row.role == "user":
            row = replace(row, content="\n\n".join((*notes, row.content)))
            notes.clear()
        elif notes and row.role == "assistant":
            yield _note(notes)
            notes.clear()
        yield row
    if notes:
        yield _note(notes)


def _is_plain(message: Message) -> bool:
    """Return whether a message is known to be sent as it is: words of somebody that need no change, of which nothing is
    noted but their turn."""
    text = message.content
    if not message.metadata.keys() <= _ONLY_TURN or message.role not in _SPEAKERS:
        return False
    if message.name or message.tool_calls or not text or text.isspace():
        return False
    return replace_unsendable(text) is text and (message.role == "assistant" or "<" not in text)


def _worded(message: Message) -> Message | None:
    """Return the row with sendable text; None for an empty assistant message."""
    content = message.content
    blank = not content or content.isspace()
    if message.role == "assistant":
        if blank and not message.tool_calls:
            return None
        return _with(message, replace_unsendable(content), _safe_calls(message.tool_calls))
    if message.metadata.get("note") or (blank and message.media):
        return message
    if message.role != "user":
        text = NO_OUTPUT if blank else escape_own_tags(replace_unsendable(content))
    elif message.name:
        text = EMPTY_REQUEST if blank else replace_unsendable(content)
        return replace(message, content=quote_speaker(replace_unsendable(message.name), text), name=None)
    else:
        text = EMPTY_REQUEST if blank else escape_own_tags(replace_unsendable(content))
    return _with(message, text, message.tool_calls)


def _with(message: Message, content: str, calls: tuple[ToolCall, ...]) -> Message:
    if content is message.content and calls is message.tool_calls:
        return message
    return replace(message, content=content, tool_calls=calls)


def _safe_calls(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    if not calls:
        return calls
    # Most are: those of a whole conversation are looked at before each call of the model.
    if all(is_sendable_json(call.arguments) for call in calls):
        return calls
    return tuple(ToolCall(call.id, call.name, replace_unsendable_in_json(call.arguments)) for call in calls)


def _note(notes: list[str]) -> Message:
    return Message("user", "\n\n".join(notes), metadata={"note": True})


def _framed(rows: list[Message]) -> list[Message]:
    if not rows or rows[0].role != "user":
        rows.insert(0, _note([quote_in_tag(NOTE_TAG, EARLIER_NOT_SHOWN)]))
    if rows[-1].role == "assistant":
        rows.append(_note([quote_in_tag(NOTE_TAG, NO_NEW_MESSAGE)]))
    return rows


def _thinking_in_loop(rows: list[Message]) -> list[Message]:
    start = tool_loop_start(rows)
    return [
        replace(row, thinking=()) if row.thinking and (index < start or row.role != "assistant") else row
        for index, row in enumerate(rows)
    ]


def _within_media_limits(rows: list[Message], bounds: MediaLimits) -> list[Message]:
    """Keep as many pictures as fit, newest first; name the others."""
    if not any(row.media for row in rows):
        return rows
    images = len(rows) if bounds.images is None else bounds.images
    room = None if bounds.bytes is None else bounds.bytes - sum(len(row.content.encode()) for row in rows)
    shown: list[Message] = []
    for row in reversed(rows):
        media: list[Media] = []
        for medium in reversed(row.media):
            weight = len(medium.data or "")
            fits = (bounds.images is None or images > 0) and (room is None or weight <= room)
            if weight and fits:
                images -= medium.kind == "image"
                room = None if room is None else room - weight
            media.append(medium if fits or not weight else replace(medium, data=None))
        row_media = tuple(reversed(media))
        shown.append(row if row_media == row.media else replace(row, media=row_media))
    return shown[::-1]
