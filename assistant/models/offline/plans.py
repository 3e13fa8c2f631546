"""How offline mode carries orders out: which tools are called, one after the other, and what is said at the end. Pure.

Each kind of order is a generator: it yields calls, is sent their results, and returns the words of the answer, or the
request to answer instead where the order turns out to be none. The same results give the same calls, so a turn that is
resumed after a crash goes on where it stopped. What always holds: nothing is changed that the order does not name
alone, what is claimed is what a tool answered, and an order that does not work is answered with why.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assistant.core.quoting import FAILURE_PREFIX, is_failed_result, parse_todos, quote_block
from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_resolve import day_range
from assistant.models.offline.matching import (
    ListedItem,
    each_named,
    kinds_named,
    matching,
    read_reminders,
    read_todos,
    subject_words,
)
from assistant.models.offline.orders import (
    Order,
    fold,
    list_names,
    read_orders,
    says,
    without_lists,
)

CANNOT = (
    "I can't do that in offline mode: it needs a language model or something else that I can't reach. Your message is "
    "kept. Connect a model with `assistant setup model`, then ask again."
)
NOTHING_FITS = "I can't do that: no reminder and no to-do that you have fits these words"
# It means what was just spoken of.
_POINTS_BACK = lazy_regex(r"\b(?:that|this|it|ihn|ca|eso|esto)\b|-l[ea]\b|\wl[oa]$")
_NUMBER = lazy_regex(
    r"(?:#|\b(?:number|no\.?|nummer|nr\.?|numero|item|task|todo|reminder|erinnerung|rappel|recordatorio) )(\d{1,9})\b"
)
MOMENT = "%Y-%m-%d %H:%M"
CHANGED = lazy_regex(r"Reminder (\d+) is (set|changed|cancelled)")


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A tool to run before the answer."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """What a tool did in an earlier turn of the conversation."""

    tool: str
    arguments: Mapping[str, Any]
    result: str


@dataclass(frozen=True, slots=True)
class PlanContext:
    tools: frozenset[str]
    now: datetime | None  # local, as the request says it
    earlier: Sequence[EarlierCall] = ()  # newest last


class OtherAnswer(Exception):
    """The order is none: what else the sentence asks for is to be answered."""


class ToolFailedError(Exception):
    """What a tool answered that did not do it."""


Plan = Generator[ToolStep, str, str]


def call_tool(tool: str, **arguments: object) -> Plan:
    result = yield ToolStep(tool, arguments)
    if is_failed_result(result):
        raise ToolFailedError(result.removeprefix(FAILURE_PREFIX).strip())
    return result


def needs_tools(context: PlanContext, *tools: str) -> bool:
    return all(tool in context.tools for tool in tools)


def read_items(
    context: PlanContext, *, reminders: bool = True, todos: bool = True
) -> Generator[ToolStep, str, list[ListedItem]]:
    """What the person has, of both kinds or one."""
    items: list[ListedItem] = []
    if reminders and "list_reminders" in context.tools:
        items += read_reminders((yield from call_tool("list_reminders")))
    if todos and "manage_todo_list" in context.tools:
        items += read_todos((yield from call_tool("manage_todo_list", action="list")))
    return items


# ---------------------------------------------------------------------------------------------------------- which one


def find_last_changed(context: PlanContext) -> tuple[str, list[int]]:
    """What the newest change of the conversation was about."""
    for call in reversed(context.earlier):
        if match := CHANGED.match(call.result):
            return "reminder", [int(match[1])]
        report = parse_todos(call.result) if call.tool == "manage_todo_list" else None
        if report and report.changed:
            return "todo", list(report.changed)
    return "", []


def find_targets(text: str, items: Sequence[ListedItem], context: PlanContext, *, by_time: bool) -> list[ListedItem]:
    """What an order names: one, or several where it says so; several that it does not tell apart are all returned."""
    about_reminders, about_todos = kinds_named(text)
    pool = [i for i in items if not ((about_reminders and i.kind == "todo") or (about_todos and i.kind == "reminder"))]
    lists = [name for name in list_names(text) if name]
    if lists and (on_list := [item for item in pool if item.kind == "todo" and is_list(item.list, lists[0])]):
        pool = on_list
    words = subject_words(without_lists(text))
    excepted = says("except", fold(text))
    everything = says("all", fold(text)) or excepted
    times = find_times(text)
    if excepted:
        rest = re.split(read_orders().patterns["except"].pattern, fold(text))[-1]
        spared = each_named(rest, pool) or matching(subject_words(rest), pool)
        return [item for item in pool if item not in spared and not item.done]
    number = _NUMBER.search(fold(text))
    if number and (by_number := [item for item in pool if item.id == int(number[1])]):
        return by_number
    found = matching(words, pool)
    several = each_named(without_lists(times.words), pool) if words and len(found) != 1 else []
    if len(several) > 1:
        return several
    if words and not found:
        return []
    if not words:
        found = [item for item in pool if not item.done]
        points_back = _POINTS_BACK.search(fold(text)) or not (about_reminders or about_todos or lists)
        if points_back and not everything and not (by_time and times.pieces):
            kind, ids = find_last_changed(context)
            found = [item for item in pool if item.kind == kind and item.id in ids] or found
    if by_time and context.now and (len(found) > 1 or everything):
        found = items_at_times(found, times, context.now) if times.pieces else found
    return found


def is_list(name: str, wanted: str) -> bool:
    one, other = fold(name), fold(wanted)
    return one == other or (len(other) > 3 and (one.startswith(other) or (other.startswith(one) and bool(one))))


def items_at_times(items: Sequence[ListedItem], times: FoundTimes, now: datetime) -> list[ListedItem]:
    span = day_range(times, now)
    clocks = times.of_kind("clock")
    kept = [item for item in items if item.due is not None]
    if span is not None:
        kept = [item for item in kept if item.due and span[0] <= item.due < span[1]]
    if clocks:
        minutes = {piece.minutes % 720 for piece in clocks}
        kept = [item for item in kept if item.due and (item.due.hour * 60 + item.due.minute) % 720 in minutes]
    return kept


def ask_which(items: Sequence[ListedItem]) -> str:
    lines = "\n".join(f"- {item.id}: {describe_item(item)}" for item in items[:20])
    kinds = {item.kind for item in items}
    name = {"reminder": "reminders", "todo": "to-dos"}[kinds.pop()] if len(kinds) == 1 else "reminders and to-dos"
    return f"Several {name} match, so nothing is changed; say which number, or more words of it:\n\n{lines}"


def describe_item(item: ListedItem) -> str:
    text = quote_block(" ".join(item.text.split())).removeprefix("> ")
    if item.kind == "todo":
        due = f", due {item.due:%a %Y-%m-%d}" if item.due else ""
        return f"{text}{f' ({item.list})' if item.list else ''}{due}{' (done)' if item.done else ''}"
    often = f"{item.often}: " if item.often else ""
    return f"{text}, {often}{item.due:%A %Y-%m-%d %H:%M}"


def refuse(order: Order) -> str:
    if says("cannot", fold(order.text)):
        return CANNOT
    return f"{NOTHING_FITS}, so nothing is changed. Your message is kept."


def describe_todos(result: str) -> str:
    report = parse_todos(result)
    if report is None or not report.change:
        return "The to-do list did not answer, so I can't say what happened. Nothing more was tried."
    numbers = ", ".join(map(str, report.changed))
    lines = "\n".join(f"- {item.id}: {describe_item(item)}" for item in read_todos(result))
    return f"{report.change}: {numbers}. " + (f"On your list:\n\n{lines}" if lines else "Your list is empty.")


def numbers_named(text: str) -> list[int]:
    """The numbers of an order that names what it means by nothing else."""
    numbers = list(dict.fromkeys(map(int, re.findall(r"\d{1,18}", text))))
    return numbers if not subject_words(without_lists(text)) and not find_times(text).pieces else []
