"""Computes when a job is due next: once, by an RRULE, or by a cron line. Pure.

Repeating times are computed in the job's time zone and then converted to UTC, so that eight in the morning stays eight
in the morning. Slots are in chronological order; two local times that are the same moment (in an hour skipped in
spring) are one slot, the first. The libraries for rules and cron lines are imported at first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import islice, takewhile
from typing import Any
from zoneinfo import ZoneInfo

from assistant.core.calendar import MONTHS, WEEKDAYS, local_slot_key, local_to_utc, utc_to_local
from assistant.core.errors import UsageError
from assistant.core.jobs import CronSpec, DueSlot, OneTimeSpec, RRuleSpec, ScheduleSpec
from assistant.core.time_language import DAY_CODES

_MOST_COUNTED = 10_000
_LONGEST = 400
_PART_NAMES = "FREQ INTERVAL COUNT UNTIL WKST BYMONTH BYMONTHDAY BYYEARDAY BYWEEKNO BYDAY BYHOUR BYMINUTE BYSETPOS"
_PARTS = frozenset(_PART_NAMES.split())
# Limits on rules within a day: with more parts, searching for a day that never comes could take minutes.
_WITHIN_DAY = frozenset(["FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYHOUR", "BYMINUTE"])
_FREQUENCIES = {"YEARLY": 1000, "MONTHLY": 1200, "WEEKLY": 1000, "DAILY": 1000, "HOURLY": 24, "MINUTELY": 1440}
_DAYS_OF_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_UNIT_WORDS = {
    "YEARLY": "year",
    "MONTHLY": "month",
    "WEEKLY": "week",
    "DAILY": "day",
    "HOURLY": "hour",
    "MINUTELY": "minute",
}
_PERIODS = {
    "WEEKLY": timedelta(weeks=1),
    "DAILY": timedelta(days=1),
    "HOURLY": timedelta(hours=1),
    "MINUTELY": timedelta(minutes=1),
}
_NTH_WORDS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth", "-1": "last"}
_NOTHING_SET = "Nothing was set."
_ANY_DAY = datetime.fromisoformat("2024-01-01")


def first_due(spec: ScheduleSpec, zone: ZoneInfo, after: datetime) -> DueSlot | None:
    """Return the first slot after a time."""
    if isinstance(spec, OneTimeSpec):
        return _due_slot(utc_to_local(spec.at, zone), spec.at) if spec.at > after else None
    since = utc_to_local(after, zone)
    start = max(spec.start, since) if isinstance(spec, RRuleSpec) else since
    # In a repeated hour, local order and order of moments may differ.
    return _first_after(_times(spec, spec.start if isinstance(spec, RRuleSpec) else start, start), zone, after)


def next_due(spec: ScheduleSpec, zone: ZoneInfo, last: DueSlot) -> DueSlot | None:
    """Return the slot after `last`, which must be a slot."""
    if isinstance(spec, OneTimeSpec):
        return None
    local = datetime.fromisoformat(last.key)
    # A rule continues from any of its times as from its first, so earlier ones need not be computed.
    return _first_after(_times(spec, local, local), zone, last.at)


def next_due_after(spec: ScheduleSpec, zone: ZoneInfo, last: DueSlot, after: datetime) -> DueSlot | None:
    """Return the first slot after a time, for a job whose slot `last` has not ended."""
    if last.at > after:
        return last
    if isinstance(spec, OneTimeSpec):
        return None
    return _first_after(_times(spec, datetime.fromisoformat(last.key), utc_to_local(after, zone)), zone, after)


def follows_the_clock(spec: ScheduleSpec) -> bool:
    """Return whether it repeats at times of day, not at intervals within a day, which every zone shares."""
    if isinstance(spec, RRuleSpec):
        return _parts(spec.rrule)["FREQ"] not in ("HOURLY", "MINUTELY")
    return isinstance(spec, CronSpec)


def due_in_zone(due: DueSlot, zone: ZoneInfo) -> DueSlot:
    """Return the slot at the same local time in another zone. It has the same key: what has ended does not come again,
    and what has not is due once, if late."""
    return DueSlot(local_to_utc(datetime.fromisoformat(due.key), zone), due.key)


def skip_passed(spec: ScheduleSpec, zone: ZoneInfo, due: DueSlot, now: datetime, most: int) -> DueSlot | None:
    """Where more than `most` slots passed from `due` to `now`, return one close to the last of them, so that about a
    tenth of `most` are left; else None."""
    if isinstance(spec, OneTimeSpec) or now - due.at <= most * _PERIODS["MINUTELY"]:
        return None
    first, last = datetime.fromisoformat(due.key), utc_to_local(now, zone)
    passed = list(takewhile(last.__ge__, islice(_times(spec, first, first), most + 1)))
    if len(passed) <= most:
        return None
    if isinstance(spec, RRuleSpec) and (until := _parts(spec.rrule).get("UNTIL")):
        last = min(last, datetime.fromisoformat(until.rstrip("Z")))
    close = max(passed[-1], last - (passed[-1] - first) / 10)
    later = next_due_after(spec, zone, due, local_to_utc(close, zone))
    return later if later is not None and later.at <= now else None


def recurrence_rule(spec: ScheduleSpec) -> str:
    """Return the repetition as an RRULE or cron line, for programs; "" for once."""
    match spec:
        case OneTimeSpec():
            return ""
        case RRuleSpec():
            return spec.rrule
        case CronSpec():
            return f"cron {spec.cron}"


def move_rule(spec: RRuleSpec, day: date) -> str:
    """Return the rule with another day of the week or month if it names one; else unchanged."""
    parts = _parts(spec.rrule)
    if parts.get("BYDAY") in DAY_CODES:
        parts["BYDAY"] = DAY_CODES[day.weekday()]
    if parts.get("BYMONTHDAY", "").isdecimal():
        parts["BYMONTHDAY"] = str(day.day)
    return ";".join(f"{name}={value}" for name, value in parts.items())


def describe_recurrence(spec: ScheduleSpec) -> str:
    """Describe for people how often it repeats, such as "every Monday"; a complex rule as such, and "" for once."""
    rule = recurrence_rule(spec)
    if not isinstance(spec, RRuleSpec):
        return rule
    parts = _parts(rule)
    until = parts.pop("UNTIL", "")
    words = _in_words(parts, spec.start)
    if not words:
        return rule
    return f"{words} until {until[:4]}-{until[4:6]}-{until[6:8]}" if until else words


def _in_words(parts: Mapping[str, str], start: datetime) -> str:
    """Return "" for a rule without simple words."""
    number, days = int(parts.get("INTERVAL", "1")), parts.get("BYDAY", "")
    unit = _UNIT_WORDS[parts["FREQ"]]
    every = f"every {unit}" if number == 1 else f"every {number} {unit}s"
    match sorted(parts.keys() - {"FREQ", "INTERVAL"}), unit:
        case [], "year":
            return f"{every} on {start.day} {MONTHS[start.month - 1].capitalize()}"
        case [], _:
            return every
        case ["BYDAY"], "week" if number == 1 and days == "MO,TU,WE,TH,FR":
            return "every weekday"
        case ["BYDAY"], "week":
            named = _join_words([_weekday_name(day) for day in days.split(",")])
            return f"every {named}" if number == 1 else f"{every} on {named}"
        case ["BYDAY"], "month" if all(day[:-2] in _NTH_WORDS for day in days.split(",")):
            named = _join_words([f"the {_NTH_WORDS[day[:-2]]} {_weekday_name(day)}" for day in days.split(",")])
            return f"{every} on {named}"
        case ["BYMONTHDAY"], "month":
            dates = [int(day) for day in parts["BYMONTHDAY"].split(",")]
            if min(dates) >= -1:
                return f"{every} on {_join_words([_date_in_words(day) for day in dates])}"
    return ""


def _weekday_name(day: str) -> str:
    """Return the name of `MO` or `2MO`."""
    return WEEKDAYS[DAY_CODES.index(day[-2:])].capitalize()


def _date_in_words(day: int) -> str:
    if day == -1:
        return "the last day"
    suffix = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"the {day}{suffix}"


def _join_words(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _first_after(times: Iterator[datetime], zone: ZoneInfo, after: datetime) -> DueSlot | None:
    for local in times:
        at = local_to_utc(local, zone)
        if at > after:
            return _due_slot(local, at)
    return None


def _due_slot(local: datetime, at: datetime) -> DueSlot:
    return DueSlot(at, local_slot_key(local))


def _times(spec: RRuleSpec | CronSpec, anchor: datetime, since: datetime) -> Iterator[datetime]:
    """Yield local times not before `since`; `anchor` is one of a rule's times, or its start."""
    try:
        if isinstance(spec, CronSpec):
            from cronsim import CronSim  # needed where something repeats

            yield from CronSim(spec.cron, since - timedelta(minutes=1))
        else:
            yield from parse_rule(spec.rrule, _move_towards(since, spec.rrule, anchor)).xafter(since, inc=True)
    except OverflowError:
        return


def _move_towards(since: datetime, rule: str, anchor: datetime) -> datetime:
    """Move the anchor by whole periods of the rule, since dateutil goes through every time after it: a rule of each
    minute that nothing has run for a year took seconds."""
    parts = _parts(rule)
    unit = _PERIODS.get(parts["FREQ"])
    if unit is None or since <= anchor:
        return anchor
    period = unit * int(parts.get("INTERVAL", "1"))
    return anchor + (since - anchor) // period * period


def parse_rule(rule: str, start: datetime) -> Any:
    """Parse an RRULE that starts at a local time, with dateutil."""
    from dateutil.rrule import rrulestr  # needed where something repeats

    return rrulestr(rule, dtstart=start)


# ------------------------------------------------------------------------------------------------------------- reading


def parse_cron(line: str) -> CronSpec:
    """Raises `UsageError` for a line that cron would reject, or that never occurs."""
    from cronsim import CronSim, CronSimError

    line = " ".join(line.split())
    try:
        if len(line.split()) != 5:
            raise CronSimError("it needs five fields")
        next(CronSim(line, _ANY_DAY))
    except (CronSimError, StopIteration) as error:
        why = str(error) or "it never comes"
        raise UsageError(
            f"{line[:_LONGEST]!r} is not a line of cron ({why}). {_NOTHING_SET} Write five fields, as in "
            '"30 8 * * 1-5" (minute, hour, day, month, weekday).'
        ) from None
    return CronSpec(line)


def parse_rrule(text: str, start: datetime) -> RRuleSpec:
    """Parse an RRULE that starts at a local time; a COUNT is converted to the last time. Raises `UsageError`."""
    rule = text.strip().upper().removeprefix("RRULE:")
    start = start.replace(second=0, microsecond=0)
    try:
        parts = _parts(rule)
        _must_be_possible(parts)
        times = list(islice(parse_rule(rule, start), int(parts.get("COUNT", "1"))))
        if not times and (until := parts.get("UNTIL")) and until < f"{start:%Y%m%dT%H%M%S}":
            day = f"{until[:4]}-{until[4:6]}-{until[6:8]}"
            raise UsageError(
                f"It would end on {day}, before it comes for the first time. {_NOTHING_SET} Name a later day."
            )
        if not times:
            raise ValueError("it never comes")
    except (ValueError, OverflowError, TypeError) as error:
        raise UsageError(
            f"{text[:_LONGEST]!r} is not a rule for repeating ({error}). {_NOTHING_SET} Write an RRULE, as in "
            '"FREQ=WEEKLY;BYDAY=MO,FR".'
        ) from None
    if "COUNT" in parts:
        uncounted = [f"{name}={value}" for name, value in parts.items() if name != "COUNT"]
        rule = ";".join([*uncounted, f"UNTIL={times[-1]:%Y%m%dT%H%M%S}"])
    return RRuleSpec(rule, start)


def _parts(rule: str) -> dict[str, str]:
    if len(rule) > _LONGEST:
        raise ValueError("it is too long")
    pairs = [part.split("=", 1) for part in rule.split(";") if part]
    if not pairs or any(len(pair) != 2 or not pair[1] for pair in pairs):
        raise ValueError("it is not made of NAME=VALUE;NAME=VALUE")
    parts = {pair[0]: pair[1] for pair in pairs}
    if len(parts) < len(pairs):
        raise ValueError("a part is in it twice")
    unknown = sorted(set(parts) - _PARTS)
    if unknown:
        raise ValueError(f"{unknown[0][:_LONGEST]} has no meaning here")
    return parts


def _must_be_possible(parts: Mapping[str, str]) -> None:
    """Raises `ValueError` for rules that are too frequent, too rare or too slow to compute."""
    often = parts.get("FREQ", "")
    if often not in _FREQUENCIES:
        raise ValueError(f"FREQ is one of {', '.join(_FREQUENCIES)}")
    if not 1 <= int(parts.get("INTERVAL", "1")) <= _FREQUENCIES[often]:
        raise ValueError(f"INTERVAL is from 1 to {_FREQUENCIES[often]} with {often}")
    if "COUNT" in parts and not 1 <= int(parts["COUNT"]) <= _MOST_COUNTED:
        raise ValueError(f"COUNT is from 1 to {_MOST_COUNTED}")
    if "UNTIL" in parts and not re.fullmatch(r"\d{8}(?:T\d{6})?", parts["UNTIL"]):
        raise ValueError("UNTIL is a local date or time as in 20261224T180000")
    if often in ("HOURLY", "MINUTELY") and (more := sorted(set(parts) - _WITHIN_DAY)):
        raise ValueError(f"{more[0]} does not go with {often}")
    if often not in ("MONTHLY", "YEARLY") and re.search(r"\d", parts.get("BYDAY", "")):
        raise ValueError("BYDAY has numbers with MONTHLY and YEARLY only")
    if often != "YEARLY" and (more := sorted({"BYYEARDAY", "BYWEEKNO"} & set(parts))):
        raise ValueError(f"{more[0]} goes with YEARLY only")
    months = [int(month) for month in parts.get("BYMONTH", "").split(",") if month] or list(range(1, 13))
    days = [abs(int(day)) for day in parts.get("BYMONTHDAY", "").split(",") if day] or [1]
    if not all(1 <= month <= 12 for month in months):
        raise ValueError("BYMONTH is from 1 to 12")
    if not any(1 <= day <= _DAYS_OF_MONTH[month - 1] for month in months for day in days):
        raise ValueError("it never comes")
