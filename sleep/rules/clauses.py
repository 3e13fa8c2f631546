"""Splits sentences into clauses, determines what a clause does (ask, order, suppose or state), joins fragments, and
extracts the durable part of a sentence verbatim. Pure.

- Words and their order are unchanged; a clause is a verbatim part of its sentence. What is not clearly a statement is
  not extracted.
- A sentence without a verb or a subject is joined to its neighbour: "Friday the 29th, half past nine." to the sentence
  before it; "The dentist!" only to the sentence after it.
- A clause that asks, orders, supposes or disclaims is never a reason to keep anything, and a clause next to it must be
  durable by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex
from sleep.rules.classifier import durable_threshold, mentions_entity, mentions_person, score_clause
from sleep.rules.corrections import is_correction, is_explicit_correction
from sleep.rules.pattern_files import load_pattern
from sleep.rules.sentence_cache import IN_A_TEXT, WITHIN_A_SENTENCE, cached_by_sentence
from sleep.rules.sentences import Sentence, expand_shorthand, split_sentences

_OPENER = load_pattern("clauses", "opener")
_CUT = load_pattern("clauses", "cut")
# What every cut has, and what is found faster.
_MAY_CUT = lazy_regex(r"[;—,:(]|[-–.!…]\s|\s(?:but|because|cos|since|although|so|and)\s", re.IGNORECASE)
_ORDER = load_pattern("clauses", "order")
_STANDING = load_pattern("clauses", "standing")
_REMEMBER = load_pattern("clauses", "remember")
_SUPPOSED = load_pattern("clauses", "supposed")
_UNKNOWN = load_pattern("clauses", "unknown")
_SMALL = load_pattern("clauses", "small")
_PRONOUN = load_pattern("clauses", "pronoun")
_ALWAYS = load_pattern("clauses", "always")
_STANDS_BY_ITSELF = load_pattern("clauses", "stands_by_itself")
_ABOUT_ANSWERS = load_pattern("clauses", "about_answers")
_STANDING_ORDERS_IT = load_pattern("clauses", "standing_orders_it")


def find_clauses(own: str) -> list[tuple[int, int]]:
    """Return start and end of each clause of a sentence."""
    if _MAY_CUT.search(own) is None:
        return [(0, len(own))] if own else []
    cuts = [(match.start(), match.end()) for match in _CUT.finditer(own)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(own)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def strip_opening_words(clause: str) -> str:
    """Remove words that only introduce the clause."""
    opener = _OPENER.match(clause)
    if opener and clause[opener.end() :].strip(" .,!?"):
        clause = clause[opener.end() :]
    request = _REMEMBER.match(clause)
    return clause[request.end() :] if request else clause


def is_question_clause(clause: str) -> bool:
    clause = expand_shorthand(clause)
    return Sentence(clause, clause).is_question or Sentence(clause, strip_opening_words(clause)).is_question


def is_order(clause: str) -> bool:
    """Return whether it asks for something to be done now."""
    clause = expand_shorthand(clause)
    start = strip_opening_words(clause)
    if _REMEMBER.match(clause) or is_standing_instruction(start):
        return False
    return bool(_ORDER.match(start))


@cached_by_sentence(WITHIN_A_SENTENCE)
def is_standing_instruction(clause: str) -> bool:
    """Return whether it says how something should be done from now on."""
    start = strip_opening_words(expand_shorthand(clause))
    if _ALWAYS.match(start) or _STANDS_BY_ITSELF.search(start):
        return True
    return bool(_STANDING.search(start) and _ORDER.match(start) and not _STANDING_ORDERS_IT.search(start))


def find_standing_wishes(text: str) -> list[str]:
    """Return the sentences of a person's message that say how they want things done, or answered, from now on."""
    return [sentence.text for sentence in split_sentences(text) if _is_standing_wish(sentence)]


@cached_by_sentence(IN_A_TEXT)
def _is_standing_wish(sentence: Sentence) -> bool:
    if sentence.is_question:
        return False
    own = sentence.own_text
    clauses = (own[start:end] for start, end in find_clauses(own))
    return bool(_ABOUT_ANSWERS.search(own)) or any(map(is_standing_instruction, clauses))


def is_hypothetical(clause: str) -> bool:
    return bool(_SUPPOSED.search(strip_opening_words(expand_shorthand(clause))))


def is_disclaimer(clause: str) -> bool:
    """Return whether it says that something is not known."""
    return bool(_UNKNOWN.search(expand_shorthand(clause)))


def is_small_talk_clause(clause: str) -> bool:
    return bool(_SMALL.match(clause.strip(" .,!?")))


def depends_on_previous(clause: str) -> bool:
    """Return whether it begins with a word that refers to something said before."""
    return bool(_PRONOUN.match(expand_shorthand(clause)))


_REMINDER = lazy_regex(r"\b(?:remind|remember|forget)\b", re.IGNORECASE)


def mentions_reminder(clause: str) -> bool:
    return bool(_REMINDER.search(clause))


_JOKE = load_pattern("clauses", "joke")


def is_joke(sentence: str) -> bool:
    return bool(_JOKE.search(sentence))


_MOST_WORDS = 9
_MOST_OF_A_TOPIC = 4
_LONGEST_JOINED = 380
_FINITE = load_pattern("clauses", "finite")
_PERSON = lazy_regex(r"^(?:and |but |so )?(?:i|we|you|he|she|they|it|this|that|these|those|there)\b", re.IGNORECASE)
_GOES_ON = load_pattern("clauses", "goes_on")
_OUTCRY = load_pattern("clauses", "outcry")


def join_fragments(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences, each with the fragments that belong to it."""
    joined: list[Sentence] = []
    topic = False
    for sentence in sentences:
        last = joined[-1] if joined else None
        if last is not None and _belongs(last, sentence, topic=topic):
            joined[-1] = Sentence(f"{last.text} {sentence.text}", f"{last.own_text} {sentence.own_text}")
            topic = False
        else:
            joined.append(sentence)
            topic = _is_topic(sentence)
    return joined


def _belongs(last: Sentence, sentence: Sentence, *, topic: bool) -> bool:
    if not (_states(last) and _states(sentence)) or len(last.text) + len(sentence.text) >= _LONGEST_JOINED:
        return False
    if len(last.text) != len(last.own_text) or len(sentence.text) != len(sentence.own_text):
        return False
    return is_fragment(sentence) or (topic and bool(_GOES_ON.match(expand_shorthand(sentence.own_text))))


def _states(sentence: Sentence) -> bool:
    own = sentence.own_text
    return not (sentence.is_question or is_order(own) or is_small_talk_clause(own) or is_hypothetical(own))


def is_fragment(sentence: Sentence) -> bool:
    """Return whether it has neither a verb nor a subject and is not an exclamation."""
    own = expand_shorthand(sentence.own_text)
    if len(own.split()) > _MOST_WORDS or _OUTCRY.match(own) or is_joke(own):
        return False
    return not _FINITE.search(own) and not _PERSON.match(own)


def _is_topic(sentence: Sentence) -> bool:
    return len(sentence.own_text.split()) <= _MOST_OF_A_TOPIC and is_fragment(sentence) and _states(sentence)


_LONGEST_READ = 400
_FEW_WORDS = 2
_MANY_WORDS = 5
# A correction is a sign of durability. A clause next to a question or an order must be durable by itself.
_FOR_CORRECTING = 0.9
_FOR_SAYING_SO = 1.6
_FOR_BEING_NOTED = 0.8
_OF_SOMEBODY = 0.6
_OF_ONE = 1.2
_LONG = 18
# An edge of a sentence with a lower score is only temporary.
_EDGE = -2.5
_OF_SOMEBODY_NAMED = lazy_regex(r"^(?:who|which|whose)\b", re.IGNORECASE)
_HANGS_ON = lazy_regex(r"^(?:to|for|with|about|of|in|at|from|by|who|which|that|like|or|than|into|as)\b", re.IGNORECASE)
_SUBJECT = load_pattern("clauses", "subject")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of a sentence."""

    start: int
    end: int
    states: bool  # it states something
    weight: float
    hangs: bool  # its subject refers to something said before
    whole: bool  # it is understandable by itself
    small: bool  # small talk


def extract_durable_part(
    sentence: Sentence, *, after_announcement: bool = False, was_acknowledged: bool = False
) -> str:
    """Return the durable part of a sentence, verbatim; "" if there is none. `after_announcement`: the sentence before
    announced a correction; `was_acknowledged`: the assistant confirmed it."""
    own = sentence.own_text[:_LONGEST_READ]
    if is_too_short(own) or is_small_talk_clause(own) or is_joke(own):
        return ""
    correcting = (after_announcement or is_correction(own)) and mentions_entity(own)
    need = durable_threshold() - _FOR_CORRECTING * correcting - _FOR_BEING_NOTED * was_acknowledged
    need -= _FOR_SAYING_SO * (correcting and is_explicit_correction(own))
    parts = _parts(own, sentence)
    if not all(part.states for part in parts):
        return _statement_beside_request(sentence, own, parts, need)
    if not parts or _most(own, parts) < need:
        return ""
    return _cut(sentence, own, parts)


def _statement_beside_request(sentence: Sentence, own: str, parts: list[_Clause], need: float) -> str:
    """Return the durable statement in a sentence that also asks, orders or supposes something."""
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
    """Return the clauses; a question, order or supposition extends until another person is addressed."""
    spans = find_clauses(own)
    clauses: list[_Clause] = []
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
            # "if Alun asks" between two commas does not make what follows a supposition.
            doing = False
        clauses.append(_Clause(start, end, states, own_weight, depends_on_previous(clause), whole, small))
    while len(clauses) > 1 and clauses[0].small:
        clauses = clauses[1:]
    while len(clauses) > 1 and clauses[-1].small:
        clauses = clauses[:-1]
    return clauses


def _asks(clause: str, index: int, sentence: Sentence) -> bool:
    """Return whether it asks; "who is eight" after a name is not a question."""
    return is_question_clause(clause) and not (
        index and not sentence.has_question_mark and _OF_SOMEBODY_NAMED.match(clause)
    )


def _most(own: str, parts: list[_Clause]) -> float:
    """Return the best score of a part: a clause, two adjacent clauses, or the whole sentence if it is short enough."""
    spans = [(first.start, other.end) for first, other in pairwise(parts)]
    if len(parts) > 2 and len(own.split()) <= _LONG:
        spans.append((parts[0].start, parts[-1].end))
    return max(
        *(score_clause(strip_opening_words(own[start:end])) for start, end in spans),
        *(part.weight for part in parts),
        -9.0,
    )


def _of_whom_it_is_asked(sentence: Sentence, own: str, parts: list[_Clause]) -> str:
    """Return what is said, after an order or a question, about a person named in it."""
    for before, part in pairwise(parts):
        request, clause = own[before.start : before.end], own[part.start : part.end]
        if not part.hangs or before.states or is_order(clause) or is_question_clause(clause) or is_disclaimer(clause):
            continue
        weight = score_clause(clause)
        of_somebody = weight >= _OF_SOMEBODY and weight + score_clause(request) >= durable_threshold()
        if mentions_person(request) and (weight >= _OF_ONE or of_somebody):
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
    """Return whether it is too short to state anything, in a script with spaces."""
    return len(own.split()) <= _FEW_WORDS
