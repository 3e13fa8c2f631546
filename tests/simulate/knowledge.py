"""What the people of a simulated life know, what is out of order in it, and how it fails."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulate.plan import HOUR, Event
from tests.simulate.words import question_key

_ANSWERED_WITHIN = HOUR


@dataclass
class Failure:
    """What must not be, and after which event it was seen."""

    event: Event | None
    texts: list[str]

    @property
    def kinds(self) -> set[str]:
        """What is the same when it is seen again."""
        return {text.partition(":")[0] for text in self.texts}


@dataclass
class Knowledge:
    """What was told, by its key: words that are right now. None where nobody can say."""

    values: dict[str, list[str] | None] = field(default_factory=dict)
    scopes: dict[str, str] = field(default_factory=dict)
    sent: dict[str, tuple[str, str]] = field(default_factory=dict)  # by key: bridge and external id of its last message
    forgotten: set[str] = field(default_factory=set)
    before: dict[str, str] = field(default_factory=dict)  # by key: what was right before
    learned_at: dict[str, float] = field(default_factory=dict)

    def learn(self, key: str, word: str, scope: str, place: tuple[str, str], at: float) -> None:
        self.values[key], self.scopes[key], self.sent[key], self.learned_at[key] = [word], scope, place, at

    def doubt(self, key: str) -> None:
        if words := self.values.get(key):
            self.before[key] = words[-1]
        self.values[key] = None

    def find_answers(self, question: str, at: float) -> frozenset[str]:
        """What came in after the question may be acknowledged before that is answered."""
        key = question_key(question)
        words = set(self.values.get(key) or ())
        if words and key in self.before and at - self.learned_at[key] < _ANSWERED_WITHIN:
            words.add(self.before[key])
        return frozenset(words)

    def certain(self, scope: str) -> list[tuple[str, str]]:
        return [(key, words[-1]) for key, words in self.values.items() if words and self.scopes[key] == scope]


@dataclass
class Faults:
    """What is out of order; each with the time at which it ends, in seconds since the beginning."""

    until: dict[str, float] = field(default_factory=dict)
    calm_since: float = 0.0  # since when nothing was out of order
    _past: list[tuple[str, float, float]] = field(default_factory=list)

    def note(self, name: str, begun: float, until: float) -> None:
        self._past.append((name, begun, until))

    def was_any(self, since: float, until: float) -> bool:
        """Something was out of order, or nothing ran, at some time between the two."""
        return any(begun <= until and ended >= since for _, begun, ended in self._past)

    def was_clock_wrong(self, since: float) -> bool:
        """Since then, or still."""
        return any(name == "clock" and ended >= since for name, _, ended in self._past)
