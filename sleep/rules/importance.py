"""How much an entry of the journal weighs, by rules alone. Pure.

What always holds: the weightiest matter that a text names decides, whatever its kind; how old it is does not (that only
lowers its rank when it is recalled). What no rule knows lies in the uncertain middle, where a model may judge.

    health, safety, births, deaths, weddings     0.8, with a name or number 0.9
    identity, home, work, money, secrets         0.6, with a name or number 0.7
    decisions                                    0.6
    preferences, tasks, plans, possessions       0.5
    any other fact                               0.4, with a name or number 0.5
    what is over when the day is                 0.2
    greetings, thanks, small talk                0.1
"""

from __future__ import annotations

import unicodedata

from assistant.core.text import lazy_regex
from sleep.rules.pattern_files import load_pattern

UNCERTAIN_BAND = (0.35, 0.55)
"""The band, both ends included, in which a model may know better."""

_BASE = {"decision": 0.6, "task": 0.5, "preference": 0.5, "summary": 0.5}

_VITAL = load_pattern("importance", "vital")
_GROUND = load_pattern("importance", "ground")
_PASSING = load_pattern("importance", "passing")
_SMALL = load_pattern("importance", "small")
_TELLING = lazy_regex(r"\d|(?<=\s)(?!I\b|I')[A-ZÀ-Þ]\w+")
# A weight says what a text is about; what it is about stands in its first lines.
_LOOKED_AT = 4_000


def score_importance(kind: str, content: str) -> float:
    """0 to 1, as the table above tells; `kind` as in `JournalEntry.tags`."""
    text = unicodedata.normalize("NFC", content[:_LOOKED_AT]).replace("’", "'")
    named = 0.1 if _TELLING.search(text) else 0.0
    if is_small_talk(text):
        return 0.1
    if _VITAL.search(text):
        return round(0.8 + named, 2)
    if _GROUND.search(text):
        return round(0.6 + named, 2)
    if _PASSING.search(text) and kind not in ("decision", "task"):
        return 0.2
    return round(_BASE.get(kind, 0.4) + (named if kind not in _BASE else 0.0), 2)


def is_small_talk(content: str) -> bool:
    """Whether nothing but a greeting, thanks or agreement is said."""
    return bool(_SMALL.match(content[:_LOOKED_AT]))


def is_uncertain(weight: float) -> bool:
    """Whether a model may know better."""
    low, high = UNCERTAIN_BAND
    return low <= weight <= high
