"""Plans that give what is there another time, no time or another list. Pure; as `plans` tells.

What always holds: what the sentence does not tell apart is asked for, and nothing is changed meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from assistant.core.text import lazy_regex
from assistant.core.time_language import DAY_CODES, H
from assistant.core.time_names import HOURS_OF_PARTS
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import TimePiece, find_length
from assistant.core.time_resolve import resolve_times
from assistant.models.offline.asides import without_told_times
from assistant.models.offline.changes import for_each, not_done, on_days, rule_without_days
from assistant.models.offline.cues import fold, says, says_any
from assistant.models.offline.ends import end_of, ended_rule, says_no_more, stopped_rule
from assistant.models.offline.exceptions import find_exception
from assistant.models.offline.lists import is_same_list, list_names, without_lists
from assistant.models.offline.matching import ListedItem, is_other_list, matching, subject_words, words_of
from assistant.models.offline.plain_forms import last_day
from assistant.models.offline.plans import (
    MOMENT,
    OtherAnswer,
    Plan,
    PlanContext,
    ask_which,
    call_tool,
    describe_item,
    describe_todos,
)
from assistant.models.offline.pointing import items_of_moved_day, says_other_number, without_first_day
from assistant.models.offline.remark_forms import ends_some_day, says_too
from assistant.models.offline.skips import find_skip, leave_out
from assistant.models.offline.targets import (
    NUMBER,
    Targets,
    content_words,
    find_targets,
    is_old_time,
    new_times,
)

# An hour that is written as such is one of twenty-four; "4:30" without a word beside it may be of twelve.
_OF_24 = lazy_regex(r"\d ?h\b|uhr|\b(?:0\d|\d\d):\d|heures?|horas?")
_CLOCK_MARK = lazy_regex(
    r"\d[:.h]\d\d|\d ?(?:[ap]m|h|uhr)\b|\b(?:o'clock|noon|midi|mediodia|heures?|half past|quarter)\b"
)
_BARE_HOUR = lazy_regex(r"(?<![\w:.])(\d{1,2})(?![\w:.%]|\s*(?:eggs|kg|km|euro|min))")
_LAST_HOUR = lazy_regex(
    rf"(?<!\bno )(?<!\bquarter )(?<!\bfive )(?<!\bten )(?<!\btwenty )\b(?:to|(?:un)?till?|auf|à|a|um|at|sur|a las"
    rf"|make (?:it|that|this)|plutôt|plutot) ({H})$",
    re.IGNORECASE,
)
_ONE_NOT_OTHER = lazy_regex(
    rf"(?:\b(?:at|um|à|a las) )?(?<![:.\d])\b({H}),? (?:not|nicht|pas|no) (?:at |um |à |a las )?({H})[\s.!]*$",
    re.IGNORECASE,
)
_BY_LENGTH = lazy_regex(
    r"\b(?:by|um|de|d'|por|en) ?(?:an?|one|two|half|ein\w*|une?|una?|\d+|zwei|deux|dos|drei|trois|tres|three) "
)
_NOT_ONE = lazy_regex(
    rf"\b(?:not|nicht|pas|no) (?:at |um |à |a las )?({H}),? (?:but |sondern |mais |sino )?(?:at |um |à "
    rf"|a las )?({H})[\s.!]*$",
    re.IGNORECASE,
)
_END = lazy_regex(r"(?<!\d)[\s.!]+\Z|[\s!]+\Z")
NO_END = 'I don\'t understand on which day it is to end, so nothing is changed; name the day, as in "only until Friday"'
_ABOUT_THEN = 90  # minutes
_HOURS_WITHIN = {"morning": (5, 12), "afternoon": (13, 18), "evening": (17, 24), "night": (19, 24)}
# What was not at night is not moved into it by an hour that may be of the afternoon.
_NIGHT_ENDS = 5
# Minutes of an hour that is known: "make that half past", "mets plutôt la demie", "mejor a y cuarto".
_MINUTES_ALONE = lazy_regex(
    r"\b(?:(?P<half>half past|(?:et |la )demie?|y media)|(?P<quarter>quarter past|viertel nach|et quart|y cuarto))"
    r"(?=[\s.!?]*(?:(?:instead|please|pls|bitte|stp|porfa|plutot|lieber|mejor)[\s.!?]*)*$)"
)
_OTHER_HALF = lazy_regex(
    r"\b[ap]m,? (?:and )?not [ap]m\b|\bnot [ap]m,? (?:but )?[ap]m\b|\b(?:make|meant|mean|be|it'?s) (?:that "
    r"|it |in the )?[ap]m\b|^[ap]m$"
)
# "13h30" is no length of time; "1h30" may be.
_HOUR_OF_DAY = lazy_regex(
    r"\s*(?:(?:[6-9]|0\d|1\d|2[0-3]) ?h ?[0-5]\d\b|(?:à|a) (?:1[3-9]|2[0-3]) ?h\b)", re.IGNORECASE
)
_AT = lazy_regex(r"(?:at|by|um(?! eine\b)|auf|ab|à|vers|a las?|a(?= \d{1,2} ?h)) ", re.IGNORECASE)
# "Make that 15", of a timer.
_NUMBER_ALONE = lazy_regex(r"(?<![\w:.,])(\d{1,3})(?![\w:%]|[.,]\d| ?(?:h\b|uhr|[ap]m|o'clock|heures?|horas?))")
_NEXT_DAY = lazy_regex(
    r"\b(?:(?:next|following) \w+day|\w+day (?:after|next)\b(?! (?:that|the)\b)"
    r"|(?:darauf)?(?:nachste|folgende)[nr]? (?:\w+tag|mittwoch)|(?:\w+di|dimanche) (?:prochain|suivant|d'apres)"
    r"|(?:proximo|siguiente) \w+|\w+ (?:que viene|siguiente))\b"
)
_AT_HOUR = lazy_regex(r"\b(?:at|um|a|a las|by|till?|until|bis|jusqu'a|hasta) \d")


def spell_hours(text: str) -> str:
    """The hours of what was a reminder's: "I meant 5, not 3"."""
    return _ONE_NOT_OTHER.sub(r"at \1, not at \2", _NOT_ONE.sub(r"at \2, not at \1", text))


def move(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """Another time, another rule, another day of a to-do; with no time, a little later."""
    now = context.now
    if now is None:
        raise OtherAnswer
    if of_day := items_of_moved_day(text, items, now):
        return (yield from _move_day(text, of_day, now))
    text = without_told_times(text, not_done(items))
    plain = _LAST_HOUR.sub(r"at \1", _END.sub("", text))
    times = find_times(NUMBER.sub(lambda match: "_" * len(match[0]), plain))  # "number 2 to 6" is no span of time
    is_length = find_length(fold(plain)) is not None  # "d'une heure et demie"
    if not (times.of_kind("clock") or is_length) and (minutes := _MINUTES_ALONE.search(fold(plain))):
        return (yield from _move_minutes(plain[: minutes.start()], 30 if minutes["half"] else 15, items, context))
    if not times.pieces and _OTHER_HALF.search(fold(plain)):
        return (yield from _move_half_a_day(plain, items, context, now))
    snoozes = says("snooze", fold(text)) and not says("all", fold(text))
    pool = items if snoozes else not_done(items)
    targets = find_targets(text, pool, context, times)
    if snoozes and not content_words(text) and not says("both", fold(text)):
        came = [item for item in pool if item.done and item.kind == "reminder"]
        targets = targets if targets.is_newest and targets else Targets(came[:1] or _next_reminder(pool))
    found = for_each(targets)
    if targets.unclear:
        return ask_which(found)
    if len(found) == 1 and "~timer" in words_of(found[0].text) and (minutes_alone := _minutes_of_timer(fold(text))):
        return (yield from call_tool("change_reminder", id=found[0].id, when=f"in {minutes_alone} minutes"))
    once = says("once_only", fold(text)) and not says_any(("skips", "leaves_out"), fold(text))  # "skip it just once"
    own_rule = find_times(found[0].often).rule
    if once and len(found) == 1 and own_rule and times.rule in ("", own_rule) and not times.has_clock:
        return (yield from call_tool("change_reminder", id=found[0].id, repeat="once"))
    if len(found) == 1 and found[0].often and (ended := ended_rule(text, found[0], now)) is not None:
        return (yield from call_tool("change_reminder", id=found[0].id, **ended))
    stopped = stopped_rule(times, found[0], now) if len(found) == 1 and found[0].often and says_no_more(text) else None
    if stopped is not None:
        return (yield from call_tool("change_reminder", id=found[0].id, **stopped))
    if ends_some_day(text) and len(found) == 1 and found[0].often:
        return f"{NO_END}: {describe_item(found[0])}"
    excepted = find_exception(text) if len(found) == 1 and found[0].often else None
    if excepted and (skip := find_skip(found[0], replace(times, pieces=excepted.pieces), now)) is not None:
        return (yield from leave_out(found[0], skip))
    if len(found) == 1 and (left := rule_without_days(found[0], times, fold(text))):
        return (yield from call_tool("change_reminder", id=found[0].id, **on_days(found[0], left)))
    skips = says("skips", fold(text)) or (says("none_of", fold(text)) and not times.of_kind("clock"))
    if skips and len(found) == 1 and found[0].often and (skip := find_skip(found[0], times, now)) is not None:
        return (yield from leave_out(found[0], skip))
    comes_once = len(found) == 1 and found[0].kind == "reminder" and not (found[0].often or times.of_kind("clock"))
    if (
        comes_once
        and says("skips", fold(text))
        and find_length(fold(text)) is None  # "I can't on Tuesday, make it a day later"
        and all(is_old_time(found[0], piece, times, now) for piece in times.pieces)
    ):
        return (yield from call_tool("cancel_reminder", id=found[0].id))
    if len(found) > 1 and says("sense_drop", fold(text)):
        raise OtherAnswer  # one of them may not be wanted any more
    answers = []
    for item in found:
        changed = _on_other_days(item, times) or new_times(item, times, now)
        answers.append((yield from _shift(item, plain, changed, now)))
    return "\n".join(answers)


def _move_day(text: str, of_day: Sequence[ListedItem], now: datetime) -> Plan:
    """Each at its own hour."""
    if says_other_number(text, of_day):
        return ask_which(of_day)
    times = without_first_day(find_times(text))
    answers = []
    for item in of_day:
        answers.append((yield from _shift(item, text, times, now)))
    return "\n".join(answers)


def _minutes_of_timer(folded: str) -> str:
    """The number that a folded sentence gives a timer, where it says no hour and no unit; "" for none."""
    numbers = _NUMBER_ALONE.findall(folded)
    is_time = find_length(folded) is not None or _AT_HOUR.search(folded) or _CLOCK_MARK.search(folded)
    return numbers[0] if len(numbers) == 1 and not is_time else ""


def _move_minutes(text: str, minutes: int, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """The same hour, at other minutes."""
    targets = find_targets(
        text, [item for item in not_done(items) if item.kind == "reminder"], context, find_times(text)
    )
    found = for_each(targets)
    if len(found) > 1 or found[0].due is None:
        return ask_which(found)
    return (yield from _set(found[0], found[0].due.replace(minute=minutes), has_clock=True, rule=""))


def _move_half_a_day(text: str, items: Sequence[ListedItem], context: PlanContext, now: datetime) -> Plan:
    """The same hour before noon instead of after it, or the other way round: "I meant am, not pm"."""
    there = [item for item in not_done(items) if item.kind == "reminder"]
    found = for_each(find_targets(_OTHER_HALF.sub(" ", fold(text)), there, context, find_times(text)))
    if len(found) > 1 or found[0].due is None:
        return ask_which(found)
    at = found[0].due + timedelta(hours=12 if found[0].due.hour < 12 else -12)
    return (yield from _set(found[0], at if at > now else at + timedelta(days=1), has_clock=True, rule=""))


def _on_other_days(item: ListedItem, times: FoundTimes) -> FoundTimes | None:
    """What comes again and again comes on other days from now on: "only on Monday and Thursday", "just the weekend"."""
    days = [piece.weekday for piece in times.joined_days if piece.weekday is not None]
    if any(piece.part == "weekend" for piece in times.of_kind("span")):
        days = [5, 6]
    rule = find_times(item.often).rule
    if says_too(fold(times.text)) and "WEEKLY;BYDAY=" in rule:  # "and on Thursdays too"
        new = [piece.weekday for piece in times.of_kind("day") if piece.weekday is not None]
        codes = {*re.sub(r".*=", "", rule).split(","), *re.sub(r".*=", "", times.rule).split(",")}
        days = [*new, *(number for number, code in enumerate(DAY_CODES) if code in codes and number not in new)]
    if not item.often or len(days) < 2:
        return None
    rule = f"FREQ=WEEKLY;BYDAY={','.join(DAY_CODES[day] for day in sorted(days))}"
    clocks = [piece for piece in times.pieces if piece.kind == "clock"]
    return replace(times, pieces=(*clocks, TimePiece("repeat", 0, 0, rule=rule)))


def _next_reminder(items: Sequence[ListedItem]) -> list[ListedItem]:
    return sorted((item for item in items if item.kind == "reminder" and item.due), key=lambda item: str(item.due))[:1]


def _shift(item: ListedItem, text: str, times: FoundTimes, now: datetime) -> Plan:
    folded = fold(text)
    length = find_length(folded)
    later = says("later_by", folded) or says("longer", folded)
    sooner = says("earlier_by", folded) or says("sooner", folded)
    if item.often and times.rule == find_times(item.often).rule:  # it says which one: "the weekday alarm"
        times = replace(times, pieces=tuple(piece for piece in times.pieces if piece.kind != "repeat"))
    fresh = [piece for piece in times.of_kind("day", "part") if not is_old_time(item, piece, times, now)]
    if length and _is_no_clock(length, times) and not fresh and not times.rule:
        if (
            (says("snooze", folded) and not (later or sooner))
            or item.done
            or _counts_from_now(folded)
            or ("~timer" in words_of(item.text) and not (later or sooner))
        ):
            when = f"in {length.minutes or length.days * 1440} minutes"
            return (yield from call_tool("change_reminder", id=item.id, when=when))
        later |= not sooner and _BY_LENGTH.search(folded) is not None  # "shift it by a day"
        if item.due and (later or sooner or times.of_kind("before")):
            at = item.due + (-1 if sooner or (times.of_kind("before") and not later) else 1) * timedelta(
                minutes=length.minutes, days=length.days
            )
            return (yield from _set(item, at, bool(length.minutes), ""))
    if item.kind == "todo" and not times.has_day and times.has_clock and not _CLOCK_MARK.search(folded):
        raise OtherAnswer  # "make that two" is how many
    is_hour = item.kind == "reminder" and not says("snooze", folded)
    if not times.pieces and is_hour and (hour := _BARE_HOUR.search(folded)):
        times = find_times(f"at {hour[1]}")
    if not times.pieces and says("snooze", folded) and item.kind == "reminder":
        return (yield from call_tool("change_reminder", id=item.id, when="in 10 minutes"))
    before = next(iter(times.of_kind("before")), None)
    if before and item.due and not times.of_kind("clock", "day", "repeat"):
        at = item.due - timedelta(minutes=before.minutes, days=before.days)
        at = at.replace(hour=HOURS_OF_PARTS[before.part], minute=0) if before.part else at
        return (yield from _set(item, at, bool(before.minutes or before.part), ""))
    times = _with_own_hour(item, times)
    resolved = resolve_times(times, now, item.due)
    if resolved is None and item.kind == "todo" and (last := _last_day_or_today(times, now)):
        return (yield from _set(item, last, has_clock=False, rule=""))  # "by the end of the week", "by today"
    if resolved is None:
        raise OtherAnswer
    if _is_next_week(item, times, resolved.at, now):
        resolved = replace(resolved, at=resolved.at + timedelta(days=7))
    at = _nearest(item, times, resolved.at, now)
    rule = times.rule
    start = at if not rule or times.has_clock or times.has_day else item.due or at
    is_of_rule = item.due is not None and _day_code(item.due) in re.sub(r".*BYDAY=", "", rule).split(",")
    is_oftener = "BYDAY" in rule or (rule == "FREQ=DAILY" and item.often)  # from the next day that it names
    if is_oftener and not times.has_day and not times.has_clock and item.due:
        start = datetime.combine(now.date(), item.due.time())
        start += timedelta(days=int(start <= now))
        start = item.due if is_of_rule and not item.often and item.due > start else start
    if not rule and item.often and times.of_kind("day") and (day := re.match(r"every (\w+day)\b", item.often)):
        rule = f"FREQ=WEEKLY;BYDAY={_day_code(resolved.at)}" if day[1] != "weekday" else ""
    elif rule == "FREQ=WEEKLY" and item.due:
        rule = f"FREQ=WEEKLY;BYDAY={_day_code(item.due)}"
    return (yield from _set(item, start, times.has_clock, rule))


def _is_no_clock(length: TimePiece, times: FoundTimes) -> bool:
    """Whether a length of time is one, whatever else its words may be read as: "d'une heure" as one o'clock."""
    clocks = times.of_kind("clock")
    words = [times.text[clock.start : clock.end] for clock in clocks]
    return not any(map(_HOUR_OF_DAY.match, words)) and all(
        length.start < clock.end and clock.start < length.end and not _AT.match(said)
        for clock, said in zip(clocks, words, strict=True)
    )


def _last_day_or_today(times: FoundTimes, now: datetime) -> datetime | None:
    day = last_day(times, now)
    is_today = not times.has_clock and any(piece.offset == 0 for piece in times.of_kind("day"))
    return datetime.fromisoformat(day) if day else now if is_today else None


def _with_own_hour(item: ListedItem, times: FoundTimes) -> FoundTimes:
    """The times without a part of a day in which the hour of the thing is already: what is at eight in the evening and
    moves to "Monday evening" is at eight there too."""
    parts = times.of_kind("part")
    first, last = _HOURS_WITHIN.get(parts[0].part, (0, 0)) if len(parts) == 1 else (0, 0)
    if item.kind == "todo" or item.due is None or not times.of_kind("day") or not first <= item.due.hour < last:
        return times
    return times if times.of_kind("clock") else replace(times, pieces=tuple(p for p in times.pieces if p not in parts))


def _is_next_week(item: ListedItem, times: FoundTimes, at: datetime, now: datetime) -> bool:
    """On a Wednesday, what is on another day and moves to Wednesday is not today: that would be said. And what is on
    Friday moves to the next one by "to next Friday"."""
    named = any(day.weekday is not None for day in times.of_kind("day"))
    if named and item.due and item.due.date() == at.date() and not times.of_kind("clock"):
        return _NEXT_DAY.search(fold(times.text)) is not None
    return named and at.date() == now.date() and item.due is not None and item.due.date() > at.date()


def _counts_from_now(folded: str) -> bool:
    return re.search(r"\b(?:in|dans|en|dentro de) (?:\d|an? |ein|une? |una? )", folded) is not None


def _nearest(item: ListedItem, times: FoundTimes, at: datetime, now: datetime) -> datetime:
    """Of an hour that may be of the morning or the evening the one nearer to what it was; from eight on, if near."""
    clocks = times.of_kind("clock")
    if not item.due or len(clocks) != 1 or clocks[0].half or times.of_kind("part"):
        return at
    if _OF_24.search(fold(times.text[clocks[0].start : clocks[0].end])):
        return at
    if item.often or (times.of_kind("day") and item.due.hour < 12):
        return at
    day = at if times.of_kind("day") else item.due
    first = day.replace(hour=at.hour % 12, minute=at.minute)
    readings = [moment for moment in (first, first + timedelta(hours=12)) if moment > now]
    if item.due.hour >= _NIGHT_ENDS and "~alarm" not in words_of(item.text):
        readings = [moment for moment in readings if moment.hour >= _NIGHT_ENDS]
    was = item.due.hour * 60 + item.due.minute
    nearest = min(readings, key=lambda moment: abs(moment.hour * 60 + moment.minute - was), default=at)
    is_morning = clocks[0].minutes >= 480 and abs(nearest.hour * 60 + nearest.minute - was) > _ABOUT_THEN
    return at if is_morning else nearest


def _set(item: ListedItem, at: datetime, has_clock: bool, rule: str) -> Plan:
    if item.kind == "todo":
        due = at.strftime(MOMENT if has_clock else "%Y-%m-%d")
        return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[item.id], due=due)))
    if rule:
        rule = rule if "UNTIL" in rule else f"{rule}{end_of(item)}"
        return (yield from call_tool("change_reminder", id=item.id, when=at.strftime(MOMENT), repeat=rule))
    return (yield from call_tool("change_reminder", id=item.id, when=at.strftime(MOMENT)))


def _day_code(at: datetime) -> str:
    return DAY_CODES[at.weekday()]


def undate(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """A to-do that has a due date no longer."""
    dated = [item for item in not_done(items) if item.kind == "todo" and item.due]
    targets = find_targets(text, dated, context, find_times(text))
    found = for_each(targets)
    if targets.unclear:
        return ask_which(found)
    ids = [item.id for item in found]
    return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=ids, due="none")))


def relist(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """To-dos that belong on another list."""
    todos = [item for item in not_done(items) if item.kind == "todo"]
    known = {fold(item.list): item.list for item in todos if item.list}
    names = list_names(text)
    names += [known[word] for word in re.findall(r"\w+", fold(text)) if word in known and word not in names]
    words = subject_words(without_lists(text))
    found = matching(words, todos)
    if not names or not found:
        raise OtherAnswer
    if len(found) > 1:
        found = [item for item in found if any(name and is_same_list(item.list, name) for name in names)] or found
    target = next((name for name in reversed(names) if is_other_list(name, found[0].list, known)), names[-1])
    if says("not_this_list", fold(text)) and len(names) > 1:
        target = next((name for name in names if not is_same_list(found[0].list, name)), target)
    if len(found) > 1:
        return ask_which(found)
    result = yield from call_tool("manage_todo_list", action="edit", ids=[found[0].id], list=target or "to-do")
    return describe_todos(result)
