"""A summary without a model: the most telling sentences of what was said, word for word and in their order. Pure.

Sentences are chosen, never written, so nothing in it can be wrong; what it costs is smoothness. A sentence tells more
the more names, numbers and identifiers it has for its length, the rarer its words are among the others, and where a
person said it of themselves. Greetings, tool output and repetition are left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assistant.messages import Message
from sleep.facts import missing
from sleep.rules import facts
from sleep.summary import Material

Count = Callable[[str], int]

_SENTENCE = re.compile(r"(?:[^.!?。！？\n]|(?<=\S)[.!?](?=\S))+[.!?。！？]*")
_WORD = re.compile(r"\w{2,}")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LONGEST = 300
_SHORTEST_WORDS = 3
_SHORTEST_CHARACTERS = 6
_LOOKED_AT = 6_000
_OF_ROLE = {"user": 1.5, "assistant": 1.0}
_OF_KIND = {"named": 0.5, "told": 1.5, "rare": 0.5}
_END_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class _Line:
    """One sentence: whose, from which message (its index among the rows), how much it tells."""

    row: Message
    index: int
    place: int
    text: str
    score: float = 0.0


def extractive(material: Material, budget: int, count: Count) -> str:
    """The best sentences that fit into `budget` tokens as `count` counts them, a line each with the message's number
    and day; "" where there is none."""
    lines = _scored(list(_sentences(material.rows)))
    chosen: list[_Line] = []
    left = budget
    for line in sorted(lines, key=lambda one: (-one.score, -one.index, one.place)):
        tokens = count(_shown(line)) + 1
        if tokens <= left:
            left -= tokens
            chosen.append(line)
        if left < _SHORTEST_CHARACTERS:
            break
    return "\n".join(_shown(line) for line in sorted(chosen, key=lambda one: (one.index, one.place)))


def both_ends(material: Material) -> str:
    """The first and the last 2,000 characters of what was said, and where the rest is: what always can be done."""
    said = "\n".join(f"#{row.id}: {row.content}" if row.id else row.content for row in material.rows if row.content)
    if len(said) <= 2 * _END_CHARACTERS:
        return said
    first = next((row.id for row in material.rows if row.id), None)
    where = f"; read_history(message_id={first}) reads on from the first" if first else ""
    left_out = len(said) - 2 * _END_CHARACTERS
    return f"{said[:_END_CHARACTERS]}\n[… {left_out} characters left out{where} …]\n{said[-_END_CHARACTERS:]}"


def _sentences(rows: tuple[Message, ...]) -> Iterator[_Line]:
    told: set[str] = set()
    for index, row in enumerate(rows):
        if row.role not in _OF_ROLE:
            continue
        for place, match in enumerate(_SENTENCE.finditer(_CODE.sub("\n", row.content[:_LOOKED_AT]))):
            text = " ".join(match[0].split())
            if not _says_something(text) or text.casefold() in told:
                continue
            told.add(text.casefold())
            yield _Line(row, index, place, text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def _says_something(text: str) -> bool:
    words = text.split()
    return len(text) >= _SHORTEST_CHARACTERS and (len(words) >= _SHORTEST_WORDS or not text.isascii())


def _scored(lines: list[_Line]) -> list[_Line]:
    seen = Counter(word for line in lines for word in set(_words(line.text)))
    return [_with_score(line, seen, len(lines)) for line in lines]


def _with_score(line: _Line, seen: Counter[str], total: int) -> _Line:
    words = _words(line.text)
    named = sum(len(values) for values in missing([line.text], "").values())
    told = bool(line.row.role == "user" and facts(line.text))
    rare = sum(math.log(total / seen[word]) for word in set(words)) / (len(words) or 1)
    weight = 1 + _OF_KIND["named"] * min(named, 6) + _OF_KIND["told"] * told + _OF_KIND["rare"] * rare
    score = _OF_ROLE[line.row.role] * weight / math.sqrt(8 + len(words))
    return _Line(line.row, line.index, line.place, line.text, score)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _shown(line: _Line) -> str:
    day = f" {line.row.ts:%Y-%m-%d}" if line.row.ts else ""
    who = "user" if line.row.role == "user" else "assistant"
    number = line.row.id or line.row.metadata.get("carried_from")
    return f"- {f'#{number}' if number else 'earlier'}{day} {who}: {line.text}"
