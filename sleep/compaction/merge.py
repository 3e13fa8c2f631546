"""Two neighbouring checkpoints become one, so that summaries stay few and none is a summary of a summary's summary.

What always holds: a merged checkpoint is made of the original messages where they fit one call (depth 1), else of the
summaries that were made of originals, however long ago and under however many merges (depth 2): their texts stay with
the absorbed checkpoints. Depth never passes 2 (F25). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from assistant.context.pressure import message_size
from assistant.context.tokens import TokenCounter
from assistant.core.checkpoints import Checkpoint, Compaction
from assistant.core.messages import Message
from assistant.core.records import ContextView, LogRecord
from sleep.compaction.answer import FACT_KINDS
from sleep.compaction.draft_view import is_compaction_prefix, sum_sizes
from sleep.compaction.extractive import select_sentences
from sleep.compaction.render import (
    RECORD_TIERS,
    checkpoint_facts,
    join_sections,
    make_section,
    make_sections,
    render_summary_row,
)
from sleep.compaction.values import Summary, SummaryInput, SummaryTier

_MOST_FACTS = 24
_SPOKEN = ("user", "assistant", "tool")


def collect_originals(records: Sequence[LogRecord], pair: Sequence[Checkpoint]) -> tuple[Message, ...]:
    """Of records of the log, the messages that the checkpoints cover."""
    first, last = pair[0].from_message_id, pair[-1].to_message_id
    hold = _changed_to(records)
    return tuple(
        replace(record.to_message(), content=hold.get(record.id, record.content))
        for record in records
        if record.kind == "message" and first <= record.id <= last and record.role in _SPOKEN
        if hold.get(record.id, record.content).strip() or (record.media and record.id not in hold)
    )


def _changed_to(records: Sequence[LogRecord]) -> dict[int, str]:
    """The words that hold of messages that were edited or, "", deleted after they were answered."""
    changes = [record for record in records if record.kind in ("edit", "delete") and record.turn is None]
    return {ref: record.content for record in changes for ref in record.refs}


def collect_summaries(
    pair: Sequence[Checkpoint],
    everything: Sequence[Checkpoint],
    counter: TokenCounter,
    most: int,
    budget: int,
    restored: int,
) -> SummaryInput:
    """What there is to merge where the originals are too long: the depth-1 summaries below the pair, the newest that
    fit `most` tokens whole; of older ones the most telling lines, word for word."""
    made = sorted(_below(pair, everything), key=lambda one: one.from_message_id)
    whole: list[Checkpoint] = []
    left = most * 3 // 4
    for one in reversed(made):
        left -= counter.count_text(one.summary)
        if left < 0 and whole:
            break
        whole.append(one)
    older = tuple(_as_row(one) for one in made[: len(made) - len(whole)])
    newer = tuple(_as_row(one) for one in reversed(whole))
    if older:
        lines = select_sentences(
            SummaryInput(pair[0].session, pair[0].scope, older, {}, most), most // 4, counter.count_text
        )
        newer = (replace(older[0], content=lines), *newer)
    return SummaryInput(pair[0].session, pair[0].scope, newer, {}, budget, depth=2, restored_max_tokens=restored)


def _as_row(checkpoint: Checkpoint) -> Message:
    """A summary as material: not the person's words, and not a message that could be looked up by a number."""
    return Message("assistant", checkpoint.summary, ts=checkpoint.created_at)


def _below(pair: Sequence[Checkpoint], everything: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints of depth 1 that have a text and cover a part of what the pair covers, no two the same part."""
    first, last = pair[0].from_message_id, pair[-1].to_message_id
    found = [
        one
        for one in everything
        if one.state in ("live", "absorbed")
        and one.depth == 1
        and one.tier not in RECORD_TIERS
        and one.generation == pair[0].generation
        and first <= one.from_message_id
        and one.to_message_id <= last
    ]
    return [one for one in found if not any(_covers(one, other) for other in found if other is not one)]


def _covers(one: Checkpoint, other: Checkpoint) -> bool:
    return other.from_message_id <= one.from_message_id and one.to_message_id <= other.to_message_id


def reuse_single_summary(pair: Sequence[Checkpoint], counter: TokenCounter) -> Summary | None:
    """Where one of the pair is a mere record: what the other one says, word for word, and no model is asked. None where
    both have a summary."""
    told = [one for one in pair if one.tier not in RECORD_TIERS]
    if len(told) == len(pair):
        return None
    if not told:
        return Summary("", "floor", 0)
    (one,) = told
    facts = {kind: tuple(one.key_facts[kind]) for kind in FACT_KINDS if one.key_facts.get(kind)}
    return Summary(
        one.summary,
        cast(SummaryTier, one.tier),
        counter.count_text(one.summary),
        key_facts=facts,
        restored=tuple(one.key_facts.get("restored", ())),
        model=one.model,
        depth=one.depth,
    )


def _inherited(pair: Sequence[Checkpoint]) -> dict[str, int]:
    """How many rows outside of their ranges the summaries of the pair are of, too."""
    count = sum(one.key_facts.get("inherited", 0) for one in pair)
    return {"inherited": count} if count else {}


def merge_checkpoints(
    view: ContextView,
    pair: Sequence[Checkpoint],
    live: Sequence[Checkpoint],
    summary: Summary,
    counter: TokenCounter,
    trigger: str,
    now: datetime,
) -> Compaction:
    """The compaction by which `summary` takes the place of the pair; nothing else leaves the view."""
    first, second = pair
    rest = [one for one in live if one.id not in (first.id, second.id)]
    section = join_sections(make_section(first), make_section(second), summary.text)
    section = replace(section, tier=summary.tier)
    row = render_summary_row([section, *make_sections(rest)], counter, now)
    before = [message for message in view.messages if is_compaction_prefix(message)]
    prefix = (row, *(message for message in before if not message.is_summary))
    return Compaction(
        session=view.session,
        prefix_rev=view.prefix_rev,
        trigger=trigger,
        tier=summary.tier,
        from_message_id=first.from_message_id,
        to_message_id=second.to_message_id,
        messages_compressed=first.messages_compressed + second.messages_compressed,
        prefix=prefix,
        summary=summary.text or row.content,
        original_tokens=sum_sizes([message_size(message, counter) for message in before]).tokens,
        compressed_tokens=sum_sizes([message_size(message, counter) for message in prefix]).tokens,
        key_facts={
            **_together(pair, checkpoint_facts(summary)),
            "since": section.since,
            "until": section.until,
            "byte_ranges": [list(span) for span in section.ranges],
            "merged": [first.id, second.id],
            **_inherited(pair),
        },
        cost_usd=summary.cost_usd,
        absorbed_ids=(first.id, second.id),
        depth=summary.depth,
        model=summary.model,
        attempts=summary.attempts,
    )


def _together(pair: Sequence[Checkpoint], facts: dict[str, Any]) -> dict[str, Any]:
    """The key facts of a merged checkpoint: its own, and what the two had, the newest last."""
    told = dict(facts)
    for kind in FACT_KINDS:
        values = [value for one in pair for value in one.key_facts.get(kind, ())] + list(facts.get(kind, ()))
        if values:
            told[kind] = list(dict.fromkeys(values))[-_MOST_FACTS:]
    return told
