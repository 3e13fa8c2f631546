"""Finds the day named in a sentence, in English, German, French and Spanish: "dentist on Tuesday at 10", "Anna hat am
3. Mai Geburtstag". Pure.

Days are relative to the day on which it was said; days in the past tense are past; an hour is only read if it is
unambiguous. Case and accents are ignored.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise

from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text, lazy_regex
from assistant.core.time_pieces import find_times
from assistant.core.time_resolve import resolve_times
from assistant.core.time_spelling import begin_of_spans, share_months

_MONTH_NAMES = """
january januar janner janvier enero jan janv|february februar fevrier febrero feb fevr|march marz mars marzo
|april avril abril apr avr|may mai mayo|june juni juin junio jun|july juli juillet julio jul|august aout agosto aug
|september septembre septiembre setiembre sept sep|october oktober octobre octubre oct okt
|november novembre noviembre nov|december dezember
decembre diciembre dec dez
"""
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES.split("|"), 1) for name in names.split()}
_DAY_NAMES = """
monday montag lundi lunes|tuesday dienstag mardi martes|wednesday mittwoch mercredi miercoles|thursday donnerstag jeudi
jueves|friday freitag vendredi viernes|saturday samstag sonnabend samedi sabado|sunday sonntag dimanche domingo
"""
_WEEKDAYS = {name: number for number, names in enumerate(_DAY_NAMES.split("|")) for name in names.split()}
_NEAR_NAMES = "tomorrow today tonight morgen heute demain manana hoy"
DAY_WORDS = frozenset([*_MONTHS, *_WEEKDAYS, *_NEAR_NAMES.split()])
_MONTH, _WEEKDAY = ("|".join(sorted(names, key=len, reverse=True)) for names in (_MONTHS, _WEEKDAYS))
_DATE = lazy_regex(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.)?(?: of| de)? (?P<month>{_MONTH})\b\.?"
    r"(?:,? (?:de |del )?(?P<year>20\d\d))?"
    rf"|\b(?P<month_first>{_MONTH}) (?:the )?(?P<day_second>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)"
    r"(?:,? (?P<year_last>20\d\d))?"
    r"|\b(?P<iso>20\d\d-\d\d-\d\d)\b"
    r"|(?<![\d.])(?P<dotted_day>\d{1,2})\.(?P<dotted_month>\d{1,2})\.(?P<dotted_year>20\d\d)?(?!\d)"
)
_NEAR = lazy_regex(
    r"\b(?P<two>day after tomorrow|ubermorgen|apres-demain|pasado manana)\b"
    r"|\b(?P<one>tomorrow|demain|(?<!guten )(?<!am )(?<!jeden )morgen(?! fruh ist)|(?<!la )manana)\b"
    r"|\b(?P<none>today|tonight|this (?:morning|afternoon|evening)|heute|aujourd.hui|ce soir|hoy|esta noche)\b"
)
# Something without any of these names no day: most sentences, which need no closer look.
_MAY_NAME_DAY = lazy_regex(
    rf"\d|{_WEEKDAY}|tomorrow|today|tonight|this (?:morning|afternoon|evening)|heute|morgen|aujourd|ce soir|demain|hoy"
    "|manana|esta noche|week|woche|semaine|semana|month|monat|mois|meses"
)
# What the grammar of orders reads as a day, and no pattern here.
_DAY_OF_MONTH = lazy_regex(
    r"\b(?:the|am|zum|den|der|dem|le|el|al|del) (?:dia )?\d{1,2}(?:st|nd|rd|th|er|\.)?(?![\w:])"
    r"|\b(?:in|dans|en|dentro de) [\w-]+ (?:days?|weeks?|months?|tagen?|wochen?|monaten?|jours?|semaines?|mois|dias?"
    r"|semanas?|mes(?:es)?)\b"
)
_MIDNIGHT = datetime.combine(date(2001, 1, 1), time())
_NOON = 12
# "From 10 to 24 August", "August 10 to 24", "Monday to Wednesday": between the first and the last day.
_TO = r"(?:,? (?:to|till?|until|through|bis|au|al|a|hasta)(?: the| zum| el| le)?| ?[-–]) ?"
_LEADS_TO = lazy_regex(rf"{_TO}$")
_BETWEEN = lazy_regex(
    r"\b(?:between|zwischen|entre)((?: the| dem| le| el)? [\w. ]{1,20}?) (?:and|und|et|y)(?: the| dem| le| el)? (?=\w)"
)
# "3. und 4. Mai", "May 3 and 4".
_TWO_DAYS = lazy_regex(
    r"\b(?P<one>\d{1,2})(?:st|nd|rd|th|er|\.)? (?:and|und|et|y) (?:the )?(?P<two>\d{1,2})"
    rf"(?=(?:st|nd|rd|th|er|\.)?(?: of| de)? (?:{_MONTH})\b)"
    rf"|\b(?P<month>{_MONTH}) (?P<first>\d{{1,2}})(?:st|nd|rd|th)? and (?:the )?(?P<next>\d{{1,2}})"
    r"(?=(?:st|nd|rd|th)?\b)"
)
_AND = lazy_regex(r"\.?(?: ?, ?| (?:and|und|et|y) )(?:(?:on|am|the|den|le|el) )*")
_NUMBER_BEFORE = lazy_regex(r"(?<![\d.:])(\d{1,2})(?:st|nd|rd|th|er|\.)?$")
_NUMBER_AFTER = lazy_regex(rf"{_TO}(\d{{1,2}})(?:st|nd|rd|th)?\b(?!\.?\d|[:h]| ?[ap]m)")
_LOOKED_BACK = 40
_EVERY = r"every|each|jede[nrs]?|chaque|tous les|toutes les|cada|todos los|los"
_ON_WEEKDAY = lazy_regex(
    rf"\b(?:(?P<lead>{_EVERY}|last|letzte[nrs]?|vorige[nrs]?) )?(?P<name>{_WEEKDAY})"
    r"(?:(?P<plural>s)|abend|mittag|morgen|nachmittag|vormittag)?\b(?P<past> (?:dernier|pasado))?"
)
_YEARLY = lazy_regex(
    r"\b(?:birthdays?|anniversar(?:y|ies)|born|geburtstag\w*|geboren|jahrestag\w*|hochzeitstag\w*|anniversaire|nee?|"
    r"cumple(?:anos)?|aniversario|nacio|every year|jedes jahr|chaque annee|tous les ans|cada ano|todos los anos)\b"
)
_MONTHLY = lazy_regex(
    r"\b(\d{1,2})(?:st|nd|rd|th|er|\.)? (?:day )?"
    r"(?:of (?:each|every|the) month|(?:jeden|jedes|des) monats|de chaque mois|de cada mes)"
)
_PAST = lazy_regex(
    r"\b(?:was|were)\b(?! (?:moved|postponed|rescheduled|changed))|\b(?:had|went|did|saw|met|came|got|took|ate|bought"
    r"|called|visited|yesterday|ago|turned|died|married|began|started|graduated|war|waren|hatten?|ging|gestern|etait|avait|hier"
    r"|fue|fui|ayer|tuve|estuve)\b"
    r"|\bj'ai (?!(?:une|encore|meme|quatre|onze|douze|quinze|trente)\b)\w+e\b|\bhabe\b.*\bge\w+t\b"
)
# Words about the days themselves.
_OF_DAYS = lazy_regex(
    r"\b(?:(?:favou?rite|best|worst|busiest) (?:day|weekday)|lieblings(?:wochen)?tag|jour (?:de la semaine )?prefere"
    r"|dia (?:de la semana )?(?:favorito|preferido)|(?:is|are) (?:called|a day of)|comes? (?:after|before)"
    r"|(?:love|hate|like|dislike|prefer|mag|liebe|hasse|aime|adore|prefere|deteste|odio|prefiero|gustan?|encantan?)"
    rf" (?:the |les? |los |el )?(?:{_WEEKDAY})s?)\b"
)
_GERMAN = lazy_regex(r"\b(?:ist|sind|ich|bin|wir|kommt|kommen|bleibt|bleiben|und|der|das|am|um)\b")
# The old date comes before, the new one after it: "it was on Tuesday, but is now on Wednesday".
_BUT = lazy_regex(r"\b(?:but|aber|sondern|mais|pero|sino)\b")
_CLOCK = lazy_regex(
    r"(?<![\d.:])(?P<hour>\d{1,2})[:h](?P<minute>\d{2})(?:\s?(?P<half>[ap])\.?m\b)?"
    r"|(?<![\d.:])(?P<hour_half>\d{1,2})\s?(?P<half_alone>[ap])\.?m\b"
    r"|(?<![\d.:])(?P<hour_word>\d{1,2})\s?(?:uhr|heures?|h|o.clock)\b(?:\s?(?P<minute_word>\d{2})\b)?"
    r"|\b(?:um|at|a las?|alas|a) (?P<hour_alone>\d{1,2})"
    r"(?![\d:h/%]|\.\d|\s?[ap]\.?m\b|\s?(?:uhr|min|stunde|hour|heure|jour|day|people|euro|km))"
)
_A_YEAR = timedelta(days=364)
_LATER = lazy_regex(r"\b(?:afternoon|evening|tonight|nachmittags?|abends?|apres-midi|soir|tarde|noche)\b|(?<=tag)abend")
# A lower hour without a part of the day may be in the afternoon or at night.
_MORNING_FROM = 7


@dataclass(frozen=True, slots=True)
class NamedDay:
    """When something is: on a day, or a range of days; every year, month or on weekdays; and at an hour, if one is
    named."""

    day: date | None = None
    until: date | None = None  # the last of several days
    yearly: bool = False
    weekdays: frozenset[int] = frozenset()  # 0 is Monday
    month_day: int = 0  # of each month
    time: str = ""  # such as "10:00"
    others: frozenset[date] = frozenset()  # further days, not adjacent: "3. und 10. Mai"

    @property
    def names_day(self) -> bool:
        return self.day is not None or bool(self.weekdays or self.month_day)

    @property
    def repeats(self) -> str:
        """Return how often, in words; "" for once."""
        return "every month" if self.month_day else "every week" if self.weekdays else "every year" * self.yearly

    def is_on(self, day: date, since: date) -> bool:
        """Return whether it is on a day; `since` is when it was said."""
        if self.weekdays or self.month_day:
            return day > since and (day.weekday() in self.weekdays or day.day == self.month_day)
        if self.day is None or not self.yearly:
            return day in self.others or (self.day is not None and self.day <= day <= (self.until or self.day))
        # A birthday on 29 February is celebrated every year.
        own = (
            (2, 28)
            if (self.day.month, self.day.day) == (2, 29) and not _is_leap(day.year)
            else self.day.timetuple()[1:3]
        )
        return (day.month, day.day) == own


def may_name_day(text: str) -> bool:
    """Return whether `find_day` could find something in the text or a part of it; cheap."""
    return _MAY_NAME_DAY.search(_folded(text)) is not None


def _folded(text: str) -> str:
    return fold_text(text).replace("’", "'")


@lru_cache(maxsize=64)
def find_day(sentence: str, said_on: date) -> NamedDay:
    """Return the day and hour named in a sentence; empty if there is none, or a past one."""
    sentence = begin_of_spans(sentence)
    folded = _folded(sentence)
    if not _MAY_NAME_DAY.search(folded):
        return NamedDay()
    named = _find_day(folded, said_on)
    if not named.names_day and _DAY_OF_MONTH.search(folded) and not (_PAST.search(folded) or _OF_DAYS.search(folded)):
        named = replace(named, day=_day_by_grammar(sentence, said_on), yearly=_YEARLY.search(folded) is not None)
    return named if named.time or not named.names_day else replace(named, time=_clock_by_grammar(sentence, folded))


def _day_by_grammar(sentence: str, said_on: date) -> date | None:
    """Return the day of what orders name too: "on the 20th", "in two weeks"."""
    times = find_times(sentence)
    pieces = tuple(piece for piece in times.of_kind("day", "delta") if not piece.minutes)
    if len(pieces) != 1 or times.rule:
        return None
    resolved = resolve_times(replace(times, pieces=pieces), datetime.combine(said_on, time()))
    return resolved.at.date() if resolved else None


def _clock_by_grammar(sentence: str, folded: str) -> str:
    """Return the hour as a reminder would read it: "at 3", "half six", "halb sieben"; "" for none or several."""
    times = find_times(sentence)
    clocks = tuple(times.of_kind("clock"))
    if len(clocks) != 1 or times.rule or times.of_kind("before"):
        return ""
    resolved = resolve_times(replace(times, pieces=(*clocks, *times.of_kind("part"))), _MIDNIGHT)
    if resolved is None:
        return ""
    later = _LATER.search(folded) is not None and 1 <= resolved.at.hour < _NOON and not clocks[0].half
    return f"{resolved.at + timedelta(hours=_NOON * later):%H:%M}"


def _find_day(folded: str, said_on: date) -> NamedDay:
    if _GERMAN.search(folded):
        # "Here"; in French, yesterday.
        folded = re.sub(r"\bhier\b", "da", folded)
    if _PAST.search(folded):
        folded = _BUT.split(folded)[-1]
    if _OF_DAYS.search(folded):
        return NamedDay()
    folded = share_months(_TWO_DAYS.sub(_as_range, _BETWEEN.sub(r"\1 to ", folded)))
    hour = _time(folded)
    yearly, is_past = _YEARLY.search(folded) is not None, _PAST.search(folded) is not None
    monthly = _MONTHLY.search(folded)
    if monthly is not None:
        return NamedDay(month_day=int(monthly[1]), time=hour)
    dates = [
        (day, match) for match in _DATE.finditer(folded) if (day := _dated(match, said_on, yearly, is_past)) is not None
    ]
    if dates:
        # A date added when it was learned is in brackets at the end.
        day, match = dates[-1]
        others = (
            other for (other, one), (_, two) in pairwise(dates) if _AND.fullmatch(folded[one.end() : two.start()])
        )
        return replace(_up_to(day, folded, match, said_on), yearly=yearly, time=hour, others=frozenset(others))
    if is_past:
        return NamedDay(time=hour)
    near = _NEAR.search(folded)
    if near is not None:
        day = said_on + _days_to(near)
        weekday = _ON_WEEKDAY.search(folded, near.end())
        if weekday is not None and re.fullmatch(_TO, folded[near.end() : weekday.start()]):
            return NamedDay(day, _next_weekday(weekday, day), time=hour)
        return NamedDay(day, yearly=yearly, time=hour)
    return _of_week(folded, said_on, hour)


def _as_range(match: re.Match[str]) -> str:
    """Two adjacent days are a range from one to the other."""
    first, last = match["one"] or match["first"], match["two"] or match["next"]
    lead = f"{match['month']} " if match["month"] else ""
    return f"{lead}{first} to {last}" if int(last) == int(first) + 1 else match[0]


def month_of(words: str) -> int:
    """Return 1 to 12 for the name of a month; 0 for anything else."""
    return _MONTHS.get(words, 0)


def _up_to(last: date, folded: str, match: re.Match[str], said_on: date) -> NamedDay:
    """Return the range that begins or ends with a found day; the day alone if there is no other."""
    number = _NUMBER_AFTER.match(folded, match.end()) if match["month_first"] else None
    if number is not None:
        return NamedDay(last, _same_month(last, int(number[1])))
    before = folded[max(0, match.start() - _LOOKED_BACK) : match.start()]
    to = _LEADS_TO.search(before)
    left = before[: to.start()] if to else ""
    first: date | None = None
    for other in _DATE.finditer(left):
        if other.end() == len(left):
            first = _dated(other, last - _A_YEAR, yearly=False, is_past=False)
    number = _NUMBER_BEFORE.search(left)
    if first is None and number is not None:
        first = _same_month(last, int(number[1]))
    near = _NEAR.search(left)
    if first is None and near is not None and near.end() == len(left):
        first = said_on + _days_to(near)
    return NamedDay(first, last) if first is not None and first < last else NamedDay(last)


def _same_month(day: date, number: int) -> date | None:
    try:
        return day.replace(day=number)
    except ValueError:
        return None


def _days_to(near: re.Match[str]) -> timedelta:
    return timedelta({"two": 2, "one": 1}.get(near.lastgroup or "", 0))


def _next_weekday(match: re.Match[str], after: date) -> date:
    return after + timedelta((_WEEKDAYS[match["name"]] - after.weekday()) % 7 or 7)


def find_other_numbers(sentence: str) -> frozenset[str]:
    """Return the numbers that are not part of a date or an hour: of a room, a flight, a team."""
    return frozenset(re.findall(r"\b\d+\b", _CLOCK.sub(" ", _DATE.sub(" ", fold_text(sentence)))))


def _of_week(folded: str, said_on: date, hour: str) -> NamedDay:
    weekly: set[int] = set()
    once: list[NamedDay] = []
    ended = len(folded)
    for match in _ON_WEEKDAY.finditer(folded):
        lead, number = match["lead"] or "", _WEEKDAYS[match["name"]]
        if match["past"] or lead.startswith(("last", "letzt", "vorig")):
            continue
        is_plural = match["plural"] and match["name"].endswith(("day", "tag", "woch", "abend"))
        if lead or is_plural:
            weekly.add(number)
        else:
            joined = once and re.fullmatch(_TO, folded[ended : match.start()])
            first = once[-1].day if joined else None
            day = _next_weekday(match, first or said_on)
            once.append(NamedDay(first, day) if first else NamedDay(day))
        ended = match.end()
    if weekly:
        return NamedDay(weekdays=frozenset(weekly), time=hour)
    return replace(once[-1], time=hour) if once else NamedDay(time=hour)


def _dated(match: re.Match[str], said_on: date, yearly: bool, is_past: bool) -> date | None:
    if match["iso"]:
        parts = [int(part) for part in match["iso"].split("-")]
    else:
        month = _MONTHS.get(match["month"] or match["month_first"] or "") or int(match["dotted_month"])
        day = int(match["day"] or match["day_second"] or match["dotted_day"])
        year = match["year"] or match["year_last"] or match["dotted_year"]
        parts = [int(year or 0), month, day]
    for year_number in [parts[0]] if parts[0] else range(said_on.year, said_on.year + 9):
        try:
            found = date(year_number, parts[1], parts[2])
        except ValueError:
            continue
        if parts[0] or yearly or (found >= said_on and not is_past):
            return found
    return None


def _time(folded: str) -> str:
    match = _CLOCK.search(folded)
    if match is None:
        return ""
    hour = int(match["hour"] or match["hour_half"] or match["hour_word"] or match["hour_alone"])
    minute = int(match["minute"] or match["minute_word"] or 0)
    half = match["half"] or match["half_alone"] or ""
    later = _LATER.search(folded) is not None
    if match["hour_alone"] and hour < _MORNING_FROM and not later:
        return ""
    if (half == "p" or (later and not half)) and hour < 12:
        hour += 12
    elif half == "a" and hour == 12:
        hour = 0
    return f"{hour:02}:{minute:02}" if hour < 24 and minute < 60 else ""


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
