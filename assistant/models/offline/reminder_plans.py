"""Plans about reminders: set, move, snooze, cancel, name anew, take back what was done last. Pure; as `plans` tells."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from assistant.core.quoting import parse_todos
from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_length, find_times
from assistant.core.time_resolve import resolve_times
from assistant.models.offline.matching import ListedItem, each_named, kinds_named, matching, subject_words
from assistant.models.offline.orders import Order, fold, names_list, order_subject, says, tidy_item
from assistant.models.offline.plans import (
    CHANGED,
    MOMENT,
    OtherAnswer,
    Plan,
    PlanContext,
    ask_which,
    call_tool,
    describe_todos,
    find_last_changed,
    find_targets,
    items_at_times,
    needs_tools,
    numbers_named,
    read_items,
    refuse,
)

_MOST_PARTS = 4
# What a reminder without words of its own is called, by how its order begins.
_NAMES = (
    ("wecker", "Wecker"),
    ("weck", "Wecker"),
    ("reveil", "Réveil"),
    ("sonne", "Réveil"),
    ("alarme", "Alarme"),
    ("alarma", "Alarma"),
    ("alarm", "Alarm"),
    ("despert", "Despertador"),
    ("despier", "Despertador"),
    ("wake", "Wake up"),
)


_ON_THE_LIST = "It is on the list, without an alarm. To be reminded, say when: remind me to … tomorrow at 9."


def remind(order: Order, context: PlanContext) -> Plan:
    """What has no time, or where no reminder can be set, goes on the to-do list, with a word that it will not ring."""
    answers = []
    for text, when in _reminders_in(order.text):
        if when and "set_reminder" in context.tools:
            answers.append((yield from call_tool("set_reminder", text=text, when=when)))
        else:
            item = f"{text} ({when})" if when else text
            result = yield from call_tool("manage_todo_list", action="add", items=[item])
            answers.append(f"{describe_todos(result)}\n\n{_ON_THE_LIST}")
    return "\n".join(answers)


def _reminders_in(text: str) -> list[tuple[str, str]]:
    """(what, when) of each reminder that a sentence asks for."""
    times = find_times(text)
    folded = fold(text)
    rings = says("wake", folded) or says("alarm", folded)
    if says("timer", folded) or (not times.pieces and find_length(folded)):
        length = find_length(folded)
        minutes = length.minutes or length.days * 1440 if length else 0
        rest = f"{text[: length.start]} {text[length.end :]}" if length else ""
        if minutes:
            return [(order_subject(rest) or "Timer", f"in {minutes} minutes")]
    clocks = times.of_kind("clock")
    if 1 < len(clocks) <= _MOST_PARTS:
        return _several(text, times)
    when = times.phrase
    if not when and rings and (hour := re.search(r"\b(\d{1,2})\b", folded)):
        when = f"at {hour[1]}"
        text = text.replace(hour[1], " ", 1)
        times = find_times(text)
    subject = order_subject(times.words)
    if not subject or (rings and says("wake", folded) and len(subject.split()) < 2):
        name = next((name for word, name in _NAMES if word in folded), "Reminder")
        subject = name if not subject else f"{name}: {subject}"
    return [(subject, when)]


def _several(text: str, times: FoundTimes) -> list[tuple[str, str]]:
    """One for each hour: with its own words where it has some, else with those of all."""
    parts = [
        part for part in re.split(r"\s*,?\s+(?:and|und|et|y)\s+(?:also |auch |aussi |tambien )?", text) if part.strip()
    ]
    read = [find_times(part) for part in parts]
    if len(parts) < 2 or any(not part.of_kind("clock") for part in read):
        clock = times.of_kind("clock")[-1]
        kept = [piece for piece in times.pieces if piece.kind != "clock" or piece is clock]
        return [(order_subject(times.words), replace(times, pieces=tuple(kept)).phrase)]
    whole = order_subject(times.words)
    subjects = [order_subject(part.words) for part in read]
    shared = " ".join(
        times.text[piece.start : piece.end]
        for piece in times.pieces
        if piece.kind in ("repeat", "day") and len(times.of_kind(piece.kind)) == 1
    )
    reminders = []
    for part, subject in zip(read, subjects, strict=True):
        own = part.phrase if part.of_kind("repeat", "day") else f"{shared} {part.phrase}"
        reminders.append((subject if all(subjects) else re.sub(r"^(?:und|and|et|y) ", "", whole), own.strip()))
    return reminders


def again(order: Order, context: PlanContext) -> Plan:
    """One more of what there is, on another day at the same hour."""
    items = yield from read_items(context, todos=False)
    found = find_targets(order.text, items, context, by_time=False)
    times = find_times(order.text)
    if len(found) != 1 or context.now is None:
        return (yield from remind(order, context)) if not found else ask_which(found)
    at = resolve_times(times, context.now, found[0].due)
    if at is None:
        return refuse(order)
    return (yield from call_tool("set_reminder", text=found[0].text, when=at.at.strftime(MOMENT)))


def snooze(order: Order, context: PlanContext) -> Plan:
    items = yield from read_items(context, todos=False)
    found = find_targets(order.text, items, context, by_time=False)
    came = [item for item in found if item.done]
    if len(found) > 1 and not subject_words(order.text):
        # What came last, or what comes next.
        kind, ids = find_last_changed(context)
        last = [item for item in found if kind == "reminder" and item.id in ids]
        found = last or came[:1] or sorted(found, key=lambda item: (item.due is None, item.due))[:1]
    if not found:
        return (yield from remind(order, context)) if says("set_reminder", fold(order.text)) else refuse(order)
    if len(found) > 1:
        return ask_which(found)
    length, times = find_length(fold(order.text)), find_times(order.text)
    when = f"in {length.minutes or length.days * 1440} minutes" if length else times.phrase or "in 10 minutes"
    if times.of_kind("clock", "day") and context.now and (at := resolve_times(times, context.now)):
        when = at.at.strftime(MOMENT)
    return (yield from call_tool("change_reminder", id=found[0].id, when=when))


def cancel(order: Order, context: PlanContext) -> Plan:
    """Reminders that are not wanted any more; and to-dos, where the words name one."""
    if numbers := numbers_named(order.text):
        if kinds_named(order.text)[0]:
            answers = []
            for number in numbers:
                answers.append((yield from call_tool("cancel_reminder", id=number)))
            return "\n".join(answers)
        return describe_todos((yield from call_tool("manage_todo_list", action="remove", ids=numbers)))
    items = [i for i in (yield from read_items(context, reminders=not names_list(order.text))) if not i.done]
    found = find_targets(order.text, items, context, by_time=True)
    if not found:
        return refuse(order)
    named_apart = len(found) == 1 or says("all", fold(order.text)) or says("except", fold(order.text))
    if not named_apart and each_named(find_times(order.text).words, items) != found:
        return ask_which(found)
    answers = []
    for item in found:
        if item.kind == "reminder":
            answers.append((yield from call_tool("cancel_reminder", id=item.id)))
    if ids := [item.id for item in found if item.kind == "todo"]:
        answers.append(describe_todos((yield from call_tool("manage_todo_list", action="remove", ids=ids))))
    return "\n".join(answers)


_LAST_HOUR = lazy_regex(r"\b(?:to|auf|à|a|um|at|sur) (\d{1,2})$", re.IGNORECASE)


def move(order: Order, context: PlanContext) -> Plan:
    """Another time, another rule, another day of a to-do."""
    if context.now is None or not needs_tools(context, "change_reminder"):
        raise OtherAnswer
    items = [item for item in (yield from read_items(context)) if not item.done]
    times = find_times(_LAST_HOUR.sub(r"at \1", order.text.strip(" .!")))
    found = find_targets(order.text, items, context, by_time=False)
    old = [
        item
        for item in found
        if times.dropped and item in items_at_times(found, replace(times, pieces=times.dropped), context.now)
    ]
    found = old or found
    if not found:
        if order.soft:
            raise OtherAnswer
        return refuse(order)
    if len(found) > 1 and not says("all", fold(order.text)):
        if order.soft and not subject_words(order.text):
            raise OtherAnswer
        return ask_which(found)
    answers = []
    for item in found:
        answers.append((yield from _move_one(item, order, times, context.now)))
    return "\n".join(answers)


def _move_one(item: ListedItem, order: Order, times: FoundTimes, now: datetime) -> Plan:
    if item.kind == "todo":
        resolved = resolve_times(times, now, item.due)
        if resolved is None:
            return refuse(order)
        due = resolved.at.strftime(MOMENT if times.of_kind("clock") else "%Y-%m-%d")
        return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[item.id], due=due)))
    folded = fold(order.text)
    length = find_length(folded)
    clocks = times.of_kind("clock")
    # "d'une heure" may be read as one o'clock.
    is_only_length = length and all(length.start < clock.end and clock.start < length.end for clock in clocks)
    if (
        length
        and item.due
        and is_only_length
        and not times.of_kind("day")
        and (says("later_by", folded) or says("earlier_by", folded))
    ):
        sign = -1 if says("earlier_by", folded) else 1
        at = item.due + sign * timedelta(minutes=length.minutes, days=length.days)
        return (yield from call_tool("change_reminder", id=item.id, when=at.strftime(MOMENT)))
    resolved = resolve_times(times, now, item.due)
    if resolved is None:
        return refuse(order)
    if times.rule:
        repeat = f"FREQ=WEEKLY;BYDAY={_day_code(item.due)}" if times.rule == "FREQ=WEEKLY" and item.due else times.rule
        start = resolved.at if times.has_clock or times.has_day else item.due or resolved.at
        return (yield from call_tool("change_reminder", id=item.id, when=start.strftime(MOMENT), repeat=repeat))
    return (yield from call_tool("change_reminder", id=item.id, when=resolved.at.strftime(MOMENT)))


def _day_code(due: datetime) -> str:
    return ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[due.weekday()]


_ARTICLE = r"(?:the |an? |la |le |les |el |los |die |der |das |den |l')?"
_NEW_NAMES = tuple(
    lazy_regex(pattern)
    for pattern in (
        r"(?:rename|reword|renomme\w*|renombra\w*|benenne?|umbenenne?n?|nenne?|cambia\w*|change)\s+(?P<old>.+?)\s+"
        r"(?:to say|to read|to|as|into|in|en|a|por|zu)\s+(?P<new>.+?)(?: um)?$",
        r"(?:replace|ersetze?|remplace[rz]?|sustituye|reemplaza)\s+(?P<old>.+?)\s+"
        r"(?:with|by|durch|mit|par|por|con)\s+(?P<new>.+)$",
        r"statt\s+(?P<old>.+?)\s+(?:soll da|soll|mach|schreib|nimm|bitte)\s+(?P<new>.+?)(?:\s+(?:stehe?n|hin|sein))*$",
        r"(?:call (?:it|that)|ponle|llamalo|nenn (?:es|sie|ihn)|appelle[- ]l[ea])\s+(?P<new>.+)$",
        r"(?P<old>.+?)\s+should (?:say|be|read)\s+(?P<new>.+)$",
    )
)
_NOT_BUT = lazy_regex(
    rf"(?:\bnot|\bpas|\bnicht|\bno es)\s+{_ARTICLE}(?P<old>[\w-]+)\b.*?"
    rf"(?:\bit'?s|\bbut|\bc'est|\bsondern|\bsino|\bes)\s+{_ARTICLE}(?P<new>[\w-]+)"
)


def rename(order: Order, context: PlanContext) -> Plan:
    items = [item for item in (yield from read_items(context)) if not item.done]
    text = " ".join(order.text.split()).strip(" .!?")
    folded = fold(text)
    swap = _NOT_BUT.search(folded)
    if swap:
        old_words, new = [swap["old"]], text[swap.start("new") : swap.end("new")]
        found = matching(old_words, items)
    else:
        match = next((m for pattern in _NEW_NAMES if (m := pattern.search(folded))), None)
        if match is None:
            raise OtherAnswer
        new = tidy_item(text[match.start("new") : match.end("new")])
        old = match.groupdict().get("old") or folded[: match.start()]
        found = find_targets(
            text[: match.start("new")] if "old" not in match.groupdict() else old, items, context, by_time=False
        )
    if not found:
        raise OtherAnswer
    if len(found) > 1:
        return ask_which(found)
    item = found[0]
    if swap:
        new = (
            re.sub(rf"(?<!\w){re.escape(swap['old'])}(?!\w)", new, fold(item.text), count=1)
            if swap["old"] in fold(item.text)
            else new
        )
    if item.kind == "todo":
        return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[item.id], items=[new])))
    return (yield from call_tool("change_reminder", id=item.id, text=new))


def undo(order: Order, context: PlanContext) -> Plan:
    """The newest change of this conversation, taken back."""
    for call in reversed(context.earlier):
        if (match := CHANGED.match(call.result)) and match[2] == "set":
            return (yield from call_tool("cancel_reminder", id=int(match[1])))
        report = parse_todos(call.result) if call.tool == "manage_todo_list" else None
        opposite = {"Added": "remove", "Completed": "reopen", "Reopened": "complete"}
        if report and report.change in opposite:
            result = yield from call_tool("manage_todo_list", action=opposite[report.change], ids=list(report.changed))
            return describe_todos(result)
        if match or (report and report.change):
            break
    return (
        "I can't take that back: I only undo what I set, added or ticked off last. Nothing is changed. "
        "`/undo` takes the last exchange out of the conversation."
    )
