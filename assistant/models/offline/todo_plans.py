"""Plans about to-do lists: add, tick off, open again, take away, date. Pure; as `plans` tells."""

from __future__ import annotations

import re

from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_resolve import resolve_times
from assistant.models.offline.matching import each_named, kinds_named, subject_words
from assistant.models.offline.orders import (
    Order,
    fold,
    list_names,
    names_list,
    says,
    split_items,
    todo_items,
    without_lists,
)
from assistant.models.offline.plans import (
    MOMENT,
    OtherAnswer,
    Plan,
    PlanContext,
    ask_which,
    call_tool,
    describe_todos,
    find_targets,
    is_list,
    numbers_named,
    read_items,
    refuse,
)
from assistant.models.offline.reminder_plans import cancel


def add(order: Order, context: PlanContext) -> Plan:
    times = find_times(order.text)
    names = list_names(order.text)
    name = next((name for name in names if name), "")
    heading = says("add_heading", fold(order.text)) or says("list_heading", fold(order.text))
    due = times.phrase if times.has_day and not name else ""
    if due and context.now and (at := resolve_times(times, context.now)):
        due = at.at.strftime(MOMENT if times.has_clock else "%Y-%m-%d")
    text = todo_items(_without_when(order.text, times) if due else order.text)
    freely = bool(name) or (bool(heading) and "," in text) or says("several", fold(order.text))
    items = split_items(text, freely=freely)
    arguments: dict[str, object] = {"action": "add", "items": items}
    if name:
        arguments["list"] = name
    if due:
        arguments["due"] = due
    return describe_todos((yield from call_tool("manage_todo_list", **arguments)))


def _without_when(text: str, times: FoundTimes) -> str:
    return times.words


def more(order: Order, context: PlanContext) -> Plan:
    """Something else for the list that was added to just now."""
    last = context.earlier[-1] if context.earlier else None
    if last is None or last.arguments.get("action") != "add":
        raise OtherAnswer
    text = re.sub(r"^(?:and|und|et|y|also|auch|oh|ach|ah|plus|tambien|aussi)\s+", "", order.text, flags=re.IGNORECASE)
    items = split_items(todo_items(text), freely=True)
    arguments = {key: value for key, value in last.arguments.items() if key == "list"}
    return describe_todos((yield from call_tool("manage_todo_list", action="add", items=items, **arguments)))


def complete(order: Order, context: PlanContext) -> Plan:
    return (yield from _mark(order, context, "complete"))


def reopen(order: Order, context: PlanContext) -> Plan:
    items = [item for item in (yield from read_items(context, reminders=False)) if item.done]
    found = find_targets(order.text, items, context, by_time=False) if subject_words(order.text) else items[:1]
    if not found:
        if names_list(order.text) and says("add", fold(order.text)):
            return (yield from add(order, context))
        raise OtherAnswer
    if len(found) > 1:
        return ask_which(found)
    return describe_todos((yield from call_tool("manage_todo_list", action="reopen", ids=[found[0].id])))


def remove(order: Order, context: PlanContext) -> Plan:
    folded = fold(order.text)
    names = list_names(order.text)
    everything = not re.search(r"\d", folded)
    if (
        names
        and everything
        and not subject_words(without_lists(order.text))
        and not kinds_named(order.text)[0]
        and not says("except", folded)
    ):
        result = yield from call_tool("manage_todo_list", action="clear", list=next(filter(None, names), "to-do"))
        return describe_todos(result)
    return (yield from cancel(order, context))


def _mark(order: Order, context: PlanContext, action: str) -> Plan:
    if numbers := numbers_named(order.text):
        return describe_todos((yield from call_tool("manage_todo_list", action=action, ids=numbers)))
    items = yield from read_items(context, reminders=False)
    waiting = [item for item in items if not item.done]
    first = re.split(r"\b(?:but|aber|mais|pero)\b", order.text, maxsplit=1, flags=re.IGNORECASE)[0]
    text = order.text if says("except", fold(order.text)) else first
    found = find_targets(text, waiting, context, by_time=False)
    all_meant = says("all", fold(text)) or says("except", fold(text))
    if not subject_words(without_lists(text)) and not all_meant and not re.search(r"\d", text) and len(found) != 1:
        found = []
    if not found:
        if order.soft:
            raise OtherAnswer
        return refuse(order)
    if len(found) > 1 and not all_meant and each_named(without_lists(text), waiting) != found:
        if order.soft and not subject_words(without_lists(text)):
            raise OtherAnswer
        return ask_which(found)
    return describe_todos((yield from call_tool("manage_todo_list", action=action, ids=[item.id for item in found])))


def undated(order: Order, context: PlanContext) -> Plan:
    items = [item for item in (yield from read_items(context, reminders=False)) if not item.done]
    found = find_targets(order.text, items, context, by_time=False)
    if not found:
        raise OtherAnswer
    if len(found) > 1:
        return ask_which(found)
    return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[found[0].id], due="none")))


def relist(order: Order, context: PlanContext) -> Plan:
    items = [item for item in (yield from read_items(context, reminders=False)) if not item.done]
    names = list_names(order.text)
    found = find_targets(without_lists(order.text), items, context, by_time=False)
    if not found or not names:
        return (yield from add(order, context))
    if len(found) > 1 and len(names) > 1 and names[0]:
        found = [item for item in found if is_list(item.list, names[0])] or found
    if len(found) > 1:
        return ask_which(found)
    result = yield from call_tool("manage_todo_list", action="edit", ids=[found[0].id], list=names[-1] or "to-do")
    return describe_todos(result)
