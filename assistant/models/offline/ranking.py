"""Which of somebody's own words answer a question. Pure.

The search has found what shares words with the question; here each quotation is scored by how much of the question it
covers and whether it is of the kind asked for (a name, a number, a time, a place). What always holds: statements come
before questions, of several that fit about equally well the newest is the answer, and what covers too little of the
question is at most shown as the nearest thing there is, never as the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from assistant.core.calendar import MONTHS, NUMBER_WORDS, WEEKDAYS
from assistant.core.text import lazy_regex
from assistant.core.tool_results import QuotedMessage
from assistant.models.offline.intents import AddTodos, CorrectStatement, TakeNote
from assistant.models.offline.parse import parse_sentence
from assistant.models.offline.words import (
    ATTRIBUTE_WORDS,
    content_words,
    fold_word,
    is_same_word,
    related_words,
    split_sentences,
    tokenize,
)

Kind = Literal["name", "time", "place", "number", "colour", "any"]

_ANSWERS = 0.55
_ANSWERS_TOPIC = 0.5
_NEAREST = 0.4
_REPLACES = _NEAREST
_ABOUT_EQUAL = 0.1
_ALSO_FITS = 0.25
_A_MERE_ATTRIBUTE = 0.35
_MOST = 3
_MOST_ON_TOPIC = 5

_RELATIVES = """sister brother mother father mum mom dad wife husband spouse son daughter uncle aunt cousin friend boss
neighbour neighbor girlfriend boyfriend grandmother grandfather grandma grandpa niece nephew colleague"""
_KIN = frozenset(fold_word(word) for word in _RELATIVES.split())
_CALENDAR = frozenset((*MONTHS, *WEEKDAYS))
_COLOUR_WORDS = """red green blue yellow black white grey gray brown orange pink purple silver gold beige"""
_COLOURS = frozenset(_COLOUR_WORDS.split())
_NUMBERS = frozenset((*NUMBER_WORDS, "half", "dozen", "hundred", "thousand"))
_BEFORE_PLACES = """in at to from near under by on behind over beside between ved i på bei auf unter"""
_PLACE_WORDS = frozenset(_BEFORE_PLACES.split())
_ASKED_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("colour", lazy_regex(r"\bcolou?r\b", re.IGNORECASE)),
    ("number", lazy_regex(r"\b(?:how (?:much|many|old|tall|far|big)|number|phone|cost|price|rent)\b", re.IGNORECASE)),
    ("time", lazy_regex(r"\b(?:when|what time|which day|birthday|date|wann|når)\b", re.IGNORECASE)),
    ("name", lazy_regex(r"\b(?:who|whose|name|called|wer|hvem)\b", re.IGNORECASE)),
    ("place", lazy_regex(r"\b(?:where|wo|hvor)\b", re.IGNORECASE)),
)
_CLAUSE = lazy_regex(r"(?:,|;|\bbut\b)\s+(?=(?:i|he|she|we|they|it|my|our|his|her|their|the)\b)", re.IGNORECASE)
_NAMED = lazy_regex(r"\b(?:called|named|name is|heißt|heter)\s+\w+|\bis \w+[.!]?$", re.IGNORECASE)
_FIRST_PERSON = frozenset({"i", "we", "ich", "jeg", "je"})
_CATEGORY = lazy_regex(r"^(?:what|which) (\w+)")
_MY = lazy_regex(r"\b(?:my|our|mein\w*|min|mitt|mine)\s+(\w+)", re.IGNORECASE)
_OLD_VALUE = lazy_regex(
    r"\b(?:not|no longer|instead of|rather than)\s+(.+?)(?=,|;|\.|\bbut\b|\bany ?more\b|$)", re.IGNORECASE
)

_OVER = lazy_regex(
    r"\b(?:(?:moved|moving|switched|changed|went|going) from|quit|left|sold|instead of|no longer(?: \w+)?(?: at| in)?)"
    r"\s+([^,;.]{2,40}?)(?=,|;|\.|\bto\b|\bfor\b|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """`answers`, the one to believe first; `corrects` when that one was said to put an earlier one right. Without
    answers, `nearest` is what came closest, if anything did."""

    answers: tuple[QuotedMessage, ...] = ()
    corrects: bool = False
    nearest: QuotedMessage | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    words: tuple[str, ...]
    weights: tuple[float, ...]
    kind: Kind
    first_person: bool
    mine: frozenset[str]
    kin: frozenset[str]
    names: frozenset[str]


def find_answer(question: str, quotes: Iterable[QuotedMessage], *, topic: bool = False) -> RankedAnswer:
    """The quotations that answer `question`, or all that belong to its topic."""
    asked = _read(question)
    scored = sorted(((_score(asked, quote), quote) for quote in quotes), key=lambda pair: pair[0], reverse=True)
    if not scored or not asked.words:
        return RankedAnswer()
    best = scored[0][0]
    if best < (_ANSWERS_TOPIC if topic else _ANSWERS):
        return RankedAnswer(nearest=scored[0][1] if best >= _NEAREST else None)
    floor = _ANSWERS_TOPIC if topic else max(_ANSWERS, best - _ALSO_FITS)
    first = [quote for score, quote in scored if score >= best - _ABOUT_EQUAL and score >= floor]
    rest = [quote for score, quote in scored if floor <= score < best - _ABOUT_EQUAL]
    answers = _put_right(_distinct([*_newest_first(first), *_newest_first(rest)]))
    return RankedAnswer(answers[: _MOST_ON_TOPIC if topic else _MOST], _is_correction(answers[0]))


def find_replaced_statement(correction: str, quotes: Iterable[QuotedMessage]) -> QuotedMessage | None:
    """The earlier statement that `correction` puts right, if one is found."""
    asked = _read(correction)
    if not asked.words:
        return None
    old = [fold_word(word) for part in _OLD_VALUE.findall(correction) for word in content_words(part)]
    new = [fold_word(word) for word in asked.words]
    scored = []
    for quote in quotes:
        said = [fold_word(token) for token in tokenize(quote.text)]
        contradicts = _holds(said, old) if old else not all(_holds(said, [word]) for word in new)
        if contradicts and (score := _score(asked, quote)) >= _REPLACES:
            scored.append((score, quote))
    if not scored:
        return None
    best = max(score for score, _ in scored)
    return _newest_first([quote for score, quote in scored if score >= best - _ABOUT_EQUAL])[0]


def _put_right(answers: tuple[QuotedMessage, ...]) -> tuple[QuotedMessage, ...]:
    """A newer one that answers as well, and was said to put something right or names what it takes the place of, stands
    before the first."""
    newer = [
        quote
        for quote in answers
        if quote.message_id > answers[0].message_id and (_is_correction(quote) or _replaces(quote, answers[0]))
    ]
    holds = next(iter(_newest_first(newer)), answers[0])
    return (holds, *(quote for quote in answers if quote is not holds))


def _read(question: str) -> _Question:
    words = tuple(content_words(question))
    category = (_CATEGORY.findall(question.lower()) or [""])[0]
    kinds = [kind for kind, pattern in _ASKED_KINDS if pattern.search(question)]
    return _Question(
        words=words,
        weights=tuple(_A_MERE_ATTRIBUTE if word in ATTRIBUTE_WORDS or word == category else 1.0 for word in words),
        kind=kinds[0] if kinds else "any",
        first_person=bool(_FIRST_PERSON & set(tokenize(question))) or bool(_MY.search(question)),
        mine=frozenset(fold_word(word) for word in _MY.findall(question.lower())),
        kin=frozenset(word for word in words if fold_word(word) in _KIN),
        names=frozenset(fold_word(name) for name in _names(question)) - _KIN,
    )


def _score(asked: _Question, quote: QuotedMessage) -> float:
    whole = [fold_word(token) for token in tokenize(quote.text)]
    if not any(_credit(word, whole, whole) for word in asked.words):
        return 0.0
    clauses = [clause for sentence in split_sentences(quote.text) for clause in _CLAUSE.split(sentence)]
    return max((_score_clause(asked, clause, whole) for clause in clauses), default=0.0)


def _score_clause(asked: _Question, clause: str, whole: Sequence[str]) -> float:
    said = [fold_word(token) for token in tokenize(clause)]
    covered = sum(w * _credit(word, said, whole) for word, w in zip(asked.words, asked.weights, strict=True))
    score = (
        covered / sum(asked.weights) + _of_the_kind(asked.kind, clause) + _about_the_same(asked, clause, said, whole)
    )
    if score < _NEAREST:
        return score
    match parse_sentence(clause):
        case TakeNote() | CorrectStatement():
            return score
        case AddTodos():
            return score - 0.1
        case _:
            return score * 0.3


def _credit(word: str, said: Sequence[str], whole: Sequence[str]) -> float:
    """How far a word of the question is covered: said so, said otherwise, or said elsewhere in the same message."""
    key, others = fold_word(word), [fold_word(other) for other in related_words(word)]
    if _holds(said, [key]):
        return 1.0
    if _holds(said, others):
        return 0.8
    if _holds(whole, [key]):
        return 0.6
    return 0.5 if _holds(whole, others) else 0.0


def _about_the_same(asked: _Question, clause: str, said: Sequence[str], whole: Sequence[str]) -> float:
    """Whether question and statement speak of the same person or thing: "where do I live" is not answered by where a
    brother lives."""
    score = 0.0
    if asked.first_person and _FIRST_PERSON & set(tokenize(clause)):
        score += 0.1
    if asked.mine & {fold_word(word) for word in _MY.findall(clause.lower())}:
        score += 0.1
    subject = {fold_word(word) for word in content_words(clause)[:2]} & _KIN
    if asked.kin:
        relatives = [fold_word(other) for kin in asked.kin for other in (kin, *related_words(kin))]
        score -= 0.0 if _holds(whole, relatives) else 0.35
    elif asked.first_person and subject:
        score -= 0.35
    return score - 0.2 * sum(1 for name in asked.names if not _holds(whole, [name]))


def _of_the_kind(kind: Kind, clause: str) -> float:
    said = tokenize(clause)
    held = {
        "any": True,
        "name": bool(_names(clause) or _NAMED.search(clause)),
        "colour": bool(_COLOURS & set(said)),
        "number": any(character.isdigit() for character in clause) or bool(_NUMBERS & set(said)),
        "time": any(character.isdigit() for character in clause) or bool(_CALENDAR & set(said)),
        "place": bool(_PLACE_WORDS & set(said)),
    }[kind]
    return (0.05 if held else -0.35) if kind != "any" else 0.0


def _names(text: str) -> list[str]:
    """Words that look like names of people or things: capitalised inside the clause, and not where or when."""
    words = re.findall(r"[^\W\d_]+|\d+", text)
    return [
        word
        for before, word in pairwise(words)
        if word[0].isupper() and len(word) > 1 and word.lower() not in _CALENDAR and before.lower() not in _PLACE_WORDS
    ]


def _holds(said: Sequence[str], wanted: Iterable[str]) -> bool:
    return any(is_same_word(one, other) for one in wanted for other in said)


def _newest_first(quotes: Iterable[QuotedMessage]) -> list[QuotedMessage]:
    return sorted(quotes, key=lambda quote: quote.message_id, reverse=True)


def _distinct(quotes: Iterable[QuotedMessage]) -> tuple[QuotedMessage, ...]:
    """Without those that say, word for word, what one before them says."""
    seen: dict[str, QuotedMessage] = {}
    for quote in quotes:
        seen.setdefault(" ".join(tokenize(quote.text)), quote)
    return tuple(seen.values())


def _replaces(newer: QuotedMessage, older: QuotedMessage) -> bool:
    """Whether it says that something is over which the older one says: "moved from Oslo to Bergen"."""
    said = [fold_word(token) for token in tokenize(older.text)]
    over = [fold_word(word) for part in _OVER.findall(newer.text) for word in content_words(part)]
    return bool(over) and _holds(said, over)


def _is_correction(quote: QuotedMessage) -> bool:
    return any(isinstance(parse_sentence(sentence), CorrectStatement) for sentence in split_sentences(quote.text))
