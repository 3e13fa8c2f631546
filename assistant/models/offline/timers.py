"""Several timers that one sentence asks for: "two timers, 5 and 10 minutes". Pure."""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex
from assistant.core.time_language import UNITS, N
from assistant.core.time_readers import find_length
from assistant.models.offline.cues import fold
from assistant.models.offline.lists import order_subject
from assistant.models.offline.targets import content_words

_FOR = lazy_regex(r"\b(?:auf|für|fur|of|for|de|por|en)\s*$|\b(?:auf|à|a)\b(?=\s+(?:für|pour|para)\b)", re.IGNORECASE)
# "5 and 10 minutes", "5 minutes for the eggs and 10 for the pasta"
_LENGTHS = lazy_regex(
    rf"\b(?P<number>{N})(?: (?P<unit>{UNITS['minutes']}|{UNITS['hours']})\b)?(?P<words>(?:(?! (?:and|und|et"
    rf"|y) )[^,\d]){{0,60}})"
    r"(?:,? (?:and|und|et|y) |, |$)"
)
_HOW_MANY = lazy_regex(rf"\b{N}\s*$", re.IGNORECASE)
_HOURS = lazy_regex(UNITS["hours"])


def without_for(text: str) -> str:
    """The words without what stood before a length: "for", "auf", "de"."""
    return _FOR.sub("", text)


def several_timers(text: str) -> list[tuple[str, str]]:
    """(what, when) of each timer of several: "two timers, 5 and 10 minutes"."""
    first = re.search(r"\b(?:timers?|minuteurs?|temporizador(?:es)?|wecker|eieruhr\w*|kurzzeitwecker)\b", fold(text))
    before = _HOW_MANY.sub("", text[: first.start()]) if first else ""  # "two timers"
    rest = " ".join(f"{before} {text[first.end() :]}".split()) if first else text
    found = list(_LENGTHS.finditer(fold(rest)))
    units = [match["unit"] for match in found if match["unit"]]
    is_one = units and _HOURS.fullmatch(units[0]) and len(units) == len(found)  # "1 hour and 20 minutes"
    if len(found) < 2 or not units or is_one or content_words(rest[: found[0].start()]):
        return []
    timers = []
    for match in found:
        length = find_length(f"{match['number']} {match['unit'] or units[0]}")
        if length is None or not length.minutes:
            return []
        words = without_for(rest[match.start("words") : match.end("words")])
        timers.append((order_subject(words) or "Timer", f"in {length.minutes} minutes"))
    return timers
