"""Sentences that move what is due on one day to another one: "both of Thursday's appointments are moving to Friday".
Pure.

What always holds: the sentence names no single thing, so all that it moves are the reminders of its first day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import TimePiece
from assistant.models.offline.cues import fold
from assistant.models.offline.matching import ListedItem
from assistant.models.offline.targets import items_at_times

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
