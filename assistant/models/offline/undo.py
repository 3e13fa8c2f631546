"""Plans that take back what was changed last, and orders that their own sentence takes back. Pure; as `plans` tells.

What always holds: what cannot be restored as it was is said, and nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from assistant.core.quoting import parse_todos
from assistant.core.text import lazy_regex, pluralize
from assistant.core.time_pieces import find_times
from assistant.models.offline.cues import fold
from assistant.models.offline.intents import rank_without_items
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
    only_reads,
)
from assistant.models.offline.targets import content_words

# "No, number 7": what was done to one thing is meant for another.
_OTHER_NUMBER = lazy_regex(
    r"(?:(?:no|nope|nein|nee|non|oops|ups|sorry|pardon|perdón|wait|not that one)[\s,.!:-]+)+"
    r"(?:i mean(?:t)? |ich mein(?:t?e)? |je voulais dire |quise decir )?"
    r"(?:(?:the|die|le|la|el) )?(?:number|nummer|nr\.?|num[eé]ro|n[uú]mero|no\.|#) ?(?P<number>\d{1,9})[\s.!]*",
    re.IGNORECASE,
)
_AS_ORDER = '"done with 3", "delete 3".'
_SET = lazy_regex(
    r'Reminder (?P<id>\d+) is (?:set|changed): "(?P<text>(?:[^"\\]|\\.)*)", (?:[^"]*?: )?\w+ (?P<due>\S+ \d\d:\d\d)'
)
UNCHANGED = "All right, nothing is changed."
# What is found by these is an order that would change something.
_TO_TAKE_BACK = frozenset(["complete", "drop", "move", "relist", "rename", "undated", "add", "remind"])
_DOUBTS = (
    r"(?:(?:no|nope|oh|actually|wait|hang on|hold on|hm+|ne|nee|nein|ach|doch|halt|moment|warte|quatsch|non|euh|attends"
    r"|finalement|en fait|enfin|mais|espera|mejor|bueno|ay|perdon|que va|but|aber|pero|sorry|pardon)\b[ ,.…–-]*)+"
)
_LEAVES = (
    r"(?:(?:just |please )*(?:leave|keep) (?:it|that|them|everything)(?: (?:in|on|there|as (?:it|they) (?:is|are|was"
    r"|were)|alone|be))*|(?:just )?(?:don'?t|do not)(?: (?:do (?:it|that)|bother))?"
    r"|(?:lass|lasst|behalt\w*) (?:es|ihn|sie|das|den|alles|mal)(?: (?:doch|bitte|mal|lieber|so|drin|stehen|sein|da"
    r"|wie (?:es|er|sie) (?:ist|war|sind)))*|doch nicht|lieber nicht"
    r"|(?:garde|laisse)[- ](?:le|la|les|ca|tout)(?: (?:comme (?:ca|c'est|il est)|tranquille))?|ne (?:fais|change) rien"
    r"|deja(?:lo|la|los|las)?(?: (?:como (?:esta|estaba)|asi|estar))?|no lo hagas|mejor no)"
)
_TAKEN_BACK = lazy_regex(
    rf"^(?P<order>.{{4,80}}?)\s*(?:[,;.…–-]+|\.\.\.)\s*{_DOUBTS}{_LEAVES}"
    r"(?:[ ,]+(?:please|pls|bitte|stp|s'il te plait|porfa|por favor|after all|doch|finalement))*[\s.!]*$"
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
    for place, call in reversed(list(enumerate(context.earlier))):
        if (match := CHANGED.match(call.result)) and match[2] == "set":
            return (yield from call_tool("cancel_reminder", id=int(match[1])))
        if match and match[2] == "changed" and (reverting := _call_that_reverts(int(match[1]), context)):
            answer = yield from call_tool(reverting.tool, **reverting.arguments)
            if beside := _time_before(call, context.earlier[:place]):
                return f"{answer}\n{(yield from call_tool('cancel_reminder', id=beside))}"
            return answer
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
        "I can't take that back: I only undo what I set, changed, added or ticked off last. Nothing is changed. "
        "`/undo` takes the last exchange out of the conversation."
    )


def _time_before(changed: EarlierCall, earlier: Sequence[EarlierCall]) -> int:
    """The reminder that was set in the same turn for the one time before a time that was left out (`skips`); 0 for
    none."""
    last = earlier[-1] if earlier else None
    one, other = (_SET.match(call.result) if call else None for call in (last, changed))
    if last is None or one is None or other is None or last.tool != "set_reminder":
        return 0
    together = last.is_latest == changed.is_latest and one["text"] == other["text"]
    return int(one["id"]) if together and "repeat" not in last.arguments and changed.arguments.get("repeat") else 0


def other_number(text: str) -> int | None:
    """The number of the thing that a correction names by nothing else: "no, number 7"."""
    match = _OTHER_NUMBER.fullmatch(text.strip())
    return int(match["number"]) if match else None


def do_to_other(number: int, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """What the turn right before did to one thing, taken back there and done to the one with this number."""
    latest = replace(context, earlier=[call for call in context.earlier if call.is_latest])
    last = next((call for call in reversed(latest.earlier) if _ids_of(call)), None)
    if last is None or (back := _taken_back(last, context)) is None:
        return (
            f"I don't know what is to be done to number {number}. Nothing is changed; say it as an order: {_AS_ORDER}"
        )
    kind = "reminder" if last.tool == "cancel_reminder" else "to-do"
    if not any(item.id == number and item.kind == kind.replace("-", "") and not item.done for item in items):
        return f"There is no {kind} {number} that waits. Nothing is changed."
    arguments = {"id": number} if last.tool == "cancel_reminder" else {**last.arguments, "ids": [number]}
    yield from call_tool(back.tool, **back.arguments)
    result = yield from call_tool(last.tool, **arguments)
    return result if last.tool == "cancel_reminder" else describe_todos(result)


def _ids_of(call: EarlierCall) -> list[int]:
    """What one thing a call ticked off or took away."""
    if call.tool == "cancel_reminder":
        return [int(call.arguments["id"])]
    ids = call.arguments.get("ids", ())
    return list(ids) if len(ids) == 1 and call.arguments.get("action") in ("complete", "remove") else []


def _taken_back(last: EarlierCall, context: PlanContext) -> ToolStep | None:
    if last.arguments.get("action") == "complete":
        return ToolStep("manage_todo_list", {"action": "reopen", "ids": list(last.arguments["ids"])})
    return next(iter(_calls_that_restore(context)), None)


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
    changes = [call for call in context.earlier if not only_reads(call)]
    together = list(takewhile(lambda call: call.tool == "cancel_reminder" and call.is_latest, reversed(changes)))
    count = max(1, len(together))
    earlier = changes[: len(changes) - count]
    restoring = [_call_that_restores(taken, earlier) for taken in changes[len(changes) - count :]]
    return restoring if any(restoring) else []


def _call_that_reverts(number: int, context: PlanContext) -> ToolStep | None:
    """The call that gives a reminder the words, time and rule that it had before its newest change; None where the
    conversation does not show them."""
    settings = _settings_of(number, context.earlier)
    if len(settings) < 2:
        return None
    (newest, changed), (_, before) = settings[:2]
    arguments = {"id": number, "when": before["due"]}
    if before["text"] != changed["text"]:
        arguments["text"] = before["text"].replace('\\"', '"')
    if newest.arguments.get("repeat"):
        arguments["repeat"] = _rule_of(settings[1:]) or "once"
    return ToolStep("change_reminder", arguments)


def _settings_of(number: int, earlier: Sequence[EarlierCall]) -> list[tuple[EarlierCall, re.Match[str]]]:
    """What set or changed a reminder, newest first, with what it was then."""
    settings = ((call, match) for call in reversed(earlier) if (match := _SET.match(call.result)))
    return [(call, match) for call, match in settings if int(match["id"]) == number]


def _rule_of(settings: Sequence[tuple[EarlierCall, re.Match[str]]]) -> str:
    """The rule by which a reminder came again after these settings of it, newest first; "" for none. A change of the
    time alone leaves the rule as it was."""
    rules = (
        call.arguments.get("repeat") or find_times(str(call.arguments.get("when", ""))).rule for call, _ in settings
    )
    rule = next(filter(None, rules), "")
    return "" if rule == "once" else str(rule)


def _call_that_restores(last: EarlierCall, earlier: Sequence[EarlierCall]) -> ToolStep | None:
    if last.tool == "cancel_reminder":
        own = _settings_of(int(last.arguments["id"]), earlier)
        if not own:
            return None
        newest = own[0][1]
        again = {"text": newest["text"].replace('\\"', '"'), "when": newest["due"]}
        rule = _rule_of(own)
        return ToolStep("set_reminder", again | ({"repeat": rule} if rule else {}))
    for call in reversed(earlier):
        report = parse_todos(call.result) if call.tool == "manage_todo_list" else None
        taken = last.arguments.get("ids", [])
        if report and report.change == "Added" and last.arguments.get("action") == "remove":
            texts = [line.text for line in report.lines if line.id in taken]
            if texts:
                return ToolStep("manage_todo_list", {**call.arguments, "items": texts})
    return None


def is_taken_back(text: str) -> bool:
    """Whether a sentence gives an order and then says that all is to stay as it is."""
    match = _TAKEN_BACK.match(fold(text))
    return match is not None and "?" not in text and rank_without_items(match["order"])[0][0] in _TO_TAKE_BACK
