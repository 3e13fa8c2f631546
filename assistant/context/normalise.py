"""From the view as stored to messages that every provider accepts; runs before every model call (I5).

What a view holds can be broken: a crash between call and result, an undone message, a cut made by an older version.
One message that a provider refuses would be refused for ever, so what is sent never depends on the view being whole:

- every tool call has exactly one result, right behind it; a missing one is given as `aborted`; results without a call
  and second results are left out;
- internal rows, rows that appear twice, and copies of what is there in the original are left out;
- what a person said long ago, kept by a compaction, is marked as history (F18);
- notes of the runtime (role system) are given as labelled text in the next user message, never as instructions;
- in a room, each message says who speaks;
- no message is without words; NUL and lone surrogates are gone; nobody's text can forge one of our boundaries;
- a user message comes first, and a user message or a tool result last;
- thinking is in the open tool loop only, verbatim;
- pictures beyond the budget keep their name and lose their data, oldest first.

The order of what was said is never changed, neighbours are not merged (the forms do that), and a row that needs no
change is passed on as the same object.
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
    """What one request may carry. None: no bound."""

    images: int | None = None  # number of pictures
    bytes: int | None = None  # of words and pictures together


_NO_MEDIA_LIMITS = MediaLimits()


def normalise(messages: Sequence[Message], limits: MediaLimits = _NO_MEDIA_LIMITS) -> tuple[Message, ...]:
    """The messages of a request. Pure, total: any sequence gives a well-formed one, the same for the same input."""
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
    """Each call with one result right behind it, in the order of the calls."""
    results = _results(messages)
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        yield message
        if message.role == "assistant":
            for place, call in enumerate(message.tool_calls):
                yield results.get((index, place)) or _aborted(call)


def _results(messages: Sequence[Message]) -> dict[tuple[int, int], Message]:
    """(index of the assistant message, place of the call in it) -> its first result. An id that a provider gives out
    again belongs to the latest message that used it."""
    waiting: dict[str, list[tuple[int, int]]] = {}
    results: dict[tuple[int, int], Message] = {}
    for index, message in enumerate(messages):
        if message.role == "assistant":
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
    """Every row with words in it that can be sent; notes folded into the user message that follows them. Words that an
    earlier compaction kept stand between two notes that say so (F18)."""
    notes: list[str] = []
    within_retained = False
    words_by_id: dict[int, str] = {}
    for message in messages:
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


def _worded(message: Message) -> Message | None:
    """The row with text that can be sent; None for an assistant message that says and calls nothing."""
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
    cleaned = tuple(ToolCall(call.id, call.name, replace_unsendable_in_json(call.arguments)) for call in calls)
    return calls if cleaned == calls else cleaned


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
    """Newest pictures first, as many as fit; the others are named only."""
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
