"""What takes the place of messages that left the view: the one summary row, and records of where messages are stored.
Pure.

The summary row has a section for each live checkpoint, oldest first. It is rendered anew whenever the checkpoints
change, from what they hold and never from an earlier rendering, so that no text is a copy of a copy. Checkpoints
without a summary (their messages left because nothing else would do) share a line that says where their messages are
stored. However often the fallback runs, its records are merged into one; summaries that tell what was said stay as
they are, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assistant.context.tokens import TokenCounter
from assistant.core.checkpoints import Checkpoint
from assistant.core.messages import SUMMARY_MARKER, Message
from assistant.core.records import LogLocation
from assistant.core.text import pluralize
from sleep.compaction.values import STRATEGIES_WITHOUT_SUMMARY, Summary

FALLBACK_TIER = "floor"
# What a record costs, about.
RECORD_TOKENS = 120


ByteRange = tuple[str, int, int]
"""A log file's path relative to the home, and bytes [start, end) of it."""


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """The messages that leave the view."""

    rows: tuple[Message, ...]  # as they were in the view, oldest first, each with an id, by the home's clock
    tokens: int  # of the rows
    places: Mapping[int, LogLocation]  # where the log has them, by id

    @property
    def first_day(self) -> str:
        """The day of the first one; "" where it is not known."""
        return _day(self.rows[0])

    @property
    def last_day(self) -> str:
        return _day(self.rows[-1])

    @property
    def byte_ranges(self) -> tuple[ByteRange, ...]:
        """Where the log has them, from the stored index."""
        found = [self.places[row.id] for row in self.rows if row.id is not None and row.id in self.places]
        return merge_byte_ranges((place.path, place.span.start, place.span.end) for place in found)

    @property
    def key_facts(self) -> dict[str, Any]:
        """What a checkpoint keeps of them."""
        return {
            "since": self.first_day,
            "until": self.last_day,
            "byte_ranges": [list(span) for span in self.byte_ranges],
        }


def _day(message: Message) -> str:
    return message.ts.date().isoformat() if message.ts else ""


def is_position_record(message: Message) -> bool:
    """Whether this summary only says where messages stand."""
    return message.is_summary and message.metadata.get("tier") == FALLBACK_TIER


def append_position_record(
    earlier: Sequence[Message], gone: RemovedRows, counter: TokenCounter, now: datetime
) -> tuple[Message, ...]:
    """The summaries of the new view: the earlier ones, and the record of what leaves now as the last one."""
    if earlier and is_position_record(earlier[-1]):
        return (*earlier[:-1], _record(gone, counter, now, earlier[-1].metadata))
    return (*earlier, _record(gone, counter, now, {}))


def _record(gone: RemovedRows, counter: TokenCounter, now: datetime, earlier: Mapping[str, Any]) -> Message:
    """One system message in the form of a summary, of the messages in `gone` and those that an earlier record (its
    metadata) named."""
    first, last = gone.rows[0].id or 0, gone.rows[-1].id or 0
    count = earlier.get("compacted_count", 0) + len(gone.rows)
    start = earlier.get("from_message_id", first)
    since = earlier.get("since") or gone.first_day
    ranges = merge_byte_ranges([*(tuple(span) for span in earlier.get("byte_ranges", ())), *gone.byte_ranges])
    content = f"{SUMMARY_MARKER}\n{render_position_record(count, start, last, since, gone.last_day, ranges)}"
    return Message(
        "system",
        content,
        ts=now,
        metadata={
            "type": "compaction",
            "tier": FALLBACK_TIER,
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


def render_position_record(
    count: int, start: int, last: int, since: str, until: str, ranges: Iterable[ByteRange]
) -> str:
    """How many messages left, which, when, and how to read them; it does not say what was said."""
    where = ", ".join(f"{path} bytes {low}-{high}" for path, low, high in ranges)
    return (
        f"{pluralize(count, 'earlier message')}, #{start} to #{last}{format_date_range(since, until)}, left the view "
        f"without a summary because the context was full. They are kept whole{f' in {where}' if where else ''}: "
        f"search_history finds them by their words, read_history(message_id={start}) reads one with its neighbours."
    )


def format_date_range(since: str, until: str) -> str:
    """ " (2026-03-04 to 2026-03-09)"; "" where the days are not known."""
    if not since:
        return ""
    return f" ({since})" if since == until else f" ({since} to {until})"


def merge_byte_ranges(ranges: Iterable[ByteRange]) -> tuple[ByteRange, ...]:
    """(path, start, end) in bytes, one a log file: a session's records stand one behind the other."""
    known: dict[str, tuple[int, int]] = {}
    for path, low, high in ranges:
        start, end = known.get(path, (low, high))
        known[path] = (min(start, low), max(end, high))
    return tuple((path, low, high) for path, (low, high) in known.items())


RECORD_TIERS = STRATEGIES_WITHOUT_SUMMARY | {FALLBACK_TIER}
# What the heading of a section and the closing line cost, about, in tokens.
SECTION_TOKENS = 40
CLOSING_TOKENS = 60

_CLOSING = (
    "What these leave out is kept word for word: search_history finds it by its words, read_history(message_id=N) "
    "reads a message with its neighbours."
)


@dataclass(frozen=True, slots=True)
class SummarySection:
    """What one checkpoint puts into the summary: its range, how many messages that was, in how many tokens, from which
    day to which, where the log has them, and what it says of them ("" for a mere record)."""

    from_id: int
    to_id: int
    count: int
    tokens: int
    since: str
    until: str
    ranges: tuple[ByteRange, ...]
    text: str
    tier: str


def make_section(checkpoint: Checkpoint) -> SummarySection:
    facts = checkpoint.key_facts
    text = "" if checkpoint.tier in RECORD_TIERS else checkpoint.summary
    return SummarySection(
        checkpoint.from_message_id,
        checkpoint.to_message_id,
        checkpoint.messages_compressed,
        checkpoint.original_tokens,
        facts.get("since", ""),
        facts.get("until", ""),
        tuple((path, low, high) for path, low, high in facts.get("byte_ranges", ())),
        text,
        checkpoint.tier,
    )


def make_sections(checkpoints: Sequence[Checkpoint]) -> list[SummarySection]:
    return [make_section(one) for one in sorted(checkpoints, key=lambda one: one.from_message_id)]


def render_summary_row(sections: Sequence[SummarySection], counter: TokenCounter, now: datetime) -> Message:
    """The system message that stands for everything that left the view. `sections` are in the order of their ranges."""
    told = [_rendered(section) for section in _records_joined(sections)]
    content = "\n\n".join([SUMMARY_MARKER, *told, _CLOSING])
    metadata: dict[str, Any] = {
        "type": "compaction",
        "tier": next((one.tier for one in reversed(sections) if one.text), FALLBACK_TIER),
        "compacted_count": sum(section.count for section in sections),
        "compacted_at": now.isoformat(),
        "original_token_count": sum(section.tokens for section in sections),
        "summary_token_count": counter.count_text(content),
        "from_message_id": sections[0].from_id,
        "to_message_id": sections[-1].to_id,
        "byte_ranges": [
            list(span) for span in merge_byte_ranges(span for section in sections for span in section.ranges)
        ],
    }
    return Message("system", content, ts=now, metadata=metadata)


def count_section_tokens(sections: Iterable[SummarySection], counter: TokenCounter) -> int:
    """About what these sections take in the row."""
    return sum(counter.count_text(section.text) + SECTION_TOKENS for section in sections)


def _rendered(section: SummarySection) -> str:
    if not section.text:
        return render_position_record(
            section.count, section.from_id, section.to_id, section.since, section.until, section.ranges
        )
    return (
        f"## Messages #{section.from_id} to #{section.to_id}{format_date_range(section.since, section.until)}, "
        f"{section.count} of them\n{section.text}"
    )


def _records_joined(sections: Sequence[SummarySection]) -> list[SummarySection]:
    """Neighbouring records are told as one."""
    joined: list[SummarySection] = []
    for section in sections:
        if joined and not section.text and not joined[-1].text:
            joined[-1] = join_sections(joined[-1], section, "")
        else:
            joined.append(section)
    return joined


def join_sections(first: SummarySection, second: SummarySection, text: str) -> SummarySection:
    """Two neighbouring sections as one that says `text`."""
    return SummarySection(
        first.from_id,
        second.to_id,
        first.count + second.count,
        first.tokens + second.tokens,
        first.since or second.since,
        second.until or first.until,
        merge_byte_ranges([*first.ranges, *second.ranges]),
        text,
        second.tier,
    )


def checkpoint_facts(summary: Summary) -> dict[str, Any]:
    """What a checkpoint keeps of a summary beside its text."""
    facts: dict[str, Any] = {kind: list(values) for kind, values in summary.key_facts.items()}
    for name, lines in (
        ("memories", summary.memories),
        ("restored", summary.restored),
        ("failures", summary.failures),
    ):
        if lines:
            facts[name] = list(lines)
    return facts
