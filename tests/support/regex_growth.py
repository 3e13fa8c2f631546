"""Hostile texts for a regular expression, and how the time it takes grows with their length.

`python -m tests.support.regex_growth [WORDS]` prints the expressions whose time more than follows the length, of the
places that have WORDS in their name.
"""

from __future__ import annotations

import importlib
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import FrameType
from typing import Any

from tests.support.regex_sources import Expression, find_expressions

# They are given 2,000 characters at most, or the page's own scripts, once.
GIVEN_LITTLE = (
    "assistant/agenda/dated_phrases.py",
    "assistant/agenda/repeat_phrases.py",
    "assistant/agenda/time_phrases.py",
    "assistant/core/time_",
    "assistant/models/offline/",
    "assistant/web/page_",
)
LENGTHS = (250, 1_000, 4_000)
MOST_GROWTH = 2.5
_NOTICEABLE, _SLOW = 0.003, 0.1
"""Seconds of processor time. What takes less than `_NOTICEABLE` is not compared: 2,000 characters squared take twice
as long. What is `_SLOW` and only follows the length is not made longer."""
_PATIENCE = 3.0
_MANY = 30
"""A repetition of at most so many does not grow with the text."""
_parser: Any = importlib.import_module("re._parser")


@dataclass(frozen=True, slots=True)
class Growth:
    """The worst that was found of an expression: `text` is one of 100 characters, `factor` what doubling the length of
    its kind costs, infinite where it did not end."""

    expression: Expression
    method: str
    text: str
    seconds: float
    length: int
    factor: float

    def __str__(self) -> str:
        return (
            f"{self.expression.place}: {self.method} x{self.factor:.1f} ({self.seconds * 1e3:.0f} ms at {self.length:,}"
            f" characters) on {self.text[:24]!r}...{self.text[-6:]!r}\n    {self.expression.pattern!r:.300}"
        )


# Hostile texts

_ALPHABET = " \n\ta0A.,;:!?-–_'’\"()[]<>{}*/\\+=|@#&%$~`^é你。·1z\x00"
_ENDS = ("", "\x00", "a", "\n")


@dataclass(frozen=True)
class _Repetition:
    """A part of an expression that repeats: what stands before it, and samples of what repeats."""

    before: str
    bodies: tuple[str, ...]


@dataclass
class _Tree:
    """Samples of an expression's parts."""

    flags: int
    chars: dict[str, None] = field(default_factory=lambda: dict.fromkeys(_ALPHABET))
    sets: list[Any] = field(default_factory=list)

    def repetitions(self, tree: Any, before: str = "") -> Iterator[_Repetition]:
        for op, av in tree:
            name = str(op)
            if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                _, most, body = av
                if int(most) > _MANY:
                    yield _Repetition(before, tuple(dict.fromkeys([*self.bodies(body)])))
                yield from self.repetitions(body, before)
            elif name == "BRANCH":
                for branch in av[1]:
                    yield from self.repetitions(branch, before)
            elif name == "SUBPATTERN":
                yield from self.repetitions(av[3], before)
            elif name == "ATOMIC_GROUP":
                yield from self.repetitions(av, before)
            elif name in ("ASSERT", "ASSERT_NOT"):
                yield from self.repetitions(av[1], before)
            elif name == "GROUPREF_EXISTS":
                for branch in filter(None, av[1:]):
                    yield from self.repetitions(branch, before)
            before += self.sample_one(op, av)

    def bodies(self, body: Any) -> Iterator[str]:
        if len(body) == 1 and str(body[0][0]) in ("IN", "ANY", "NOT_LITERAL", "LITERAL"):
            yield from self.accepted(*body[0])
        elif len(body) == 1 and str(body[0][0]) in ("SUBPATTERN", "BRANCH"):
            inner = body[0][1][3] if str(body[0][0]) == "SUBPATTERN" else body
            branches = inner[0][1][1] if len(inner) == 1 and str(inner[0][0]) == "BRANCH" else [inner]
            for branch in branches[:8]:
                if branch is not body:
                    yield from self.bodies(branch) if len(branch) == 1 else [self.sample(branch)]
        yield self.sample(body)
        yield self.sample(body, most=True)

    def accepted(self, op: Any, av: Any) -> list[str]:
        """One of each kind of the characters that it takes: of one kind are those that no set tells apart, nor
        the edge of a word."""
        kinds = {
            (char.isalnum(), *(self.takes(*one, char) for one in self.sets)): char
            for char in reversed(self.chars)
            if self.takes(op, av, char)
        }
        return list(kinds.values())[:12] or [self.sample_one(op, av)]

    def takes(self, op: Any, av: Any, char: str) -> bool:
        name = str(op)
        if name == "ANY":
            return char != "\n" or bool(self.flags & re.DOTALL)
        if name in ("LITERAL", "NOT_LITERAL"):
            same = chr(av) == char or (bool(self.flags & re.IGNORECASE) and chr(av).lower() == char.lower())
            return same == (name == "LITERAL")
        negated = any(str(kind) == "NEGATE" for kind, _ in av)
        return any(self._in(str(kind), value, char) for kind, value in av) != negated

    def _in(self, kind: str, value: Any, char: str) -> bool:
        chars = {char, char.lower(), char.upper()} if self.flags & re.IGNORECASE else {char}
        if kind == "LITERAL":
            return chr(value) in chars
        if kind == "RANGE":
            return any(len(one) == 1 and value[0] <= ord(one) <= value[1] for one in chars)
        if kind == "CATEGORY":
            sign = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[str(value).rsplit("_", 1)[-1]]
            return (re.match(sign, char) is not None) != ("NOT_" in str(value))
        return False

    def sample(self, tree: Any, *, most: bool = False) -> str:
        return "".join(self.sample_one(op, av, most=most) for op, av in tree)

    def sample_one(self, op: Any, av: Any, *, most: bool = False) -> str:
        name = str(op)
        if name == "LITERAL":
            return chr(av)
        if name in ("IN", "ANY", "NOT_LITERAL"):
            wanted = [char for char in ("a", "0", " ", *self.chars) if self.takes(op, av, char)]
            ranges = [chr(value[0]) for kind, value in av if str(kind) == "RANGE"] if name == "IN" else []
            return (wanted or ranges or ["a"])[0]
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least = max(av[0], 1) if most else av[0]
            return self.sample(av[2], most=most) * least
        if name == "BRANCH":
            return self.sample(av[1][0], most=most)
        if name == "SUBPATTERN":
            return self.sample(av[3], most=most)
        if name == "ATOMIC_GROUP":
            return self.sample(av, most=most)
        if name == "ASSERT":
            return self.sample(av[1], most=most) if av[0] < 0 else ""
        return ""

    def collect(self, tree: Any) -> None:
        """Takes in the sets of the expression, and its signs that are no letters."""
        for op, av in tree:
            name = str(op)
            if name in ("IN", "ANY", "NOT_LITERAL"):
                self.sets.append((op, av))
            if name == "LITERAL" and not chr(av).isalnum():
                self.sets.append((op, av))
                self.chars[chr(av)] = None
            for part in _parts(name, av):
                self.collect(part)


def _parts(name: str, av: Any) -> Sequence[Any]:
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return [av[2]]
    if name == "BRANCH":
        return list(av[1])
    if name == "SUBPATTERN":
        return [av[3]]
    if name == "ATOMIC_GROUP":
        return [av]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [av[1]]
    return [part for part in av[1:] if part] if name == "GROUPREF_EXISTS" else []


def make_texts(expression: Expression) -> list[tuple[str, str, str]]:
    """Hostile texts, each as (its beginning, what repeats, its end)."""
    pattern = expression.pattern
    parsed = _parser.parse(pattern, expression.flags & ~re.UNICODE if isinstance(pattern, bytes) else expression.flags)
    tree = _Tree(parsed.state.flags)
    tree.collect(parsed)
    texts: dict[tuple[str, str, str], None] = {}
    for repetition in tree.repetitions(parsed):
        before = repetition.before
        for body in filter(None, repetition.bodies):
            for end in _ENDS:
                texts[before, body, end] = None
                texts["", body, end] = None
            if before:
                texts["", before + body, "\x00"] = texts["", f" {before}{body}", "\x00"] = None
                texts["", f"{before}{body * 3}\n", "\x00"] = texts["", f"{before}{body} ", "\x00"] = None
        singles = [body for body in repetition.bodies if len(body) == 1]
        for one, other in product(singles[:4], repeat=2):
            if one != other:
                texts[before, one + other, "\x00"] = texts[before, one + other, "a"] = None
    return list(texts)


def _text(kind: tuple[str, str, str], length: int) -> str:
    start, body, end = kind
    return start + body * max(1, length // len(body)) + end


# Time


class _TooLongError(Exception):
    """An expression did not end in the time that it had."""


def measure(expression: Expression, most: int | None = None) -> Growth | None:
    """The first kind of text on which the time more than follows the length, or None; `most`: of how many kinds."""
    pattern, kinds = expression.compiled(), make_texts(expression)
    for kind in kinds[:: -(-len(kinds) // most) if most and kinds else 1]:
        for method in sorted(expression.methods):
            if growth := _measure_text(expression, pattern, method, kind):
                return growth
    return None


def _measure_text(
    expression: Expression, pattern: re.Pattern[Any], method: str, kind: tuple[str, str, str]
) -> Growth | None:
    def took(length: int, times: int = 1, *, patience: float = _PATIENCE) -> float:
        text = _text(kind, length)
        data = text.encode() if isinstance(expression.pattern, bytes) else text
        return min(_seconds(pattern, method, data, patience) for _ in range(times))

    known: dict[int, float] = {}

    def once(length: int, patience: float = _PATIENCE) -> float:
        if length not in known:
            known[length] = took(length, patience=patience)
        return known[length]

    try:
        # A square that is noticeable at the longest takes a quarter of that time at half of it; shorter ones take less.
        if once(LENGTHS[-1] // 2, patience=_SLOW) < _NOTICEABLE / 4:
            return None
        lengths = LENGTHS[-1:]
    except _TooLongError:
        lengths = LENGTHS
    try:
        for length in lengths:
            after = once(length)
            if after < _NOTICEABLE:
                continue
            # A second look at the shorter one: other work of the machine may have made it slow, which hides growth.
            if after <= MOST_GROWTH * once(length // 2) and after <= MOST_GROWTH * took(length // 2):
                if after > _SLOW:
                    return None
                continue
            # Other work of the machine may have made one of them slow.
            factor = min(took(length, 5) / took(length // 2, 5) for _ in range(3))
            if factor > MOST_GROWTH:
                return Growth(expression, method, _text(kind, 100), after, length, factor)
    except _TooLongError:
        return Growth(expression, method, _text(kind, 100), _PATIENCE, length, float("inf"))
    return None


def _seconds(pattern: re.Pattern[Any], method: str, text: str | bytes, patience: float) -> float:
    def end(signum: int, frame: FrameType | None) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, patience)
    started = time.thread_time()
    try:
        deque(pattern.finditer(text), maxlen=0) if method == "finditer" else getattr(pattern, method)(text)
        return time.thread_time() - started
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main(words: str = "") -> None:
    for expression in find_expressions():
        if words in expression.place and (growth := measure(expression)):
            print(growth, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
