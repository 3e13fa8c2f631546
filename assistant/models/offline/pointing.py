"""Sentences of which one part names a thing and another says, of "it", what is to be: "the florist wrote back, so no
need for that one", "it's rude to ring Ray at dinner, do it at eight". Pure.

What always holds: something changes only where the other part names one thing alone, and this part none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.text import lazy_regex
from assistant.core.time_language import H
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import TimePiece
from assistant.models.offline.cues import fold, says, says_any
from assistant.models.offline.matching import ListedItem, count_hits, matching
from assistant.models.offline.moments import SENTENCE_PARTS
from assistant.models.offline.targets import content_words, is_old_time, items_at_times

_IT = lazy_regex(
    r"\b(?:it|that|this|them|those|das|es|sie|ihn|den|ca|celui|celle|lo|la|los|las|eso|ese|esa|le|les"
    r"|da(?= (?:muss|brauch)))\b|\w{3}l[oa]s?$"
)
# "Do it at eight", "tomorrow at nine is better", "that one's Friday"
_SAYS_WHEN = lazy_regex(
    r"^(?:(?:so|then|also|donc|alors|dann|also|asi que|pues) )*(?:do|make|say|put|set|move|change|shift|let'?s|mach\w*"
    r"|sag\w*|setz\w*|leg\w*|mets|dis|disons|fais|pon\w*|haz\w*|digamos|that(?: one)?(?:'s| is)|it(?:'s| is))\b"
    r"|\b(?:better|instead|besser|lieber|mieux|plutot|mejor)\b"
)
# "..., so half seven": a clause that is the time and nothing else.
_THEN = lazy_regex(r"(?:(?:so|then|say|donc|alors|disons|plutot|also|dann|sagen wir|asi que|pues|digamos)\b[ ,]*)+")
_MOST_OTHER_WORDS = 6
# "Shift her pick-up to four"
_MOVES_HERS = lazy_regex(
    r"^(?:(?:so|can you|could you|please|then|also|donc|alors|kannst du|bitte) )*"
    r"(?:move|shift|push|change|put|bring|set|bump|adjust|verschieb\w*|leg\w*|schieb\w*|decale|mets|passe|avance|repousse|mueve|pasa|cambia|pon)"
    r" (?:her|his|their|its|seine?n?|ihre?n?|son|sa|ses|leur|su|sus) (?:[\w-]+ ){1,2}"
    r"(?:to|for|at|auf|um|zu|a|para|al)\b"
)
_LAST_HOUR = lazy_regex(rf"\b(?:to|till?|at|auf|um|a|a las?) {H}[\s.!]*$")
_ALREADY = lazy_regex(r"\b(?:already|schon|bereits|deja|ya)\b")
_TELL_ME = lazy_regex(
    r"\b(?:tell|remind|ping|nudge|warn|alert|prod|buzz) me\b|\b(?:sag|erinner|warn)\w* (?:mir|mich)\b"
    r"|\b(?:dis|rappelle|previens|avertis)[- ]moi\b|\b(?:dime|avisame|recuerdame)\b"
)
# What is ordered of a thing in the few words of a clause: "so switch the oven on at six".
_MOST_IN_CLAUSE = 2


def points_in_part(text: str) -> bool:
    """Whether a part of a sentence says what is to be of something that only another part names."""
    parts = [part for part in SENTENCE_PARTS.split(text) if part.strip()]
    return len(parts) > 1 and "?" not in text and any(map(_sign, parts))


def intent_of_part(text: str, waiting: Sequence[ListedItem], now: datetime | None) -> str:
    """What such a part wants of the one thing that the others name; "" for anything else."""
    parts = [part for part in SENTENCE_PARTS.split(text) if part.strip()]
    if now is not None and any(_comes_already(part, waiting, now) for part in parts):
        return "move"
    signs = [(part, sign) for part in parts if (sign := _sign(part))]
    if len(parts) < 2 or len(signs) != 1 or "?" in text:
        return ""
    part, sign = signs[0]
    words = content_words(", ".join(other for other in parts if other != part))
    named = matching(words, waiting)
    if len(named) != 1 or len(words) - count_hits(words, named[0]) > _MOST_OTHER_WORDS:
        return ""
    times = find_times(part)
    if sign == "move" and (
        now is None
        or named[0].kind != "reminder"
        or (times.pieces and all(is_old_time(named[0], piece, times, now) for piece in times.pieces))
    ):
        return ""
    return sign if sign != "complete" or named[0].kind == "todo" else ""


def _comes_already(part: str, waiting: Sequence[ListedItem], now: datetime) -> bool:
    """Whether a clause asks to be told of the one reminder that it names at another hour: "tell me about the washing at
    two already"."""
    if not (_ALREADY.search(fold(part)) and _TELL_ME.search(fold(part)) and find_times(part).of_kind("clock")):
        return False
    times, named = find_times(part), matching(content_words(part), waiting)
    is_one = len(named) == 1 and named[0].kind == "reminder"
    return is_one and not all(is_old_time(named[0], piece, times, now) for piece in times.of_kind("clock"))


def _sign(part: str) -> str:
    folded = fold(part)
    if _MOVES_HERS.match(folded) and (_LAST_HOUR.search(folded) or find_times(part).of_kind("clock", "day")):
        return "move"
    if content_words(part) or says("not_due", folded):
        return ""
    if find_times(part).of_kind("clock", "day"):
        then = _SAYS_WHEN.search(folded) or _THEN.fullmatch(fold(find_times(part).words))
        return "move" if then and not says_any(("sense_drop", "tells_past"), folded) else ""
    if not _IT.search(folded) or find_times(part).pieces:
        return ""
    return "complete" if says("mark", folded) else "drop" if says_any(("sense_drop", "needs_no_more"), folded) else ""


def moves_in_part(text: str, waiting: Sequence[ListedItem], now: datetime | None) -> bool:
    """Whether a clause names one reminder, another time and hardly anything else: of an order that fits nothing else,
    that is when the reminder is to come."""
    if now is None or "?" in text:
        return False
    for part in SENTENCE_PARTS.split(text):
        words, times = content_words(part), find_times(part)
        named = matching(words, waiting)
        new = [
            piece for piece in times.of_kind("clock", "day") if named and not is_old_time(named[0], piece, times, now)
        ]
        few = len(named) == 1 and len(words) - count_hits(words, named[0]) <= _MOST_IN_CLAUSE
        if few and new and named[0].kind == "reminder" and not says("tells_past", fold(part)):
            return True
    return False


# What is on one day, whatever it is, and will be on another: "both of Thursday's appointments are moving to Friday".
_NOUN = r"(?:appointments?|meetings?|events?|things|termine?n?|rendez-?vous|rdvs?|citas|reuniones|reunions|cosas)\b"
_BOTH = (
    r"(?:both|the two|my two|(?:die |alle |meine )?beiden?|(?:les|mes|ces) deux|(?:las|los|mis|estas) dos|amb[ao]s)\b"
)
_ALL = r"(?:all|every|everything|alle[sn]?|samtliche|tou(?:s|tes|t)|tod[oa]s?|the|my|die|meine|les|mes|las|los|mis)\b"
_SUBJECT = lazy_regex(rf"^(?:(?:so|ok|oh|also|alors|donc|bueno|pues|and|und|et|y)\b[ ,]*)*(?:(?P<both>{_BOTH})|{_ALL})")
_EVERYTHING = lazy_regex(r"^(?:everything|alles|tout|todo)\b")
_MOVE = lazy_regex(
    r"\b(?:(?:is|are|was|were|gets?|got|have been|has been|now) (?:all |both |now )*(?:moving|moved|shifting|shifted"
    r"|going|pushed|switching|switched|bumped|rescheduled)|moves?|shifts?|switch(?:es)?|go(?:es)? to"
    r"|wandern?|rutschen|rutscht|verschieb\w*|verschoben|verleg\w*|zieh\w+"
    r"|passent|passe|glissent|bascul\w+|(?:sont|est) (?:decale|deplace|reporte)\w*|(?:se )?decalent"
    r"|pasan|pasa|se (?:mueven|cambian|pasan|trasladan|retrasan)|cambian)\b"
)
_APPOINTMENTS = lazy_regex(rf"\b{_NOUN}")
_TWO = 2


def moves_a_day(text: str) -> bool:
    """Whether a sentence says that what is on one day, whatever it is, will be on another."""
    folded = fold(text)
    if "?" in text or _SUBJECT.match(folded) is None:
        return False
    times = find_times(text)
    named = _EVERYTHING.match(folded) or _APPOINTMENTS.search(folded)
    is_day = len(_days(times)) == _TWO and not times.of_kind("clock", "repeat")
    return is_day and named is not None and _MOVE.search(fold(times.words)) is not None


def items_of_moved_day(text: str, items: Sequence[ListedItem], now: datetime | None) -> list[ListedItem]:
    """The reminders that such a sentence moves; none where it is no such sentence."""
    if now is None or not moves_a_day(text):
        return []
    times = find_times(text)
    return items_at_times(_reminders(items), replace(times, pieces=(_days(times)[0],)), now)


def says_other_number(text: str, found: Sequence[ListedItem]) -> bool:
    """Whether it says "both" of more or fewer than two."""
    subject = _SUBJECT.match(fold(text))
    return subject is not None and bool(subject["both"]) and len(found) != _TWO


def without_first_day(times: FoundTimes) -> FoundTimes:
    """The times without the day from which things move."""
    first = _days(times)[0]
    return replace(times, pieces=tuple(piece for piece in times.pieces if piece is not first))


def _days(times: FoundTimes) -> list[TimePiece]:
    """Of "from Thursday to Friday" too, where the first is read as what was."""
    days = [piece for piece in (*times.pieces, *times.dropped) if piece.kind == "day"]
    return sorted(days, key=lambda piece: piece.start)


def _reminders(items: Sequence[ListedItem]) -> list[ListedItem]:
    return [item for item in items if item.kind == "reminder" and not item.done]
