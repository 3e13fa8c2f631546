"""Normalises how times are written before `time_language` reads them: typos in names, day and part written as one word,
lists of short day names, and elided months or units. Pure.

Words that are neither times nor typos of them are unchanged.
"""

from __future__ import annotations

import difflib
import re

from assistant.core.text import fold_text, lazy_regex, replace_folded
from assistant.core.time_alternation import spell_alternation
from assistant.core.time_language import DAYS, MONTH
from assistant.core.time_names import NUMBERS, NUMBERS_BY_LANGUAGE

# Numbers in words from 21 on; smaller ones are in `NUMBERS`. The dot marks a German ordinal.
_TENS = {
    20: ("twenty-", "undzwanzigste[nrs]?", "vingt[- ](?:et[- ])?", "veinti"),
    30: ("thirty-", "unddreißigste[nrs]?", "trente[- ](?:et[- ])?", "treinta y "),
}
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
_GERMAN = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
_FRENCH = ["(?:une?|unième)", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"]
_SPANISH = ["un[oa]?", "d[oó]s", "tr[eé]s", "cuatro", "cinco", "s[eé]is", "siete", "ocho", "nueve"]
_DAY_WORDS = tuple(
    (lazy_regex(rf"\b(?:{words})\b", re.IGNORECASE), f"{tens + n + 1}{dot}")
    for tens, (english, german, french, spanish) in _TENS.items()
    for n in range(9 if tens == 20 else 1)
    for words, dot in (
        (rf"{english}{_ORDINALS[n]}|{_GERMAN[n]}{german}", "."),
        (rf"{french}{_FRENCH[n]}|{spanish}{_SPANISH[n]}", ""),
    )
)
# Day of the month in words, before its month: "zweiten April", "dos de abril", "the second of April".
_SMALL_NUMBERS = {word: number for word, number in NUMBERS.items() if 1 < number < 21 and word not in ("other",)}
_ORDINALS_BY_LANGUAGE = {
    "english": {
        **{word: number for number, word in enumerate(_ORDINALS, 1)},
        **{
            word: number
            for number, word in enumerate(
                "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
                "twentieth".split(),
                10,
            )
        },
    },
    "german": {
        **{
            f"{stem}{end}": number
            for number, stem in enumerate(
                "ers zwei drit vier funf sechs sieb ach neun zehn elf zwolf dreizehn vierzehn funfzehn sechzehn "
                "siebzehn achtzehn neunzehn zwanzigs".split(),
                1,
            )
            for end in ("te", "ten", "ter")
        },
        "siebten": 7,
    },
    "french": {"premier": 1},
    "spanish": {"primero": 1, "uno": 1},
}
_SMALL_ORDINALS = {word: number for words in _ORDINALS_BY_LANGUAGE.values() for word, number in words.items()}
_DAY_OF_MONTH = lazy_regex(
    rf"\b({'|'.join(sorted((*_SMALL_ORDINALS, *_SMALL_NUMBERS), key=len, reverse=True))})"
    rf"(?= (?:of |de )?(?:{MONTH})\b)"
)
# What stands before a day of the month in words: only numbers of the same language follow, since those of another are
# other words ("le four" is an oven).
_BEFORE_DAY = {
    "english": "on the|by the|for the",
    "german": "am|zum|vom",
    "french": "le",
    "spanish": "el dia|el|dia",
}


def _days_of(language: str) -> str:
    small = (word for word in NUMBERS_BY_LANGUAGE[language] if word in _SMALL_NUMBERS)
    return "|".join(sorted({*_ORDINALS_BY_LANGUAGE[language], *small}, key=lambda word: (-len(word), word)))


# Day of the month in words, without a month: "am siebzehnten um acht", "le dix-sept à huit heures", "el día
# diecisiete".
_DAY_ALONE = lazy_regex(
    rf"\b(?:{'|'.join(rf'(?:{before}) (?:{_days_of(language)})' for language, before in _BEFORE_DAY.items())})"
    r"(?=[,.;!?]|$| (?:(?:um|ab|gegen|fruh|morgens|abends|mittags|at|by|in the|vers|a partir de|a las?|por la)\b"
    r"|a [\w ]{1,14}heures?\b))"
)
# Hour and minutes in words: "twelve thirty", "um zwölf dreißig", "17 Uhr dreißig".
_HOUR_WORDS = "|".join(
    word for word, number in NUMBERS.items() if 1 < number <= 23 and word.isalpha() and not word.startswith("zweite")
)
_MINUTES_BEHIND = r"fifteen|thirty|forty[- ]five|twenty|forty|fifty|funfzehn|drei(?:ß|ss)ig|funfundvierzig|zwanzig|vierzig|treinta|quince"
_CLOCK_IN_WORDS = lazy_regex(
    rf"\b({_HOUR_WORDS})[ -]({_MINUTES_BEHIND}|ten)(?=[,.!?]|$| (?:[ap]m|in|on|to(?:day|morrow|night)|every|sharp"
    rf"|uhr)\b)"
    rf"|(?:(?<=\bum )|(?<=\bat )|(?<=\blas ))({_HOUR_WORDS})(?: uhr)?[ -]({_MINUTES_BEHIND})\b(?! (?:vor|nach)\b)"
    rf"|\b(\d{{1,2}}|{_HOUR_WORDS}) uhr ({_MINUTES_BEHIND})\b"
)
# "In einer guten Stunde", "dans une petite heure": approximate durations.
_ABOUT = lazy_regex(
    r"\b(einer?|une) (?:guten?|knappen?|bonne|petite) (?=stunde|halben|viertel|heure|demi)", re.IGNORECASE
)
# "Samstagmittag", "heuteabend"
_JOINED_DAYS = lazy_regex(
    r"\b((?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend|heute?|gestern)(früh|morgen|vormittag|mittag"
    r"|nachmittag|abend|nacht)s?\b",
    re.IGNORECASE,
)
# Names in which a typo is corrected, and words that look like one.
_LONG_WORDS = lazy_regex(r"\b[^\W\d_]{5,10}\b")
_LONG_NAMES = (
    "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag "
    "samstag sonntag mercredi vendredi samedi dimanche miercoles jueves viernes sabado domingo tomorrow "
    "january february september october november december mondays tuesdays wednesdays thursdays fridays "
    "saturdays sundays mittwochs sabados domingos mercredis vendredis samedis dimanches minutes minuten "
    "minutos montags dienstags freitags samstags sonntags lundis mardis jeudis lundi mardi jeudi lunes martes "
    "morgen demain manana"
).split()
_NO_SLIPS = frozenset(
    (
        "montage montagne freizeit janvier octobre oktober octubre novembre decembre dezember domino minute "
        "minuto jeden morgens monat monate month months sonne manna maana vendre vendez vendrai vendrais"
    ).split()
)
# "mares" and "marte" are words, not typos of "martes".
_NEAR_DAYS = ("morgen", "demain", "manana")
_SHORTEST = 5
_FIRST_LETTERS = frozenset(name[0] for name in _LONG_NAMES)
# Short day names in a list, with their full names: "mon, wed and fri", "mo-fr".
_WHOLE_NAMES = dict(
    pair.split()
    for pair in (
        "mon monday, tue tuesday, tues tuesday, wed wednesday, thu thursday, thur thursday, thurs thursday, "
        "fri friday, sat saturday, sun sunday, mo montag, di dienstag, mi mittwoch, do donnerstag, fr freitag, "
        "sa samstag, so sonntag, lun lundi, mar mardi, mer mercredi, jeu jeudi, ven vendredi, sam samedi, "
        "dim dimanche, mie miercoles, jue jueves, vie viernes, sab sabado, dom domingo"
    ).split(", ")
)
_NEXT_IN_ROW = r"(?:\s*[,/&+–-]\s*(?:and |und |et |y )?|\s+(?:and|und|et|y|n|to|bis|a|au|hasta)\s+)"
_ROWS = tuple(
    lazy_regex(rf"(?<![\w'])(?:{names})\.?(?:{_NEXT_IN_ROW}(?:{names})(?![\w']))+", re.IGNORECASE)
    for names in (
        "mon|tues?|wed|thu(?:rs?)?|fri|sat|sun",
        "mo|di|mi|do|fr|sa|so",
        "lun|mar|mer|jeu|ven|sam|dim|mie|jue|vie|sab|dom",
    )
)
# Lists of only these are other words: "so, do you ...", "le mar, la mer".
_OTHER_WORDS = frozenset(["so", "do", "mi", "mer", "mar", "dim", "dom", "vie", "sam"])
_IN_ROW = lazy_regex(r"\b(?:" + "|".join(_WHOLE_NAMES) + r")\b\.?", re.IGNORECASE)
# "Mondays wednesdays and fridays": commas are left out more often than days stand beside each other without one.
_DAY_NAME = rf"(?:{'|'.join(DAYS.values())})"
_DAYS_IN_ROW = lazy_regex(
    rf"\b{_DAY_NAME}(?: {_DAY_NAME}(?!\w)){{1,6}}(?P<more>(?=,? (?:and|und|et|y) {_DAY_NAME}\b))?"
)
# A single short name is a day directly before an hour or part of the day: "so 14 Uhr", "do. abends", "sat 11am".
_BEFORE_HOUR = lazy_regex(
    r"(?<![\w'])(?:(mon|tues?|wed|thurs?|thu|fri|sat|sun)\.? (?=\d{1,2}(?:[:.]\d\d)? ?[ap]m\b|\d{1,2}[:.]\d\d\b"
    r"|[0-2]\d[0-5]\d\b)"
    r"|(mo|di|mi|do|fr|sa|so)\.? (?=(?:(?<!so )um )?\d{1,2}(?:[:.]\d\d)? ?uhr\b|\d{1,2}:\d\d\b|(?:abend"
    r"|nachmittag|morgen|vormittag|mittag)s?\b)"
    r"|(lun|mar|mer|jeu|ven|sam|dim|mie|jue|vie|sab|dom)\.? (?=(?:à |a las )?\d{1,2}(?: ?h|:\d\d\b)))",
    re.IGNORECASE,
)
_RANGE = lazy_regex(r"[-–]|\b(?:to|bis|a|au|hasta)\b", re.IGNORECASE)
_NUMBER = r"\d{1,2}(?:st|nd|rd|th|er|\.)?"
_AND = r"(?:\s*[,/&+]\s*|\s+(?:and|und|et|y)\s+)(?:(?:on|am|the|den|le|el) )*"
# "3. und 10. Mai", "11 statt 10 Uhr": the month or unit applies to both.
_SHARED_MONTH = lazy_regex(
    rf"\b({_NUMBER})(?= ?{_AND}(?:{_NUMBER}{_AND})?{_NUMBER}( (?:of |de )?(?:{MONTH})\b))", re.IGNORECASE
)
_SHARED_UNIT = lazy_regex(
    r"\b(\d{1,2})(?= (?:statt|anstatt|instead of|not|au lieu de|en vez de|en lugar de) (?:um |at |a las )?"
    r"\d{1,2}( ?(?:uhr|h|heures|o'?clock|[ap]m)\b))",
    re.IGNORECASE,
)
_CLOCK_AND_CLOCK = lazy_regex(r"(?<=[ap]m) (?:n|&|\+) (?=\d{1,2} ?[ap]m)", re.IGNORECASE)
_MINUTES_IN_WORDS = lazy_regex(r"\b(twenty|forty) (five)(?= (?:minutes )?(?:past|to|minutes)\b)", re.IGNORECASE)
_PACKED_CLOCK = lazy_regex(
    r"\b([01]\d|2[0-3])([0-5]\d) ?(?:hrs|hours)\b"
    r"|(?:(?<=\bfri )|(?<=\b(?:mon|tue|wed|thu|sat|sun) ))([01]\d|2[0-3])([0-5]\d)\b",
    re.IGNORECASE,
)
# Dictated: "by 7 40", "um 7 40", "a las 7 40".
_SPOKEN_DIGITS = lazy_regex(
    r"\b(at|by|till?|until|for|um|ab|gegen|à|vers|las) (\d{1,2}) ([0-5]\d)\b(?! ?(?:%|\w*(?:min|h|kg|km|g|ml"
    r"|euros?|pounds?)\b))",
    re.IGNORECASE,
)
# "At 3, no wait, make it 4" is at 4; and "a las 4, no a las 3" too.
_TAKEN_BACK = lazy_regex(
    r"\b(at|by|um|à|a las) \d{1,2}(?::[0-5]\d)?,? (?:no(?! a las? )|nein|ne|nee|non|oh|ach|sorry|wait|pardon"
    r"|perdón)\b[\w ,']{0,24}?"
    r" (\d{1,2}(?::[0-5]\d)?)\b(?! ?(?:%|(?:min|hour|stund|uur|heur|hora|kg|euro|pound)))",
    re.IGNORECASE,
)
# "Wecker morgen 6.40"
_DOTTED_CLOCK = lazy_regex(
    r"\b(tomorrow|today|morgen|heute|demain|mañana|hoy|\w+tag|\w+day|alarm|wecker|réveil|alarma|despertador)"
    r" (\d{1,2})\.([0-5]\d)\b(?![.\d])",
    re.IGNORECASE,
)
# As telephones and timers write them: "in 5m", "timer for 90s", "1h30m". Elsewhere "5m" is a length of five metres.
_SHORT_LENGTH = lazy_regex(
    r"\b((?:in|dans|(?:timer|snooze)(?: it)?(?: for| of)?) )(\d{1,3}) ?([smdw])(?![\w'’.])", re.IGNORECASE
)
_SHORT_UNITS = {"s": "seconds", "m": "min", "d": "days", "w": "weeks"}
_SHORT_TIMER = lazy_regex(r"\b(\d{1,3}) ?([sm])(?= timer\b)", re.IGNORECASE)
_HALF_HOUR = lazy_regex(r"\b(half an?|halben?|ne halbe|demi[- ]?) (?:hr|std)\b\.?", re.IGNORECASE)
_AND_A_HALF = lazy_regex(
    r"\b(an?|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2}) (hour|minute|day|week)s? and a half\b",
    re.IGNORECASE,
)
# "13 pm" is one o'clock, said twice.
_AFTERNOON_TWICE = lazy_regex(r"(?<![\d:.])\b(1[3-9]|2[0-3])((?:[:.][0-5]\d)?) ?pm\b", re.IGNORECASE)
# "Jeudi 19 aussi" is one day.
_DAY_AND_DATE = lazy_regex(
    r"\b(?:(lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)|(lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado"
    r"|domingo)) ([12]?\d|3[01])(?=$|[,.;!?]| (?:à|a las?|a|aussi|tambi[eé]n|vers|stp|porfa)\b(?! ?h))",
    re.IGNORECASE,
)
# "Décale d1h"
_ELIDED_OF = lazy_regex(r"\bd(?=\d{1,3} ?(?:h|min|minutes?|heures?|jours?|semaines?)\b)", re.IGNORECASE)
_HOURS_AND_MINUTES = lazy_regex(r"\b(\d{1,2}) ?h ?(\d{1,2}) ?m(?![\w'’])", re.IGNORECASE)


# "At 8, 14 and 20"; in Spanish "a las 8 y 20" is one time.
_HOURS_IN_ROW = lazy_regex(
    r"\b(?P<at>at|um|à) (?P<first>\d{1,2}(?::\d\d)?)(?P<middle>(?:(?:, ?| and | und | et )\d{1,2}(?::\d\d)?){0,3}),?"
    r" (?P<and>and|und|et)"
    r" (?P<last>\d{1,2}(?::\d\d)?)(?=$|[,.;!]| (?:every|each|jeden|tous|remind|erinner\w*|rappelle)\b| ?(?:uhr|h"
    r"|o'?clock|[ap]m)\b| (?:to|an|ans|about|of|for|de|pour|wegen) (?!\d|one\b|two\b|three\b|four\b|five\b|six\b|seven\b"
    r"|eight\b|nine\b|ten\b|eleven\b|twelve\b|(?:to|the)day))",
    re.IGNORECASE,
)


_TO_NOON = lazy_regex(
    r"\b((?:quarter|half|five|ten|twenty|\d{1,2}) (?:minutes )?(?:to|past|after|before) )(?:noon|midday)\b",
    re.IGNORECASE,
)
_THREE_QUARTERS = lazy_regex(r"\b3/4[- ]?(?:of an )?(?:hours?|hrs?|stunde|h)\b", re.IGNORECASE)


_HOUR = r"(?:(?:las? |les? )?(?P<hour{0}>\d{{1,2}})(?:[:.h](?P<minute{0}>[0-5]\d))? ?(?P<unit{0}>[ap]\.?m\b\.?|uhr\b|h(?:oras|eures)?\b)?)"
# "From 10pm to 6am", "von 19 bis 21 Uhr", "de 9 à 17h", "entre las 8 y las 10": what is then begins at the first hour.
_SPAN_OF_HOURS = lazy_regex(
    rf"\b(?:from|between|von|zwischen|de|du|entre|desde)(?: about| around| circa)? {_HOUR.format(1)}"
    rf" ?(?:-|–|\b(?:to|till?|until|and|bis|und|a|et|y|hasta)\b) ?{_HOUR.format(2)}(?![\w:%]|[.,]\d)"
    rf"(?!\.? ?(?:of |de )?(?:{MONTH})\b)"
    r"(?! ?(?:euros?|€|kg|km|m|cm|people|personas?|personnes|jahren?|ans|anos|years?|weeks?|wochen?|days?|tagen?)\b)"
)
# There two hours are the old one and the new one.
_MOVES = lazy_regex(
    r"\b(?:mov|shift|push|chang|resched|postpon|bring|put|verschieb|verschob|verleg|ander[nte]|aender|statt|instead"
    r"|decal|deplac|report|avanc|repouss|cambi|muev|pasa|paso|retras|adelant|aplaz|snooz)"
)


def spell_times(text: str) -> str:
    """Return the text with its times in the form that `time_language` reads."""
    text = spell_alternation(text)
    text = begin_of_spans(text)
    text = _DAY_AND_DATE.sub(lambda match: f"{match[1] or match[2]} {'le' if match[1] else 'el'} {match[3]}", text)
    text = replace_folded(_DAYS_IN_ROW, text, _with_commas)
    text = _AFTERNOON_TWICE.sub(lambda match: f"{match[1]}{match[2] or ':00'}", text)
    text = _TO_NOON.sub(r"\1twelve", _HOURS_IN_ROW.sub(_read_hours_in_row, spell_lengths(text)))
    text = _JOINED_DAYS.sub(r"\1 \2", _LONG_WORDS.sub(_without_slip, text))
    for pattern, number in _DAY_WORDS:
        text = pattern.sub(number, text)
    text = replace_folded(_DAY_OF_MONTH, text, lambda match: f"{(_SMALL_ORDINALS | _SMALL_NUMBERS)[match[1]]}.")
    text = replace_folded(_DAY_ALONE, text, _read_day_alone)
    text = replace_folded(_CLOCK_IN_WORDS, text, _read_clock_in_words)
    text = _MINUTES_IN_WORDS.sub(r"\1-\2", _ABOUT.sub(r"\1 ", text))
    text = _PACKED_CLOCK.sub(lambda match: ":".join(filter(None, match.groups())), share_months(text))
    text = _TAKEN_BACK.sub(r"\1 \2", _SPOKEN_DIGITS.sub(r"\1 \2:\3", text))
    text = _DOTTED_CLOCK.sub(r"\1 \2:\3", text)
    text = _CLOCK_AND_CLOCK.sub(" and ", text)
    text = _SHARED_UNIT.sub(r"\1\2", text)
    return _BEFORE_HOUR.sub(
        lambda match: f"{_WHOLE_NAMES[match[match.lastindex or 1].lower()]} ", spell_days(text, weekly=True)
    )


def begin_of_spans(text: str) -> str:
    """Return the text with the first hour alone of each span of hours, unless something is moved in it."""
    return text if _MOVES.search(fold_text(text)) else replace_folded(_SPAN_OF_HOURS, text, _read_first_hour)


def _read_first_hour(match: re.Match[str]) -> str:
    """What a span of hours begins with; "from 2 to 4pm" is in the afternoon, "from 11 to 1pm" in the morning."""
    first, last = int(match["hour1"]), int(match["hour2"])
    units = [(match[name] or "").replace(".", "").lower() for name in ("unit1", "unit2")]
    if first > 24 or last > 24:
        return match[0]
    minute = f":{match['minute1'] or '00'}"
    if units[1] in ("am", "pm") and not units[0]:
        same = first % 12 <= last % 12 or units[1] == "am"
        return f"at {first}{minute} {units[1] if same else 'am'}"
    if units[0] in ("am", "pm"):
        return f"at {first}{minute} {units[0]}"
    of_day = max(first, last) > 12 or any(units)
    return f"at {first:02}{minute}" if of_day else f"at {first}"


def _with_commas(match: re.Match[str]) -> str:
    names = match[0].split()
    return match[0] if len(names) < 3 and match["more"] is None else ", ".join(names)


def _read_hours_in_row(match: re.Match[str]) -> str:
    at, hours = match["at"], [match["first"], *re.findall(r"\d{1,2}(?::\d\d)?", match["middle"])]
    hours.append(match["last"])
    if any(int(hour.split(":")[0]) > 12 for hour in hours):  # then none of them is of a dial of twelve
        hours = [hour if ":" in hour else f"{int(hour):02}:00" for hour in hours]
    return f"{', '.join(f'{at} {hour}' for hour in hours[:-1])} {match['and']} {at} {hours[-1]}"


def spell_lengths(text: str) -> str:
    """Return the text with "in 5m" as "in 5 min", "1h30m" as "1 h 30 min", "two hours and a half" as "two and a half
    hours"."""
    text = _AND_A_HALF.sub(_read_and_a_half, text)
    text = _THREE_QUARTERS.sub("45 minutes", text)
    text = _HALF_HOUR.sub(_read_half_hour, _ELIDED_OF.sub("de ", text))
    text = _SHORT_LENGTH.sub(lambda match: f"{match[1]}{match[2]} {_SHORT_UNITS[match[3].lower()]}", text)
    text = _SHORT_TIMER.sub(lambda match: f"{match[1]} {_SHORT_UNITS[match[2].lower()]}", text)
    return _HOURS_AND_MINUTES.sub(r"\1 h \2 min", text)


def _read_and_a_half(match: re.Match[str]) -> str:
    count = "one" if match[1].lower() in ("a", "an") else match[1]
    return f"{count} and a half {match[2]}s"


def _read_half_hour(match: re.Match[str]) -> str:
    unit = {"half": "hour", "halb": "Stunde"}.get(match[1].lower().removeprefix("ne ")[:4], "heure")
    return f"{match[1]} {unit}"


def _read_day_alone(match: re.Match[str]) -> str:
    before, _, day = match[0].rpartition(" ")
    number = (_SMALL_ORDINALS | _SMALL_NUMBERS)[day]
    # In English the suffix marks a number as a day.
    suffix = "th" if before.endswith("the") else "." if before in ("am", "zum", "vom") else ""
    return f"{before} {number}{suffix}"


def _read_clock_in_words(match: re.Match[str]) -> str:
    hour, minute = (text for text in match.groups() if text)
    return f"{hour if hour.isdigit() else NUMBERS[hour]}:{NUMBERS[minute.replace(' ', '-').replace('ss', 'ß')]}"


def share_months(text: str) -> str:
    """Expand "3. und 10. Mai" to "3. Mai und 10. Mai"."""
    return _SHARED_MONTH.sub(r"\1\2", text)


def spell_days(text: str, *, weekly: bool = False) -> str:
    """Expand lists of short day names; with `weekly`, German ones as recurring: "mo, mi, fr um 8"."""
    for row in _ROWS:
        text = row.sub(lambda match: _whole_row(match[0], weekly=weekly), text)
    return text


def _whole_row(row: str, *, weekly: bool) -> str:
    words = [match[0].rstrip(".").lower() for match in _IN_ROW.finditer(row)]
    if _OTHER_WORDS.issuperset(words):
        return row
    recurs = weekly and _WHOLE_NAMES[words[0]].endswith(("tag", "woch")) and not _RANGE.search(row)
    return _IN_ROW.sub(lambda match: _WHOLE_NAMES[match[0].rstrip(".").lower()] + "s" * recurs, row)


def _without_slip(match: re.Match[str]) -> str:
    """Correct a typo in the name of a day or month: "vendrdi" becomes "vendredi"."""
    word = fold_text(match[0])
    if word in _LONG_NAMES or word in _NO_SLIPS or word[0] not in _FIRST_LETTERS:
        return match[0]
    names = _LONG_NAMES if len(word) > _SHORTEST else _NEAR_DAYS
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.83)
    if not near or near[0][0] != word[0]:
        return match[0]
    swapped = len(word) == len(near[0]) and sorted(word) == sorted(near[0])
    return near[0] if swapped or difflib.SequenceMatcher(None, word, near[0]).ratio() >= 0.85 else match[0]
