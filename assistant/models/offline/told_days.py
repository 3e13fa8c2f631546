"""On which day something that was told stands in the agenda, as the agenda itself lists it. Pure; as `plans` tells."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from datetime import date, datetime, timedelta

from assistant.core.dataclass import dataclass
from assistant.core.time_pieces import find_times
from assistant.core.time_resolve import day_range, resolve_times
from assistant.models.offline.plans import PlanContext, ToolFailedError, ToolStep, call_tool, names_item, read_items

REMINDER_OFFER = "To be reminded of it, say when: remind me of …"
_TOLD_LINE = re.compile(r'- (?:(?P<time>\d\d:\d\d) )?(?P<text>"(?:[^"\\]|\\.)*") \(told on ')
_DAY_LINE = re.compile(r"\w+ (\d{4}-\d\d-\d\d):")
_WEEK = 7


@dataclass(frozen=True, slots=True)
class ToldDay:
    """`when` is as the agenda shows it: "Tuesday 2026-03-17 15:00"."""

    when: str
    offer: str  # how to be reminded of it
    names_item: bool  # it names a reminder or to-do that the person has


def find_told_day(
    text: str, results: Sequence[str], context: PlanContext, *, is_plain: bool
) -> ToolStep | ToldDay | None:
    """The next call, or where it stands, or None where it stands nowhere; `is_plain`: it surely changes nothing that
    the person has, so that is not read."""
    plan = _find(text, context, is_plain=is_plain)
    try:
        step = next(plan)
        for result in results:
            step = plan.send(result)
        return step
    except StopIteration as end:
        found = end.value
        assert found is None or isinstance(found, ToldDay)
        return found
    except ToolFailedError:
        return None


def _find(text: str, context: PlanContext, *, is_plain: bool) -> Generator[ToolStep, str, ToldDay | None]:
    day = _day_named(text, context.now)
    if day is None or context.now is None or "show_agenda" not in context.tools:
        return None
    when = _as_listed(text, (yield from call_tool("show_agenda", when=day.isoformat())))
    if not when:
        return None
    items = [] if is_plain else (yield from read_items(context))
    return ToldDay(when, _offer(day, context), names_item(text, items))


def _day_named(text: str, now: datetime | None) -> date | None:
    times = find_times(text)
    if now is None or not times.has_day or times.rule:
        return None
    if times.of_kind("day"):
        span = day_range(times, now)
        is_today = span is not None and span[0].date() == now.date() and not times.has_clock
        return span[0].date() if span and span[1] > now and not is_today else None
    at = resolve_times(times, now)
    return at.at.date() if at else None


def _as_listed(text: str, agenda: str) -> str:
    """The day, and the hour where there is one, under which an agenda lists what `text` told; "" for none."""
    plain, day = " ".join(text.split()), ""
    for line in agenda.split("\n"):
        day = line.rstrip(":") if _DAY_LINE.fullmatch(line) else day
        told = _TOLD_LINE.match(line)
        # What was told before of the same stands before it.
        listed = " ".join(str(json.loads(told["text"])).rstrip("…").split()) if told else ""
        if told and listed and (listed in plain or plain in listed):
            return f"{day} {told['time'] or ''}".strip()
    return ""


def _offer(day: date, context: PlanContext) -> str:
    if context.now is None or "set_reminder" not in context.tools or day <= context.now.date():
        return ""
    is_near = day - context.now.date() < timedelta(days=_WEEK)
    return f"{REMINDER_OFFER} on {f'{day:%A}' if is_near else f'{day.day} {day:%B}'} at 9."
