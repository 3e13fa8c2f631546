"""What takes the place of messages that left the view without a summary: a record of where they stand, and copies of
what must stay in view.

However often the floor is reached, one record after another is merged into one; summaries that tell what was said stay
as they are, in their order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from assistant.context.pressure import Counter
from assistant.core.messages import SUMMARY_MARKER, Message, ToolCall
from assistant.core.records import LogLocation
from assistant.core.text import pluralize

TIER = "floor"
# What a record costs, about.
RECORD_TOKENS = 120


Range = tuple[str, int, int]
"""A log file's path relative to the home, and bytes [start, end) of it."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The messages that leave: `rows` as they stood in the view, oldest first, each with an id, by the clock of the
    home; `tokens` of them."""

    rows: tuple[Message, ...]
    tokens: int
    places: Mapping[int, LogLocation]

    @property
    def since(self) -> str:
        """The day of the first one; "" where it is not known."""
        return _day(self.rows[0])

    @property
    def until(self) -> str:
        return _day(self.rows[-1])

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Where the log has them, from the stored index."""
        found = [self.places[row.id] for row in self.rows if row.id is not None and row.id in self.places]
        return spans((place.path, place.span.start, place.span.end) for place in found)

    @property
    def facts(self) -> dict[str, Any]:
        """What a checkpoint keeps of them."""
        return {"since": self.since, "until": self.until, "byte_ranges": [list(span) for span in self.ranges]}


def _day(message: Message) -> str:
    return message.ts.date().isoformat() if message.ts else ""


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
    metadata) named."""
    first, last = gone.rows[0].id or 0, gone.rows[-1].id or 0
    count = earlier.get("compacted_count", 0) + len(gone.rows)
    start = earlier.get("from_message_id", first)
    since = earlier.get("since") or gone.since
    ranges = spans([*(tuple(span) for span in earlier.get("byte_ranges", ())), *gone.ranges])
    content = f"{SUMMARY_MARKER}\n{record_text(count, start, last, since, gone.until, ranges)}"
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
            "to_message_id": last,
            "since": since,
            "byte_ranges": [list(span) for span in ranges],
        },
    )


def record_text(count: int, start: int, last: int, since: str, until: str, ranges: Iterable[Range]) -> str:
    """How many messages left, which, when, and how to read them; it does not say what was said."""
    where = ", ".join(f"{path} bytes {low}-{high}" for path, low, high in ranges)
    return (
        f"{pluralize(count, 'earlier message')}, #{start} to #{last}{dates(since, until)}, left the view "
        f"without a summary because the context was full. They are kept whole{f' in {where}' if where else ''}: "
        f"search_history finds them by their words, read_history(message_id={start}) reads one with its neighbours."
    )


def dates(since: str, until: str) -> str:
    """ " (2026-03-04 to 2026-03-09)"; "" where the days are not known."""
    if not since:
        return ""
    return f" ({since})" if since == until else f" ({since} to {until})"


def spans(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """(path, start, end) in bytes, one a log file: a session's records stand one behind the other."""
    known: dict[str, tuple[int, int]] = {}
    for path, low, high in ranges:
        start, end = known.get(path, (low, high))
        known[path] = (min(start, low), max(end, high))
    return tuple((path, low, high) for path, (low, high) in known.items())


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
            copies += [_call_copy(rows[asked], call, now), copy_of(rows[index], now)]
    return tuple(copies)


def _call_copy(message: Message, call: ToolCall, now: datetime) -> Message:
    return replace(copy_of(message, now), content="", tool_calls=(call,), thinking=())


def copy_of(message: Message, now: datetime) -> Message:
    """The message outside of coverage (I3); a copy of a copy is one of the same original."""
    origin = message.metadata.get("carried_from", message.id)
    return replace(message, id=None, ts=message.ts or now, metadata={**message.metadata, "carried_from": origin})
