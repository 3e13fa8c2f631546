"""Which of the earlier statements one that changes something puts right, where no single form of words tells. Pure.

What always holds: a statement puts right what it says is over, or else at most one other, the one it shares most with;
it has to say that something changed, and to share what it is about. To be about the same person is not enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from assistant.core.text import fold_text, lazy_regex
from sleep.rules.corrections import replaces, tells_of_change
from sleep.rules.lexicon import classes
from sleep.rules.statements import Statement, is_form, statement, stem

_OWNED = lazy_regex(
    r"\b(\w+)'s (?!not\b|now\b|on\b|at\b|in\b|an?\b|the\b|my\b|no\b|just\b|(?:go|com|be|hav"
    r"|gett)ing\b|\w+ed\b)(\w+)"
)
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
_DONE_WITH = lazy_regex(
    r"\b(?:(?:stopped|finished|done) (?:with|seeing|using|taking|the|my|our)|quit|cancell?ed|ditched"
    r"|gave up|given up"
    r"|sold|off the|no more|goodbye(?: to)?) (?:the |my |our |his "
    r"|her )?(?P<what>[\w'’.-]+(?: [\w'’-]+){0,2}?)(?=[,.;!]| and\b| in\b"
    r"| on\b| last\b| for\b|$)"
)
# Somebody who moves, or moves something: what else is known of them stays, and so does what is known of the place.
_MOVER = lazy_regex(
    r"(?:^|[.!?,;:] |\b(?:that|because|since|and|but|so) )(?:(?:[Mm]y|[Oo]ur) (?P<whose>[\w-]+) )?"
    r"(?P<who>[A-ZÀ-Þ][\w-]+)(?: and [A-ZÀ-Þ][\w-]+)?(?: has| have| had| is| are|'s)?(?: just| now| finally| recently)?"
    r" (?:moved|moving|moves|changed|switched|replaced|swapped)\b(?:[^.!?]*? to (?P<where>[A-ZÀ-Þ][\w-]+))?"
)
ENOUGH = 2.05
# A word that one of those known shares, or two, or more: what many share tells nothing of which is meant.
_WEIGHT_OF = (1.3, 0.8, 0.4)
_ANOTHER_VALUE = 0.7
_IN_PLACE_OF = 0.8
_LONGEST = 10_000
# Who says so much speaks of too many things.
_RAMBLING = 20
_KINDS = ("number", "time", "day", "month")
# Words that are said of anything: to share them is to share nothing.
_OF_ANYTHING_WORDS = """
want need come take make bring put see keep find seem look feel turn start begin end stay leave hold pound dollar euro
quid hour minute second half morning evening afternoon night weekend weekday place bit lot way kind sort side own
whole same other next last first good bad new old big small long short great little nice people everybody today
tonight better best worse more less slot tomorrow yesterday soon later early late please thank reply ask tell talk
speak hear say cost pay price number man woman boy girl guy lady kid child never again always ever time year month
week day date plan home house room door street town city back away round down over under every instead
"""
_OF_ANYTHING = frozenset(map(stem, _OF_ANYTHING_WORDS.split()))


def put_right(new: Statement, known: Sequence[tuple[str, Statement]], *, only_over: bool = False) -> list[str]:
    """The ids of the statements, of those that are `known` in the order they were said, that are no longer so: all that
    say what the new one says is over, or else, unless `only_over`, the one it shares most with."""
    if not tells_of_change(new.text):
        return []
    over = [one for one, old in known if _is_over(new, old)]
    if over or only_over or new.adds or len(new.content) > _RAMBLING:
        return over
    movers = _movers(new)
    shared = {one: _shared(new.content, old) - _of_other_things(new, old) - movers for one, old in known}
    often = Counter(word for words in shared.values() for word in words)
    found, most = "", (ENOUGH, -_LONGEST)
    for one, old in known:
        told = sum(_WEIGHT_OF[min(often[word], len(_WEIGHT_OF)) - 1] for word in shared[one])
        differing = any(_differ(new.of_kind(kind), old.of_kind(kind)) for kind in _KINDS)
        score = told + _ANOTHER_VALUE * differing + _IN_PLACE_OF * replaces(new.text)
        if shared[one] and (score, -len(old.content)) >= most:
            found, most = one, (score, -len(old.content))
    return [found] if found else []


def _shared(words: frozenset[str], old: Statement) -> set[str]:
    return {word for word in old.content - _OF_ANYTHING if any(is_form(word, other) for other in words)}


def _of_other_things(new: Statement, old: Statement) -> set[str]:
    """Those of whom another thing is said in each: Ada's party, Ada's swimming; the boiler code, the boiler filter."""
    mine, theirs = _things(new), _things(old)
    return {stem(who) for who in mine.keys() & theirs.keys() if not is_form(stem(mine[who]), stem(theirs[who]))}


def _things(one: Statement) -> dict[str, str]:
    """Of whom, or of what, what is named."""
    text, telling = fold_text(one.text), one.content - _OF_ANYTHING
    parts = [part for form in _COMPOUNDS for part in form.findall(text) if {*map(stem, part)} <= telling]
    return dict([*parts, *_OWNED.findall(text)])


def _movers(new: Statement) -> set[str]:
    """Those who move, and where to, as far as they are names. A word of which something is known is a thing: choir."""
    names = set()
    for found in _MOVER.finditer(new.text):
        who, where = found["who"].lower(), found["where"]
        if found["whose"] or not classes(who):
            names |= {stem(fold_text(word)) for word in (who, where) if word}
    return names


def _is_over(new: Statement, old: Statement) -> bool:
    """Whether it says what the new one says is no longer so, of the same."""
    for gone in (*new.old, *map(statement, _DONE_WITH.findall(fold_text(new.text)))):
        if (gone.content & old.content or gone.values & old.values) and (
            gone.content <= old.content and gone.values <= old.values
        ):
            return bool(_shared(new.content | gone.content, old) or new.values & (old.values - gone.values))
    return False


def _differ(new: frozenset[str], old: frozenset[str]) -> bool:
    return bool(new and old) and not new <= old
