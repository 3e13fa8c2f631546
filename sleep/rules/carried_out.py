"""Tells orders that became a reminder or a to-do from statements: "every Sunday at 18:00 call mum" is on the agenda and
no memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Set
from itertools import takewhile

from assistant.core.records import LogRecord
from assistant.core.text import fold_text, lazy_regex

_TOOLS = frozenset({"set_reminder", "change_reminder", "manage_todo_list"})
_WORD = lazy_regex(r"\w+")
# What is left of an order without its text and its time: "at", "to".
_SHORT = 2


def ordered_words(following: Iterable[LogRecord]) -> Set[str]:
    """Return the words of the reminders and to-dos that were set in answer to a message; `following` are the records
    after it."""
    answers = takewhile(lambda record: record.role != "user", following)
    calls = (call for record in answers for call in record.tool_calls if call.name in _TOOLS)
    return {word for call in calls for word in _words(json.dumps(dict(call.arguments), ensure_ascii=False))}


def is_carried_out(statement: str, ordered: Set[str]) -> bool:
    """Return whether a statement says nothing but what was ordered."""
    return bool(ordered) and all(len(word) <= _SHORT for word in _words(statement) - ordered)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(fold_text(text)))
