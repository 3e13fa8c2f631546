"""How offline mode carries orders out: which tools are called, one after the other, and what is said at the end. Pure.

Each kind of order is a generator: it yields calls, is sent their results, and returns the words of the answer, or the
request to answer instead where the order turns out to be none. The same results give the same calls, so a turn that is
resumed after a crash continues where it stopped. What always holds: nothing is changed that the order does not name
alone, what is claimed is what a tool answered, and an order that does not work is answered with why.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.quoting import FAILURE_PREFIX, is_failed_result, parse_todos, quote_block
from assistant.core.text import lazy_regex, pluralize
from assistant.core.time_pieces import find_times
from assistant.models.offline.cues import fold, says_any
from assistant.models.offline.lists import without_lists
from assistant.models.offline.matching import (
    ListedItem,
    is_same,
    matching,
    read_reminders,
    read_todos,
    subject_words,
    words_of,
)

CANNOT = (
    "I can't do that in offline mode: it needs a language model or something else that I can't reach. Your message is "
    "kept; ask again when a language model answers (`assistant setup model` connects one)."
)
NOTHING_FITS = "I can't do that: no reminder and no to-do that you have fits these words"
MOMENT = "%Y-%m-%d %H:%M"
_TOOL_NAME = lazy_regex(r"^(?:\[interrupted\] )?[a-z]+(?:_[a-z]+)+ (?=was|may|took|failed)")
_OTHER_TOOL = lazy_regex(r"(?<=[.!?]) [a-z]+(?:_[a-z]+)+ (?:shows|lists|finds|keeps|looks|has)\b[^.!?]*[.!?]")
_NOT_UNDERSTOOD = "I did not understand what it is about. Nothing was changed; say it in other words."
# What relates a number to something else, so that it is no number of an item.
_RELATES = lazy_regex(
    r"\b(?:after|before|since|until|till|nach|vor|seit|bis|apres|avant|depuis|jusqu\w*|despues|antes|desde|hasta)\b"
)
_NUMBERED = lazy_regex(
    r"(?:#|\b(?:number|nos?\.?|nummer|nr\.?|num[eé]ros?|n[uú]meros?) )\d{1,9}(?: (?:and|und|et|y) \d{1,9})?\b",
    re.IGNORECASE,
)
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
    is_latest: bool = True  # of the turn right before


@dataclass(frozen=True, slots=True)
class PlanContext:
    tools: frozenset[str]
    now: datetime | None  # local, as the request says it
    earlier: Sequence[EarlierCall] = ()  # newest last


class OtherAnswer(Exception):
    """No order: what else the sentence tells or asks is to be answered. `sure`: surely it was not meant as one.
    `names_item`: it names, or may name, a reminder or to-do that is there."""

    def __init__(self, *, asks: bool = False, sure: bool = True) -> None:
        super().__init__()
        self.asks = asks
        self.sure = sure
        self.names_item = True


class ToolFailedError(Exception):
    """What a tool answered that did not do it."""


Plan = Generator[ToolStep, str, str]

_READING = frozenset(
    {"current_time", "list_reminders", "show_agenda", "search_history", "search_memory", "read_history"}
)


def only_reads(call: ToolStep | EarlierCall) -> bool:
    """Whether a call changes nothing."""
    return call.tool in _READING or (call.tool == "manage_todo_list" and call.arguments.get("action") == "list")


def describe_failure(result: str) -> str:
    """What a tool answered that did not do it, for people, who know no names of tools and arguments."""
    text = _TOOL_NAME.sub("it ", _OTHER_TOOL.sub("", result.removeprefix(FAILURE_PREFIX).strip()))
    return _NOT_UNDERSTOOD if text.startswith("it was not run") else text


def call_tool(tool: str, **arguments: object) -> Plan:
    """Ask for a tool, and return its result. Raises `ToolFailedError`, with words for the person, if it failed."""
    result = yield ToolStep(tool, arguments)
    if is_failed_result(result):
        raise ToolFailedError(describe_failure(result))
    return result


def read_items(context: PlanContext, *, reminders: bool = True) -> Generator[ToolStep, str, list[ListedItem]]:
    """The to-dos that the person has, and the reminders."""
    items: list[ListedItem] = []
    if reminders and "list_reminders" in context.tools:
        items += read_reminders((yield from call_tool("list_reminders")))
    if "manage_todo_list" in context.tools:
        items += read_todos((yield from call_tool("manage_todo_list", action="list")))
    return items


def names_item(text: str, items: Sequence[ListedItem]) -> bool:
    """Whether a sentence has a word of a reminder or to-do that the person has."""
    return bool(matching(subject_words(text), items))


def names_earlier(text: str, earlier: Sequence[EarlierCall], *, least: int = 1) -> bool:
    """Whether a sentence has a word, or so many, of what tools changed or showed earlier in the conversation."""
    known = {word for call in earlier for word in words_of(call.result)}
    return sum(any(is_same(word, other) for other in known) for word in set(subject_words(text))) >= least


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


def changed_right_before(context: PlanContext) -> bool:
    """Whether the turn right before changed a reminder or a to-do."""
    return bool(find_last_changed(replace(context, earlier=[call for call in context.earlier if call.is_latest]))[1])


def ask_which(items: Sequence[ListedItem]) -> str:
    """Return a question, in Markdown, which of several items is meant; the first 20 are named with their numbers."""
    lines = "\n".join(f"- {item.id}: {describe_item(item)}" for item in items[:20])
    kinds = {item.kind for item in items}
    name = {"reminder": "reminders", "todo": "to-dos"}[kinds.pop()] if len(kinds) == 1 else "reminders and to-dos"
    return f"Several {name} match, so nothing is changed; say which number, or more words of it:\n\n{lines}"


def ask_for_kind(items: Sequence[ListedItem]) -> str:
    """Before all of what is there goes: what that is, and how to say that it may."""
    reminders = sum(item.kind == "reminder" for item in items)
    counts = {"reminder": reminders, "to-do": len(items) - reminders}
    there = {kind: pluralize(count, kind) for kind, count in counts.items() if count}
    ways = " or ".join(f'"delete all {kind}s"' for kind in there)
    return f"That would take away {' and '.join(there.values())}, so nothing is changed. If you want that, say {ways}."


def describe_item(item: ListedItem) -> str:
    """Return one line about an item, its text quoted for Markdown, its time local."""
    text = quote_block(" ".join(item.text.split())).removeprefix("> ")
    if item.kind == "todo":
        due = f", due {item.due:%a %Y-%m-%d}" if item.due else ""
        return f"{text}{f' ({item.list})' if item.list else ''}{due}{' (done)' if item.done else ''}"
    often = f"{item.often}: " if item.often else ""
    return f"{text}, {often}{item.due:%A %Y-%m-%d %H:%M}"


def refuse(text: str) -> str:
    """Return that nothing fits; to a text about erasing words also which command does that."""
    nothing = f"{NOTHING_FITS}, so nothing is changed. Your message is kept."
    if says_any(("erase_words", "words_said"), fold(text)):
        return f"{nothing} If you mean what you told me: `/forget` erases words from everything that is stored."
    return nothing


def describe_todos(result: str) -> str:
    """Return what a call changed and what is on the lists now, from the tool's result; without a change, that it is not
    known."""
    report = parse_todos(result)
    if report is None or not report.change:
        return "The to-do list did not answer, so I can't say what happened. Nothing more was tried."
    numbers = ", ".join(map(str, report.changed))
    lines = "\n".join(f"- {item.id}: {describe_item(item)}" for item in read_todos(result))
    return f"{report.change}: {numbers}. " + (f"On your list:\n\n{lines}" if lines else "Your list is empty.")


def numbers_named(text: str) -> list[int]:
    """The numbers of an order that names what it means by nothing else. "2 after stop" relates a number to something,
    and names none."""
    if _RELATES.search(fold(text)):
        return []
    numbers = list(dict.fromkeys(map(int, re.findall(r"\d{1,18}", text))))
    plain = _NUMBERED.sub(" ", text)  # "number 2" is no hour
    return numbers if not subject_words(without_lists(plain)) and not find_times(plain).pieces else []
