"""Separates what is said of somebody from when it began: "lives in Bergen since March" is "lives in Bergen", and March.
Pure.

Only a time that is named by itself is taken ("in March", "last year", "for two years"); one that comes again ("in the
summer", "on Mondays") belongs to what is said.
"""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex
from sleep.rules.pattern_files import load_pattern

_AT_END = load_pattern("relations", "time_at_end")
_AFTER_VERB = load_pattern("relations", "time_after_verb")
_SEASON = load_pattern("relations", "time_of_season")
# What was put into English from French or Spanish: "depuis mars", "desde marzo".
_HELD_SINCE = lazy_regex(r"\b(?:depuis|desde)\b", re.IGNORECASE)
_FROM_TIME = load_pattern("relations", "from_time")


def split_time(clause: str, *, is_event: bool) -> tuple[str, str]:
    """Return a clause without the time that it names, and the time in words; the clause and "" if it names none.
    `is_event`: it says what happened, so that a season is that of one year."""
    for pattern in (_AT_END, _AFTER_VERB, *([_SEASON] if is_event else [])):
        match = pattern.search(clause)
        if match is not None:
            rest = f"{clause[: match.start('time')].rstrip(' ,')} {clause[match.end('time') :].lstrip(' ,')}"
            return rest.strip(), match["time"]
    return clause, ""


def begin_since(english: str, sentence: str) -> str:
    """Return a sentence in English with "from March" as "since March" if that is what its own language says."""
    return _FROM_TIME.sub("since", english) if _HELD_SINCE.search(sentence) else english
