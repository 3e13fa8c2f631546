"""What a model judges of new entries: how much those weigh of which the rules are unsure (the phase "score"), and what
each is to the memories near it.

What always holds:
- Every entry has its weight by the rules already; a model is asked only where that is in the uncertain middle and
  nobody else weighed it. No entry is asked about twice: how far was read is written with the weights (F32).
- A label means something only beside the entry that it was shown with: a model can name no memory that it was not shown
  for that entry, and none of another scope (I10).
- What cannot be used of an answer is passed over, entry by entry; the rules decide on those. A model that is of no use
  is left alone until the next sleep; offline nobody is asked.
- What the rules weigh heavily, or somebody wrote down on purpose, is no junk on a model's word alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from assistant.core.memories import JournalEntry, Memory, PhaseCursor
from assistant.core.memory_api import ConsolidationsPort
from assistant.core.quoting import RECORD_TAG, quote_in_tag, replace_unsendable
from assistant.core.store_ports import Journal
from sleep.cycle.llm_json import JsonLinesModel
from sleep.cycle.phase_result import PhaseResult
from sleep.rules.classifier import UNCERTAIN_BAND, score_importance
from sleep.rules.supersede import EntryDecision, ParsedStatement

_LONGEST = 300
_MOST_BESIDE = 8
_JUNK_BELOW = 0.6
_ON_PURPOSE = frozenset({"tool", "correction", "import"})


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """An entry, the memories near it, and those that earlier entries of the same night became, with their readings."""

    entry: JournalEntry
    reading: ParsedStatement
    nearest: tuple[Memory, ...]
    made_this_cycle: tuple[tuple[Memory, ParsedStatement], ...]

    def memories_shown(self) -> tuple[Memory, ...]:
        """What the entry is shown with: the nearest, and those of the night that share a word with it."""
        mine = self.reading.statement
        shared = [
            (
                len(mine.content_stems & other.statement.content_stems) + len(mine.values & other.statement.values),
                memory,
            )
            for memory, other in self.made_this_cycle
        ]
        close = [memory for count, memory in sorted(shared, key=lambda pair: -pair[0]) if count]
        return tuple({memory.id: memory for memory in (*self.nearest, *close)}.values())[:_MOST_BESIDE]


class EntryJudge:
    """Asks about `entries_a_call` entries at once, dated in `zone`. The model's prompt asks for <decisions>."""

    def __init__(self, json_model: JsonLinesModel, *, entries_per_call: int = 20, zone: tzinfo = UTC) -> None:
        self._json_model = json_model
        self._zone = zone
        self.entries_per_call = entries_per_call

    @property
    def has_model(self) -> bool:
        return self._json_model.has_model

    async def decide_entries(
        self, questions: Sequence[JudgeQuestion], outcome: PhaseResult
    ) -> Mapping[int, EntryDecision | None]:
        """Decisions by entry id, None for junk; those that are missing are the rules' to make. Empty where the model
        was of no use. Raises `StoreError` where the call cannot be metered."""
        prompt = _JudgePrompt(questions, self._zone)
        outcome.calls += 1
        answered = await self._json_model.request_items(prompt.words, questions[0].entry.session)
        outcome.add_cost(answered.cost_usd)
        found: dict[int, EntryDecision | None] = {}
        for item in answered.items or ():
            question = prompt.by_label.get(str(item.get("entry")))
            if question is None or (question.entry.id or 0) in found:
                continue
            decision = prompt.decision(item, question)
            if decision is not None or _is_junk(item, question.entry):
                found[question.entry.id or 0] = decision
        if not found:
            outcome.details["model"] = answered.failure or "the model decided nothing that can be used"
        return found


class _JudgePrompt:
    """What a model is shown, and what its labels mean."""

    def __init__(self, questions: Sequence[JudgeQuestion], zone: tzinfo) -> None:
        self._zone = zone
        self.by_label = {f"E{number}": one for number, one in enumerate(questions, 1)}
        self._memories: dict[str, str] = {}
        parts = [self._part(label, one) for label, one in self.by_label.items()]
        self.words = f"The new entries:\n{quote_in_tag(RECORD_TAG, chr(10).join(parts))}"

    def _part(self, label: str, question: JudgeQuestion) -> str:
        lines = [f"{label} ({self._day(question.entry.timestamp)}): {_shown(question.entry.content)}"]
        for memory in question.memories_shown():
            known = self._memories.setdefault(memory.id, f"M{len(self._memories) + 1}")
            over = f" until {self._day(memory.until)}" if memory.until is not None else ""
            lines.append(f"  {known} ({self._day(memory.said_at)}{over}): {_shown(memory.text)}")
        return "\n".join(lines)

    def _day(self, moment: datetime) -> str:
        return f"{moment.astimezone(self._zone):%Y-%m-%d}"

    def decision(self, item: dict[str, Any], question: JudgeQuestion) -> EntryDecision | None:
        """None for what cannot be used."""
        named = item.get("of", [])
        shown = {self._memories[memory.id]: memory.id for memory in question.memories_shown()}
        of = tuple(dict.fromkeys(str(one) for one in named)) if isinstance(named, list) else ()
        if any(one not in shown for one in of):
            return None
        ids = tuple(shown[one] for one in of)
        match item.get("decision"):
            case "new" if not ids:
                return EntryDecision("new")
            case "same" if len(ids) == 1:
                return EntryDecision("same", ids[0])
            case "supersedes" if ids:
                return EntryDecision("supersedes", "", ids)
            case _:
                return None


def _is_junk(item: dict[str, Any], entry: JournalEntry) -> bool:
    if item.get("decision") != "junk" or item.get("of"):
        return False
    return entry.importance < _JUNK_BELOW and entry.source_type not in _ON_PURPOSE


def _shown(text: str) -> str:
    return " ".join(replace_unsendable(text).split())[:_LONGEST]


SCORE_PHASE = "score"
_EVERYWHERE = ""
_A_CALL = 40
_CALLS = 50
_KINDS = ("decision", "task", "preference", "summary")


class ScoringPhase:
    def __init__(self, journal: Journal, consolidations: ConsolidationsPort, json_model: JsonLinesModel) -> None:
        """The model's prompt asks for <scores>."""
        self._journal = journal
        self._consolidations = consolidations
        self._json_model = json_model

    async def run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        """Raises `StoreError`."""
        low, high = UNCERTAIN_BAND
        for _ in range(_CALLS):
            after = self._journal.read_position(SCORE_PHASE, _EVERYWHERE, 0)
            batch = self._consolidations.unscored_entries(after, low, high, limit=_A_CALL)
            if not batch or not self._json_model.has_model:
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
        listed = "\n".join(f"E{number}: {_shown(entry.content)}" for number, entry in enumerate(entries, 1))
        outcome.calls += 1
        answered = await self._json_model.request_items(
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
