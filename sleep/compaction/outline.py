"""What a summary is going to complete: which rows leave, what stays of them, what was said of earlier ones. Pure.

A plan that needs a summary is made in two halves: the outline is what can be known before, `finished` makes the
compaction of it once the summary is there. In between a model may take minutes; the commit's compare-and-swap tells
whether the outline still fits the view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assistant.context.pressure import Counter, Size, size_of
from assistant.core.checkpoints import Compaction
from sleep.compaction.record import Gone
from sleep.compaction.rendering import Section, summary_row
from sleep.compaction.sheet import Sheet, total
from sleep.compaction.summary import Material, Summary
from sleep.compaction.verbatim import Verbatim


@dataclass(frozen=True, slots=True)
class Outline:
    """`leaving` are the messages that the new checkpoint covers; `material` what the summary is made of, which is more
    where a branch's inherited rows leave with them. `earlier` are the sections that stay."""

    session: str
    prefix_rev: int
    trigger: str
    material: Material
    leaving: Gone
    kept: Verbatim
    earlier: tuple[Section, ...]
    cut: int
    replaced: Size
    sheet: Sheet
    counter: Counter

    def finished(self, summary: Summary, now: datetime) -> Compaction:
        """The compaction with this summary."""
        return self._compaction(
            summary.text, summary.tier, now, facts_of(summary), summary.cost_usd, summary.depth, summary.model,
            summary.attempts,
        )  # fmt: skip

    def recorded(self, tier: str, now: datetime) -> Compaction:
        """The compaction without a summary: a record says where the messages stand."""
        return self._compaction("", tier, now, {}, 0.0, 1, "", 0)

    def _compaction(
        self,
        text: str,
        tier: str,
        now: datetime,
        facts: Mapping[str, Any],
        cost_usd: float | None,
        depth: int,
        model: str,
        attempts: int,
    ) -> Compaction:
        first, last = self.leaving.rows[0].id or 0, self.leaving.rows[-1].id or 0
        count, gone = len(self.leaving.rows), self.leaving
        section = Section(first, last, count, gone.tokens, gone.since, gone.until, gone.ranges, text, tier)
        row = summary_row([*self.earlier, section], self.counter, now)
        prefix = (row, *self.kept.copies)
        size = total([size_of(message, self.counter) for message in prefix])
        after = self.sheet.pressure(size + total(self.sheet.sizes[self.cut :]))
        return Compaction(
            session=self.session,
            prefix_rev=self.prefix_rev,
            trigger=self.trigger,
            tier=tier,
            from_message_id=first,
            to_message_id=last,
            messages_compressed=count,
            prefix=prefix,
            summary=text or row.content,
            original_tokens=self.replaced.tokens,
            compressed_tokens=size.tokens,
            key_facts={
                **facts, **gone.facts, "kept": list(self.kept.ids), **self._inherited,
                "pressure": [round(self.sheet.before.ratio, 4), round(after.ratio, 4)],
            },
            cost_usd=cost_usd,
            depth=depth,
            model=model,
            attempts=attempts,
        )  # fmt: skip

    @property
    def _inherited(self) -> dict[str, int]:
        """How many rows that the checkpoint does not cover its summary is of, too: what a branch's parent said."""
        count = len(self.material.rows) - len(self.leaving.rows)
        return {"inherited": count} if count else {}


def facts_of(summary: Summary) -> dict[str, Any]:
    """What a checkpoint keeps of a summary beside its text."""
    facts: dict[str, Any] = {kind: list(values) for kind, values in summary.key_facts.items()}
    for name, lines in (
        ("memories", summary.memories), ("restored", summary.restored), ("failures", summary.failures),
    ):  # fmt: skip
        if lines:
            facts[name] = list(lines)
    return facts
