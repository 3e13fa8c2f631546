"""What a compaction is going to do, as a value: made by pure code, shown by a dry run, committed by the stores. Pure.

A plan is carried out in one transaction (I4): rows that stay are replaced by shorter forms of the same messages, and
the oldest rows by a new prefix. Every tier of compaction makes the same value. The deterministic fallback
(`fallback.py`) needs no model.

A plan that needs a summary is made in two halves: `PendingSummary` is what can be known before (which rows leave,
what stays of them, what was said of earlier ones), and its `complete` makes the compaction once the summary is
there. A model may take minutes in between; the commit's compare-and-swap tells whether the pending summary still
fits the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from assistant.context.pressure import Pressure, PromptSize, message_size
from assistant.context.tokens import TokenCounter
from assistant.core.checkpoints import Compaction
from assistant.core.messages import Message
from assistant.core.text import pluralize
from sleep.compaction.draft_view import DraftView, sum_sizes
from sleep.compaction.render import RemovedRows, SummarySection, checkpoint_facts, render_summary_row
from sleep.compaction.retained import RetainedRows
from sleep.compaction.values import MinimumContext, Summary, SummaryInput


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What becomes of a group of rows, for a person to read."""

    is_removed: bool  # leaves the view
    what: str
    why: str
    messages: int
    tokens: int  # 0 where they are not counted


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What is committed together, and what is told of it."""

    session: str
    prefix_rev: int
    trigger: str
    tier: str
    before: Pressure
    after: Pressure  # expected, where a summary is pending
    minimum: MinimumContext
    shorten: tuple[Message, ...] = ()  # rows that stay, in shorter forms
    compaction: Compaction | None = None
    pending_summary: PendingSummary | None = None  # what a summary has to complete before there is a compaction
    merge_ids: tuple[int, ...] = ()  # neighbouring checkpoints that become one first, so that the next plan finds room
    planned_changes: tuple[PlannedChange, ...] = ()
    stuck_reason: str = ""  # why the context stays too full whatever is done (F02)
    notices: tuple[str, ...] = field(default=())  # lines that the user should read

    @property
    def has_changes(self) -> bool:
        return bool(self.shorten or self.compaction or self.pending_summary)

    def stays_above(self, threshold: float) -> bool:
        """Whether even this plan leaves the context above the threshold: trying again would gain nothing (I7)."""
        return self.after.ratio > threshold

    def as_compaction(self) -> Compaction | None:
        """All that the plan changes without a summary, as one compaction."""
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

    def apply_to(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The rows of the view as the plan leaves them."""
        shorter = {message.id: message for message in self.shorten}
        rows = [message if message.id is None else shorter.get(message.id, message) for message in messages]
        if self.compaction is None:
            return tuple(rows)
        last = next(index for index, message in enumerate(rows) if message.id == self.compaction.to_message_id)
        return (*self.compaction.prefix, *rows[last + 1 :])

    def describe(self) -> str:
        """One line for the log."""
        dropped = self.compaction.messages_compressed if self.compaction else 0
        return (
            f"{self.trigger}: {pluralize(len(self.shorten), 'message')} shortened, {dropped} removed from the view "
            f"({self.tier}); {self.before.describe()} -> {self.after.describe()}"
        )


@dataclass(frozen=True, slots=True)
class PendingSummary:
    """A compaction that only lacks its summary."""

    session: str
    prefix_rev: int
    trigger: str
    summary_input: SummaryInput  # more than `removed` where the inherited rows of a branch leave with them
    removed: RemovedRows  # what the new checkpoint covers
    retained: RetainedRows
    earlier_sections: tuple[SummarySection, ...]  # those that stay
    cut: int  # index of the first row that stays
    replaced_size: PromptSize  # of all rows before the cut
    draft: DraftView
    counter: TokenCounter

    def complete(self, summary: Summary, now: datetime) -> Compaction:
        """The compaction with this summary; without text, a record says where the messages are stored."""
        first, last = self.removed.rows[0].id or 0, self.removed.rows[-1].id or 0
        count, gone = len(self.removed.rows), self.removed
        section = SummarySection(
            first, last, count, gone.tokens, gone.first_day, gone.last_day, gone.byte_ranges, summary.text, summary.tier
        )
        row = render_summary_row([*self.earlier_sections, section], self.counter, now)
        prefix = (row, *self.retained.copies)
        size = sum_sizes([message_size(message, self.counter) for message in prefix])
        after = self.draft.pressure(size + sum_sizes(self.draft.sizes[self.cut :]))
        return Compaction(
            session=self.session,
            prefix_rev=self.prefix_rev,
            trigger=self.trigger,
            tier=summary.tier,
            from_message_id=first,
            to_message_id=last,
            messages_compressed=count,
            prefix=prefix,
            summary=summary.text or row.content,
            original_tokens=self.replaced_size.tokens,
            compressed_tokens=size.tokens,
            key_facts={
                **checkpoint_facts(summary),
                **gone.key_facts,
                "kept": list(self.retained.message_ids),
                **self._inherited,
                "pressure": [round(self.draft.initial_pressure.ratio, 4), round(after.ratio, 4)],
            },
            cost_usd=summary.cost_usd,
            depth=summary.depth,
            model=summary.model,
            attempts=summary.attempts,
        )

    @property
    def _inherited(self) -> dict[str, int]:
        """How many rows that the checkpoint does not cover its summary is of, too: what a branch's parent said."""
        count = len(self.summary_input.rows) - len(self.removed.rows)
        return {"inherited": count} if count else {}
