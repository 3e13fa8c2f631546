"""What offline mode does next about a request: call a tool, or answer. Pure.

What always holds: it knows nothing but the model request, like any model. The same request gives the same step with
the same call ids, so a turn that is resumed after a crash continues where it stopped. It claims nothing that a result
or the message log does not show, and quotes instead of retelling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assistant.core.messages import Message
from assistant.core.quoting import (
    FAILURE_PREFIX,
    QuotedMessage,
    TodoLine,
    TodoListResult,
    is_failed_result,
    parse_quotes,
    parse_todos,
    quote_block,
)
from assistant.core.text import pluralize, shorten
from assistant.models.offline.parse import (
    AboutMe,
    AddTodos,
    ChangeTodos,
    Correction,
    Note,
    Question,
    Request,
    Say,
    SetReminder,
    ShowTodos,
    UseTool,
    is_statement,
)
from assistant.models.offline.ranking import content_words, find_answer, find_replaced_statement, query_words

INTRODUCTION = (
    "*This is offline mode (no language model). I keep what you tell me, find it again word for word, and manage your "
    "to-do list. Say `help` for examples.*"
)
_NOTED = "Noted."
_NO_TODO_RESULT = "The to-do list did not answer, so I can't say what happened. Nothing more was tried."
_SEARCH_LIMIT = 20
_MOST_QUERY_WORDS = 24
_LONGEST_QUERY = 400
_MOST_STATEMENTS = 5
_MOST_RESULTS = 5
_LONGEST_RESULT = 600


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A tool to run before the answer."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepContext:
    message: Message
    tools: frozenset[str]  # on offer in this request
    own_words: tuple[QuotedMessage, ...]  # what people said before, as far as the request still has it


def next_step(request: Request, results: Sequence[str], context: StepContext) -> ToolStep | str:
    """The next call for `request`, or its answer; `results` are those of the calls it has made so far, in order."""
    match request:
        case Say():
            return request.text
        case Note():
            offer = request.is_task and "manage_todo_list" in context.tools
            return f"{_NOTED} To put it on your to-do list, say: add … to my list." if offer else _NOTED
        case AboutMe():
            return _about_person([quote for quote in context.own_words if is_statement(quote.text)])
        case Question():
            return _answer(request, results, context)
        case Correction():
            return _correct(request, results, context)
        case UseTool():
            return _use_tool(request, results, context)
        case SetReminder() if "set_reminder" in context.tools:
            step = UseTool("set_reminder", {"text": request.text, "when": request.when}, "reminders")
            return _use_tool(step, results, context)
        case SetReminder():
            return _todos(request.instead, results, context)
        case AddTodos() | ShowTodos() | ChangeTodos():
            return _todos(request, results, context)


def _use_tool(request: UseTool, results: Sequence[str], context: StepContext) -> ToolStep | str:
    if request.tool not in context.tools:
        return _unavailable(request.needs)
    if not results:
        return ToolStep(request.tool, request.arguments)
    return _failure(results[0]) if is_failed_result(results[0]) else f"{request.lead}{results[0]}"


def _unavailable(what: str) -> str:
    return f"I can't get at {what} in this conversation. Your message is kept."


def _failure(result: str) -> str:
    return f"That did not work: {result.removeprefix(FAILURE_PREFIX).strip()}"


# --------------------------------------------------------------------------------------------------------------- memory


def _answer(question: Question, results: Sequence[str], context: StepContext) -> ToolStep | str:
    words = content_words(question.text)
    if not words:
        return "Ask me with a word that was in it: a name, a place, a thing."
    can_search = "search_history" in context.tools
    if can_search and not results:
        return _search(words, question.role)
    quotes = _quotes(results, context) if question.role == "user" else parse_quotes("\n".join(results))
    ranked = find_answer(question.text, quotes, topic=question.topic)
    if not ranked.answers:
        where = "what you told me" if can_search else "the messages that I still see"
        parts = [f"I found nothing in {where} that answers this. Tell me, and I will know it next time."]
        if ranked.nearest is not None:
            parts.append(_quotation("The nearest is from", ranked.nearest))
        return _with_failure("\n\n".join(parts), results)
    first, *others = ranked.answers
    speaker = "I told you" if question.role == "assistant" else f"{_line(first.name) if first.name else 'You'} told me"
    parts = [_quotation(f"{speaker} on", first)]
    for other in others:
        newer = other.message_id > first.message_id
        lead = "Also said" if newer else "It replaces what was said" if ranked.corrects else "Earlier"
        parts.append(_quotation(f"{lead} on", other))
    return _with_failure("\n\n".join(parts), results)


def _correct(correction: Correction, results: Sequence[str], context: StepContext) -> ToolStep | str:
    words = content_words(correction.text)
    if words and "search_history" in context.tools and not results:
        return _search(words, "user")
    old = find_replaced_statement(correction.text, _quotes(results, context))
    if old is None and len(words) < 2 and context.own_words:
        old = context.own_words[-1]
    if old is None:
        return _with_failure(f"{_NOTED} I found nothing earlier that it replaces; from now on this counts.", results)
    return _with_failure(_quotation(f"{_NOTED} It replaces what you told me on", old), results)


def _about_person(statements: Sequence[QuotedMessage]) -> str:
    if not statements:
        return "Ask me about one thing, by name, and I will look through everything you told me."
    lines = "\n".join(quote_block(quote.text) for quote in statements[-_MOST_STATEMENTS:])
    return (
        f"The last things you told me here:\n\n{lines}\n\nAsk me about one thing by name, and I will look further back."
    )


def _search(words: Sequence[str], role: str) -> ToolStep:
    query = " ".join(query_words(words)[:_MOST_QUERY_WORDS])[:_LONGEST_QUERY]
    return ToolStep("search_history", {"query": query, "role": role, "limit": _SEARCH_LIMIT})


def _quotes(results: Sequence[str], context: StepContext) -> list[QuotedMessage]:
    """What the search found, and what the request still has: a search that finds nothing must not hide that."""
    hits = [quote for result in results for quote in parse_quotes(result)]
    found_ids = {context.message.id, *(quote.message_id for quote in hits)}
    recent = [quote for quote in context.own_words if quote.message_id not in found_ids]
    return [*recent, *(quote for quote in hits if quote.message_id != context.message.id)]


def _quotation(lead: str, quote: QuotedMessage) -> str:
    """`lead` ends with "on" or "from": the day follows, or only the reference where no day is known."""
    when = f"{lead} {quote.when}" if quote.when else lead.rpartition(" ")[0]
    return f"{when} (#{quote.message_id}):\n\n{quote_block(quote.text)}"


def _with_failure(text: str, results: Sequence[str]) -> str:
    failed = next((result for result in results if is_failed_result(result)), None)
    return f"{text}\n\n(The search failed, so I only looked at recent messages. {failed})" if failed else text


# ---------------------------------------------------------------------------------------------------------- to-do list


def _todos(request: AddTodos | ShowTodos | ChangeTodos, results: Sequence[str], context: StepContext) -> ToolStep | str:
    if "manage_todo_list" not in context.tools:
        return _unavailable("a to-do list")
    if not results:
        return ToolStep("manage_todo_list", _first_arguments(request))
    if is_failed_result(results[-1]):
        return _failure(results[-1])
    report = parse_todos(results[-1])
    if report is None:
        return _NO_TODO_RESULT
    if isinstance(request, ChangeTodos) and not request.ids and len(results) == 1:
        return _change_by_words(request, report)
    if isinstance(request, ShowTodos):
        return _list(request, report)
    if not report.change:
        return _NO_TODO_RESULT
    numbers = ", ".join(map(str, report.changed))
    rest = f"On your list:\n\n{_todo_lines(report.lines)}" if report.lines else "Your list is empty."
    hint = "\n\nIt is on the list, without an alarm. To be reminded, say when: remind me to … tomorrow at 9."
    return f"{report.change}: {numbers}. {rest}{hint if isinstance(request, AddTodos) and request.is_reminder else ''}"


def _first_arguments(request: AddTodos | ShowTodos | ChangeTodos) -> dict[str, Any]:
    match request:
        case AddTodos():
            return {"action": "add", "items": list(request.items)}
        case ChangeTodos() if request.ids:
            return {"action": request.action, "ids": list(request.ids)}
        case _:
            return {"action": "list"}


def _change_by_words(request: ChangeTodos, report: TodoListResult) -> ToolStep | str:
    """The one open to-do that has all these words; with none or several, nothing is changed."""
    words = set(content_words(request.words))
    by_todo = {line: set(content_words(line.text)) for line in report.lines if not line.done}
    matches = [line for line, own in by_todo.items() if words and words <= own]
    exact = [line for line in matches if by_todo[line] == words][:1]
    match exact or matches:
        case [todo]:
            return ToolStep("manage_todo_list", {"action": request.action, "ids": [todo.id]})
        case []:
            return f"Nothing on your list matches “{request.words}”, so it is unchanged. {_NOTED}"
        case several:
            return f"Several to-dos match; say which number:\n\n{_todo_lines(several)}"


def _list(request: ShowTodos, report: TodoListResult) -> str:
    lines = [line for line in report.lines if not request.label or line.text.startswith(f"{request.label}: ")]
    name = request.label or "to-do"
    if not lines:
        return f"Your {name} list is empty."
    if request.clear:
        return f"I don't empty a list at once. Say what to remove, as in `remove 1 and 2`:\n\n{_todo_lines(lines)}"
    return f"Your {name} list:\n\n{_todo_lines(lines)}"


def _todo_lines(lines: Sequence[TodoLine]) -> str:
    return "\n".join(f"- {line.id}: {_line(line.text)}{' (done)' if line.done else ''}" for line in lines)


def _line(text: str) -> str:
    return quote_block(" ".join(text.split())).removeprefix("> ")


# ------------------------------------------------------------------------------------------------ another model's work


def describe_tool_results(results: Sequence[tuple[str, str]]) -> str:
    """(tool, result) of the calls of a model that could not finish, the last ones, the longest cut."""
    blocks = [f"`{tool}`:\n\n{quote_block(shorten(text, _LONGEST_RESULT))}" for tool, text in results[-_MOST_RESULTS:]]
    left_out = len(results) - len(blocks)
    note = [f"({pluralize(left_out, 'earlier result')} not shown.)"] if left_out else []
    return "\n\n".join(["This was found before the model stopped:", *note, *blocks])
