"""What speaks for a clause to last, and what speaks for it to be over soon: signs with their weights. Pure.

What always holds: no single word decides. A clause lasts where its signs together weigh at least
`durable_threshold()`; the signs are forms of the language and classes of words (`word_classes`), never names or
matters of one person. For languages other than English there are few forms, each as sure as it can be, and no
weights.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal

from sleep.rules.pattern_files import load_pattern, read_classifier
from sleep.rules.sentences import expand_shorthand
from sleep.rules.word_classes import classify_word, split_words

_THING_CHANGED = load_pattern("signs", "thing_changed")
_WEEKDAY = load_pattern("signs", "weekday")


def durable_threshold() -> float:
    """The weight from which a clause lasts."""
    return read_classifier().threshold


def find_signs(clause: str) -> list[str]:
    """The names of the signs that a clause shows, and of the classes of its words as "of <class>"."""
    rules = read_classifier()
    clause = expand_shorthand(clause)
    lowered = clause.lower()
    names = [sign.name for sign in rules.signs if sign.pattern.search(clause if sign.is_cased else lowered)]
    cancelled = {sign.name for sign in rules.signs if sign.cancelled_by.intersection(names)}
    names = [name for name in names if name not in cancelled]
    classes: set[str] = set()
    for word in split_words(lowered):
        classes |= classify_word(word)
    if "kin" in classes and "count" in names:
        names.append("so-many")
    if not classes & rules.link_classes and not rules.link_signs.intersection(names):
        names.append("unlinked")
    return names + [f"of {name}" for name in rules.class_weights if name in classes]


@lru_cache(maxsize=4096)
def score_clause(clause: str) -> float:
    """How much more speaks for a clause to last than against it; `durable_threshold()` is enough."""
    rules, weights = read_classifier(), _weights()
    extra_words = min(rules.most_words, max(0, len(clause.split()) - rules.words_before))
    return sum(weights[name] for name in find_signs(clause)) + rules.word_weight * extra_words


@cache
def _weights() -> dict[str, float]:
    rules = read_classifier()
    return {
        **{sign.name: sign.weight for sign in rules.signs},
        **{f"of {name}": weight for name, weight in rules.class_weights.items()},
        "unlinked": rules.unlinked,
        "so-many": rules.so_many,
    }


@cache
def _sign_pattern(name: str) -> re.Pattern[str]:
    return next(sign.pattern for sign in read_classifier().signs if sign.name == name)


_PREFERS = load_pattern("signs", "prefers")


def classify_kind(clause: str, *, standing: bool) -> Literal["fact", "preference", "decision"]:
    """Of a clause that lasts."""
    if _sign_pattern("decided").search(clause.lower()):
        return "decision"
    return "preference" if standing or _PREFERS.search(clause) else "fact"


def names_date(clause: str) -> bool:
    """Whether it names a date, or how often something happens."""
    lowered = clause.lower()
    return bool(_sign_pattern("date").search(lowered) or _sign_pattern("recurs").search(lowered))


def mentions_entity(clause: str) -> bool:
    """Whether it has a word of somebody's life, a day, a number or a name."""
    if re.search(r"\d|(?<=\w )[A-Z][a-z]", clause) or _WEEKDAY.search(clause) or _THING_CHANGED.match(clause):
        return True
    linked = read_classifier().link_classes - {"food"}
    return any(classify_word(word) & linked for word in split_words(clause.lower()))


def mentions_person(clause: str) -> bool:
    """Whether it names somebody, or somebody of the person's own."""
    if re.search(r"(?<=\w )[A-Z][a-z]{2,}", clause):
        return True
    return any(classify_word(word) & {"kin", "person", "pet"} for word in split_words(clause.lower()))


_PREFERENCE = load_pattern("languages", "preference")
_DECISION = load_pattern("languages", "decision")
_FACT = load_pattern("languages", "fact")
_PASSING = load_pattern("languages", "passing")


def classify_other_language(own: str) -> Literal["fact", "preference", "decision"] | None:
    """Of a statement in German, French, Spanish, Norwegian, Chinese or Japanese; None where nothing lasting is told."""
    if _PASSING.search(own):
        return None
    if _DECISION.search(own):
        return "decision"
    if _PREFERENCE.search(own):
        return "preference"
    return "fact" if _FACT.search(own) else None
