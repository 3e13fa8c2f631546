"""Times at which something that repeats is not to come: "every day except Sundays", "außer nächste Woche". Pure.

Reminders repeat by a rule and a first time, so weekdays can be left out for good, and the times that would come first.
Anything else is said to be beyond that; a reminder is never set as if its exception had not been said.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex
from assistant.core.time_language import DAY_CODES
from assistant.core.time_pieces import FoundTimes, are_joined, find_times
from assistant.core.time_readers import TimePiece
from assistant.core.time_resolve import day_range, resolve_times
from assistant.models.offline.cues import fold
from assistant.models.offline.plans import MOMENT

BEYOND_RULES = (
    "I can leave out weekdays, or the time that comes next, and no later one. Nothing is set or changed. Set it "
    'without the exception, and say "skip …" when that day is the next.'
)
_EXCEPT = lazy_regex(
    r"[\s,(]{0,3}\b(?:except(?:ing)?(?: for)?|but not|just not|apart from|other than|au(?:ss|ß)er|nur nicht|aber nicht"
    r"|bis auf|sauf|excepte|hormis|mais pas|menos|excepto|salvo|pero no)\b"
    r"(?=(?: (?:on|at|in|for|the|am|an|im|in der|den|le|les|la|el|los|las|en|pour|a))*\s)"
)
_BETWEEN = lazy_regex(r"[\s(]*(?:(?:on|at|in|for|the|am|an|im|in der|den|le|les|la|el|los|las|en|pour|a)\s+)*")
# "This Sunday", "nächsten Dienstag": a day, where "Sunday" alone is every one.
_ONE_DAY = lazy_regex(
    r"\b(?:this|next|coming|diese[nrms]?|nachste[nrms]?|kommende[nrms]?|ce|cette|prochaine?|est[ea]|que viene"
    r"|proxim[oa])\b"
)
_DAILY, _WEEKLY = "FREQ=DAILY", "FREQ=WEEKLY;BYDAY="
_MOST_LEFT_OUT = 60


@dataclass(frozen=True, slots=True)
class ExceptedTimes:
    """A sentence about what repeats, and when that is not to come."""

    rest: str  # without the exception
    times: FoundTimes
    pieces: tuple[TimePiece, ...]


def find_exception(text: str) -> ExceptedTimes | None:
    """None where a sentence names nothing that repeats, or excepts no time from it."""
    times = find_times(text)
    match = _EXCEPT.search(fold(times.text)) if times.rule else None
    if match is None:
        return None
    behind = sorted((*times.pieces, *times.dropped), key=lambda piece: piece.start)
    behind = [piece for piece in behind if piece.start >= match.end()]
    if not behind or not _BETWEEN.fullmatch(fold(times.text[match.end() : behind[0].start])):
        return None
    pieces = behind[:1]
    for piece in behind[1:]:
        if piece.kind not in ("day", "repeat", "span") or not are_joined(times, (pieces[-1], piece)):
            break
        pieces.append(piece)
    rest = f"{times.text[: match.start()]} {times.text[pieces[-1].end :].lstrip(' )')}"
    return ExceptedTimes(" ".join(rest.split()), times, tuple(pieces)) if find_times(rest).rule else None


def first_and_rule(
    phrase: str, excepted: ExceptedTimes, now: datetime, *, wakes: bool = False
) -> dict[str, str] | None:
    """`when` and `repeat` of a reminder that repeats as `phrase` says, but for the excepted times; None where a rule
    cannot say that."""
    resolved = resolve_times(find_times(phrase), now, wakes=wakes)
    if resolved is None:
        return None
    rule, at = resolved.rule, resolved.at
    if excluded := _weekdays(excepted):
        if rule != _DAILY and not rule.startswith(_WEEKLY):
            return None
        days = DAY_CODES if rule == _DAILY else tuple(rule.removeprefix(_WEEKLY).split(","))
        left = [day for day in days if day not in excluded]
        while left and DAY_CODES[at.weekday()] not in left:
            at += timedelta(days=1)
        return {"when": at.strftime(MOMENT), "repeat": f"{_WEEKLY}{','.join(left)}"} if left else None
    first = _first_outside(at, rule, _days_off(excepted, now))
    return {"when": first.strftime(MOMENT), "repeat": rule} if first else None


def _weekdays(excepted: ExceptedTimes) -> set[str]:
    """The weekdays that are left out for good; empty where single days are."""
    codes: set[str] = set()
    for piece in excepted.pieces:
        if _ONE_DAY.search(fold(excepted.times.text[piece.start : piece.end])):
            return set()
        if piece.rule.startswith(_WEEKLY):
            codes.update(piece.rule.removeprefix(_WEEKLY).split(","))
        elif piece.part == "weekend":
            codes.update(("SA", "SU"))
        elif piece.kind == "day" and piece.weekday is not None and not piece.weeks:
            codes.add(DAY_CODES[piece.weekday])
        else:
            return set()
    return codes


def _days_off(excepted: ExceptedTimes, now: datetime) -> list[tuple[datetime, datetime]]:
    """Each excepted period, [start, end)."""
    alone = (FoundTimes(excepted.times.text, (piece,)) for piece in excepted.pieces if piece.kind in ("day", "span"))
    return [period for piece in alone if (period := day_range(piece, now))]


def _first_outside(at: datetime, rule: str, periods: Sequence[tuple[datetime, datetime]]) -> datetime | None:
    """The first time of a rule outside of the periods; None where one of them would be behind it."""
    if not periods or not (rule == _DAILY or rule.startswith(_WEEKLY)):
        return None
    days = DAY_CODES if rule == _DAILY else tuple(rule.removeprefix(_WEEKLY).split(","))
    for _ in range(_MOST_LEFT_OUT):
        if DAY_CODES[at.weekday()] in days and not any(start <= at < end for start, end in periods):
            return at if all(end <= at for _, end in periods) else None
        at += timedelta(days=1)
    return None
