"""Plans that take back what was changed last. Pure; as `plans` tells.

What always holds: what cannot be restored as it was is said, and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from assistant.core.quoting import parse_todos
from assistant.core.text import lazy_regex, pluralize
from assistant.core.time_pieces import find_times
from assistant.models.offline.matching import ListedItem, matching
from assistant.models.offline.plans import (
    CHANGED,
    EarlierCall,
    OtherAnswer,
    Plan,
    PlanContext,
    ToolStep,
    ask_which,
    call_tool,
    describe_todos,
)
from assistant.models.offline.targets import content_words

_SET = lazy_regex(
    r'Reminder (?P<id>\d+) is (?:set|changed): "(?P<text>(?:[^"\\]|\\.)*)", (?:[^"]*?: )?\w+ (?P<due>\S+ \d\d:\d\d)'
)


def reopen(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """A to-do that was ticked off is open again; what was taken away comes back."""
    if restoring := _calls_that_restore(context):
        return (yield from _restore(restoring))
    done = [item for item in items if item.done and item.kind == "todo"]
    words = content_words(text)
    found = matching(words, done) if words else done[:1]
    if not found:
        raise OtherAnswer
    if len(found) > 1:
        return ask_which(found)
    return describe_todos((yield from call_tool("manage_todo_list", action="reopen", ids=[found[0].id])))


def undo(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """The newest change of this conversation, taken back."""
    for call in reversed(context.earlier):
        if (match := CHANGED.match(call.result)) and match[2] == "set":
            return (yield from call_tool("cancel_reminder", id=int(match[1])))
        report = parse_todos(call.result) if call.tool == "manage_todo_list" else None
        opposite = {"Added": "remove", "Completed": "reopen", "Reopened": "complete"}
        if report and report.change in opposite:
            result = yield from call_tool("manage_todo_list", action=opposite[report.change], ids=list(report.changed))
            return describe_todos(result)
        if match and match[2] == "cancelled" and (restoring := _calls_that_restore(context)):
            return (yield from _restore(restoring))
        if match or (report and report.change):
            break
    return (
        "I can't take that back: I only undo what I set, added or ticked off last. Nothing is changed. "
        "`/undo` takes the last exchange out of the conversation."
    )


def _restore(calls: Sequence[ToolStep | None]) -> Plan:
    answers = []
    for call in filter(None, calls):
        answers.append((yield from call_tool(call.tool, **call.arguments)))
    if lost := calls.count(None):
        names = pluralize(lost, "reminder")
        answers.append(f"{names} of them I can't bring back: I don't see any more when they were to come.")
    return "\n".join(answers)


def _calls_that_restore(context: PlanContext) -> list[ToolStep | None]:
    """The calls that set again what the newest change took away, None for what is not known any more; nothing where
    nothing is known."""
    changes = [call for call in context.earlier if call.tool not in ("list_reminders", "show_agenda", "search_history")]
    changes = [call for call in changes if call.arguments.get("action") != "list"]
    together = list(takewhile(lambda call: call.tool == "cancel_reminder" and call.is_latest, reversed(changes)))
    count = max(1, len(together))
    earlier = changes[: len(changes) - count]
    restoring = [_call_that_restores(taken, earlier) for taken in changes[len(changes) - count :]]
    return restoring if any(restoring) else []


def _call_that_restores(last: EarlierCall, earlier: Sequence[EarlierCall]) -> ToolStep | None:
    if last.tool == "cancel_reminder":
        settings = ((call, match) for call in reversed(earlier) if (match := _SET.match(call.result)))
        own = [(call, match) for call, match in settings if int(match["id"]) == last.arguments.get("id")]
        if not own:
            return None
        newest = own[0][1]
        # A change of the time alone leaves the rule as it was set.
        rules = (
            call.arguments.get("repeat") or find_times(str(call.arguments.get("when", ""))).rule for call, _ in own
        )
        again = {"text": newest["text"].replace('\\"', '"'), "when": newest["due"]}
        rule = next(filter(None, rules), "")
        return ToolStep("set_reminder", again | ({"repeat": rule} if rule not in ("", "once") else {}))
    for call in reversed(earlier):
        report = parse_todos(call.result) if call.tool == "manage_todo_list" else None
        taken = last.arguments.get("ids", [])
        if report and report.change == "Added" and last.arguments.get("action") == "remove":
            texts = [line.text for line in report.lines if line.id in taken]
            if texts:
                return ToolStep("manage_todo_list", {**call.arguments, "items": texts})
    return None
