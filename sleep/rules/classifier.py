"""Classifies clauses by rules: scores whether a clause states something durable or something soon over, from weighted
signs; and scores the importance of a journal entry. Pure.

- No single word decides. A clause is durable if the weights of its signs sum to at least `durable_threshold()`; signs
  are language patterns and word classes, never names or topics of one person. A word may be in several classes. Other
  languages than English have few, highly reliable patterns, without weights.
- An entry's most important topic determines its importance, whatever its kind; its age does not (which only lowers its
  rank in recall). Unknown content gets a medium score, which a model may refine.

    health, safety, births, deaths, weddings     0.8, with a name or number 0.9
    identity, home, work, money, secrets         0.6, with a name or number 0.7
    decisions                                    0.6
    preferences, tasks, plans, possessions       0.5
    any other fact                               0.4, with a name or number 0.5
    what is over when the day is                 0.2
    greetings, thanks, small talk                0.1
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

from assistant.core.checkpoints import RequestKind
from assistant.core.text import lazy_regex
from sleep.rules.pattern_files import load_pattern, read_classifier, read_words
from sleep.rules.sentence_cache import IN_A_TEXT, WITHIN_A_SENTENCE, cached_by_sentence
from sleep.rules.sentences import Sentence, expand_shorthand, split_sentences

_THING_CHANGED = load_pattern("signs", "thing_changed")
_WEEKDAY = load_pattern("signs", "weekday")


def durable_threshold() -> float:
    """Return the score from which a clause is durable."""
    return read_classifier().threshold


def find_signs(clause: str) -> list[str]:
    """Return the names of the signs of a clause, and the classes of its words as "of <class>"."""
    rules = read_classifier()
    clause = expand_shorthand(clause)
    lowered = clause.lower()
    found = [sign for sign in rules.signs if sign.pattern.search(clause if sign.is_cased else lowered)]
    all_names = {sign.name for sign in found}
    names = [sign.name for sign in found if all_names.isdisjoint(sign.cancelled_by)]
    classes = classify_words(lowered)
    if "kin" in classes and "count" in names:
        names.append("so-many")
    if not classes & rules.link_classes and not rules.link_signs.intersection(names):
        names.append("unlinked")
    return names + [f"of {name}" for name in rules.word_classes if name in classes]


@cached_by_sentence(WITHIN_A_SENTENCE)
def score_clause(clause: str) -> float:
    """Return the sum of the weights of a clause's signs; durable from `durable_threshold()` on."""
    rules = read_classifier()
    extra_words = min(rules.most_words, max(0, len(clause.split()) - rules.words_before))
    return sum(rules.weights[name] for name in find_signs(clause)) + rules.word_weight * extra_words


@cache
def _sign_pattern(name: str) -> re.Pattern[str]:
    return next(sign.pattern for sign in read_classifier().signs if sign.name == name)


_PREFERS = load_pattern("signs", "prefers")


def classify_kind(clause: str, *, standing: bool) -> Literal["fact", "preference", "decision"]:
    """Return the kind of a durable clause."""
    if _sign_pattern("decided").search(clause.lower()):
        return "decision"
    return "preference" if standing or _PREFERS.search(clause) else "fact"


def names_date(clause: str) -> bool:
    """Return whether it names a date or a frequency."""
    lowered = clause.lower()
    return bool(_sign_pattern("date").search(lowered) or _sign_pattern("recurs").search(lowered))


def mentions_entity(clause: str) -> bool:
    """Return whether it has a word about someone's life, a day, a number or a name."""
    if re.search(r"\d|(?<=\w )[A-Z][a-z]", clause) or _WEEKDAY.search(clause) or _THING_CHANGED.match(clause):
        return True
    return not classify_words(clause).isdisjoint(read_classifier().link_classes - {"food"})


def mentions_person(clause: str) -> bool:
    """Return whether it names a person, or someone related to the user."""
    if re.search(r"(?<=\w )[A-Z][a-z]{2,}", clause):
        return True
    return not classify_words(clause).isdisjoint({"kin", "person", "pet"})


_PREFERENCE = load_pattern("languages", "preference")
_DECISION = load_pattern("languages", "decision")
_FACT = load_pattern("languages", "fact")
_PASSING = load_pattern("languages", "passing")


def is_passing(own: str) -> bool:
    """Return whether a sentence in one of these languages only describes the present moment."""
    return bool(_PASSING.search(own))


def classify_other_language(own: str) -> Literal["fact", "preference", "decision"] | None:
    """Return the kind of a durable statement in German, French, Spanish, Norwegian, Chinese or Japanese; None if it is
    not durable."""
    if is_passing(own):
        return None
    if _DECISION.search(own):
        return "decision"
    if _PREFERENCE.search(own):
        return "preference"
    return "fact" if _FACT.search(own) else None


_NONE: frozenset[str] = frozenset()
_TOKEN = lazy_regex(r"[a-zà-ÿ]+(?:-[a-zà-ÿ]+)*(?:'[a-z]+)?")
_TAIL = lazy_regex(r"'(?:s|ll|d|ve|re)?$")


@cache
def _classes_by_word() -> dict[str, frozenset[str]]:
    classes: dict[str, frozenset[str]] = {}
    for name, words in read_words("classes").items():
        for word in words.split():
            classes[word] = classes.get(word, frozenset()) | {name}
    return classes


@cached_by_sentence(IN_A_TEXT)
def classify_word(word: str) -> frozenset[str]:
    """Return the classes of a lower-case word; empty if unknown."""
    by_word = _classes_by_word()
    word = _TAIL.sub("", word)
    classes = by_word.get(word)
    if classes is None and word.endswith("s") and len(word) > 3:
        classes = by_word.get(word[:-1])
        if classes is None and word.endswith("ies"):
            classes = by_word.get(f"{word[:-3]}y")
        if classes is None and word.endswith("es"):
            classes = by_word.get(word[:-2])
    if classes is None and "-" in word:
        return _NONE.union(*(classify_word(part) for part in word.split("-") if part))
    return classes or _NONE


def classify_words(text: str) -> frozenset[str]:
    """Return the classes of all words of a text."""
    return _NONE.union(*map(classify_word, _TOKEN.findall(text.lower())))


UNCERTAIN_BAND = (0.35, 0.55)
"""The band, both ends included, in which a model may know better."""

_BASE = {"decision": 0.6, "task": 0.5, "preference": 0.5, "summary": 0.5}

_VITAL = load_pattern("importance", "vital")
_GROUND = load_pattern("importance", "ground")
_PASSING_MATTER = load_pattern("importance", "passing")
_SMALL = load_pattern("importance", "small")
_TELLING = lazy_regex(r"\d|(?<=\s)(?!I\b|I')[A-ZÀ-Þ]\w+")
# Topic words have weights; the topic of a text is in its first lines.
_LOOKED_AT = 4_000


def score_importance(kind: str, content: str) -> float:
    """Return the importance, 0 to 1, by the table above; `kind` as in `JournalEntry.tags`."""
    text = unicodedata.normalize("NFC", content[:_LOOKED_AT]).replace("’", "'")
    named = 0.1 if _TELLING.search(text) else 0.0
    if is_small_talk(text):
        return 0.1
    if _VITAL.search(text):
        return round(0.8 + named, 2)
    if _GROUND.search(text):
        return round(0.6 + named, 2)
    if _PASSING_MATTER.search(text) and kind not in ("decision", "task"):
        return 0.2
    return round(_BASE.get(kind, 0.4) + (named if kind not in _BASE else 0.0), 2)


def is_small_talk(content: str) -> bool:
    """Return whether the text is only a greeting, thanks or agreement."""
    return bool(_SMALL.match(content[:_LOOKED_AT]))


# Of longer texts only the beginning and the end are read, where a question about pasted text is.
_BEGINNING = 4_000
_END = 1_000
_SHORTEST = 4
_SAID_AT_ONCE = load_pattern("requests", "said_at_once")
_ORDER = load_pattern("requests", "order")
_ORDER_CJK = load_pattern("requests", "order_cjk", indexed=False)
_ORDER_CYRILLIC = lazy_regex(r"(?:пожалуйста[ ,]+)?(?:напомни|не забудь|закажи|купи|напиши|отправь|надо |нужно )", re.I)
_KINDLY = load_pattern("requests", "kindly")

_REMINDS = load_pattern("requests", "reminds")
# Where an order may begin within a sentence.
_PART = lazy_regex(r"[,;:，；、]\s*| and (?=(?:please|also|then|can|could)\b)", re.IGNORECASE)


# What the latest texts ask for, by their hash of this process: a text is judged before its turn, in a thread.
_kinds: dict[int, RequestKind] = {}
_KINDS_KEPT = 1_000


def classify_request(text: str) -> RequestKind:
    """Return what the message asks for: more than an answer if a sentence does; an action if a sentence asks for more
    than a reminder."""
    number = hash(text)
    if (known := _kinds.get(number)) is None:
        if len(_kinds) >= _KINDS_KEPT:
            _kinds.clear()
        known = _kinds[number] = _classify(text)
    return known


def _classify(text: str) -> RequestKind:
    if len(text) > _BEGINNING + _END:
        text = f"{text[:_BEGINNING]}\n{text[-_END:]}"
    tasks = [sentence for sentence in split_sentences(text) if asks_for_action(sentence)]
    if not tasks:
        return RequestKind.ANSWER
    return RequestKind.REMINDER if all(map(_only_reminds, tasks)) else RequestKind.TASK


def _only_reminds(sentence: Sentence) -> bool:
    parts = [part.strip() for part in _PART.split(sentence.own_text)]
    others = [part for part in parts if not _REMINDS.match(part)]
    return len(others) < len(parts) and not any(asks_for_action(Sentence(part, part)) for part in others)


def asks_for_action(sentence: Sentence) -> bool:
    """Return whether it orders or kindly asks for something. Other questions don't."""
    own = sentence.own_text
    if len(own) < _SHORTEST or _SAID_AT_ONCE.match(own):
        return False
    if _KINDLY.match(own):
        return True
    if sentence.has_question_mark:
        return False
    return bool(_ORDER_CJK.search(own) or _ORDER.match(own) or _ORDER_CYRILLIC.match(own))
