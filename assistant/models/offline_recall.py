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
from typing import Literal

from assistant.models.offline_intents import AddTodos, Correct, Note
from assistant.models.offline_reading import read_sentence
from assistant.models.offline_words import ATTRIBUTES, alike, content_words, family, sentences, stem, tokens
from assistant.quotes import Quote

Kind = Literal["name", "time", "place", "number", "colour", "any"]

_ANSWERS = 0.55
_ANSWERS_TOPIC = 0.5
_NEAREST = 0.4
_REPLACES = 0.4
_ABOUT_EQUAL = 0.1
_ALSO_FITS = 0.25
_MOST = 3
_MOST_ON_TOPIC = 5

_KIN = """sister brother mother father mum mom dad wife husband spouse son daughter uncle aunt cousin friend boss
neighbour neighbor girlfriend boyfriend grandmother grandfather grandma grandpa niece nephew colleague"""
_KIN_STEMS = frozenset(stem(word) for word in _KIN.split())
_MONTHS_AND_DAYS = """january february march april may june july august september october november december monday tuesday
wednesday thursday friday saturday sunday"""
_CALENDAR = frozenset(_MONTHS_AND_DAYS.split())
_COLOURS = frozenset("red green blue yellow black white grey gray brown orange pink purple silver gold beige".split())
_PLACE_WORDS = frozenset("in at to from near under by on behind over beside between ved i på bei auf unter".split())
_ASKED_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("colour", re.compile(r"\bcolou?r\b", re.IGNORECASE)),
    ("number", re.compile(r"\b(?:how (?:much|many|old|tall|far|big)|number|phone|cost|price|rent)\b", re.IGNORECASE)),
    ("time", re.compile(r"\b(?:when|what time|which day|birthday|date|wann|når)\b", re.IGNORECASE)),
    ("name", re.compile(r"\b(?:who|whose|name|called|wer|hvem)\b", re.IGNORECASE)),
    ("place", re.compile(r"\b(?:where|wo|hvor)\b", re.IGNORECASE)),
)
_FIRST_PERSON = frozenset("i we i'm i've we're ich jeg je".split())
_MY = re.compile(r"\b(?:my|our|mein\w*|min|mitt|mine)\s+(\w+)", re.IGNORECASE)
_OLD_VALUE = re.compile(r"\b(?:not|no longer|instead of|rather than)\s+(.+?)(?=,|;|\.|\bbut\b|\bany ?more\b|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """`answers`, the one to believe first; `corrects` when that one was said to put an earlier one right. Without
    answers, `nearest` is what came closest, if anything did."""

    answers: tuple[Quote, ...] = ()
    corrects: bool = False
    nearest: Quote | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    words: tuple[str, ...]
    kind: Kind
    first_person: bool
    mine: frozenset[str]
    kin: frozenset[str]
    names: frozenset[str]


def answer(question: str, quotes: Iterable[Quote], *, topic: bool = False) -> Found:
    """The quotations that answer `question`, or all that belong to its topic."""
    asked = _read(question)
    scored = sorted(((_score(asked, quote), quote) for quote in quotes), key=lambda pair: pair[0], reverse=True)
    if not scored or not asked.words:
        return Found()
    best = scored[0][0]
    if best < (_ANSWERS_TOPIC if topic else _ANSWERS):
        return Found(nearest=scored[0][1] if best >= _NEAREST else None)
    floor = _ANSWERS_TOPIC if topic else max(_ANSWERS, best - _ALSO_FITS)
    first = [quote for score, quote in scored if score >= best - _ABOUT_EQUAL and score >= floor]
    rest = [quote for score, quote in scored if floor <= score < best - _ABOUT_EQUAL]
    answers = _distinct([*_newest_first(first), *_newest_first(rest)])
    return Found(answers[: _MOST_ON_TOPIC if topic else _MOST], _is_correction(answers[0]))


def replaced(correction: str, quotes: Iterable[Quote]) -> Quote | None:
    """The earlier statement that `correction` puts right, if one is found."""
    asked = _read(correction)
    old = [stem(word) for part in _OLD_VALUE.findall(correction) for word in content_words(part)]
    new = [stem(word) for word in asked.words]
    scored = []
    for quote in quotes:
        said = [stem(token) for token in tokens(quote.text)]
        contradicts = _holds(said, old) if old else not all(_holds(said, [word]) for word in new)
        if contradicts and (score := _score(asked, quote)) >= _REPLACES:
            scored.append((score, quote))
    if not scored:
        return None
    best = max(score for score, _ in scored)
    return _newest_first([quote for score, quote in scored if score >= best - _ABOUT_EQUAL])[0]


def _read(question: str) -> _Question:
    words = tuple(content_words(question))
    kind = next((kind for kind, pattern in _ASKED_KINDS if pattern.search(question)), "any")
    return _Question(
        words=words,
        kind=kind,
        first_person=bool(_FIRST_PERSON & set(tokens(question))) or bool(_MY.search(question)),
        mine=frozenset(stem(word) for word in _MY.findall(question.lower())),
        kin=frozenset(stem(word) for word in words) & _KIN_STEMS,
        names=frozenset(stem(name) for name in _names(question)) - _KIN_STEMS,
    )


def _score(asked: _Question, quote: Quote) -> float:
    whole = [stem(token) for token in tokens(quote.text)]
    return max((_score_sentence(asked, sentence, whole) for sentence in sentences(quote.text)), default=0.0)


def _score_sentence(asked: _Question, sentence: str, whole: Sequence[str]) -> float:
    said = [stem(token) for token in tokens(sentence)]
    weights = [0.35 if word in ATTRIBUTES else 1.0 for word in asked.words]
    if not weights:
        return 0.0
    credit = sum(weight * _credit(word, said, whole) for word, weight in zip(asked.words, weights, strict=True))
    score = credit / sum(weights) + _of_the_kind(asked.kind, sentence) + _about_the_same(asked, sentence, said, whole)
    match read_sentence(sentence):
        case Note() | Correct():
            return score
        case AddTodos():
            return score - 0.1
        case _:
            return score * 0.3


def _credit(word: str, said: Sequence[str], whole: Sequence[str]) -> float:
    """How far a word of the question is covered: said so, said otherwise, or said elsewhere in the same message."""
    key, others = stem(word), [stem(other) for other in family(word)]
    if _holds(said, [key]):
        return 1.0
    if _holds(said, others):
        return 0.8
    if _holds(whole, [key]):
        return 0.6
    return 0.5 if _holds(whole, others) else 0.0


def _about_the_same(asked: _Question, sentence: str, said: Sequence[str], whole: Sequence[str]) -> float:
    """Whether question and statement speak of the same person or thing: "where do I live" is not answered by where a
    brother lives."""
    score = 0.0
    if asked.first_person and _FIRST_PERSON & set(tokens(sentence)):
        score += 0.1
    if asked.mine & {stem(word) for word in _MY.findall(sentence.lower())}:
        score += 0.1
    subject = {stem(word) for word in content_words(sentence)[:2]} & _KIN_STEMS
    if asked.kin:
        relatives = [stem(other) for kin in asked.kin for other in (kin, *family(kin))]
        score -= 0.0 if _holds(whole, relatives) else 0.35
    elif asked.first_person and subject:
        score -= 0.35
    return score - 0.2 * sum(1 for name in asked.names if not _holds(whole, [name]))


def _of_the_kind(kind: Kind, sentence: str) -> float:
    said = tokens(sentence)
    held = {
        "any": True,
        "name": bool(_names(sentence)),
        "colour": bool(_COLOURS & set(said)),
        "number": any(character.isdigit() for character in sentence),
        "time": any(character.isdigit() for character in sentence) or bool(_CALENDAR & set(said)),
        "place": bool(_PLACE_WORDS & set(said)),
    }[kind]
    return (0.05 if held else -0.2) if kind != "any" else 0.0


def _names(text: str) -> list[str]:
    """Words that look like names of people or things: capitalised inside the sentence, and not where or when."""
    words = re.findall(r"[^\W\d_]+|\d+", text)
    return [
        word
        for before, word in zip(words, words[1:], strict=False)
        if word[0].isupper() and len(word) > 1 and word.lower() not in _CALENDAR and before.lower() not in _PLACE_WORDS
    ]


def _holds(said: Sequence[str], wanted: Iterable[str]) -> bool:
    return any(alike(one, other) for one in wanted for other in said)


def _newest_first(quotes: Iterable[Quote]) -> list[Quote]:
    return sorted(quotes, key=lambda quote: quote.message_id, reverse=True)


def _distinct(quotes: Iterable[Quote]) -> tuple[Quote, ...]:
    """Without those that say, word for word, what a newer one says."""
    return tuple({" ".join(tokens(quote.text)): quote for quote in reversed(list(quotes))}.values())[::-1]


def _is_correction(quote: Quote) -> bool:
    return any(isinstance(read_sentence(sentence), Correct) for sentence in sentences(quote.text))
