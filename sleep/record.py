"""What takes the place of messages that left the view without a summary: a record of where they stand, and copies of
what must stay in view.

However often the floor is reached, one record after another is merged into one; summaries that tell what was said stay
as they are, in their order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from assistant.context.pressure import Counter
from assistant.messages import SUMMARY_MARKER, Message, ToolCall
from assistant.records import LogPlace

TIER = "floor"
# What a record costs, about.
RECORD_TOKENS = 120


@dataclass(frozen=True, slots=True)
class Gone:
    """The messages that leave: `rows` as they stood in the view, oldest first, each with an id; `tokens` of them."""

    rows: tuple[Message, ...]
    tokens: int
    places: Mapping[int, LogPlace]


def is_record(message: Message) -> bool:
    """Whether this summary only says where messages stand."""
    return message.is_summary and message.metadata.get("tier") == TIER


def summaries_of(earlier: Sequence[Message], gone: Gone, counter: Counter, now: datetime) -> tuple[Message, ...]:
    """The summaries of the new view: the earlier ones, and the record of what leaves now as the last one."""
    if earlier and is_record(earlier[-1]):
        return (*earlier[:-1], _record(gone, counter, now, earlier[-1].metadata))
    return (*earlier, _record(gone, counter, now, {}))


def _record(gone: Gone, counter: Counter, now: datetime, earlier: Mapping[str, Any]) -> Message:
    """One system message in the form of a summary, of the messages in `gone` and those that an earlier record (its
    metadata) named. It says how many, which, when, and how to read them; it does not say what was said."""
    first, last = gone.rows[0], gone.rows[-1]
    count = earlier.get("compacted_count", 0) + len(gone.rows)
    start = earlier.get("from_message_id", first.id)
    since = earlier.get("since") or _day(first)
    ranges = _ranges(gone, earlier.get("byte_ranges", ()))
    where = ", ".join(f"{path} bytes {low}-{high}" for path, low, high in ranges)
    content = (
        f"{SUMMARY_MARKER}\n{count} earlier messages, #{start} to #{last.id}{_dates(since, _day(last))}, left the view "
        f"without a summary because the context was full. They are kept whole{f' in {where}' if where else ''}: "
        f"search_history finds them by their words, read_history(message_id={start}) reads one with its neighbours."
    )
    return Message(
        "system",
        content,
        ts=now,
        metadata={
            "type": "compaction",
            "tier": TIER,
            "compacted_count": count,
            "compacted_at": now.isoformat(),
            "original_token_count": earlier.get("original_token_count", 0) + gone.tokens,
            "summary_token_count": counter.count_text(content),
            "from_message_id": start,
            "to_message_id": last.id,
            "since": since,
            "byte_ranges": ranges,
        },
    )


def _day(message: Message) -> str:
    return message.ts.date().isoformat() if message.ts else ""


def _dates(since: str, until: str) -> str:
    if not since:
        return ""
    return f" ({since})" if since == until else f" ({since} to {until})"


def _ranges(gone: Gone, earlier: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """[path, start, end] in bytes, one a log file: a session's records stand one behind the other."""
    spans: dict[str, tuple[int, int]] = {path: (low, high) for path, low, high in earlier}
    for row in gone.rows:
        place = gone.places.get(row.id) if row.id is not None else None
        if place is not None:
            low, high = spans.get(place.path, (place.span.start, place.span.end))
            spans[place.path] = (min(low, place.span.start), max(high, place.span.end))
    return [[path, low, high] for path, (low, high) in spans.items()]


def carried(
    rows: Sequence[Message], cut: int, starts: Sequence[int], protected: frozenset[str], now: datetime
) -> tuple[Message, ...]:
    """Copies of the last result of each protected tool, with its call, where it stands before `cut`. `starts` are the
    indexes at which a block of `rows` starts."""
    last = {row.name: index for index, row in enumerate(rows) if row.role == "tool" and row.name in protected}
    wanted = sorted(index for index in last.values() if index < cut)
    copies: list[Message] = []
    for index in wanted:
        asked = starts[bisect_right(starts, index) - 1]
        call = next((call for call in rows[asked].tool_calls if call.id == rows[index].tool_call_id), None)
        if call is not None:
            copies += [_call_copy(rows[asked], call, now), _copy(rows[index], now)]
    return tuple(copies)


def _call_copy(message: Message, call: ToolCall, now: datetime) -> Message:
    return replace(_copy(message, now), content="", tool_calls=(call,), thinking=())


def _copy(message: Message, now: datetime) -> Message:
    """The message outside of coverage (I3); a copy of a copy is one of the same original."""
    origin = message.metadata.get("carried_from", message.id)
    return replace(message, id=None, ts=message.ts or now, metadata={**message.metadata, "carried_from": origin})
