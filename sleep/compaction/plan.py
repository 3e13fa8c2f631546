"""Compaction plans as values: made by pure code, shown by dry runs, committed by the stores. Pure.

A plan is applied in one transaction (I4): rows that stay are replaced by shorter versions, the oldest rows by a new
prefix. All tiers of compaction produce the same type; the deterministic fallback (`fallback.py`) needs no model.

A plan that needs a summary is made in two steps: `PendingSummary` has everything known in advance (which rows are
removed, what is retained, earlier sections), and its `complete` returns the compaction once there is a summary. A model
may take minutes in between; the commit's compare-and-swap detects a changed view.

`merge_checkpoints` merges adjacent checkpoints, so that summaries stay few and are never more than two levels deep: a
merged checkpoint is made of the original messages if they fit one call (depth 1), else of the summaries of originals
(depth 2), whose texts are kept with absorbed checkpoints. Depth never exceeds 2 (F25).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import Any, cast

from assistant.context.pressure import Pressure, message_size
from assistant.context.tokens import TokenCounter
from assistant.core.checkpoints import Checkpoint, Compaction
from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.notices import Notice
from assistant.core.records import ContextView, LogRecord
from sleep.compaction.answer import FACT_KINDS
from sleep.compaction.draft_view import DraftView, RetainedRows, is_compaction_prefix, sum_sizes
from sleep.compaction.extractive import select_sentences
from sleep.compaction.render import (
    RECORD_TIERS,
    RemovedRows,
    SummarySection,
    checkpoint_facts,
    join_sections,
    make_section,
    make_sections,
    render_summary_row,
)
from sleep.compaction.values import MinimumContext, Summary, SummaryInput, SummaryTier

_MOST_FACTS = 24
_SPOKEN = ("user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What happens to a group of rows, for people."""

    is_removed: bool  # removed from the view
    what: str
    why: str
    messages: int
    tokens: int  # 0 if not counted


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Changes to commit together, and the notices about them."""

    session: str
    prefix_rev: int
    trigger: str
    tier: str
    before: Pressure
    after: Pressure  # expected, if a summary is pending
    minimum: MinimumContext
    shorten: tuple[Message, ...] = ()  # shortened versions of rows that stay
    compaction: Compaction | None = None
    pending_summary: PendingSummary | None = None  # completed by a summary to a compaction
    merge_ids: tuple[int, ...] = ()  # adjacent checkpoints to merge first
    planned_changes: tuple[PlannedChange, ...] = ()
    stuck_reason: str = ""  # why the context stays too full (F02)
    notices: tuple[Notice, ...] = ()

    @property
    def has_changes(self) -> bool:
        return bool(self.shorten or self.compaction or self.pending_summary)

    def as_compaction(self) -> Compaction | None:
        """Return the changes that need no summary as one compaction, or None."""
        if self.compaction is not None:
            return replace(self.compaction, shortened=self.shorten)
        if not self.shorten:
            return None
        ids = [message.id or 0 for message in self.shorten]
        return Compaction(
            session=self.session,
            prefix_rev=self.prefix_rev,
            trigger=self.trigger,
            tier=self.tier,
            from_message_id=ids[0],
            to_message_id=ids[-1],
            messages_compressed=len(ids),
            prefix=(),
            summary="",
            original_tokens=self.before.prompt_tokens,
            compressed_tokens=self.after.prompt_tokens,
            key_facts={"pressure": [round(self.before.ratio, 4), round(self.after.ratio, 4)]},
            shortened=self.shorten,
        )


def plan_of(draft: DraftView, trigger: str, tier: str, after: Pressure) -> CompactionPlan:
    """Return a plan for the draft's view without changes."""
    view = draft.view
    return CompactionPlan(
        view.session, view.prefix_rev, trigger, tier, draft.initial_pressure, after, draft.minimum_context
    )


@dataclass(frozen=True, slots=True)
class PendingSummary:
    """A compaction that only lacks its summary."""

    draft: DraftView
    trigger: str
    cut: int  # index of the first row that stays
    summary_input: SummaryInput  # more rows than `removed` if a branch's inherited rows are included
    removed: RemovedRows  # what the new checkpoint covers
    retained: RetainedRows
    earlier_sections: tuple[SummarySection, ...]  # sections that stay
    inherited: tuple[Message, ...] = ()  # inherited rows that stay, before the cut

    @property
    def shortened(self) -> tuple[Message, ...]:
        """Shortened versions of rows that stay."""
        pairs = zip(self.draft.rows[self.cut :], self.draft.view.messages[self.cut :], strict=True)
        return tuple(row for row, stored in pairs if row is not stored)

    def complete(self, summary: Summary, now: datetime) -> Compaction:
        """Return the compaction with this summary; without text, a record of the messages' location is inserted."""
        draft, removed = self.draft, self.removed
        section = removed.as_section(summary.text, summary.tier)
        row = render_summary_row([*self.earlier_sections, section], draft.limits.counter, now)
        prefix = (row, *self.retained.copies, *self.inherited)
        size = sum_sizes([message_size(message, draft.limits.counter) for message in prefix])
        after = draft.pressure(size + sum_sizes(draft.sizes[self.cut :]))
        # Number of summarised rows that the checkpoint does not cover (inherited from a branch's parent).
        inherited = len(self.summary_input.rows) - len(removed.rows)
        return Compaction(
            session=draft.view.session,
            prefix_rev=draft.view.prefix_rev,
            trigger=self.trigger,
            tier=summary.tier,
            from_message_id=section.from_id,
            to_message_id=section.to_id,
            messages_compressed=section.count,
            prefix=prefix,
            summary=summary.text or row.content,
            original_tokens=sum_sizes(draft.stored_sizes[: self.cut]).tokens,
            compressed_tokens=size.tokens,
            key_facts={
                **checkpoint_facts(summary),
                **removed.key_facts,
                "kept": list(self.retained.message_ids),
                **({"inherited": inherited} if inherited else {}),
                "pressure": [round(draft.initial_pressure.ratio, 4), round(after.ratio, 4)],
            },
            cost_usd=summary.cost_usd,
            shortened=self.shortened,
            depth=summary.depth,
            model=summary.model,
            attempts=summary.attempts,
        )


# ---------------------------------------------------------------------------------------------------------------- merge


def collect_originals(records: Sequence[LogRecord], pair: Sequence[Checkpoint]) -> tuple[Message, ...]:
    """Return the messages in log records that the checkpoints cover."""
    first, last = pair[0].from_seq, pair[-1].to_seq
    # Current texts of messages edited or ("") deleted after their turn.
    changes = [record for record in records if record.kind in ("edit", "delete") and record.turn is None]
    changed = {ref: record.content for record in changes for ref in record.refs}
    return tuple(
        replace(record.to_message(), content=changed.get(record.id, record.content))
        for record in records
        if record.kind == "message" and first <= record.seq <= last and record.role in _SPOKEN
        if changed.get(record.id, record.content).strip() or (record.media and record.id not in changed)
    )


def collect_summaries(
    pair: Sequence[Checkpoint],
    everything: Sequence[Checkpoint],
    counter: TokenCounter,
    most: int,
    budget: int,
    restored: int,
) -> SummaryInput:
    """Return the merge input if the originals are too long: the depth-1 summaries below the pair; the newest that fit
    `most` tokens in full, of older ones the most informative lines."""
    summarised = sorted(_below(pair, everything), key=lambda checkpoint: checkpoint.from_seq)
    # As material they are neither the user's words nor messages with an id.
    rows = tuple(Message("assistant", checkpoint.summary, ts=checkpoint.created_at) for checkpoint in summarised)
    first_whole, left = len(rows), most * 3 // 4
    while first_whole and (left := left - counter.count_text(rows[first_whole - 1].content)) >= 0:
        first_whole -= 1
    first_whole = min(first_whole, len(rows) - 1)
    older, newer = rows[:first_whole], rows[first_whole:]
    if older:
        lines = select_sentences(
            SummaryInput(pair[0].session, pair[0].scope, older, {}, most), most // 4, counter.count_text
        )
        newer = (replace(older[0], content=lines), *newer)
    return SummaryInput(pair[0].session, pair[0].scope, newer, {}, budget, depth=2, restored_max_tokens=restored)


def _below(pair: Sequence[Checkpoint], everything: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Return the depth-1 checkpoints with a text within the pair's range, without overlaps."""
    first, last = pair[0].from_seq, pair[-1].to_seq
    below = [
        checkpoint
        for checkpoint in everything
        if checkpoint.state in ("live", "absorbed")
        and checkpoint.depth == 1
        and has_summary(checkpoint)
        and checkpoint.generation == pair[0].generation
        and first <= checkpoint.from_seq
        and checkpoint.to_seq <= last
    ]
    return [part for part in below if not any(_covers(other, part) for other in below if other is not part)]


def _covers(checkpoint: Checkpoint, part: Checkpoint) -> bool:
    return checkpoint.from_seq <= part.from_seq and part.to_seq <= checkpoint.to_seq


def has_summary(checkpoint: Checkpoint) -> bool:
    """Return whether a checkpoint has a summary, and is not only a record of where the messages are."""
    return checkpoint.tier not in RECORD_TIERS


def join_summaries(pair: Sequence[Checkpoint], counter: TokenCounter) -> Summary:
    """Return the summaries of the pair as they are, one after the other, which needs no model and is shorter than both
    apart; without text if both are only records."""
    told = [summary_of(checkpoint, counter) for checkpoint in pair if has_summary(checkpoint)]
    if not told:
        return Summary("", "floor", 0)
    text = "\n".join(summary.text for summary in told)
    return replace(
        told[-1],
        text=text,
        tokens=counter.count_text(text),
        key_facts={},  # `merge_checkpoints` joins those of the pair
        restored=tuple(line for summary in told for line in summary.restored),
        depth=max(summary.depth for summary in told),
    )


def summary_of(single: Checkpoint, counter: TokenCounter) -> Summary:
    """Return a checkpoint's summary unchanged."""
    return Summary(
        single.summary,
        cast(SummaryTier, single.tier),
        counter.count_text(single.summary),
        key_facts={kind: tuple(single.key_facts[kind]) for kind in FACT_KINDS if single.key_facts.get(kind)},
        restored=tuple(single.key_facts.get("restored", ())),
        model=single.model,
        depth=single.depth,
    )


def merge_checkpoints(
    view: ContextView,
    group: Sequence[Checkpoint],
    live: Sequence[Checkpoint],
    summary: Summary,
    counter: TokenCounter,
    trigger: str,
    now: datetime,
) -> Compaction:
    """Return the compaction that replaces adjacent checkpoints (or one) by `summary`; nothing else leaves the view."""
    ids = tuple(checkpoint.id for checkpoint in group)
    taken = {*ids}
    rest = [checkpoint for checkpoint in live if checkpoint.id not in taken]
    joined = reduce(lambda first, second: join_sections(first, second, ""), map(make_section, group))
    section = replace(joined, text=summary.text, tier=summary.tier)
    older = [checkpoint for checkpoint in rest if checkpoint.from_seq < group[0].from_seq]
    sections = [*make_sections(older), section, *make_sections(rest)[len(older) :]]
    row = render_summary_row(sections, counter, now)
    before = [message for message in view.messages if is_compaction_prefix(message)]
    prefix = (row, *(message for message in before if not message.is_summary))
    # Number of rows outside of their ranges that the summaries cover too.
    inherited = sum(checkpoint.key_facts.get("inherited", 0) for checkpoint in group)
    return Compaction(
        session=view.session,
        prefix_rev=view.prefix_rev,
        trigger=trigger,
        tier=summary.tier,
        from_message_id=section.from_id,
        to_message_id=section.to_id,
        messages_compressed=section.count,
        prefix=prefix,
        summary=summary.text or row.content,
        original_tokens=sum_sizes([message_size(message, counter) for message in before]).tokens,
        compressed_tokens=sum_sizes([message_size(message, counter) for message in prefix]).tokens,
        key_facts={
            **_together(group, checkpoint_facts(summary)),
            "since": section.since,
            "until": section.until,
            "byte_ranges": [list(span) for span in section.ranges],
            "merged": list(ids),
            **({"inherited": inherited} if inherited else {}),
        },
        cost_usd=summary.cost_usd,
        absorbed_ids=ids,
        depth=summary.depth,
        model=summary.model,
        attempts=summary.attempts,
    )


def _together(pair: Sequence[Checkpoint], facts: dict[str, Any]) -> dict[str, Any]:
    """Return the merged key facts, newest last."""
    together = dict(facts)
    for kind in FACT_KINDS:
        sources = (*(checkpoint.key_facts for checkpoint in pair), facts)
        values = dict.fromkeys(value for source in sources for value in source.get(kind, ()))
        if values:
            together[kind] = list(values)[-_MOST_FACTS:]
    return together
