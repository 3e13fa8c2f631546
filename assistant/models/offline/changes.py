"""Plans that change what is there: cancel, tick off, move, open again, put on another list. Pure; as `plans` tells.

What always holds: what the sentence does not tell apart is asked for, and nothing is changed meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from assistant.core.text import lazy_regex
from assistant.core.time_language import DAY_CODES, H
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import TimePiece, find_length
from assistant.core.time_resolve import ResolvedTime, day_range, resolve_times
from assistant.models.offline.cues import fold, read_cues, says, says_any
from assistant.models.offline.lists import is_same_list, list_names, names_list, without_lists
from assistant.models.offline.matching import ListedItem, kinds_named, matching, subject_words, words_of
from assistant.models.offline.plans import (
    MOMENT,
    OtherAnswer,
    Plan,
    PlanContext,
    ToolFailedError,
    ask_for_kind,
    ask_which,
    call_tool,
    describe_item,
    describe_todos,
    numbers_named,
)
from assistant.models.offline.targets import (
    Targets,
    content_words,
    find_targets,
    is_old_time,
    items_at_times,
    new_times,
)

# An hour that is written as such is one of twenty-four.
_OF_24 = lazy_regex(r"\d ?h\b|uhr|:\d|heures?|horas?")
_BARE_HOUR = lazy_regex(r"(?<![\w:.])(\d{1,2})(?![\w:.%]|\s*(?:eggs|kg|km|euro|min))")
_LAST_HOUR = lazy_regex(rf"\b(?:to|auf|à|a|um|at|sur|a las) ({H})$", re.IGNORECASE)
_END = lazy_regex(r"(?<!\d)[\s.!]+\Z|[\s!]+\Z")
_ABOUT_THEN = 90  # minutes
# Minutes of an hour that is known: "make that half past", "mets plutôt la demie", "mejor a y cuarto".
_MINUTES_ALONE = lazy_regex(
    r"\b(?:(?P<half>half past|(?:et |la )demie?|y media)|(?P<quarter>quarter past|viertel nach|et quart|y cuarto))"
    r"(?=[\s.!?]*(?:(?:instead|please|pls|bitte|stp|porfa|plutot|lieber|mejor)[\s.!?]*)*$)"
)
_PARTS = lazy_regex(r"\s*[,;.!]\s+")
_MISSING = lazy_regex(
    r"\b(?:not|didn'?t|isn'?t|missing|nicht|kein\w*|fehl\w*|pas|manque\w*|reste\w*|no|falta\w*|queda\w*)\b"
)
_AT = lazy_regex(r"(?:at|by|um|auf|ab|à|vers|a las?) ", re.IGNORECASE)
_HAS = lazy_regex(r"\b(?:got|have|hab\w*|haben|tengo|tenemos|ai|a|avons|pris|bought)\b")
_PARTICIPLE_AT_END = lazy_regex(r"\b\w{2,}(?:ed|ought|t|en|e|ee|es|ad[oa]s?|id[oa]s?)[\s.!]*$")
_RINGS = lazy_regex(r"\b(?:wak|weck|reveil|despert|despiert|alarm)\w*")
ONLY_THE_NEXT = "I can only leave out the next time that it comes, so nothing is changed"
_BUT = lazy_regex(r"\b(?:but|aber|mais|pero)\b", re.IGNORECASE)


def _not_done(items: Sequence[ListedItem]) -> list[ListedItem]:
    return [item for item in items if not item.done]


def _for_each(targets: Targets) -> Sequence[ListedItem]:
    if not targets:
        raise OtherAnswer
    return targets.items


# ------------------------------------------------------------------------------------------------- not wanted, or done


def drop(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """Reminders and to-dos that are not wanted any more."""
    times = find_times(text)
    if numbers := numbers_named(text):
        chosen = [item for item in _not_done(items) if item.id in numbers]
        kinds = {item.kind for item in chosen}
        targets = Targets(chosen if len(kinds) == 1 else [], all_meant=True)
    else:
        # Only what comes again can be left out once.
        pool = [item for item in _not_done(items) if item.often or not says("leaves_out", fold(text))]
        targets = find_targets(text, pool, context, times, may_keep=True)
    if says("resets", fold(text)) and any(list_names(text)):
        targets = _whole_list(text, _not_done(items))
    if not targets and says("negated_request", fold(text)):
        targets = _not_to_ring(text, _not_done(items), times, context.now)
    if not targets and (numbers or (names_list(text) and says("clear", fold(text)))):
        return (yield from _drop_unseen(text, numbers))
    found = _for_each(targets)
    if any(says("strong_move", part) for part in _PARTS.split(fold(text))[1:]) and times.has_clock:
        raise OtherAnswer  # "my train was cancelled, I take the one at 10:45, change the reminder"
    if targets.unclear:
        return ask_which(found)
    if targets.is_everything and len(found) > 1:
        return ask_for_kind(found)
    is_once = not says("for_good", fold(text))
    if is_once and len(found) == 1 and found[0].often and (skipped := _skip(found[0], times, context.now)) is not None:
        return (yield from call_tool("change_reminder", id=found[0].id, **skipped))
    if says("leaves_out", fold(text)):
        return f"{ONLY_THE_NEXT}: {describe_item(found[0])}"
    return (yield from _take_away(found, "remove"))


def _not_to_ring(text: str, there: Sequence[ListedItem], times: FoundTimes, now: datetime | None) -> Targets:
    """What somebody does not want to be woken or reminded by: "so don't wake me tomorrow, I'm off"."""
    reminders = [item for item in there if item.kind == "reminder"]
    if _RINGS.search(fold(text)):
        reminders = [item for item in reminders if "~alarm" in words_of(item.text)]
    then = items_at_times(reminders, times, now) if now and times.pieces else []
    return Targets(then or reminders)


def _drop_unseen(text: str, numbers: Sequence[int]) -> Plan:
    """What a sentence names by number or list and nobody has: the tool says so."""
    if numbers and kinds_named(text)[0]:
        answers = []
        for number in numbers:
            answers.append((yield from call_tool("cancel_reminder", id=number)))
        return "\n".join(answers)
    if numbers:
        return describe_todos((yield from call_tool("manage_todo_list", action="remove", ids=list(numbers))))
    name = next(filter(None, list_names(text)), "to-do")
    return describe_todos((yield from call_tool("manage_todo_list", action="clear", list=name)))


def says_whole_list_done(text: str) -> bool:
    """Whether it says of a list as a whole that it is done: "got everything on the shopping list"."""
    folded = fold(without_lists(text))
    if (
        not any(list_names(text))
        or not says_any(("all", "clear"), folded)
        or says_any(("puts", "drop", "show"), folded)
    ):
        return False
    ends = _PARTICIPLE_AT_END.search(folded) is not None
    return ends or says_any(("sense_done", "done"), folded) or _HAS.search(folded) is not None


def _whole_list(text: str, todos: Sequence[ListedItem]) -> Targets:
    name = next(filter(None, list_names(text)), "")
    return Targets([item for item in todos if item.kind == "todo" and is_same_list(item.list, name)], all_meant=True)


def complete(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """To-dos are ticked off; a reminder of what is done need not come, unless it comes again and again."""
    if numbers := numbers_named(text):
        return describe_todos((yield from call_tool("manage_todo_list", action="complete", ids=numbers)))
    if (says("asks", fold(text)) or text.endswith("?")) and not says("mark", fold(text)):
        raise OtherAnswer(asks=True)  # "did I buy the milk" asks
    there = _not_done(items)
    if not says("except", fold(text)) and not says("all", fold(text)):  # "got the milk, but there was no bread"
        text = _without_missing(_BUT.split(text, maxsplit=1)[0])
    todos = [item for item in there if item.kind == "todo"]
    targets = find_targets(text, todos, context, find_times(text), may_keep=True)
    if not targets and says_whole_list_done(text):
        targets = _whole_list(text, todos)
    if not targets or targets.is_newest:
        targets = find_targets(text, there, context, find_times(text), may_keep=True)
    found = _for_each(targets)
    if targets.unclear:
        return ask_which(found)
    if any(item.often for item in found):
        raise OtherAnswer
    return (yield from _take_away(found, "complete"))


def _without_missing(text: str) -> str:
    """What is said to be done, without the parts that say of something else that it is not: "milk got, bread not"."""
    parts = _PARTS.split(text)
    done = [part for part in parts if not _MISSING.search(fold(part))]
    return ", ".join(done) if done and len(done) < len(parts) else text


def _take_away(found: Sequence[ListedItem], action: str) -> Plan:
    answers = []
    for item in found:
        if item.kind == "reminder":
            answers.append((yield from call_tool("cancel_reminder", id=item.id)))
    if ids := [item.id for item in found if item.kind == "todo"]:
        answers.append(describe_todos((yield from call_tool("manage_todo_list", action=action, ids=ids))))
    return "\n".join(answers)


def _skip(item: ListedItem, times: FoundTimes, now: datetime | None) -> dict[str, str] | None:
    """A repeated reminder that is not wanted on one day, or not before one; None where it is not wanted at all."""
    days = times.of_kind("day")
    rule = find_times(item.often).rule
    if now is None or not item.due or not rule or times.of_kind("repeat"):
        return None
    at = resolve_times(replace(times, pieces=tuple(days)), now, item.due)
    span = day_range(times, now) if times.of_kind("span") else None
    if at is None and span and item.due < span[1]:  # "this week": when it is due next
        at = ResolvedTime(item.due)
    if at is None:
        return None
    until = bool(read_cues().patterns["until"].search(fold(times.text)))
    if not until and at.at.date() > item.due.date():
        raise ToolFailedError(f"{ONLY_THE_NEXT}: {describe_item(item)}")  # those between would go as well
    step = timedelta(days=7) if "WEEKLY" in rule and "," not in rule else timedelta(days=1)
    when = datetime.combine(at.at.date(), item.due.time()) + (timedelta(0) if until else step)
    return {"when": when.strftime(MOMENT), "repeat": rule}


# ------------------------------------------------------------------------------------------------------------ otherwise


def move(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """Another time, another rule, another day of a to-do; with no time, a little later."""
    now = context.now
    if now is None:
        raise OtherAnswer
    plain = _LAST_HOUR.sub(r"at \1", _END.sub("", text))
    times = find_times(plain)
    if not times.of_kind("clock") and (minutes := _MINUTES_ALONE.search(fold(plain))):
        return (yield from _move_minutes(plain[: minutes.start()], 30 if minutes["half"] else 15, items, context))
    snoozes = says("snooze", fold(text))
    pool = items if snoozes else _not_done(items)
    targets = find_targets(text, pool, context, times)
    if snoozes and not content_words(text):
        came = [item for item in pool if item.done and item.kind == "reminder"]
        targets = targets if targets.is_newest and targets else Targets(came[:1] or _next_reminder(pool))
    found = _for_each(targets)
    if targets.unclear:
        return ask_which(found)
    skips = says("skips", fold(text)) or (says("none_of", fold(text)) and not times.has_clock)
    if skips and len(found) == 1 and found[0].often and (skipped := _skip(found[0], times, now)) is not None:
        return (yield from call_tool("change_reminder", id=found[0].id, **skipped))
    if len(found) > 1 and says("sense_drop", fold(text)):
        raise OtherAnswer  # one of them may not be wanted any more
    answers = []
    for item in found:
        changed = _on_other_days(item, times) or new_times(item, times, now)
        answers.append((yield from _shift(item, plain, changed, now)))
    return "\n".join(answers)


def _move_minutes(text: str, minutes: int, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """The same hour, at other minutes."""
    targets = find_targets(
        text, [item for item in _not_done(items) if item.kind == "reminder"], context, find_times(text)
    )
    found = _for_each(targets)
    if len(found) > 1 or found[0].due is None:
        return ask_which(found)
    return (yield from _set(found[0], found[0].due.replace(minute=minutes), has_clock=True, rule=""))


def _on_other_days(item: ListedItem, times: FoundTimes) -> FoundTimes | None:
    """What comes again and again comes on other days from now on: "only on Monday and Thursday", "just the weekend"."""
    days = [piece.weekday for piece in times.joined_days if piece.weekday is not None]
    if any(piece.part == "weekend" for piece in times.of_kind("span")):
        days = [5, 6]
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
    later, sooner = (
        says("later_by", folded) or says("longer", folded),
        says("earlier_by", folded) or says("sooner", folded),
    )
    if item.often and times.rule == find_times(item.often).rule:  # it says which one: "the weekday alarm"
        times = replace(times, pieces=tuple(piece for piece in times.pieces if piece.kind != "repeat"))
    clocks = times.of_kind("clock")
    # "d'une heure" may be read as one o'clock.
    only_length = length and all(
        length.start < clock.end and clock.start < length.end and not _AT.match(times.text[clock.start : clock.end])
        for clock in clocks
    )
    fresh = [piece for piece in times.of_kind("day", "part") if not is_old_time(item, piece, times, now)]
    if length and only_length and not fresh and not times.rule:
        if (
            (says("snooze", folded) and not (later or sooner))
            or item.done
            or _counts_from_now(folded)
            or ("~timer" in words_of(item.text) and not (later or sooner))
        ):
            when = f"in {length.minutes or length.days * 1440} minutes"
            return (yield from call_tool("change_reminder", id=item.id, when=when))
        if item.due and (later or sooner or times.of_kind("before")):
            at = item.due + (-1 if sooner or (times.of_kind("before") and not later) else 1) * timedelta(
                minutes=length.minutes, days=length.days
            )
            return (yield from _set(item, at, bool(length.minutes), ""))
    if not times.pieces and (hour := _BARE_HOUR.search(folded)) and not says("snooze", folded):
        times = find_times(f"at {hour[1]}")
    if not times.pieces and says("snooze", folded) and item.kind == "reminder":
        return (yield from call_tool("change_reminder", id=item.id, when="in 10 minutes"))
    resolved = resolve_times(times, now, item.due)
    if resolved is None:
        raise OtherAnswer
    if _is_next_week(item, times, resolved.at, now):
        resolved = replace(resolved, at=resolved.at + timedelta(days=7))
    at = _nearest(item, times, resolved.at, now)
    rule = times.rule
    start = at if not rule or times.has_clock or times.has_day else item.due or at
    if "BYDAY" in rule and not times.has_day and not times.has_clock and item.due:
        start = datetime.combine(now.date(), item.due.time())
        start += timedelta(days=int(start <= now))
    if not rule and item.often and times.of_kind("day") and (day := re.match(r"every (\w+day)\b", item.often)):
        rule = f"FREQ=WEEKLY;BYDAY={_day_code(resolved.at)}" if day[1] != "weekday" else ""
    elif rule == "FREQ=WEEKLY" and item.due:
        rule = f"FREQ=WEEKLY;BYDAY={_day_code(item.due)}"
    return (yield from _set(item, start, times.has_clock, rule))


def _is_next_week(item: ListedItem, times: FoundTimes, at: datetime, now: datetime) -> bool:
    """On a Wednesday, what is on another day and moves to Wednesday is not today: that would be said."""
    named = any(day.weekday is not None for day in times.of_kind("day"))
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
    was = item.due.hour * 60 + item.due.minute
    nearest = min(readings, key=lambda moment: abs(moment.hour * 60 + moment.minute - was), default=at)
    is_morning = clocks[0].minutes >= 480 and abs(nearest.hour * 60 + nearest.minute - was) > _ABOUT_THEN
    return at if is_morning else nearest


def _set(item: ListedItem, at: datetime, has_clock: bool, rule: str) -> Plan:
    if item.kind == "todo":
        due = at.strftime(MOMENT if has_clock else "%Y-%m-%d")
        return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[item.id], due=due)))
    if rule:
        return (yield from call_tool("change_reminder", id=item.id, when=at.strftime(MOMENT), repeat=rule))
    return (yield from call_tool("change_reminder", id=item.id, when=at.strftime(MOMENT)))


def _day_code(at: datetime) -> str:
    return DAY_CODES[at.weekday()]


def undate(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """A to-do that has a due date no longer."""
    dated = [item for item in _not_done(items) if item.kind == "todo" and item.due]
    targets = find_targets(text, dated, context, find_times(text))
    found = _for_each(targets)
    if targets.unclear:
        return ask_which(found)
    ids = [item.id for item in found]
    return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=ids, due="none")))


def relist(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """To-dos that belong on another list."""
    todos = [item for item in _not_done(items) if item.kind == "todo"]
    known = {fold(item.list): item.list for item in todos if item.list}
    names = list_names(text)
    names += [known[word] for word in re.findall(r"\w+", fold(text)) if word in known and word not in names]
    words = subject_words(without_lists(text))
    found = matching(words, todos)
    if not names or not found:
        raise OtherAnswer
    if len(found) > 1:
        found = [item for item in found if any(name and is_same_list(item.list, name) for name in names)] or found
    target = next((name for name in reversed(names) if not is_same_list(found[0].list, name)), names[-1])
    if says("not_this_list", fold(text)) and len(names) > 1:
        target = next((name for name in names if not is_same_list(found[0].list, name)), target)
    if len(found) > 1:
        return ask_which(found)
    result = yield from call_tool("manage_todo_list", action="edit", ids=[found[0].id], list=target or "to-do")
    return describe_todos(result)


# ----------------------------------------------------------------------------------------------------------- taken back
