"""What speaks for a clause to last, and what speaks for it to be over soon: signs with their weights. Pure.

What always holds: no single word decides. A clause lasts where its signs together weigh at least `ENOUGH`; the signs
are forms of the language and classes of words (`sleep.rules.lexicon`), never names or matters of one person.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from assistant.core.text import lazy_regex
from sleep.rules.lasting import LASTING
from sleep.rules.lexicon import classes, words_of
from sleep.rules.passing import PASSING
from sleep.rules.shorthand import spelled_out
from sleep.rules.verbs import DAY

ENOUGH = 2.0

_OF_CLASS: dict[str, float] = {
    "kin": 0.5, "person": 0.6, "pet": 0.7, "home": 0.7, "vehicle": 0.8, "work": 0.4, "health": 2.1, "pastime": 1.1,
        "admin": 0.8,
    "recurring": 1.8, "since": 0.6, "food": 0.2, "mood": -1.1, "weather": -2.0, "desk": -2.8, "praise": -1.4,
        "world": -1.8,
    "joke": -1.7,
}  # fmt: skip
# A capital tells something in these alone; all others read the clause in lower case, which is quicker.
_CASED = frozenset({"name", "many-names", "who-it-is", "apposed", "placed"})
_PATTERNS = [
    (name, lazy_regex(pattern, re.IGNORECASE if name in _CASED else 0)) for name, _, pattern in (*LASTING, *PASSING)
]
_LINKED = frozenset({"kin", "person", "pet", "home", "vehicle", "work", "health", "pastime", "admin", "food"})
_LINK = frozenset({"own", "first", "for-good", "first-left-out", "prefers", "decided", "recurs"})
_MEANT = frozenset({"changed", "decided", "has-lived", "named"})
_GOES_ON = frozenset({"going", "going-then", "goes-on", "goes-on-left-out", "in-charge", "instead", "no-longer"})
_MOOD = lazy_regex(
    r"^(?:\w+ ){0,1}\w+\W*$|\b(?:i'm|am|are|is|was|were|be|been|'s|'re|feel|feels|feeling|felt|got|so|too|very|bit"
    r"|really|quite"
    r"|all|just|still|looks?|seems?|getting) (?:a bit |all |just |not |still )*\w+\b(?! (?:about|at|from|to|in|on"
    r"|of)\b)"
)
_LONG = 8
_LONGER = 0.24
_LONGEST = 8
_THING_CHANGED = lazy_regex(
    r"(?:my|our|the) (?:[\w-]+ ){0,2}[\w-]+(?:'s| is| are| has| have) (?:been )?(?:gone|moved|changed|cancelled"
    r"|sold|given|sent|off"
    r"|over)\b",
    re.IGNORECASE,
)
_WEEKDAY = lazy_regex(rf"\b{DAY}s?\b", re.IGNORECASE)
_WEIGHT = {
    **{name: weight for name, weight, _ in (*LASTING, *PASSING)},
    **{f"of {name}": weight for name, weight in _OF_CLASS.items()},
    "unlinked": -0.9,
    "so many": 0.7,
}


def signs(clause: str) -> list[str]:
    """The names of the signs that a clause shows."""
    clause = spelled_out(clause)
    lowered = clause.lower()
    found = [name for name, pattern in _PATTERNS if pattern.search(clause if name in _CASED else lowered)]
    of_class: set[str] = set()
    for word in words_of(lowered):
        of_class |= classes(word)
    if "mood" in of_class and not _MOOD.search(lowered):
        of_class.discard("mood")
    if "done-then" in found and _MEANT.intersection(found):
        found.remove("done-then")
    if "progress" in found and _GOES_ON.intersection(found):
        found.remove("progress")
    if "kin" in of_class and "count" in found:
        found.append("so many")
    if not of_class & _LINKED and not _LINK.intersection(found):
        found.append("unlinked")
    return found + [f"of {name}" for name in _OF_CLASS if name in of_class]


@lru_cache(maxsize=4096)
def weight(clause: str) -> float:
    """How much more speaks for a clause to last than against it; `ENOUGH` is enough."""
    longer = min(_LONGEST, max(0, len(clause.split()) - _LONG))
    return sum(_WEIGHT[name] for name in signs(clause)) + _LONGER * longer


_PREFERS = lazy_regex(
    r"\b(?:prefer|like|love|enjoy|hate|loathe|adore|dislike|can't (?:stand|bear|abide)|favou?rite|a fan of|fond of"
    r"|rather (?:have|not|take)|allergic|vegetarian|vegan"
    r"|(?:never|don't|won't|doesn't) (?:like|eat|drink|want|touch|fly))\b",
    re.IGNORECASE,
)
_DECIDES = next(pattern for name, pattern in _PATTERNS if name == "decided")
_DATED = next(pattern for name, pattern in _PATTERNS if name == "date")
_RECURS = next(pattern for name, pattern in _PATTERNS if name == "recurs")


def kind_of(clause: str, *, standing: bool) -> Literal["fact", "preference", "decision"]:
    """Of a clause that lasts."""
    if _DECIDES.search(clause.lower()):
        return "decision"
    return "preference" if standing or _PREFERS.search(clause) else "fact"


def is_dated(clause: str) -> bool:
    """Whether it names a date, or how often something happens."""
    lowered = clause.lower()
    return bool(_DATED.search(lowered) or _RECURS.search(lowered))


def names_something(clause: str) -> bool:
    """Whether it has a word of somebody's life, a day, a number or a name."""
    if re.search(r"\d|(?<=\w )[A-Z][a-z]", clause) or _WEEKDAY.search(clause) or _THING_CHANGED.match(clause):
        return True
    return any(classes(word) & (_LINKED - {"food"}) for word in words_of(clause.lower()))


def is_of_somebody(clause: str) -> bool:
    """Whether it names somebody, or somebody of the person's own."""
    if re.search(r"(?<=\w )[A-Z][a-z]{2,}", clause):
        return True
    return any(classes(word) & {"kin", "person", "pet"} for word in words_of(clause.lower()))
