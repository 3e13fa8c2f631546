"""What is read by its form alone: a dated thing that is only named ("dentist on Tuesday"), what somebody has to do by a
day, and the question what is left to buy or to do. Pure.

What always holds: a sentence with any sign of an order, of a question or of a change is none of the first two.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Literal

from assistant.core.calendar import MONTHS
from assistant.core.text import lazy_regex
from assistant.core.time_names import MONTH_NAMES
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_resolve import day_range, resolve_times
from assistant.models.offline.cues import fold, read_cues, says, says_any
from assistant.models.offline.intents import rank_without_items
from assistant.models.offline.lists import names_list, tidy_item
from assistant.models.offline.matching import subject_words
from assistant.models.offline.mood import tells_without_subject
from assistant.models.offline.order_signs import (
    INFINITIVE,
    NOUN_CUES,
    SAME_AGAIN,
    STRONG_CUES,
    begins_with_time,
    commands,
    may_say_done,
)

_MOST_WORDS = 9
# Signs that a sentence asks, or that it has a subject and its verb.
_ASKS_OR_TELLS = (
    *("question", "asks", "show", "anything", "question_word", "world", "alarm", "timer", "states", "duty", "keep"),
    *("keeps_in_mind", "perfect", "undo", "amend", "writes_down", "list_heading", "cannot", "add"),
)
_VERB = lazy_regex(
    r"\b(?:i|i'm|we|he|she|it|they|you|ich|wir|er|sie|man|du|je|j'\w+|tu|il|elle|on|nous|vous|yo|me|se|nos|moi"
    r"|mich|mir|uns"
    r"|can|will|has|had|kommt|kommen|kann|hat|wird|va|vient|viene|tiene|not|nicht|pas|no)\b"
)
_WANTS_REMINDER = ("set_reminder", "wake", "wants_reminder", "nudges", "reminder_noun", "todo_noun", "negated_request")
# "Die Praxis macht um acht auf": a subject with its verb.
_DECLARES_DE = lazy_regex(
    r"(?:^|[:,] )(?:der|die|das|mein\w*|unser\w*) [^\W\d_]+(?: (?:von|der|des|im|am|in) [^\W\d_]+){0,2}"
    r" (?!(?:nicht|erst|jetzt|statt|fast|selbst|seit|mit|bitte)\b)[^\W\d_]{2,}t\b(?= \S)(?!.*\bbitte\b)"
)
# "Omas Zug kommt am Freitag"
_POSSESSED_DE = lazy_regex(
    r"^[A-ZÄÖÜ][^\W\d_]+s [A-ZÄÖÜ][\w-]+"
    r" (?:ist|sind|hat|haben|kommt|kommen|beginnt|fängt|geht|fährt|fliegt|landet|startet)\b"
)
# "The dentist is cancelled on Tuesday", "der Kurs am Montag fällt aus", "le dîner de vendredi est annulé".
_IS_OFF = lazy_regex(
    r"^(?!(?:i|we|ich|wir|je|on|nous|yo)\b)[^?:]{3,60} (?:(?:is|are|was|were|has been|have been|got) (?:now )?"
    r"(?:cancell?ed|called off|off)\b(?! (?:the|my|list))"
    r"|(?:fallt|fallen)(?: \w+){0,3} (?:aus|flach)$|(?:ist|sind|wurden?)(?: \w+){0,3} (?:abgesagt|gestrichen)\b"
    r"|(?:est|sont|a ete|ont ete) annule|tombent? a l'eau|(?:esta|estan|ha sido|han sido|queda|fue) (?:cancelad|anulad)"
    r"|se (?:cancela|anula|suspende|cae|ha (?:cancelado|anulado|suspendido|caido)))"
)
# Meals and other nouns that end like what is to be done; in German, what is written with a capital.
_NOUN = lazy_regex(
    r"^(?:diner|dejeuner|petit[- ]dejeuner|gouter|souper|atelier|loyer|alquiler|taller)\b"
    r"|(?:essen|treffen|grillen|ferien)$"
)
_ROMANCE_VERB = lazy_regex(r"(?!.*\b(?:je|j'|on|il|elle|nous|yo|ella|est|es|sont|son)\b)\w+(?:er|ir|re|ar)\b")
_ROMANCE_DAY = lazy_regex(
    r"\b(?:demain|hoy|manana|aujourd'hui|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miercoles"
    r"|jueves|viernes|sabado|domingo|le|au|d'ici|avant|el|del?|dans|dentro|semaine|semana)\b"
)
_GERMAN_DAY = lazy_regex(r"\b(?:heute?|(?:uber)?morgen|\w+tag|mittwoch|am|bis|zum|vor|dem|den|in|woche|wochenende)\b")
_CAPITAL = lazy_regex(r"(?<= )[A-ZÄÖÜ][^\W\d_]*(?:en|ern|eln)$")
# "Vire celui de vendredi", "die von heute schieben"
_POINTS = lazy_regex(r"\b(?:celui|celle|ceux|celles)\b|^(?:von|vom) ")
# "What do I have to get done by Friday", which asks.
_ASKS_FOR_ALL = lazy_regex(
    r"^(?:and |so |ok |et |und |y )?(?:what|which|was|welche\w*|que|qu'est[- ]ce que|quoi|quelles?|cuales)\b"
)
# What stands before a day, and belongs to it.
_BY = lazy_regex(
    r"(?:\b(?:by|before|until|no later than|at the latest|the|end of|bis|vor|spätestens|zum|avant|pour|d'ici(?: à)?"
    r"|au plus tard|le|la|fin de|antes|de|del|el|para|hasta|como muy tarde|a más tardar)\s+)+$",
    re.IGNORECASE,
)
_BESIDE = lazy_regex(
    r"\b(?:bitte|noch|unbedingt|dringend|auch|mal|halt|encore|absolument|aussi|aún|todavía|también|sin falta|still"
    r"|really|also|spätestens|au plus tard|at the latest|como muy tarde|a más tardar|endlich|enfin|finally)\b\s*",
    re.IGNORECASE,
)
_IN_MONTH = lazy_regex(
    rf"\b(?:in|im|en|for|fur|pour|para|during|wahrend|durant|durante|au mois d[e']|el mes de|this|next|diesen|nachsten)"
    rf" ?(?P<month>{'|'.join(MONTH_NAMES)})(?! \d)\b"
)
_DEADLINE = lazy_regex(
    r"\b(?:due|by|bis|fallig|spatestens|avant|d'ici|au plus tard|antes del?|como muy tarde|a mas tardar) (?!the way\b)"
)
# A day that is over; "yesterday's report" and "die Rechnung von gestern" are things of it.
_PAST_DAY = lazy_regex(
    r"(?<!\bfrom )(?<!\bof )(?<!\bvon )(?<!\bvom )(?<!\bde )(?<!\bd')\b(?:yesterday(?!'s)|last night|gestern(?! abend)"
    r"|gestern abend|vorgestern|avant-hier|ayer|anteayer|anoche|hier(?= (?:a \d|soir|matin|apres|vers)))\b"
)
_REASON = lazy_regex(r"\s*(?:[,;:–]|\s-\s|\b(?:because|otherwise|or else|weil|sonst|parce qu|sinon|porque)\b).*$", re.I)
# "Packing list, what's on there so far"
_ASKS_OF_LIST = lazy_regex(
    r"^(?:(?:so|and|ok|okay|hey|und|et|y|oye|dis|sag mal),? )*"
    r"(?:(?:the|my|our|die|meine|unsere|la|ma|notre|mi|nuestra) )?"
    r"(?:[\w' -]{1,30} lists?|\w*(?:liste|zettel)(?: [\w' ]{2,25})?|lista(?: [\w ]{2,25})?)\s*[,:;–-] ?¿?"
    r"(?:(?:so|und|et|y) )?(?:what(?:'?s| is| are| have| do| did| was| all)?|was|qu'est[- ]ce|quoi|(?:il )?y a quoi"
    r"|c'est quoi|que (?:hay|tengo|tenemos|lleva\w*|falta\w*|queda\w*)|how (?:many|much)|wie ?viele?|combien"
    r"|cuant[oa]s?)\b"
)


def month_asked_for(text: str) -> str:
    """The month, in English, of a question for all that is in it and nothing else: "what do I have in June"."""
    folded = fold(text).strip(" ¿?.!")
    match = _IN_MONTH.search(folded)
    if match is None or find_times(text).pieces or subject_words(f"{folded[: match.start()]} {folded[match.end() :]}"):
        return ""
    asks = "?" in text or says_any(("asks", "agenda", "agenda_noun", "anything", "question_word", "show"), folded)
    number = next((n for n, names in enumerate(MONTH_NAMES) if re.fullmatch(names, match["month"])), None)
    return MONTHS[number].capitalize() if asks and number is not None else ""


def names_past_day(text: str) -> bool:
    """Whether the only day that a sentence names is over: "remind me yesterday at 5"."""
    return _PAST_DAY.search(fold(text)) is not None and not find_times(text).of_kind("day", "delta", "repeat")


def has_deadline(text: str) -> bool:
    """Whether a sentence says that its day is the last one, and no part of what it names."""
    return _DEADLINE.search(fold(text)) is not None


def has_plain_form(text: str) -> bool:
    """Whether a sentence may be one of these forms."""
    times = find_times(text)
    is_duty = bool(times.pieces) and (says("own_duty", fold(text)) or _is_infinitive(times))
    return is_duty or is_dated_thing(text) or bool(asks_what_is_left(text)) or bool(month_asked_for(text))


def only_tells_of_new(text: str) -> bool:
    """Whether a sentence that names nothing that the person has only tells: it names a dated thing, or says that
    something is done or does not take place, or has a German subject with its verb, and no order of this program."""
    folded = fold(text)
    if is_dated_thing(text) or (says("tells_done", folded) and bool(subject_words(text))):
        return True
    if tells_of_cancelled(text) or ("?" not in text and _POSSESSED_DE.match(text)):
        return True
    declared = None if "?" in text else _DECLARES_DE.search(folded)
    return declared is not None and rank_without_items(folded[declared.start() :].lstrip(":, "))[0][0] == "cannot"


def tells_of_cancelled(text: str) -> bool:
    """Whether a sentence says of something that it does not take place: "the dentist is cancelled on Tuesday"."""
    return _IS_OFF.match(fold(text).strip(" .!")) is not None and not names_list(text) and bool(subject_words(text))


def is_dated_thing(text: str) -> bool:
    """Whether a sentence only names something and its day: "dentist on Tuesday", "mañana dentista"."""
    folded, times = fold(text).strip(" .!"), find_times(text)
    if "?" in text or not times.has_day or times.rule or any(piece.minutes for piece in times.of_kind("delta")):
        return False
    words = fold(times.words)
    if not 0 < len(words.split()) <= _MOST_WORDS or ":" in words or not subject_words(text) or names_list(text):
        return False
    if says("own_duty", folded) or _VERB.search(words) or says_any((*STRONG_CUES, *NOUN_CUES, *_ASKS_OR_TELLS), folded):
        return False
    if SAME_AGAIN.search(folded) or commands(times.words) or tells_without_subject(text):
        return False
    if begins_with_time(text, times) or may_say_done(text):
        return False
    return not _is_infinitive(times)


def _is_infinitive(times: FoundTimes) -> bool:
    """Whether the words beside a day say what to do, in the language of the day: "acheter du pain demain"."""
    words, day = fold(times.words), fold(" ".join(times.text[piece.start : piece.end] for piece in times.pieces))
    if _NOUN.search(words) or _CAPITAL.search(times.words):
        return False
    if _ROMANCE_VERB.match(times.words.lower()) and _ROMANCE_DAY.search(day):
        return True
    if tells_without_subject(times.text) or says_any(("perfect", "tells_past"), fold(times.text)):
        return False
    return INFINITIVE.match(words) is not None and _GERMAN_DAY.search(day) is not None


def duty_by_day(text: str, now: datetime | None) -> tuple[str, str] | None:
    """(what, until which day) of what somebody says that they have to do by or on a day: "I have to pay the rent by
    the 5th"; None for anything else, and for where they have to be."""
    times = find_times(text)
    if now is None or "?" in text or times.of_kind("clock", "repeat", "before", "part"):
        return None
    days = times.of_kind("day", "span", "delta")
    if any(piece.minutes for piece in days):
        return None
    match = read_cues().patterns["own_duty"].search(fold(times.text))
    duty, due = match.span() if match else (0, 0), last_day(times, now)
    if not due or any(piece.start < duty[1] and duty[0] < piece.end for piece in days):
        return None
    if match is None and not (_is_infinitive(times) and len(times.words.split()) <= _MOST_WORDS):
        return None
    if names_list(text) or says_any(_WANTS_REMINDER, fold(text)) or _ASKS_FOR_ALL.match(fold(text)):
        return None
    if match is None and says("drop", fold(text)):
        return None
    thing = _thing_to_do(times, duty)
    if not thing or says("to_be_somewhere", fold(thing)) or _POINTS.search(fold(thing)) or says("amend", fold(text)):
        return None
    is_german = match is not None and re.search(r"\b(?:ich|wir|muss)\b", match[0]) is not None
    return (thing, due) if not is_german or re.search(r"(?:en|ern|eln|tun)$", fold(thing)) else None


def last_day(times: FoundTimes, now: datetime) -> str:
    """The last day, YYYY-MM-DD, of the time that is named; "" for none."""
    at = resolve_times(times, now) if times.has_day else None
    if at is not None:
        return at.at.date().isoformat()
    span = day_range(times, now) if times.of_kind("span") else None
    return (span[1] - timedelta(days=1)).date().isoformat() if span else ""


def _thing_to_do(times: FoundTimes, duty: tuple[int, int]) -> str:
    """The words without the duty and the days, up to a reason for it."""
    plain = times.text
    for start, end in sorted((duty, *((piece.start, piece.end) for piece in times.pieces)), reverse=True):
        before = plain[:start] if (start, end) == duty else _BY.sub("", plain[:start])
        plain = f"{before} {plain[end:]}"
    plain = re.sub(
        r"^(?:also|and|und|et|y|oh|ach|ah|ok|well|so)\b[ ,]*", "", _BESIDE.sub("", plain).strip(" ,."), flags=re.I
    )
    return tidy_item(_REASON.sub("", plain) or plain)


def asks_for_all_of(text: str) -> bool:
    """Whether a question wants to know all that is left, of a month, or of a list that it names first: "packing list,
    what's on there so far"."""
    return bool(asks_what_is_left(text) or month_asked_for(text)) or _ASKS_OF_LIST.match(fold(text)) is not None


def asks_what_is_left(text: str) -> Literal["buy", "do", ""]:
    """What a question wants to know all of: what is still to be bought, or to be done."""
    folded = fold(text).strip(" ¿?.!")
    if not says("asks_what", folded) or not says("is_left", folded) or says("happened", folded):
        return ""
    if find_times(text).pieces or says("count", folded):
        return ""
    plain = read_cues().patterns["sense_not_done"].sub(" ", read_cues().patterns["does"].sub(" ", folded))
    own = [word for word in subject_words(plain) if not says_any(("buys", "does", "is_left"), word)]
    if own:
        return ""
    return "buy" if says("buys", folded) else "do" if says("does", folded) else ""
