"""A search question taken apart: its stems, and what it asks for beside its words (of whom, of when, of how many); and
how much of a collection a search scores. Pure, and light to import: the engine is loaded later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from assistant.core.calendar import MONTHS, WEEKDAYS
from assistant.core.text import STOP_WORDS, lazy_regex
from assistant.core.text import distinct_words as words_of


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How much of a collection a search scores, in units."""

    small_collection: int = 1_500  # up to so many it is scored as a whole
    seed_units: int = 2_000  # the best by a cheap score, which lead to those that are scored exactly
    scored_units: int = 1_000
    common_share: float = 0.3  # a stem that more sources have leads nowhere


MAX_STEMS = 24

_WHEN = lazy_regex(
    r"\b(?:when|what (?:day|date|time|year|month|week)|how long|which (?:year|month|day|week)|wann|seit|quand|cuándo"
    r"|når|hvor lenge)\b|什么时候|何时|几号|いつ|何時|언제",
    re.IGNORECASE,
)
_OF_ASSISTANT = lazy_regex(
    r"\b(?:did|do|have|had|can|could|were|was|what|when|where|which|why|how)\b.*\byou(?:'ve| have| had)?\b.*"
    r"\b(?:tell|told|say|said|suggest\w*|recommend\w*|advise\w*|propose\w*|explain\w*|list\w*|answer\w*|mention\w*)\b"
    r"|\byou\b(?:'ve| have| had)?\s+(?:told|said|suggested|recommended|advised|proposed|explained|listed|mentioned)\b",
    re.IGNORECASE,
)
_OF_ONESELF = lazy_regex(
    r"\b(?:i|my|me|mine|we|our|ich|mein\w*|je|mon|ma|mes|mi|mis|jeg|min|mitt)\b|我|私|僕", re.IGNORECASE
)
_DATES = {
    name: (kind, number)
    for kind, names in (("weekday", WEEKDAYS), ("month", MONTHS))
    for number, name in enumerate(names, start=1)
}


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question taken apart."""

    text: str
    words: dict[str, str]  # the question's own stems, each with a word of it, in their order
    # Parts of dates that it names, by the stem: ("weekday", 1-7), ("month", 1-12), ("day", 1-31), ("year", 2023).
    dates: dict[str, tuple[str, int]]
    asks_time: bool
    about_assistant: bool
    about_user: bool


def parse_question(question: str, stems: Callable[[Iterable[str]], dict[str, str]]) -> ParsedQuestion:
    """`stems` gives the stems of words, as the index has them."""
    distinct = words_of(question)
    stem_of = stems(distinct)
    telling = [word for word in distinct if word not in STOP_WORDS] or distinct
    words: dict[str, str] = {}
    dates: dict[str, tuple[str, int]] = {}
    for word in telling:
        for stem in stem_of[word].split():
            if len(words) < MAX_STEMS:
                words.setdefault(stem, word)
                part = _date_part(word)
                if part is not None:
                    dates[stem] = part
    of_assistant = asks_about_assistant(question)
    return ParsedQuestion(
        question,
        words,
        dates,
        bool(_WHEN.search(question)),
        of_assistant,
        not of_assistant and bool(_OF_ONESELF.search(question)),
    )


def asks_about_assistant(question: str) -> bool:
    """Whether it asks for what the assistant said, not the person."""
    return _OF_ASSISTANT.search(question) is not None


def _date_part(word: str) -> tuple[str, int] | None:
    part = _DATES.get(word)
    if part is not None:
        return part
    digits = word.removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
    if digits.isdecimal() and digits.isascii():
        number = int(digits)
        if 1 <= number <= 31:
            return "day", number
        if 1900 <= number < 2200:
            return "year", number
    return None
