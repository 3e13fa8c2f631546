"""The phase "score": what the rules are unsure of, a model weighs.

What always holds:
- Every entry has its weight by the rules already; a model is asked only where that lies in the uncertain middle and
  nobody else weighed it, and what it answers is taken only where it can be used.
- No entry is asked about twice: how far was read is written with the weights (F32). Offline nobody is asked.
- A model that is of no use is left alone until the next sleep; the weights by the rules stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from assistant.core.memories import JournalEntry, PhaseCursor
from assistant.core.memory_api import ConsolidationsPort
from assistant.core.quoting import RECORD_TAG, quote_in_tag, replace_unsendable
from assistant.core.store_ports import Journal
from sleep.cycle.llm_json import JsonLinesModel
from sleep.cycle.phase_result import PhaseResult
from sleep.rules.importance import UNCERTAIN_BAND, score_importance

SCORE_PHASE = "score"
_EVERYWHERE = ""
_A_CALL = 40
_CALLS = 50
_LONGEST = 300
_KINDS = ("decision", "task", "preference", "summary")


class ScoringPhase:
    def __init__(self, journal: Journal, consolidations: ConsolidationsPort, json_model: JsonLinesModel) -> None:
        """The asker's prompt asks for <scores>."""
        self._journal = journal
        self._consolidations = consolidations
        self._asker = json_model

    async def run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        """Raises `StoreError`."""
        low, high = UNCERTAIN_BAND
        for _ in range(_CALLS):
            after = self._journal.read_position(SCORE_PHASE, _EVERYWHERE, 0)
            batch = self._consolidations.unscored_entries(after, low, high, limit=_A_CALL)
            if not batch or not self._asker.has_model:
                return
            open_ones = [entry for entry in batch if _is_by_rules(entry)]
            usable = True
            weights: dict[int, float] = {}
            for scope in dict.fromkeys(entry.scope for entry in open_ones):
                asked = [entry for entry in open_ones if entry.scope == scope]
                found = await self._weigh(asked, outcome)
                usable = usable and found is not None
                weights |= found or {}
            outcome.read_count += len(open_ones)
            outcome.written_count += len(weights)
            reading = PhaseCursor(SCORE_PHASE, _EVERYWHERE, 0, max(entry.id or 0 for entry in batch))
            self._consolidations.save_scores(weights, reading, now)
            if not usable:
                return

    async def _weigh(self, entries: Sequence[JournalEntry], outcome: PhaseResult) -> dict[int, float] | None:
        """Weights by entry id; None where the model was of no use."""
        listed = "\n".join(f"E{number}: {_shown(entry)}" for number, entry in enumerate(entries, 1))
        outcome.calls += 1
        answered = await self._asker.request_items(
            f"The entries:\n{quote_in_tag(RECORD_TAG, listed)}", entries[0].session
        )
        outcome.add_cost(answered.cost_usd)
        by_label = {f"E{number}": entry for number, entry in enumerate(entries, 1)}
        found = {
            entry.id or 0: float(item["importance"])
            for item in answered.items or ()
            if (entry := by_label.get(str(item.get("entry")))) is not None and _is_share(item.get("importance"))
        }
        if not found:
            outcome.rejected.append(answered.failure or "the model weighed nothing")
            return None
        return found


def entry_kind(entry: JournalEntry) -> str:
    return next((tag for tag in entry.tags if tag in _KINDS), "fact")


def _is_by_rules(entry: JournalEntry) -> bool:
    return entry.importance == score_importance(entry_kind(entry), entry.content)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _shown(entry: JournalEntry) -> str:
    return " ".join(replace_unsendable(entry.content).split())[:_LONGEST]
