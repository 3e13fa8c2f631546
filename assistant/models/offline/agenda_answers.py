"""How offline mode answers what is planned: reminders, to-dos and the agenda of days. Pure.

A plan as those of `plans`. What always holds: what is shown is what a tool listed, those that a question names and no
others; a question that nothing planned answers is left to what was told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Literal

from assistant.core.text import lazy_regex, pluralize
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_resolve import day_range
from assistant.models.offline.cues import fold, read_cues, says, says_any
from assistant.models.offline.intents import rank_intents, rank_without_items
from assistant.models.offline.lists import is_same_list, list_names, names_list, without_lists
from assistant.models.offline.matching import ListedItem, matching, subject_words
from assistant.models.offline.order_spelling import spell_order
from assistant.models.offline.plain_forms import asks_what_is_left, month_asked_for
from assistant.models.offline.plans import (
    CANNOT,
    OtherAnswer,
    Plan,
    PlanContext,
    call_tool,
    describe_item,
    read_items,
)
from assistant.models.offline.targets import items_at_times

_SPANS = {"weekend": "weekend", "nextweek": "next week", "thisweek": "week", "thismonth": "month"}
# What asks for all that is planned, whatever other words it has.
_OF_PLANS = (
    "agenda_noun",
    "reminder_noun",
    "todo_noun",
    "goes_through",
    "all",
    "both_kinds",
    "repeating",
)
# "After 5", "ab 17 Uhr", "avant midi"
_SIDE = lazy_regex(
    r"\b(?P<after>after|past|from|nach|ab|apres|a partir d[e']|a partir de|despues de|desde|as of)"
    r" (?:(?:las?|les|the) )?(?P<first>\d{1,2})(?::(?P<minute>\d\d))?(?! ?(?:days?|tage?n?|jours?|dias?))"
    r"|\b(?:before|vor|avant|antes de)(?: (?:las?|les|the))? (?P<last>\d{1,2})(?::(?P<minute2>\d\d))?"
    r"(?! ?(?:days?|tage?n?|jours?|dias?))"
)
_EVENING_HOUR = lazy_regex(
    r"\d ?p\.?m\b|(?:de|por) la tarde|de la noche|abends|nachmittags|du soir|in the (?:afternoon|evening)"
)
_DAY_HOUR = lazy_regex(r"\d ?a\.?m\b|uhr\b|\d ?h\b|heures|de la manana|morgens|du matin|in the morning|\d:\d\d")
_LINE_TIME = re.compile(r"- (\d\d):(\d\d) ")
_TOLD_LINE = re.compile(r'- (?:\d\d:\d\d )?(?P<text>"(?:[^"\\]|\\.)*") \(told on ')
_DAY_LINE = re.compile(r"\w+ \d{4}-\d\d-\d\d:")


def ask(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """What of it is asked for, from the narrowest question to the widest."""
    if not {"list_reminders", "manage_todo_list"} & context.tools:
        raise OtherAnswer
    folded, times, has_agenda = fold(text), find_times(text), "show_agenda" in context.tools
    if (month := month_asked_for(text)) and has_agenda:
        return _without_questions((yield from call_tool("show_agenda", when=month)), text, month)
    if says("lists_all", folded.strip(" .!?")) and not times.pieces:
        return _all_there([item for item in items if not item.done])
    if says("days_until", folded):
        return _days_until(times, items, context.now)
    if left := asks_what_is_left(text):
        return _what_is_left([item for item in items if item.kind == "todo" and not item.done], left)
    words = subject_words(without_lists(text))
    topics = {
        name for name in ("reminder_noun", "todo_only", "open_todos", "already_done", "next_one") if says(name, folded)
    }
    is_whole = says("both_kinds", folded) or says("agenda_noun", folded)
    narrow = set() if is_whole else topics & {"reminder_noun", "todo_only", "already_done", "next_one"}
    plain_day = times.pieces and not words and not narrow
    if has_agenda and plain_day and (is_whole or not names_list(text)) and not says("due_by", folded):
        return (yield from _agenda(times, context, text))
    reminders = [item for item in items if item.kind == "reminder" and not item.done]
    todos = [item for item in items if item.kind == "todo"]
    by_words = matching(words, [item for item in items if not item.done])
    if "next_one" in topics and not by_words and not times.pieces:
        return _next(items)
    asks_done = "already_done" in topics and not matching(words, todos) and "when" not in folded
    name = None if asks_done and not any(list_names(text)) else _list_asked_for(text, todos)
    if name is not None:
        if not any(is_same_list(item.list, name) for item in todos) and not _asks(folded, text):
            raise OtherAnswer(sure=False)  # "Marc est sur liste d'attente"
        return _of_list(name, [word for word in words if word not in fold(name)], todos, folded)
    if says("overdue", folded) and not times.pieces:
        return _overdue(todos, context.now)
    is_due = says("due_by", folded) and bool(times.pieces) and any(item.due for item in todos)
    if is_due and not by_words:
        return _of_todos([item for item in todos if not item.done], times, folded, context.now)
    if asks_done:
        return _shown("Done lately", [item for item in todos if item.done], "Nothing was ticked off in the last day.")
    if "reminder_noun" in topics:
        return _of_reminders(text, words, reminders, times, context)
    if by_words:
        then = items_at_times(by_words, times, context.now) if context.now and not says("asks_when", folded) else []
        return _about(words, then or items)
    if says("world", folded):
        raise OtherAnswer(asks=True)  # the weather on Sunday is not what is planned then
    if times.pieces and has_agenda:
        return (yield from _agenda(times, context, text))
    if words and not topics and not names_list(text):
        raise OtherAnswer
    if "open_todos" not in topics and not names_list(text):
        return _everything(reminders, todos)
    if words and name is None and not says("todo_only", folded):
        raise OtherAnswer
    return _of_todos([item for item in todos if not item.done], times, folded, context.now)


def _what_is_left(todos: Sequence[ListedItem], of: Literal["buy", "do"]) -> str:
    """All that is to be done; of what is to be bought the shopping list and what begins with that verb, where there is
    any of it."""
    if of == "do":
        return _shown(f"You have {pluralize(len(todos), 'open to-do')}", todos, "Your to-do list is empty.")
    things = [item for item in todos if is_same_list(item.list, "shopping") or says("buys", fold(item.text))]
    if not things and any(item.list for item in todos):
        return _shown("On your lists", [item for item in todos if item.list], "")
    return _shown("Left to buy", things, "Nothing is left to buy: your shopping list is empty.")


def _days_until(times: FoundTimes, items: Sequence[ListedItem], now: datetime | None) -> str:
    """Return the number of days until a day that is named, else until what is planned under these words; `CANNOT` if
    there is neither."""
    asked = read_cues().patterns["days_until"].sub("", fold(times.text)).strip(" ?")
    planned = [item.due for item in matching(subject_words(asked), items) if item.due and not item.done]
    if not times.of_kind("day"):  # "until Christmas" alone may be a list's name
        times = find_times(f"on {asked}")
    span = day_range(times, now) if now and times.of_kind("day") else None
    if now is None or (span is None and not planned):
        return CANNOT
    day = (span[0] if span else min(planned)).date()
    return f"{pluralize((day - now.date()).days, 'day')} until {day:%A %Y-%m-%d}."


def _asks(folded: str, text: str) -> bool:
    return "?" in text or any(says(name, folded) for name in ("asks", "question", "show", "list_only", "show_only"))


def _about(words: Sequence[str], items: Sequence[ListedItem]) -> str:
    found = matching(words, [item for item in items if not item.done])
    if not found:
        raise OtherAnswer
    return _shown("This is what you have", found, "")


def look_up(text: str, context: PlanContext) -> Plan:
    """What is planned about the words of a question that nothing told answers."""
    if not {"list_reminders", "manage_todo_list"} <= context.tools:
        raise OtherAnswer
    items, times = (yield from read_items(context)), find_times(text)
    if says("due_by", fold(text)) and times.pieces and rank_intents(text, items)[0][0] == "ask":
        return (yield from ask(text, items, context))
    try:
        return _about(subject_words(text), items)
    except OtherAnswer:
        # "When do the doors open" is of nothing that is open.
        is_left = read_cues().patterns["open_todos"].search(fold(text))
        rest = subject_words(spell_order(text))
        of_plans = not rest or says_any(_OF_PLANS, fold(text)) or (is_left and is_left[0] not in ("open", "offen"))
        if of_plans and rank_intents(text, items)[0][0] == "ask" and not times.names_moment:
            again = says("repeating", fold(text))
            return _everything(
                [item for item in items if item.kind == "reminder" and not item.done and (item.often or not again)],
                [] if again else [item for item in items if item.kind == "todo"],
            )
        if not times.names_moment or says("world", fold(text)) or "show_agenda" not in context.tools:
            raise
        return (yield from _agenda(times, context, text))


def _agenda(times: FoundTimes, context: PlanContext, asked: str) -> Plan:
    span = day_range(times, context.now) if context.now else None
    named = next((piece for piece in times.of_kind("span") if not times.of_kind("day")), None)
    if span and not named and span[1] - span[0] > timedelta(days=1):
        when = f"{span[0]:%A} to {span[1] - timedelta(days=1):%A}"
    else:
        when = _SPANS[named.part] if named else f"{span[0]:%Y-%m-%d}" if span else times.phrase
    result = _without_questions((yield from call_tool("show_agenda", when=when)), asked, when)
    if span and not named and (hours := _hours_asked_for(fold(asked))):
        return _lines_between(result, *hours)
    if span and not named and (span[1] - span[0]) < timedelta(days=1):
        return _lines_between(result, span[0].hour, span[1].hour or 24)
    return result


def _hours_asked_for(folded: str) -> tuple[int, int] | None:
    """From which hour to which a question asks, where it names one side: "after 5" is from 17 to 24."""
    match = _SIDE.search(folded)
    if match is None:
        return None
    hour = int(match["first"] or match["last"])
    near = folded[match.start() : match.end() + 20]
    if hour < 12 and (_EVENING_HOUR.search(near) or (hour < 7 and not _DAY_HOUR.search(near))):
        hour += 12
    return (hour, 24) if match["first"] else (0, hour)


def _without_questions(agenda: str, asked: str, when: str) -> str:
    """An agenda without what was told there and only asked for it: "Friday, anything planned"."""
    kept: list[str] = []
    for line in agenda.split("\n"):
        told = _TOLD_LINE.match(line)
        if told and _is_question(json.loads(told["text"]), asked):
            continue
        if _DAY_LINE.fullmatch(line):
            kept = _without_empty_day(kept)
        kept.append(line)
    kept = _without_empty_day(kept)
    return "\n".join(kept).strip() or f"Nothing is planned for {when}."


def _without_empty_day(lines: list[str]) -> list[str]:
    return lines[:-1] if lines and _DAY_LINE.fullmatch(lines[-1]) else lines


def _is_question(told: str, asked: str) -> bool:
    if fold(told) == fold(asked) or says("asks", fold(told)):
        return True
    return rank_without_items(spell_order(told))[0][0] in ("ask", "question")


def _overdue(todos: Sequence[ListedItem], now: datetime | None) -> str:
    late = [item for item in todos if not item.done and item.due and now and item.due.date() < now.date()]
    return _shown("Overdue", late, "Nothing on your lists is overdue.")


def _lines_between(result: str, first: int, last: int) -> str:
    """What of a day's agenda is in these hours; what has no hour stays."""
    kept = [line for line in result.split("\n") if not (at := _LINE_TIME.match(line)) or first <= int(at[1]) < last]
    if any(line.startswith("- ") for line in kept) or not any(line.startswith("- ") for line in result.split("\n")):
        return "\n".join(kept)
    return f"Nothing is on then. The whole day:\n\n{result}"


def _next(items: Sequence[ListedItem]) -> str:
    coming = sorted(
        (item for item in items if item.due and not item.done), key=lambda item: (item.due is None, item.due)
    )
    return _shown("Next", coming[:1], "Nothing is planned.")


def _list_asked_for(text: str, todos: Sequence[ListedItem]) -> str | None:
    """The list that a question names, also by its name alone; None for none."""
    names = [name for name in list_names(text) if name]
    known = {fold(item.list): item.list for item in todos if item.list}
    by_word = [known[word] for word in re.findall(r"\w+", fold(text)) if word in known]
    return next(iter([*names, *by_word]), None)


def _of_list(name: str, words: Sequence[str], todos: Sequence[ListedItem], folded: str) -> str:
    entries = [item for item in todos if is_same_list(item.list, name) and not item.done]
    found = matching(words, entries)
    lead = f"Your {name} list"
    if words and not found and entries and says("asks_whether", folded):
        lead = f"No: that is not on your {name} list. On it are"
    if says("count", folded):
        lead = f"{pluralize(len(entries), 'entry', 'entries')} on your {name} list"
    return _shown(f"Yes, on your {name} list" if found else lead, found or entries, f"Your {name} list is empty.")


def _of_reminders(
    text: str, words: Sequence[str], reminders: list[ListedItem], times: FoundTimes, context: PlanContext
) -> str:
    if says("repeating", fold(text)):
        reminders = [item for item in reminders if item.often]
    if times.pieces and context.now:
        reminders = items_at_times(reminders, times, context.now)
    found = matching(words, reminders)
    if words and not found and not says("reminder_word", fold(text)):
        raise OtherAnswer
    shown = found or reminders
    lead = pluralize(len(shown), "reminder")
    return _shown(lead, shown, "No reminder is set." if not times.pieces else "No reminder is set then.")


def _everything(reminders: Sequence[ListedItem], todos: Sequence[ListedItem]) -> str:
    waiting = [*sorted(reminders, key=lambda item: str(item.due)), *(item for item in todos if not item.done)]
    return _shown("This is what you have", waiting, "You have no reminders and nothing on your lists.")


def _all_there(waiting: Sequence[ListedItem]) -> str:
    return _everything(
        [item for item in waiting if item.kind == "reminder"], [item for item in waiting if item.kind == "todo"]
    )


def _of_todos(todos: list[ListedItem], times: FoundTimes, folded: str, now: datetime | None) -> str:
    span = day_range(times, now) if now and times.pieces else None
    if span:
        first = span[0].date() if times.of_kind("span") and not says("due_by", folded) else date.min
        todos = [
            item for item in todos if item.due and first <= item.due.date() <= (span[1] - timedelta(seconds=1)).date()
        ]
    lead = f"You have {pluralize(len(todos), 'open to-do')}"
    return _shown(lead, todos, "Nothing on your to-do list is due then." if span else "Your to-do list is empty.")


def _shown(lead: str, items: Sequence[ListedItem], otherwise: str) -> str:
    lines = "\n".join(f"- {item.id}: {describe_item(item)}" for item in items)
    return f"{lead}:\n\n{lines}" if items else otherwise
