"""Detects sentences that retract or change earlier statements, and finds the corrected statement if no fixed wording
shows it. Pure.

A statement corrects those it says are over, or at most one other, the one with which it has most in common; it must say
that something changed, and share its topic. Being about the same person is not enough.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from assistant.core.text import fold_text, lazy_regex
from sleep.rules.classifier import classify_word
from sleep.rules.pattern_files import load_pattern, read_word_set
from sleep.rules.sentences import blank_foreign_text, expand_shorthand, split_sentences
from sleep.rules.statements import Statement, is_same_stem, parse_statement, stem_word
from sleep.rules.translate import to_english

_LOOKED_AT = 2_000

_TAKES_BACK = load_pattern("corrections", "takes_back")
_ANNOUNCES = load_pattern("corrections", "announces")
_REPLACES = load_pattern("corrections", "replaces")
_CHANGES = load_pattern("corrections", "changes")
_PLAINLY = load_pattern("corrections", "plainly")


def is_explicit_correction(own: str) -> bool:
    """Return whether it says explicitly that it is a correction."""
    return bool(_PLAINLY.search(_english(own)))


def is_correction(own: str) -> bool:
    """Return whether a sentence says that something is not, or no longer, as said."""
    plain = _english(own)
    return bool(_TAKES_BACK.search(plain) or _PLAINLY.search(plain))


def describes_change(text: str) -> bool:
    """Return whether it says that something has changed, or will: more than retractions alone."""
    plain = _english(text)
    return any(form.search(plain) for form in (_TAKES_BACK, _PLAINLY, _CHANGES))


def describes_replacement(text: str) -> bool:
    """Return whether it says that something ends, or replaces something."""
    return bool(_REPLACES.search(_english(text)))


def _english(text: str) -> str:
    return expand_shorthand(to_english(text))


def is_retraction(message: str) -> bool:
    """Return whether most sentences of a message are about a change."""
    sentences = split_sentences(blank_foreign_text(message[:_LOOKED_AT]))
    says_so = [is_correction(sentence.own_text) or announces_correction(sentence.own_text) for sentence in sentences]
    return bool(sentences) and 2 * sum(says_so) >= len(sentences)


def announces_correction(own: str) -> bool:
    """Return whether it only announces that a correction follows."""
    return bool(_ANNOUNCES.match(own))


_PART = load_pattern("corrections", "part")
# Words an earlier correction has in addition to its value.
_LED_IN = load_pattern("corrections", "led_in")
_LED_OUT = load_pattern("corrections", "led_out")
_NEGATIONS = (
    ("nicht", lazy_regex(r"\b(?:nein|es ist|das ist|ich mein\w*)\b", re.IGNORECASE)),
    ("pas", lazy_regex(r"\b(?:non|c'?est|je voulais)\b", re.IGNORECASE)),
    ("no", lazy_regex(r"\b(?:es (?!ist)|quise|quiero|perdón)", re.IGNORECASE)),
    ("not", lazy_regex("")),
)
# Kinds of parts of a sentence, most reliable first; a part is corrected by another of its kind.
_PART_KINDS = (
    load_pattern("corrections", "part_titled"),
    load_pattern("corrections", "part_day"),
    load_pattern("corrections", "part_date"),
    load_pattern("corrections", "part_ordinal"),
    load_pattern("corrections", "part_time"),
    load_pattern("corrections", "part_number"),
    load_pattern("corrections", "part_colour"),
    load_pattern("corrections", "part_name"),
)


def correct_part(earlier: str, message: str) -> str:
    """Return the `earlier` text with the part that a short message corrects replaced ("no, it's Dr. Meyer"), and the
    old part; everything else, such as its day, stays. "" if the message does something else, or the part is
    ambiguous."""
    match = _PART.match(expand_shorthand(" ".join(message.split())))
    if match is None:
        return ""
    value, old = match["value"].strip(), fold_text(match["old"] or "")
    kind = next((kind for kind in _PART_KINDS if kind.fullmatch(value)), None)
    if kind is None:
        return ""
    earlier = _LED_OUT.sub("", _LED_IN.sub("", earlier))
    parts = [part for part in kind.finditer(earlier) if part[0] != value and old in fold_text(part[0])]
    if kind is _PART_KINDS[-1]:
        parts = [part for part in parts if not any(other.search(part[0]) for other in _PART_KINDS[:-1])]
    if not parts and kind is _PART_KINDS[0]:
        # Nobody was named before; now someone is.
        return f"{earlier.rstrip(' .!')} ({value})"
    if len(parts) != 1:
        return ""
    start, end = parts[0].span()
    negation = next(word for word, form in _NEGATIONS if form.search(message))
    return f"{earlier[:start]}{value}{earlier[end:]}".rstrip(" .!") + f", {negation} {parts[0][0]}"


_OWNED = load_pattern("corrections", "owned")
# A part of a thing, as a topic or as what changed: "the boiler code is", "replaced the boiler filter".
_COMPOUNDS = tuple(
    map(
        lazy_regex,
        (
            r"(?:^|\b(?:the|my|our|his|her|their) )(\w+) (?!\w+ed\b)(\w+) (?:is|are|was|were|has|have|had)\b",
            r"\b(?:chang|replac|swapp|switch|renew|mov)(?:e|ed|ing) (?:the|my|our|his|her|their) (\w+) (?!\w+ed\b)(\w+)"
            r"(?=[.,;!?]|$| (?:on|in|at|to|by|for|with|from|last|this|and)\b)",
        ),
    )
)
# What is named after these words is over.
_DONE_WITH = load_pattern("corrections", "done_with")
# Someone who moves, or moves something: other facts about them stay valid, and so do facts about the place.
_MOVER = load_pattern("corrections", "mover")
CORRECTION_THRESHOLD = 2.05
# Shared words that only one, two, or more known statements have: a word in many statements does not identify one.
_SHARED_WORD = (1.3, 0.8, 0.4)
_IN_PLACE_OF = 0.8
_LONGEST = 10_000
# A longer statement is about too many things.
_RAMBLING = 20


def find_corrected(new: Statement, earlier: Sequence[tuple[str, Statement]], *, only_ended: bool = False) -> list[str]:
    """Return the ids of the statements in `known` (in chronological order) that are no longer true: all that the new
    one says are over, or, unless `only_ended`, the one with which it has most in common."""
    if not describes_change(new.text):
        return []
    ended = [name for name, old in earlier if _is_over(new, old)]
    if ended or only_ended or new.says_additional or len(new.content_stems) > _RAMBLING:
        return ended
    movers = _movers(new)
    shared = {name: _shared(new.content_stems, old) - _of_other_things(new, old) - movers for name, old in earlier}
    count = Counter(word for words in shared.values() for word in words)
    best, best_rank = "", (CORRECTION_THRESHOLD, -_LONGEST)
    for name, old in earlier:
        score = sum(_SHARED_WORD[min(count[word], len(_SHARED_WORD)) - 1] for word in shared[name])
        rank = (score + _IN_PLACE_OF * describes_replacement(new.text), -len(old.content_stems))
        if shared[name] and rank >= best_rank:
            best, best_rank = name, rank
    return [best] if best else []


@cache
def _said_of_anything() -> frozenset[str]:
    """Return words that are used about anything: sharing them means nothing."""
    return frozenset(map(stem_word, read_word_set("of_anything")))


def _shared(words: frozenset[str], old: Statement) -> set[str]:
    return {
        word for word in old.content_stems - _said_of_anything() if any(is_same_stem(word, other) for other in words)
    }


def _of_other_things(new: Statement, old: Statement) -> set[str]:
    """Return whether they are about different things: Ada's party, Ada's swimming; the boiler code, the boiler
    filter."""
    mine, theirs = _things(new), _things(old)
    return {
        stem_word(who)
        for who in mine.keys() & theirs.keys()
        if not is_same_stem(stem_word(mine[who]), stem_word(theirs[who]))
    }


def _things(statement: Statement) -> dict[str, str]:
    """Return whose, or which thing's, attribute is named."""
    text, telling = fold_text(statement.text), statement.content_stems - _said_of_anything()
    parts = [part for form in _COMPOUNDS for part in form.findall(text) if {*map(stem_word, part)} <= telling]
    return dict([*parts, *_OWNED.findall(text)])


def _movers(new: Statement) -> set[str]:
    """Return who moves, and where to, as far as these are names. A word with known facts is a thing, such as a
    choir."""
    names = set()
    for match in _MOVER.finditer(new.text):
        who, where = match["who"].lower(), match["where"]
        if match["whose"] or not classify_word(who):
            names |= {stem_word(fold_text(word)) for word in (who, where) if word}
    return names


def _is_over(new: Statement, old: Statement) -> bool:
    """Return whether it says that what the old one says is over."""
    for ended in (*new.replaced, *map(parse_statement, _DONE_WITH.findall(fold_text(new.text)))):
        if ended.is_named_in(old):
            same = _shared(new.content_stems | ended.content_stems, old)
            return bool(same or new.values & (old.values - ended.values))
    return False
