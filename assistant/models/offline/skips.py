"""Leaving out one time of a reminder that repeats: "skip tomorrow's pill", "no choir this week". Pure.

What always holds: the times that come before the one that is left out still come. A rule with a first time cannot say
"today, and not tomorrow", so the one time before becomes a reminder of its own, which is set before the rule changes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from assistant.core.dataclass import dataclass
from assistant.core.time_language import DAY_CODES
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import TimePiece
from assistant.core.time_resolve import ResolvedTime, day_range, resolve_times
from assistant.models.offline.cues import fold, read_cues, says
from assistant.models.offline.ends import end_of
from assistant.models.offline.matching import ListedItem
from assistant.models.offline.plans import MOMENT, Plan, ToolFailedError, call_tool, describe_item

ONLY_THE_NEXT = (
    "I can only leave out the next two times that it comes, so nothing is changed; say it again when that day is nearer"
)
_DAILY, _WEEKLY = "FREQ=DAILY", "FREQ=WEEKLY;BYDAY="


@dataclass(frozen=True, slots=True)
class Skip:
    """How a reminder changes, as the tool takes it, and the time before, where that still comes."""

    change: dict[str, str]
    before: datetime | None = None


def find_skip(item: ListedItem, times: FoundTimes, now: datetime | None) -> Skip | None:
    """A repeated reminder that is not wanted on one day, or not before one; None where it is not wanted at all. Raises
    `ToolFailedError` for a day that cannot be left out alone."""
    days = times.of_kind("day")
    rule = find_times(item.often).rule
    if now is None or not item.due or not rule or times.of_kind("repeat"):
        return None
    if not days and any(piece.offset == 0 for piece in times.of_kind("part")):  # "not tonight"
        days = [TimePiece("day", 0, 0, offset=0)]
    at = resolve_times(replace(times, pieces=tuple(days)), now, item.due)
    span = day_range(times, now) if times.of_kind("span") else None
    if at is None and span and item.due < span[1]:  # "this week": when it is due next
        at = ResolvedTime(item.due)
    if at is None and not times.pieces and says("leaves_out", fold(times.text)):  # "skip the alarm once"
        at = ResolvedTime(item.due)
    if at is None:
        return None
    if read_cues().patterns["until"].search(fold(times.text)):
        when = datetime.combine(at.at.date(), item.due.time())
        return Skip({"when": when.strftime(MOMENT), "repeat": f"{rule}{end_of(item)}"})
    if at.at.date() == item.due.date():
        return Skip({"when": "skip"})
    second = _following(item.due, rule)
    third = _following(second, rule) if second and second.date() == at.at.date() else None
    if third is None:
        raise ToolFailedError(f"{ONLY_THE_NEXT}: {describe_item(item)}")  # those between would go as well
    return Skip({"when": third.strftime(MOMENT), "repeat": f"{rule}{end_of(item)}"}, before=item.due)


def leave_out(item: ListedItem, skip: Skip) -> Plan:
    answers = []
    if skip.before:
        answers.append((yield from call_tool("set_reminder", text=item.text, when=skip.before.strftime(MOMENT))))
    answers.append((yield from call_tool("change_reminder", id=item.id, **skip.change)))
    return "\n".join(answers)


def _following(at: datetime, rule: str) -> datetime | None:
    """The time after one of a rule by days of the week; None for any other rule."""
    if rule != _DAILY and not rule.startswith(_WEEKLY):
        return None
    days = DAY_CODES if rule == _DAILY else tuple(rule.removeprefix(_WEEKLY).split(","))
    later = (at + timedelta(days=count) for count in range(1, 8))
    return next((moment for moment in later if DAY_CODES[moment.weekday()] in days), None)
