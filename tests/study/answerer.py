"""The scripted model: it holds its side of the written conversation, and knows of the past what stands in the request.

A question is answered when the value it asks for stands somewhere in the request. Where it does not, the model searches
once with the question's words; what it then does not see it does not know. Summaries are written by somebody who keeps
a fixed number of facts and forgets the others; nobody extracts memories.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.strict.behaviour import ScriptedAnswer, ToolUse
from tests.study.asked import Body, Place, all_text, place_of, purpose_of, results
from tests.study.conversation import StudyTurn, StudyWish
from tests.study.facts import StudyFact

UNKNOWN = "I cannot find that in what we said, sorry."

_PROSE = """The person and the assistant talked about everyday matters: work, people they know, trips, the house.
The assistant gave practical advice on several of them, and some ideas were left for another day. Files of the person
were looked at where they bore on a question. The tone was friendly, and nothing else came of it."""


@dataclass(slots=True)
class QuestionOutcomes:
    """How questions ended: by fact where the value stood when it was answered, and which were not answered. `outputs`
    holds by turn what the planned tool calls brought; `closed` counts tasks that the model knew and ticked off. Of
    `wishes_due`, a wish in a turn after it was said, the model saw `wishes_seen`."""

    answered: dict[int, Place] = field(default_factory=dict)
    missed: list[StudyFact] = field(default_factory=list)
    wishes_due: int = 0
    wishes_seen: int = 0
    outputs: dict[int, str] = field(default_factory=dict)
    closed: int = 0

    def places(self) -> Counter[Place]:
        return Counter(self.answered.values())


class Answerer:
    """Answers requests; `turn` is the one that is being held, `keep` how many facts survive a summary."""

    def __init__(self, facts: Sequence[StudyFact], keep: int, wishes: Sequence[StudyWish] = ()) -> None:
        self._facts = facts
        self._wishes = wishes
        self._keep = keep
        self.turn: StudyTurn | None = None
        self.outcomes = QuestionOutcomes()

    def __call__(self, body: Body) -> ScriptedAnswer:
        match purpose_of(body):
            case "summary":
                return lossy_summary(body, self._facts, self._keep)
            case "extraction":
                return ScriptedAnswer("<memories>\n</memories>")
            case _:
                assert self.turn is not None, "the conversation has not begun"
                return self._spoken(body, self.turn)

    def _spoken(self, body: Body, turn: StudyTurn) -> ScriptedAnswer:
        brought = results(body)
        if not brought:
            self._look_for_wishes(all_text(body), turn)
        if turn.kind == "question" and turn.fact is not None:
            return self._recalled(body, turn, turn.fact, searched=bool(brought))
        if turn.kind == "done" and not brought:
            return self._closed(body, turn)
        if turn.call is None:
            return ScriptedAnswer(turn.reply)
        if not brought:
            return ScriptedAnswer(calls=[ToolUse(turn.call.name, turn.call.arguments)])
        self.outcomes.outputs[turn.number] = brought
        return ScriptedAnswer(turn.reply)

    def _look_for_wishes(self, told: str, turn: StudyTurn) -> None:
        due = [wish for wish in self._wishes if wish.since < turn.number]
        self.outcomes.wishes_due += len(due)
        self.outcomes.wishes_seen += sum(wish.value in told for wish in due)

    def _closed(self, body: Body, turn: StudyTurn) -> ScriptedAnswer:
        """Tick off what is done, by the numbers that the request and the to-do list gave it."""
        told = all_text(body)
        asked = re.search(rf"^- #(\d+): .*{re.escape(turn.task)}", told, re.MULTILINE)
        noted = re.search(rf'^- \[ \] (\d+): "{re.escape(turn.task)}"', told, re.MULTILINE)
        calls = [ToolUse("close_requests", {"ids": [int(asked[1])], "state": "done"})] if asked else []
        if noted:
            calls.append(ToolUse("manage_todo_list", {"action": "complete", "ids": [int(noted[1])]}))
        self.outcomes.closed += bool(asked)
        return ScriptedAnswer(calls=calls) if calls else ScriptedAnswer(turn.reply)

    def _recalled(self, body: Body, turn: StudyTurn, fact: StudyFact, *, searched: bool) -> ScriptedAnswer:
        place = place_of(fact.value, body)
        if place is not None:
            self.outcomes.answered[fact.number] = place
            return ScriptedAnswer(turn.reply)
        is_misled = bool(fact.stale) and place_of(fact.stale, body) is not None
        if not searched and not is_misled:
            return ScriptedAnswer(calls=[ToolUse("search_history", {"query": fact.question})])
        self.outcomes.missed.append(fact)
        return ScriptedAnswer(UNKNOWN)


def lossy_summary(body: Body, facts: Sequence[StudyFact], keep: int) -> ScriptedAnswer:
    """A summary in the form asked for that tells `keep` of the facts in what is to be summarised, always the same ones
    of the same facts, and is about nothing otherwise."""
    told = all_text(body)
    present = sorted((fact for fact in facts if fact.value in told), key=_lot)
    lines = [f"- {fact.said}" for fact in sorted(present[:keep], key=lambda fact: fact.number)]
    summary = "\n".join([_PROSE, *lines])
    return ScriptedAnswer(f"<summary>\n{summary}\n</summary>\n<memories>\n</memories>")


def _lot(fact: StudyFact) -> str:
    return hashlib.sha256(fact.value.encode()).hexdigest()
