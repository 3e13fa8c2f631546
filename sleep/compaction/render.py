"""Renders what replaces removed messages: the summary row, and position records. Pure.

The summary row has a section per live checkpoint, oldest first. It is rendered from the checkpoints whenever they
change, never from an earlier rendering. Checkpoints without a summary share a line with the messages' locations;
records of repeated fallbacks are merged, while summaries keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from assistant.context.tokens import TokenCounter
from assistant.core.checkpoints import REFERENCE_TIER, Checkpoint
from assistant.core.dataclass import dataclass
from assistant.core.messages import SUMMARY_MARKER, Message
from assistant.core.records import LogLocation
from assistant.core.text import pluralize
from sleep.compaction.values import STRATEGIES_WITHOUT_SUMMARY, Summary

FALLBACK_TIER = "floor"
# Approximate tokens of a record.
RECORD_TOKENS = 120


ByteRange = tuple[str, int, int]
"""A log file's path relative to the home, and its bytes [start, end)."""


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """Messages removed from the view."""

    rows: tuple[Message, ...]  # as in the view, oldest first, each with an id, in local time
    tokens: int  # of the rows
    places: Mapping[int, LogLocation]  # log locations by id

    def as_section(self, text: str = "", tier: str = FALLBACK_TIER) -> SummarySection:
        """Return the summary section of a checkpoint of these rows with this text."""
        since, until = (row.ts.date().isoformat() if row.ts else "" for row in (self.rows[0], self.rows[-1]))
        places = [self.places[row.id] for row in self.rows if row.id is not None and row.id in self.places]
        ranges = merge_byte_ranges((place.path, place.span.start, place.span.end) for place in places)
        first, last = self.rows[0].id or 0, self.rows[-1].id or 0
        return SummarySection(first, last, len(self.rows), self.tokens, since, until, ranges, text, tier)

    @property
    def key_facts(self) -> dict[str, Any]:
        """The facts a checkpoint stores about them."""
        section = self.as_section()
        ranges = [list(span) for span in section.ranges]
        return {"since": section.since, "until": section.until, "byte_ranges": ranges}


def is_position_record(message: Message) -> bool:
    """Return whether a summary only records locations."""
    return message.is_summary and message.metadata.get("tier") == FALLBACK_TIER


def append_position_record(
    earlier: Sequence[Message], removed: RemovedRows, counter: TokenCounter, now: datetime
) -> tuple[Message, ...]:
    """Return the summaries of the new view: the earlier ones, then a record of the locations of messages removed now
    and of those in a preceding record, with which it is merged."""
    section = removed.as_section()
    if earlier and is_position_record(earlier[-1]):
        section = join_sections(_section_of_record(earlier[-1]), section, "")
        earlier = earlier[:-1]
    content = f"{SUMMARY_MARKER}\n{render_position_record(section)}"
    metadata = _metadata([section], content, counter, now)
    return (*earlier, Message("system", content, ts=now, metadata={**metadata, "since": section.since}))


def _section_of_record(record: Message) -> SummarySection:
    facts = record.metadata
    ranges = tuple((path, low, high) for path, low, high in facts.get("byte_ranges", ()))
    first, last = facts.get("from_message_id", 0), facts.get("to_message_id", 0)
    count, tokens = facts.get("compacted_count", 0), facts.get("original_token_count", 0)
    return SummarySection(first, last, count, tokens, facts.get("since", ""), "", ranges, "", FALLBACK_TIER)


def _metadata(sections: Sequence[SummarySection], content: str, counter: TokenCounter, now: datetime) -> dict[str, Any]:
    return {
        "type": "compaction",
        "tier": next((section.tier for section in reversed(sections) if section.text), FALLBACK_TIER),
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


def render_position_record(section: SummarySection) -> str:
    """Describe how many messages were removed, which, when, and how to read them; not their content."""
    where = ", ".join(f"{path} bytes {low}-{high}" for path, low, high in section.ranges)
    count = pluralize(section.count, "earlier message")
    return (
        f"{count}, #{section.from_id} to #{section.to_id}{section.days}, left the view without a summary because the "
        f"context was full. They are kept whole{f' in {where}' if where else ''}: search_history finds them by their "
        f"words, read_history(message_id={section.from_id}) reads one with its neighbours."
    )


def merge_byte_ranges(ranges: Iterable[ByteRange]) -> tuple[ByteRange, ...]:
    """Merge ranges to one (path, start, end) per log file; a session's records are contiguous."""
    by_path: dict[str, tuple[int, int]] = {}
    for path, low, high in ranges:
        start, end = by_path.get(path, (low, high))
        by_path[path] = (min(start, low), max(end, high))
    return tuple((path, low, high) for path, (low, high) in by_path.items())


RECORD_TIERS = STRATEGIES_WITHOUT_SUMMARY | {FALLBACK_TIER, REFERENCE_TIER}
# Approximate tokens of a section's heading and of the closing line.
SECTION_TOKENS = 40
CLOSING_TOKENS = 60

_CLOSING = (
    "What these leave out is kept word for word: search_history finds it by its words, read_history(message_id=N) "
    "reads a message with its neighbours."
)


@dataclass(frozen=True, slots=True)
class SummarySection:
    """A checkpoint's section of the summary."""

    from_id: int
    to_id: int
    count: int  # number of messages
    tokens: int  # of the messages
    since: str  # date of the first message; "" if unknown
    until: str  # date of the last message
    ranges: tuple[ByteRange, ...]  # locations in the log
    text: str  # summary text; "" for a record
    tier: str

    @property
    def days(self) -> str:
        """ " (2026-03-04 to 2026-03-09)"; "" where they are not known."""
        if not self.since:
            return ""
        return f" ({self.since})" if self.since == self.until else f" ({self.since} to {self.until})"


def make_section(checkpoint: Checkpoint) -> SummarySection:
    """Return what the view says about a checkpoint. One of a tier without a summary has no text."""
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
    """Return the sections in the order of their messages."""
    return [make_section(checkpoint) for checkpoint in sorted(checkpoints, key=lambda each: each.from_seq)]


def render_summary_row(sections: Sequence[SummarySection], counter: TokenCounter, now: datetime) -> Message:
    """Return the system message that replaces everything removed. `sections` are ordered by range."""
    parts = [_rendered(section) for section in _records_joined(sections)]
    content = "\n\n".join([SUMMARY_MARKER, *parts, _CLOSING])
    return Message("system", content, ts=now, metadata=_metadata(sections, content, counter, now))


def count_section_tokens(sections: Iterable[SummarySection], counter: TokenCounter) -> int:
    """Return the approximate tokens of the sections in the summary row."""
    return sum(counter.count_text(section.text) + SECTION_TOKENS for section in sections)


def _rendered(section: SummarySection) -> str:
    if not section.text:
        return render_position_record(section)
    return f"## Messages #{section.from_id} to #{section.to_id}{section.days}, {section.count} of them\n{section.text}"


def _records_joined(sections: Sequence[SummarySection]) -> list[SummarySection]:
    """Merge adjacent records."""
    joined: list[SummarySection] = []
    for section in sections:
        if joined and not section.text and not joined[-1].text:
            joined[-1] = join_sections(joined[-1], section, "")
        else:
            joined.append(section)
    return joined


def join_sections(first: SummarySection, second: SummarySection, text: str) -> SummarySection:
    """Merge two adjacent sections to one with `text`."""
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
    """Return what a checkpoint stores of a summary besides its text."""
    facts: dict[str, Any] = {kind: list(values) for kind, values in summary.key_facts.items()}
    lines = {"memories": summary.memories, "restored": summary.restored, "failures": summary.failures}
    return facts | {name: list(values) for name, values in lines.items() if values}
