"""Timers and alarms: several that one sentence asks for ("two timers, 5 and 10 minutes"), and the one that is there.
Pure."""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex
from assistant.core.time_language import UNITS, N
from assistant.core.time_pieces import FoundTimes
from assistant.core.time_readers import find_length
from assistant.models.offline.cues import fold, says, says_any
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
_THE_ALARM = lazy_regex(
    r"^(?:(?:bitte|please|ok|also),? )?(?:the|my|den|der|die|meinen|le|la|mon|ma|el|mi|l') ?(?:\w+ )?"
    r"(?:alarm|timer|wecker|reveil|minuteur|alarme|alarma|despertador|temporizador)\b"
)
_MAKES_ALARM = lazy_regex(
    r"\b(?:make|change|move|push|bring|shift|delay|reset) (?:the|my) (?:\w+ )?(?:alarm|timer|wake[- ]?up(?: call)?)\b"
)
_A_NEW_ALARM = lazy_regex(
    r"\b(?:an?|another|new|eine?n?|neuen?|noch einen?|une?|nouv\w+|una?|otr[oa]|nuev[oa]) (?:\w+ )?"
    r"(?:alarm|timer|wecker|reveil|minuteur|alarme|alarma|despertador|temporizador)\b"
)


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


def is_the_alarm(folded: str) -> bool:
    """Whether a folded sentence is about an alarm or timer that is there: "den Wecker auf sieben"."""
    rings = says("alarm", folded) or says("timer", folded)
    if _A_NEW_ALARM.search(folded):
        return False
    if rings and _MAKES_ALARM.search(folded):
        return True
    return rings and (_THE_ALARM.match(folded) is not None or (says("move", folded) and not says("wake", folded)))


def is_bare_alarm(folded: str, times: FoundTimes) -> bool:
    """ "17 Uhr Wecker fürs Fitness": when it is to ring, and no verb that tells."""
    told = ("states", "tells_past", "teller", "of_oneself", "duty", "plans_oneself")
    return bool(times.of_kind("clock")) and says_any(("alarm", "timer"), folded) and not says_any(told, folded)
