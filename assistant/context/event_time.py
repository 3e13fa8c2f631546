"""Recognises times relative to an event ("before the move", "two weeks after Easter"), and questions that need several
messages ("how many times", "in which order", "the last three times"). Pure.

Public holidays are resolved to a day here; other events are returned as words to search for.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from assistant.core.calendar import MONTH_PATTERN, NUMBER_WORDS, WEEKDAY_PATTERN
from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text, lazy_regex
from assistant.core.time_names import NUMBERS

_NUMBERS = {**NUMBER_WORDS, "a": 1, "an": 1, "few": 3, "couple of": 2}
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_EVENT = lazy_regex(
    rf"\b(?:(?:a )?{_COUNT} (?P<unit>days?|weeks?|months?|years?) )?(?P<side>before|after|since) "
    r"(?P<event>(?:(?!\b(?:what|where|who|when|which|how|why|did|do|does|was|were|is|are)\b)[^,.?!;\n]){2,60})",
    re.IGNORECASE,
)
# Not events, or dates that are handled by the search itself.
_NO_EVENT = lazy_regex(
    rf"(?:(?:last |next |the )?(?:{WEEKDAY_PATTERN}|(?:\d\d? )?{MONTH_PATTERN}(?: \d+)?)"
    r"|that|this|it|then|now|all|long|today|tomorrow|yesterday|\d[\d: ./-]*+(?:am|pm)?|noon|midnight|(?:the )?last \w+"
    r"|me|you|us|him|her|them)\W*",
    re.IGNORECASE,
)
# "vor dem Umzug", "après le déménagement", "dos semanas después de la boda": an article tells an event from a duration
# ("vor drei Wochen" is three weeks ago).
_UNITS = {
    "day": r"tage?n?|jours?|d[ií]as?",
    "week": r"wochen?|semaines?|semanas?",
    "month": r"monate?n?|mois|mes(?:es)?",
    "year": r"jahre?n?|ans?|a[nñ]os?",
}
_FEASTS = "ostern|weihnachten|p[aâ]ques|no[eë]l|pascua|navidad"
_EVENT_ELSEWHERE = lazy_regex(
    rf"\b(?:(?P<count>\w+) (?P<unit>{'|'.join(_UNITS.values())}) )?"
    r"(?P<side>vor|nach|seit|avant|apr[eè]s|depuis|antes de|despu[eé]s de|desde) "
    # German writes nouns large, and puts verbs behind them.
    rf"(?P<event>(?:{_FEASTS})\b|(?:de[mr]|unsere?[mr]|meine[mr]) (?:\w+ )?(?-i:[A-ZÄÖÜ])[\w-]+"
    r"(?: (?:in|nach|von|mit) (?-i:[A-ZÄÖÜ])\w+)?"
    r"|(?:(?:l[ea]s?|notre|nos|mon|ma|mes|el|los|nuestr[ao]|mi) |l['’])"
    r"(?:(?!\b(?:que|qui|o[uù]|quand|est|ai|as|d[oó]nde|cu[aá]ndo)\b)[^,.?!;\n]){2,60})",
    re.IGNORECASE,
)
_BEFORE = {"before", "vor", "avant", "antes de"}
_NO_EVENT_ELSEWHERE = lazy_regex(
    r"\w+ (?:arbeit|schlafen|essen|fr[uü]hst[uü]ck|matin|midi|soir|travail|d[iî]ner|ma[nñ]ana|tarde|trabajo|comida|cena"
    r"|(?:letzten|n[aä]chsten) \w+)\W*",
    re.IGNORECASE,
)
_EASTER, _CHRISTMAS, _NEW_YEAR, _HALLOWEEN = "easter", "christmas", "new year", "halloween"
_FEAST_NAMES = dict.fromkeys(("ostern", "paques", "pascua"), _EASTER) | dict.fromkeys(
    ("weihnachten", "noel", "navidad"), _CHRISTMAS
)
_FIXED = {_CHRISTMAS: (12, 25), _NEW_YEAR: (1, 1), _HALLOWEEN: (10, 31)}
_FEAST = lazy_regex(
    r"(?:the )?(easter|christmas|new year|halloween)(?:['’]?s)?(?: (?:day|eve|sunday))?\W*", re.IGNORECASE
)
_TOLERANCE = {"day": 1, "week": 4, "month": 16, "year": 120}
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_SEVERAL = lazy_regex(
    r"\b(?:how (?:many|often)\b|(?:in|by) (?:which|what) order\b|order in which\b|(?:each|every) time\b"
    r"|all (?:of )?(?:the|my|our|of)\b|altogether\b|in total\b|so far\b|list (?:of|the|all|my|every|each)\b"
    r"|wie (?:oft|viele)\b|in welcher reihenfolge\b|combien de\b|dans quel ordre\b|cuánt[ao]s\b|hvor mange\b)",
    re.IGNORECASE,
)
_ORDER = lazy_regex(
    r"\b(?:(?:in|by) (?:which|what) order|order in which|in order|chronolog\w*|timelines?|sequence of|first to last"
    r"|in welcher reihenfolge|zeitleiste|dans quel ordre|chronologie|en qu[eé] orden|cronolog\w*)\b",
    re.IGNORECASE,
)
# "Which sports have I tried?", "welche Bücher habe ich", "quelles villes", "qué libros he": a noun in the plural. In
# front of an auxiliary verb it is no verb itself ("what makes Anna").
_KINDS = lazy_regex(
    r"\b(?:what|which) (?:(?!(?:is|was|does|has|did|do|are|were|have)\b)[\w'’-]+ ){0,5}?"
    r"(?!(?:is|was|this|does|has)\b|\w*(?:ss|us|is)\b)(?:\w{2,}s|\w*(?:people|children|men)) "
    r"(?:(?:of|in|at|from|for|on|with) (?:\w+ ){1,3}?)?"
    r"(?:do|did|has|have|had|are|were|can|could|would|will|should)\b"
    r"|\b(?:what|who|which) (?:are|were) (?:all|some|the (?:\w+ ){0,2}?\w{3,}s)\b|\b(?:what|which|who) (?:all|else)\b"
    r"|\bwelche \w+(?:en|er|s) (?:sind|waren|habe|haben|hast|hat|kenne)\b|\bquel(?:le)?s\b"
    r"|\bqu[eé] (?:\w+ )?\w{3,}s (?:he|has|ha|hemos|han|son|fueron|tengo|tiene)\b|\bcu[aá]les\b",
    re.IGNORECASE,
)
_LAST_TIMES = lazy_regex(
    rf"\b(?:last|latest|most recent) (?:{_COUNT} )?times?\b(?! (?:zone|slot|limit))"
    # die letzten drei Male; das letzte Mal; les trois dernières fois; las últimas dos veces
    r"|\bletzten? (?:(?P<german>\w+) )?male?\b|\b(?:(?P<french>\w+) )?derni[eè]res? fois\b"
    r"|\b[uú]ltimas? (?:(?P<spanish>\w+) )?ve(?:z|ces)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class EventReference:
    """A time relative to an event."""

    event: str  # its words
    side: str  # "before", "after"
    count: int  # number of units in between; 0 if open
    unit: str
    rest: str  # the question without it

    def days_around(self, day: date) -> tuple[date | None, date | None]:
        """Return the period [first, last) relative to the event's day; None for an open end."""
        if not self.count:
            return (None, day) if self.side == "before" else (day, None)
        between = timedelta(self.count * _DAYS[self.unit])
        middle = day - between if self.side == "before" else day + between
        tolerance = timedelta(_TOLERANCE[self.unit])
        return middle - tolerance, middle + tolerance + timedelta(1)

    def feast_day(self, today: date) -> date | None:
        """Return the holiday's date: the latest one whose period has begun; None for other events."""
        match = _FEAST.fullmatch(self.event)
        if match is None:
            return None
        for year in (today.year, today.year - 1):
            day = _feast(match[1].lower(), year)
            first, _ = self.days_around(day)
            if day <= today and (first is None or first <= today):
                return day
        return None


def find_event_reference(question: str) -> EventReference | None:
    """Return the event that a question refers to ("a week before I moved"), None if it refers to none. `count` is 0 and
    `unit` "" without a distance."""
    match = _EVENT.search(question)
    if match is None:
        return _find_reference_elsewhere(question)
    if _NO_EVENT.fullmatch(match["event"].strip()):
        return None
    rest = f"{question[: match.start()]} {question[match.end() :]}".strip(" ,")
    side = "before" if match["side"].lower() == "before" else "after"
    unit = (match["unit"] or "").lower().rstrip("s")
    return EventReference(match["event"].strip(), side, _number(match["count"]) if unit else 0, unit, rest)


def _find_reference_elsewhere(question: str) -> EventReference | None:
    """The same in German, French and Spanish."""
    match = _EVENT_ELSEWHERE.search(question)
    if match is None or _NO_EVENT_ELSEWHERE.fullmatch(match["event"].strip()):
        return None
    count = fold_text(match["count"] or "")
    number = NUMBERS.get(count) or (int(count) if count.isdecimal() else 0)
    written = match["unit"] or ""
    unit = next((unit for unit, words in _UNITS.items() if written and re.fullmatch(words, written, re.I)), "")
    side = "before" if match["side"].lower() in _BEFORE else "after"
    start = match.start() if number or not written else match.start("side")
    rest = f"{question[:start]} {question[match.end() :]}".strip(" ,")
    event = match["event"].strip()
    return EventReference(_FEAST_NAMES.get(fold_text(event), event), side, number if unit else 0, unit, rest)


def asks_for_several(question: str) -> bool:
    """Return whether the question may need several messages to answer."""
    return bool(_SEVERAL.search(question) or _ORDER.search(question))


def asks_for_kinds(question: str) -> bool:
    """Return whether it asks for things in the plural, of which one message may tell all or each one a part."""
    return bool(_KINDS.search(question))


def asks_for_order(question: str) -> bool:
    """Return whether it asks in which order things were."""
    return bool(_ORDER.search(question))


def last_times(question: str) -> int:
    """Return how many of the last occurrences a question asks for, or 0."""
    match = _LAST_TIMES.search(question)
    if match is None:
        return 0
    word = fold_text(match["german"] or match["french"] or match["spanish"] or "")
    return NUMBERS.get(word) or (int(word) if word.isdecimal() else 0) or _number(match["count"] or "1")


def _feast(name: str, year: int) -> date:
    if name == _EASTER:
        from dateutil.easter import easter  # rarely needed

        found: date = easter(year)
        return found
    month, day = _FIXED[name]
    return date(year, month, day)


def _number(count: str) -> int:
    return int(count) if count.isdecimal() else _NUMBERS[count.lower()]
