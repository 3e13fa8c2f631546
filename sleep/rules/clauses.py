"""Sentences taken apart into clauses, what a clause does (asks, orders, supposes or states), and fragments joined.
Pure.

What always holds: words stay as they were written, in their order; a clause is a part of its sentence word for word.
What is not plainly a statement tells nothing. A sentence without a verb or a subject is joined to the one it belongs
to: "Friday the 29th, half past nine." says something only behind the sentence that says of what; "The dentist!" only
before the one that goes on about him.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assistant.core.text import lazy_regex
from sleep.rules.pattern_files import load_pattern
from sleep.rules.sentences import Sentence, expand_shorthand

_OPENER = load_pattern("clauses", "opener")
_CUT = load_pattern("clauses", "cut")
_ORDER = load_pattern("clauses", "order")
_STANDING = load_pattern("clauses", "standing")
_REMEMBER = load_pattern("clauses", "remember")
_SUPPOSED = load_pattern("clauses", "supposed")
_UNKNOWN = load_pattern("clauses", "unknown")
_SMALL = load_pattern("clauses", "small")
_PRONOUN = load_pattern("clauses", "pronoun")
_ALWAYS = load_pattern("clauses", "always")
_STANDS_BY_ITSELF = load_pattern("clauses", "stands_by_itself")
_STANDING_ORDERS_IT = load_pattern("clauses", "standing_orders_it")


def find_clauses(own: str) -> list[tuple[int, int]]:
    """Where each clause of a sentence begins and ends."""
    return list(_spans(own))


def strip_opening_words(clause: str) -> str:
    """Without the words that only begin it."""
    found = _OPENER.match(clause)
    rest = clause[found.end() :] if found else clause
    kept = rest if rest.strip(" .,!?") else clause
    asked = _REMEMBER.match(kept)
    return kept[asked.end() :] if asked else kept


def is_question_clause(clause: str) -> bool:
    clause = expand_shorthand(clause)
    return Sentence(clause, clause).is_question or Sentence(clause, strip_opening_words(clause)).is_question


def is_order(clause: str) -> bool:
    """Whether it asks for something to be done now."""
    clause = expand_shorthand(clause)
    start = strip_opening_words(clause)
    if _REMEMBER.match(clause) or is_standing_instruction(start):
        return False
    return bool(_ORDER.match(start))


def is_standing_instruction(clause: str) -> bool:
    """Whether it says how something is to be done from now on."""
    start = strip_opening_words(expand_shorthand(clause))
    if _ALWAYS.match(start) or _STANDS_BY_ITSELF.search(start):
        return True
    return bool(_STANDING.search(start) and _ORDER.match(start) and not _STANDING_ORDERS_IT.search(start))


def is_hypothetical(clause: str) -> bool:
    return bool(_SUPPOSED.search(strip_opening_words(expand_shorthand(clause))))


def is_disclaimer(clause: str) -> bool:
    """Whether it says that something is not known."""
    return bool(_UNKNOWN.search(expand_shorthand(clause)))


def is_small_talk_clause(clause: str) -> bool:
    return bool(_SMALL.match(clause.strip(" .,!?")))


def depends_on_previous(clause: str) -> bool:
    """Whether it begins with a word that stands for something said before."""
    return bool(_PRONOUN.match(expand_shorthand(clause)))


def _spans(own: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in _CUT.finditer(own):
        if found.start() > start:
            yield start, found.start()
        start = found.end()
    if start < len(own):
        yield start, len(own)


_REMINDER = lazy_regex(r"\b(?:remind|remember|forget)\b", re.IGNORECASE)


def mentions_reminder(clause: str) -> bool:
    return bool(_REMINDER.search(clause))


_JOKE = load_pattern("clauses", "joke")


def is_joke(sentence: str) -> bool:
    return bool(_JOKE.search(sentence))


_MOST_WORDS = 9
_MOST_OF_A_TOPIC = 4
_LONGEST = 380
_FINITE = load_pattern("clauses", "finite")
_PERSON = lazy_regex(r"^(?:and |but |so )?(?:i|we|you|he|she|they|it|this|that|these|those|there)\b", re.IGNORECASE)
_GOES_ON = load_pattern("clauses", "goes_on")
_OUTCRY = load_pattern("clauses", "outcry")


def join_fragments(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The sentences, each with the fragments that belong to it."""
    joined: list[Sentence] = []
    topic = False
    for sentence in sentences:
        last = joined[-1] if joined else None
        if (
            last is not None
            and _belongs(last, sentence, topic=topic)
            and len(last.text) + len(sentence.text) < _LONGEST
        ):
            joined[-1] = Sentence(f"{last.text} {sentence.text}", f"{last.own_text} {sentence.own_text}")
            topic = False
        else:
            joined.append(sentence)
            topic = _is_topic(sentence)
    return joined


def _belongs(last: Sentence, sentence: Sentence, *, topic: bool) -> bool:
    if (
        not (_states(last) and _states(sentence))
        or len(last.text) != len(last.own_text)
        or len(sentence.text) != len(sentence.own_text)
    ):
        return False
    return is_fragment(sentence) or (topic and bool(_GOES_ON.match(expand_shorthand(sentence.own_text))))


def _states(sentence: Sentence) -> bool:
    own = sentence.own_text
    return not (sentence.is_question or is_order(own) or is_small_talk_clause(own) or is_hypothetical(own))


def is_fragment(sentence: Sentence) -> bool:
    """Whether it has neither a verb nor a subject of its own and is no outcry."""
    own = expand_shorthand(sentence.own_text)
    if len(own.split()) > _MOST_WORDS or _OUTCRY.match(own) or is_joke(own):
        return False
    return not _FINITE.search(own) and not _PERSON.match(own)


def _is_topic(sentence: Sentence) -> bool:
    return len(sentence.own_text.split()) <= _MOST_OF_A_TOPIC and is_fragment(sentence) and _states(sentence)
