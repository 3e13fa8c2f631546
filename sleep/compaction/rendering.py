"""The one summary row of a view: a section for each live checkpoint, oldest first. Pure.

Rendered anew whenever the checkpoints change, from what they hold and never from an earlier rendering, so that no text
is ever a copy of a copy. Checkpoints that have no summary (their messages left because nothing else would do) share a
line that says where their messages stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assistant.context.pressure import Counter
from assistant.core.checkpoints import Checkpoint
from assistant.core.messages import SUMMARY_MARKER, Message
from sleep.compaction.policy import WITHOUT_SUMMARY
from sleep.compaction.record import TIER, Range, dates, record_text, spans

RECORD_TIERS = WITHOUT_SUMMARY | {TIER}
# What the heading of a section and the closing line cost, about, in tokens.
SECTION_TOKENS = 40
CLOSING_TOKENS = 60

_CLOSING = (
    "What these leave out is kept word for word: search_history finds it by its words, read_history(message_id=N) "
    "reads a message with its neighbours."
)


@dataclass(frozen=True, slots=True)
class Section:
    """What one checkpoint puts into the summary: its range, how many messages that was, in how many tokens, from which
    day to which, where the log has them, and what it says of them ("" for a mere record)."""

    from_id: int
    to_id: int
    count: int
    tokens: int
    since: str
    until: str
    ranges: tuple[Range, ...]
    text: str
    tier: str


def section_of(checkpoint: Checkpoint) -> Section:
    facts = checkpoint.key_facts
    text = "" if checkpoint.tier in RECORD_TIERS else checkpoint.summary
    return Section(
        checkpoint.from_message_id, checkpoint.to_message_id, checkpoint.messages_compressed,
        checkpoint.original_tokens, facts.get("since", ""), facts.get("until", ""),
        tuple((path, low, high) for path, low, high in facts.get("byte_ranges", ())), text, checkpoint.tier,
    )  # fmt: skip


def sections_of(checkpoints: Sequence[Checkpoint]) -> list[Section]:
    return [section_of(one) for one in sorted(checkpoints, key=lambda one: one.from_message_id)]


def summary_row(sections: Sequence[Section], counter: Counter, now: datetime) -> Message:
    """The system message that stands for everything that left the view. `sections` are in the order of their ranges."""
    told = [_rendered(section) for section in _records_joined(sections)]
    content = "\n\n".join([SUMMARY_MARKER, *told, _CLOSING])
    metadata: dict[str, Any] = {
        "type": "compaction",
        "tier": next((one.tier for one in reversed(sections) if one.text), TIER),
        "compacted_count": sum(section.count for section in sections),
        "compacted_at": now.isoformat(),
        "original_token_count": sum(section.tokens for section in sections),
        "summary_token_count": counter.count_text(content),
        "from_message_id": sections[0].from_id,
        "to_message_id": sections[-1].to_id,
        "byte_ranges": [list(span) for span in spans(span for section in sections for span in section.ranges)],
    }
    return Message("system", content, ts=now, metadata=metadata)


def sections_tokens(sections: Iterable[Section], counter: Counter) -> int:
    """About what these sections take in the row."""
    return sum(counter.count_text(section.text) + SECTION_TOKENS for section in sections)


def _rendered(section: Section) -> str:
    if not section.text:
        return record_text(
            section.count, section.from_id, section.to_id, section.since, section.until, section.ranges
        )  # fmt: skip
    return (
        f"## Messages #{section.from_id} to #{section.to_id}{dates(section.since, section.until)}, "
        f"{section.count} of them\n{section.text}"
    )


def _records_joined(sections: Sequence[Section]) -> list[Section]:
    """Neighbouring records are told as one."""
    joined: list[Section] = []
    for section in sections:
        if joined and not section.text and not joined[-1].text:
            joined[-1] = together(joined[-1], section, "")
        else:
            joined.append(section)
    return joined


def together(first: Section, second: Section, text: str) -> Section:
    """Two neighbouring sections as one that says `text`."""
    return Section(
        first.from_id, second.to_id, first.count + second.count, first.tokens + second.tokens,
        first.since or second.since, second.until or first.until, spans([*first.ranges, *second.ranges]), text,
        second.tier,
    )  # fmt: skip
