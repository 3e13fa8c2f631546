"""Model judgments of new entries: their importance where rules are unsure (the phase "score"), and their relation to
similar memories.

- Every entry has a rule-based importance; a model is asked only in the uncertain middle, and not if something else set
  it. No entry is scored twice: the position is saved with the scores (F32).
- Labels are valid only for the entry they were shown with: a model cannot refer to other memories or scopes (I10).
- Unusable parts of an answer are skipped per entry, and rules decide these. A model without usable answers is not asked
  again in the cycle; in offline mode none is asked.
- Entries that rules rate important, or that were written deliberately, are not junk on a model's word alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.memories import JournalEntry, Memory, PhaseCursor
from assistant.core.memory_api import ConsolidationsPort
from assistant.core.quoting import RECORD_TAG, quote_in_tag, replace_unsendable
from assistant.core.store_ports import Journal
from sleep.cycle.phase import JsonLinesModel, PhaseResult, is_share
from sleep.rules.classifier import UNCERTAIN_BAND, score_importance
from sleep.rules.supersede import EntryDecision, ParsedStatement

_LONGEST = 300
_MOST_BESIDE = 12
_JUNK_BELOW = 0.6
ENTRIES_PER_CALL = 20
_ON_PURPOSE = frozenset({"tool", "correction", "import"})


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """An entry with the nearest memories, and the parsed memories of earlier entries of the same cycle."""

    entry: JournalEntry
    reading: ParsedStatement
    nearest: tuple[Memory, ...]
    made_this_cycle: tuple[tuple[Memory, ParsedStatement], ...]

    def memories_shown(self) -> tuple[Memory, ...]:
        """Return the memories shown with the entry: the nearest, and those of this cycle that share words with it."""
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


@dataclass(frozen=True, slots=True)
class EntryJudge:
    """Judges `entries_per_call` entries per call, dated in `zone`. The model's prompt asks for <decisions>."""

    json_model: JsonLinesModel
    entries_per_call: int = ENTRIES_PER_CALL
    zone: tzinfo = UTC

    @property
    def has_model(self) -> bool:
        return self.json_model.has_model

    async def decide_entries(
        self, questions: Sequence[JudgeQuestion], outcome: PhaseResult
    ) -> Mapping[int, EntryDecision | None]:
        """Return decisions by entry id, None for junk; missing ones are left to the rules. Empty if the model was
        unusable. Raises `StoreError` if the call cannot be metered."""
        prompt = _JudgePrompt(questions, self.zone)
        answer = await self.json_model.request_items(prompt.words, questions[0].entry.session, outcome)
        decisions: dict[int, EntryDecision | None] = {}
        for item in answer.items:
            question = prompt.by_label.get(str(item.get("entry")))
            if question is None or (question.entry.id or 0) in decisions:
                continue
            decision = prompt.decision(item, question)
            if decision is not None or _is_junk(item, question.entry):
                decisions[question.entry.id or 0] = decision
        if not decisions:
            outcome.details["model"] = answer.failure or "the model decided nothing that can be used"
        return decisions


class _JudgePrompt:
    """The text shown to a model, and the meaning of its labels."""

    def __init__(self, questions: Sequence[JudgeQuestion], zone: tzinfo) -> None:
        self._zone = zone
        self.by_label = {f"E{number}": question for number, question in enumerate(questions, 1)}
        self._memories: dict[str, str] = {}
        parts = [self._part(label, question) for label, question in self.by_label.items()]
        self.words = f"The new entries:\n{quote_in_tag(RECORD_TAG, chr(10).join(parts))}"

    def _part(self, label: str, question: JudgeQuestion) -> str:
        lines = [f"{label} ({self._day(question.entry.timestamp)}): {_shown(question.entry.content)}"]
        for memory in question.memories_shown():
            memory_label = self._memories.setdefault(memory.id, f"M{len(self._memories) + 1}")
            over = f" until {self._day(memory.until)}" if memory.until is not None else ""
            lines.append(f"  {memory_label} ({self._day(memory.said_at)}{over}): {_shown(memory.text)}")
        return "\n".join(lines)

    def _day(self, moment: datetime) -> str:
        return f"{moment.astimezone(self._zone):%Y-%m-%d}"

    def decision(self, item: dict[str, Any], question: JudgeQuestion) -> EntryDecision | None:
        """Return the decision, or None if it is unusable."""
        shown = {self._memories[memory.id]: memory.id for memory in question.memories_shown()}
        named = item.get("of", [])
        labels = dict.fromkeys(map(str, named)) if isinstance(named, list) else {}
        if not labels.keys() <= shown.keys():
            return None
        ids = tuple(shown[label] for label in labels)
        match item.get("decision"):
            case "new" if not ids:
                return EntryDecision()
            case "same" if len(ids) == 1:
                return EntryDecision(ids[0])
            case "supersedes" if ids:
                return EntryDecision("", ids)
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


@dataclass(frozen=True, slots=True)
class ScoringPhase:
    """Scores entries. The model's prompt asks for <scores>."""

    journal: Journal
    consolidations: ConsolidationsPort
    json_model: JsonLinesModel

    async def run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        """Run the phase. Raises `StoreError`."""
        usable = True
        for _ in range(_CALLS):
            after = self.journal.read_position(SCORE_PHASE, _EVERYWHERE, 0)
            batch = self.consolidations.unscored_entries(after, *UNCERTAIN_BAND, limit=_A_CALL)
            if not batch or not usable or not self.json_model.has_model:
                return
            by_rules = [entry for entry in batch if _is_by_rules(entry)]
            weights: dict[int, float] = {}
            for scope in dict.fromkeys(entry.scope for entry in by_rules):
                weighed = await self._weigh([entry for entry in by_rules if entry.scope == scope], outcome)
                usable = usable and bool(weighed)
                weights |= weighed
            outcome.read_count += len(by_rules)
            outcome.written_count += len(weights)
            cursor = PhaseCursor(SCORE_PHASE, _EVERYWHERE, 0, max(entry.id or 0 for entry in batch))
            self.consolidations.save_scores(weights, cursor, now)

    async def _weigh(self, entries: Sequence[JournalEntry], outcome: PhaseResult) -> dict[int, float]:
        """Return scores by entry id; empty if the model was unusable."""
        by_label = {f"E{number}": entry for number, entry in enumerate(entries, 1)}
        listed = "\n".join(f"{label}: {_shown(entry.content)}" for label, entry in by_label.items())
        words = f"The entries:\n{quote_in_tag(RECORD_TAG, listed)}"
        answer = await self.json_model.request_items(words, entries[0].session, outcome)
        weights = {
            entry.id or 0: float(item["importance"])
            for item in answer.items
            if (entry := by_label.get(str(item.get("entry")))) is not None and is_share(item.get("importance"))
        }
        if not weights:
            outcome.rejected.append(answer.failure or "the model weighed nothing")
        return weights


def count_scoring_calls(unscored: Sequence[JournalEntry]) -> int:
    """Return the number of calls for entries in this order: one per scope and batch."""
    batches = (unscored[start : start + _A_CALL] for start in range(0, len(unscored), _A_CALL))
    return sum(len({entry.scope for entry in batch if _is_by_rules(entry)}) for batch in batches)


def _is_by_rules(entry: JournalEntry) -> bool:
    kind = next((tag for tag in entry.tags if tag in _KINDS), "fact")
    return entry.importance == score_importance(kind, entry.content)
