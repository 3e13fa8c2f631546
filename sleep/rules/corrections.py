"""Whether a sentence takes back or changes what was said before, and which earlier statement it puts right where no
single form of words tells. Pure.

What always holds: a statement puts right what it says is over, or else at most one other, the one it shares most
with; it has to say that something changed, and to share what it is about. To be about the same person is not enough.
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
    """Whether it says itself that it puts something right."""
    return bool(_PLAINLY.search(_english(own)))


def is_correction(own: str) -> bool:
    """Whether a sentence says that something is not, or is no longer, what was said."""
    plain = _english(own)
    return bool(_TAKES_BACK.search(plain) or _PLAINLY.search(plain))


def describes_change(text: str) -> bool:
    """Whether something has changed, or is to, by what is said: more than those that take back what was said."""
    plain = _english(text)
    return any(form.search(plain) for form in (_TAKES_BACK, _PLAINLY, _CHANGES))


def describes_replacement(text: str) -> bool:
    """Whether something ends, or takes the place of something."""
    return bool(_REPLACES.search(_english(text)))


def _english(text: str) -> str:
    return expand_shorthand(to_english(text))


def is_retraction(message: str) -> bool:
    """Whether a whole message is about what has changed: most of its sentences say so."""
    sentences = split_sentences(blank_foreign_text(message[:_LOOKED_AT]))
    says_so = [is_correction(sentence.own_text) or announces_correction(sentence.own_text) for sentence in sentences]
    return bool(sentences) and 2 * sum(says_so) >= len(sentences)


def announces_correction(own: str) -> bool:
    """Whether it says nothing but that what follows is a correction."""
    return bool(_ANNOUNCES.match(own))


_PART = load_pattern("corrections", "part")
# What an earlier correction says beside what holds.
_LED_IN = load_pattern("corrections", "led_in")
_LED_OUT = load_pattern("corrections", "led_out")
_NEGATIONS = (
    ("nicht", lazy_regex(r"\b(?:nein|es ist|das ist|ich mein\w*)\b", re.IGNORECASE)),
    ("pas", lazy_regex(r"\b(?:non|c'?est|je voulais)\b", re.IGNORECASE)),
    ("no", lazy_regex(r"\b(?:es (?!ist)|quise|quiero|perdón)", re.IGNORECASE)),
    ("not", lazy_regex("")),
)
# What a part of a sentence may be, the surest first; a part is put right by another of its kind.
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
    """What was said `earlier` with the part that a message of a few words puts right ("no, it's Dr. Meyer"), and what
    it was: the rest of it stays, its day above all. "" where the message does something else, or nobody can tell which
    part is meant."""
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
        # Nobody was named before: now somebody is.
        return f"{earlier.rstrip(' .!')} ({value})"
    if len(parts) != 1:
        return ""
    start, end = parts[0].span()
    negation = next(word for word, form in _NEGATIONS if form.search(message))
    return f"{earlier[:start]}{value}{earlier[end:]}".rstrip(" .!") + f", {negation} {parts[0][0]}"


_OWNED = load_pattern("corrections", "owned")
# A thing of a thing, as what is told of or as what was changed: the boiler code is, replaced the boiler filter.
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
# What is named after these is over with.
_DONE_WITH = load_pattern("corrections", "done_with")
# Somebody who moves, or moves something: what else is known of them stays, and so does what is known of the place.
_MOVER = load_pattern("corrections", "mover")
CORRECTION_THRESHOLD = 2.05
# A word that one of those known shares, or two, or more: what many share tells nothing of which is meant.
_SHARED_WORD = (1.3, 0.8, 0.4)
_IN_PLACE_OF = 0.8
_LONGEST = 10_000
# Who says so much speaks of too many things.
_RAMBLING = 20


def find_corrected(new: Statement, earlier: Sequence[tuple[str, Statement]], *, only_ended: bool = False) -> list[str]:
    """The ids of the statements, of those that are `known` in the order they were said, that are no longer so: all that
    say what the new one says is over, or else, unless `only_ended`, the one it shares most with."""
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
    """Words that are said of anything: to share them is to share nothing."""
    return frozenset(map(stem_word, read_word_set("of_anything")))


def _shared(words: frozenset[str], old: Statement) -> set[str]:
    return {
        word for word in old.content_stems - _said_of_anything() if any(is_same_stem(word, other) for other in words)
    }


def _of_other_things(new: Statement, old: Statement) -> set[str]:
    """Those of whom another thing is said in each: Ada's party, Ada's swimming; the boiler code, the boiler filter."""
    mine, theirs = _things(new), _things(old)
    return {
        stem_word(who)
        for who in mine.keys() & theirs.keys()
        if not is_same_stem(stem_word(mine[who]), stem_word(theirs[who]))
    }


def _things(statement: Statement) -> dict[str, str]:
    """Of whom, or of what, what is named."""
    text, telling = fold_text(statement.text), statement.content_stems - _said_of_anything()
    parts = [part for form in _COMPOUNDS for part in form.findall(text) if {*map(stem_word, part)} <= telling]
    return dict([*parts, *_OWNED.findall(text)])


def _movers(new: Statement) -> set[str]:
    """Those who move, and where to, as far as they are names. A word of which something is known is a thing: choir."""
    names = set()
    for match in _MOVER.finditer(new.text):
        who, where = match["who"].lower(), match["where"]
        if match["whose"] or not classify_word(who):
            names |= {stem_word(fold_text(word)) for word in (who, where) if word}
    return names


def _is_over(new: Statement, old: Statement) -> bool:
    """Whether it says what the new one says is no longer so, of the same."""
    for ended in (*new.replaced, *map(parse_statement, _DONE_WITH.findall(fold_text(new.text)))):
        if ended.is_named_in(old):
            same = _shared(new.content_stems | ended.content_stems, old)
            return bool(same or new.values & (old.values - ended.values))
    return False
