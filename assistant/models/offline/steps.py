"""What the offline model does next about a message: call tools, or answer. Pure: a request in, a step out.

What always holds: it knows nothing but the request, like any model. The same request gives the same step, with the same
call ids, so that a turn taken up after a crash goes on where it stopped; and what it says was done, a result shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assistant.core.messages import Message
from assistant.core.tool_results import QuotedMessage, TodoListResult, is_failed_result, parse_quotes, parse_todos
from assistant.models.offline import replies as wording
from assistant.models.offline.intents import (
    AboutMe,
    AddTodos,
    AskHistory,
    CancelReminder,
    ChangeTodos,
    CorrectStatement,
    Intent,
    ListFiles,
    ListReminders,
    NeedsLanguageModel,
    ReadFile,
    ReadMessage,
    SetReminder,
    ShowTodos,
    SmallTalk,
    TakeNote,
    TellTime,
)
from assistant.models.offline.parse import is_statement
from assistant.models.offline.ranking import find_answer, find_replaced_statement
from assistant.models.offline.words import ATTRIBUTE_WORDS, content_words, related_words

_SEARCH_LIMIT = 20
_MOST_QUERY_WORDS = 24
_LONGEST_QUERY = 400


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A tool to run before the answer."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepContext:
    """What lies before the clerk: the message, the tools on offer, and the person's own words still in view."""

    message: Message
    tools: frozenset[str]
    own_words: tuple[QuotedMessage, ...]


def next_step(intent: Intent, results: Sequence[str], context: StepContext) -> ToolStep | str:
    """The next call for `intent`, or its answer; `results` are those of the calls it has made so far, in order."""
    match intent:
        case TakeNote():
            return wording.render_noted(context.message.id, task=intent.task, todos="manage_todo_list" in context.tools)
        case SmallTalk():
            return _SMALL_TALK[intent.mood]
        case NeedsLanguageModel():
            return wording.CANNOT_FORGET if intent.forget else wording.render_cannot(context.message.id)
        case AboutMe():
            return wording.render_about_person([quote for quote in context.own_words if is_statement(quote.text)][-5:])
        case AskHistory():
            return _ask(intent, results, context)
        case CorrectStatement():
            return _correct(intent, results, context)
        case AddTodos() | ShowTodos() | ChangeTodos():
            return _todos(intent, results, context)
        case SetReminder():
            return _reminder(intent, results, context)
        case ListReminders():
            return _show(ToolStep("list_reminders", {}), "reminders", results, context)
        case CancelReminder():
            return _show(ToolStep("cancel_reminder", {"id": intent.id}), "reminders", results, context)
        case TellTime():
            return _show(ToolStep("current_time", {}), "a clock", results, context, lead="It is ")
        case ListFiles():
            return _show(
                ToolStep("list_files", {"path": intent.path} if intent.path else {}), "files", results, context
            )
        case ReadFile():
            return _show(ToolStep("read_file", {"path": intent.path}), "files", results, context)
        case ReadMessage():
            return _show(
                ToolStep("read_history", {"message_id": intent.message_id}), "older messages", results, context
            )


_SMALL_TALK = {
    "greeting": wording.GREETING_TEXT,
    "thanks": wording.THANKS_TEXT,
    "goodbye": wording.GOODBYE_TEXT,
    "agreed": wording.AGREED_TEXT,
    "well": wording.WELL_TEXT,
    "help": wording.HELP_TEXT,
}


def _show(use: ToolStep, what: str, results: Sequence[str], desk: StepContext, *, lead: str = "") -> ToolStep | str:
    """One call, its result shown as it is."""
    if use.tool not in desk.tools:
        return wording.render_unavailable(what, desk.message.id)
    if not results:
        return use
    return wording.render_failure(results[0]) if is_failed_result(results[0]) else f"{lead}{results[0]}"


# --------------------------------------------------------------------------------------------------------------- memory


def _ask(intent: AskHistory, results: Sequence[str], desk: StepContext) -> ToolStep | str:
    words = content_words(intent.text)
    if not words:
        return wording.WHICH_WORDS
    searched = "search_history" in desk.tools
    if searched and not results:
        return _search(words, intent.role)
    quotes = _quotes(results, desk) if intent.role == "user" else parse_quotes("\n".join(results))
    found = find_answer(intent.text, quotes, topic=intent.topic)
    text = (
        wording.render_answer(found, role=intent.role)
        if found.answers
        else wording.render_not_found(found, searched=searched)
    )
    return _with_failure(text, results)


def _correct(intent: CorrectStatement, results: Sequence[str], desk: StepContext) -> ToolStep | str:
    words = content_words(intent.text)
    if words and "search_history" in desk.tools and not results:
        return _search(words, "user")
    old = find_replaced_statement(intent.text, _quotes(results, desk))
    if old is None and len(words) < 2 and desk.own_words:
        old = desk.own_words[-1]
    return _with_failure(wording.render_corrected(desk.message.id, old), results)


def _search(words: Sequence[str], role: str) -> ToolStep:
    """The words, and what else a statement may say for those that are more than attributes ("name", "date")."""
    subjects = [word for word in words if word not in ATTRIBUTE_WORDS] or words
    others = [other for word in subjects for other in sorted(related_words(word))]
    query = " ".join(list(dict.fromkeys([*words, *others]))[:_MOST_QUERY_WORDS])[:_LONGEST_QUERY]
    return ToolStep("search_history", {"query": query, "role": role, "limit": _SEARCH_LIMIT})


def _quotes(results: Sequence[str], desk: StepContext) -> list[QuotedMessage]:
    """What the search found, and what is still in view: a search that finds nothing must not hide that."""
    found = [quote for result in results for quote in parse_quotes(result)]
    known = {desk.message.id, *(quote.message_id for quote in found)}
    in_view = [quote for quote in desk.own_words if quote.message_id not in known]
    return [*in_view, *(quote for quote in found if quote.message_id != desk.message.id)]


def _with_failure(text: str, results: Sequence[str]) -> str:
    broken = [result for result in results if is_failed_result(result)]
    return f"{text}\n\n(The search failed, so I only looked at what is in view. {broken[0]})" if broken else text


# ---------------------------------------------------------------------------------------------------- reminders, to-dos


def _reminder(intent: SetReminder, results: Sequence[str], desk: StepContext) -> ToolStep | str:
    """A reminder; a to-do where none can be set."""
    if "set_reminder" not in desk.tools:
        return _todos(intent.instead, results, desk)
    if not results:
        return ToolStep("set_reminder", {"text": intent.text, "when": intent.when})
    return wording.render_failure(results[0]) if is_failed_result(results[0]) else results[0]


def _todos(intent: AddTodos | ShowTodos | ChangeTodos, results: Sequence[str], desk: StepContext) -> ToolStep | str:
    if "manage_todo_list" not in desk.tools:
        return wording.render_unavailable("a to-do list", desk.message.id)
    if not results:
        return ToolStep("manage_todo_list", _first_arguments(intent))
    if is_failed_result(results[-1]):
        return wording.render_failure(results[-1])
    report = parse_todos(results[-1])
    if report is None:
        return wording.UNKNOWN_RESULT.format(tool="the to-do list")
    if isinstance(intent, ChangeTodos) and intent.words and len(results) == 1:
        return _by_words(intent, report, desk)
    if isinstance(intent, ShowTodos):
        return _shown(intent, report)
    return _changed(intent, report)


def _first_arguments(intent: AddTodos | ShowTodos | ChangeTodos) -> dict[str, Any]:
    match intent:
        case AddTodos():
            return {"action": "add", "items": list(intent.items)}
        case ChangeTodos() if intent.ids:
            return {"action": intent.action, "ids": list(intent.ids)}
        case _:
            return {"action": "list"}


def _by_words(intent: ChangeTodos, report: TodoListResult, desk: StepContext) -> ToolStep | str:
    """The one open to-do that holds all these words; with none or several, nothing is changed."""
    wanted = set(content_words(intent.words))
    fitting = [line for line in report.lines if not line.done and wanted and wanted <= set(content_words(line.text))]
    exact = [line for line in fitting if set(content_words(line.text)) == wanted]
    chosen = exact[:1] if exact else fitting
    if len(chosen) == 1:
        return ToolStep("manage_todo_list", {"action": intent.action, "ids": [chosen[0].id]})
    if chosen:
        return f"Several on your list fit; say which number:\n\n{wording.render_todo_lines(chosen)}"
    words = wording.render_noted(desk.message.id, task=False, todos=False)
    return f"Nothing on your list fits “{intent.words}”, so it is unchanged. {words}"


def _shown(intent: ShowTodos, report: TodoListResult) -> str:
    lines = [line for line in report.lines if not intent.label or line.text.startswith(f"{intent.label}: ")]
    if not lines:
        return f"Your {intent.label} list is empty." if intent.label else "Your to-do list is empty."
    shown = wording.render_todo_lines(lines)
    if intent.clear:
        return f"I don't empty a list in one go. Say which ones to remove, as in `remove 1 and 2`:\n\n{shown}"
    return f"Your {intent.label or 'to-do'} list:\n\n{shown}"


def _changed(intent: AddTodos | ChangeTodos | ShowTodos, report: TodoListResult) -> str:
    if not report.change:
        return wording.UNKNOWN_RESULT.format(tool="the to-do list")
    numbers = ", ".join(str(number) for number in report.changed)
    rest = f"On your list:\n\n{wording.render_todo_lines(report.lines)}" if report.lines else "Your list is empty."
    late = isinstance(intent, AddTodos) and intent.reminder
    warning = f"\n\n{wording.NO_ALARM}" if late else ""
    return f"{report.change}: {numbers}. {rest}{warning}"
