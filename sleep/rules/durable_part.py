"""The part of a sentence that tells something lasting, cut out word for word. Pure.

What always holds: a clause that asks, orders, supposes or disclaims is never the reason to keep anything, and one that
stands beside such a clause has to speak for itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from assistant.core.text import lazy_regex
from sleep.rules.classifier import durable_threshold, mentions_entity, mentions_person, score_clause
from sleep.rules.clauses import (
    depends_on_previous,
    find_clauses,
    is_disclaimer,
    is_hypothetical,
    is_joke,
    is_order,
    is_question_clause,
    is_small_talk_clause,
    is_standing_instruction,
    strip_opening_words,
)
from sleep.rules.corrections import is_correction, is_explicit_correction
from sleep.rules.pattern_files import load_pattern
from sleep.rules.sentences import Sentence

_LONGEST = 400
_FEW_WORDS = 2
_MANY_WORDS = 5
# A correction tells that something lasts. A clause beside a question or an order has to speak for itself.
_FOR_CORRECTING = 0.9
_FOR_SAYING_SO = 1.6
_FOR_BEING_NOTED = 0.8
_OF_SOMEBODY = 0.6
_OF_ONE = 1.2
_LONG = 18
# An edge of a sentence that weighs less only passes.
_EDGE = -2.5
_OF_SOMEBODY_NAMED = lazy_regex(r"^(?:who|which|whose)\b", re.IGNORECASE)
_HANGS_ON = lazy_regex(r"^(?:to|for|with|about|of|in|at|from|by|who|which|that|like|or|than|into|as)\b", re.IGNORECASE)
_SUBJECT = load_pattern("clauses", "subject")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A part of a sentence."""

    start: int
    end: int
    states: bool  # it states something
    weight: float
    hangs: bool  # its subject depends on what was said before
    whole: bool  # it can be understood by itself
    small: bool  # small talk


@dataclass(frozen=True, slots=True)
class SentenceContext:
    """What is around a sentence."""

    after_announcement: bool = False  # the sentence before said that this is a correction
    was_acknowledged: bool = False  # the assistant took note of it


def extract_durable_part(sentence: Sentence, beside: SentenceContext) -> str:
    """The part of a sentence that lasts, word for word; "" where nothing does."""
    own = sentence.own_text[:_LONGEST]
    if is_too_short(own) or is_small_talk_clause(own) or is_joke(own):
        return ""
    correcting = (beside.after_announcement or is_correction(own)) and mentions_entity(own)
    need = (
        durable_threshold()
        - _FOR_CORRECTING * correcting
        - _FOR_SAYING_SO * (correcting and is_explicit_correction(own))
    )
    need -= _FOR_BEING_NOTED * beside.was_acknowledged
    parts = _parts(own, sentence)
    if not all(part.states for part in parts):
        return _beside(sentence, own, parts, need)
    if not parts or _most(own, parts) < need:
        return ""
    return _cut(sentence, own, parts)


def _beside(sentence: Sentence, own: str, parts: list[_Clause], need: float) -> str:
    """What is told in the same breath as something is asked, ordered or supposed."""
    lasting = [part for part in parts if part.states and part.weight >= need]
    if not lasting:
        return _of_whom_it_is_asked(sentence, own, parts)
    first, end = parts.index(lasting[0]), parts.index(lasting[-1])
    while first and parts[first].hangs and parts[first - 1].states:
        first -= 1
    if first and (parts[first].hangs or not parts[first].whole):
        first -= 1
    while end + 1 < len(parts) and parts[end + 1].states and parts[end + 1].weight >= _EDGE:
        end += 1
    return _cut(sentence, own, parts[first : end + 1])


def _parts(own: str, sentence: Sentence) -> list[_Clause]:
    """The clauses; what is asked, ordered or supposed goes on until somebody else is spoken of."""
    spans = find_clauses(own)
    found: list[_Clause] = []
    doing = False
    for index, (start, end) in enumerate(spans):
        clause = own[start:end]
        last = index == len(spans) - 1
        supposes = is_hypothetical(clause)
        begins = _asks(clause, index, sentence) or (last and sentence.has_question_mark) or is_order(clause) or supposes
        own_weight = score_clause(strip_opening_words(clause)) + (
            durable_threshold() if is_standing_instruction(clause) else 0.0
        )
        stands = own_weight >= durable_threshold() and _has_subject(clause)
        doing = begins or (doing and not stands)
        small = is_small_talk_clause(clause) and not begins
        states = not doing and not is_disclaimer(clause) and not small
        whole = _has_subject(clause) or len(clause.split()) > _MANY_WORDS
        if supposes and index and not last:
            # "if Alun asks" between two commas supposes nothing of what follows.
            doing = False
        found.append(_Clause(start, end, states, own_weight, depends_on_previous(clause), whole, small))
    while len(found) > 1 and found[0].small:
        found = found[1:]
    while len(found) > 1 and found[-1].small:
        found = found[:-1]
    return found


def _asks(clause: str, index: int, sentence: Sentence) -> bool:
    """Whether it asks: "who is eight", behind a name, only says more of it."""
    return is_question_clause(clause) and not (
        index and not sentence.has_question_mark and _OF_SOMEBODY_NAMED.match(clause)
    )


def _most(own: str, parts: list[_Clause]) -> float:
    """What the best part weighs: a clause, two beside each other, or a sentence that is no longer than people think."""
    spans = [(one.start, other.end) for one, other in pairwise(parts)]
    if len(parts) > 2 and len(own.split()) <= _LONG:
        spans.append((parts[0].start, parts[-1].end))
    return max(
        *(score_clause(strip_opening_words(own[start:end])) for start, end in spans),
        *(part.weight for part in parts),
        -9.0,
    )


def _of_whom_it_is_asked(sentence: Sentence, own: str, parts: list[_Clause]) -> str:
    """What is said, after an order or a question, of somebody named in it."""
    for before, part in pairwise(parts):
        said = own[part.start : part.end]
        if part.hangs and not before.states and not (is_order(said) or is_question_clause(said) or is_disclaimer(said)):
            both = score_clause(said) + score_clause(own[before.start : before.end])
            if mentions_person(own[before.start : before.end]) and (
                score_clause(said) >= _OF_ONE or (score_clause(said) >= _OF_SOMEBODY and both >= durable_threshold())
            ):
                return _cut(sentence, own, [before, part])
    return ""


def _has_subject(clause: str) -> bool:
    return bool(_SUBJECT.match(clause)) and not _HANGS_ON.match(clause)


def _cut(sentence: Sentence, own: str, parts: list[_Clause]) -> str:
    start, end = parts[0].start, parts[-1].end
    if len(sentence.text) != len(sentence.own_text):
        return sentence.text
    whole = start == 0 and end >= len(own.rstrip(" .!"))
    return sentence.text[: len(own)] if whole else sentence.text[start:end].strip(" ,;:–—-()")


def is_too_short(own: str) -> bool:
    """Too short to tell anything, in a script that has spaces."""
    return len(own.split()) <= _FEW_WORDS
