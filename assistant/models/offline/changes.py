"""Plans that take away what is there: cancel, tick off, leave out once. Pure; as `plans` tells.

What always holds: what the sentence does not tell apart is asked for, and nothing is changed meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from assistant.core.text import lazy_regex
from assistant.core.time_language import DAY_CODES
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import TimePiece
from assistant.models.offline.cues import clauses, fold, says, says_any
from assistant.models.offline.ends import end_of, stopped_rule
from assistant.models.offline.lists import first_mention, is_same_list, list_names, names_list, without_lists
from assistant.models.offline.matching import ListedItem, kinds_named, words_of
from assistant.models.offline.plans import (
    MOMENT,
    OtherAnswer,
    Plan,
    PlanContext,
    ask_for_kind,
    ask_which,
    call_tool,
    describe_item,
    describe_todos,
    numbers_named,
)
from assistant.models.offline.skips import ONLY_THE_NEXT, find_skip, leave_out
from assistant.models.offline.targets import (
    Targets,
    content_words,
    find_targets,
    is_old_time,
    items_at_times,
)
from assistant.models.offline.tense_forms import is_all_open, parts_still_open

_PARTS = lazy_regex(r"\s*[,;.!]\s+")
_MISSING = lazy_regex(
    r"\b(?:not|didn'?t|isn'?t|haven'?t|hasn'?t|missing|nicht|kein\w*|fehl\w*|pas|a(?:vait)? plus|manque\w*|reste\w*"
    r"|no|falta\w*|queda\w*"
    r"|still (?:to|open|left|outstanding|needs?)|noch (?:offen|zu|ubrig)|encore a|pendiente)\b"
)
_HAS = lazy_regex(r"\b(?:got|have|hab\w*|haben|tengo|tenemos|ai|a|avons|pris|bought)\b")
_PARTICIPLE_AT_END = lazy_regex(
    r"\b(?!(?:one|else|here|there)\b)\w{2,}(?:ed|ought|t|en|e|ee|es|ad[oa]s?|id[oa]s?)[\s.!]*$"
)
# "The shopping is done", "les courses sont faites"
_SHOPPING_DONE = lazy_regex(
    r"^(?:ok,? |so,? |voila,? )?(?:(?:i'?ve|i have|i|we'?ve|we) (?:just |already )?(?:done|did|finished)"
    r"|(?:all )?(?:done|finished) with"
    r"|j'ai (?:fait|fini)|on a (?:fait|fini)|ya (?:he hecho|hice)) (?:all )?(?:the|my|our|les|la) (?:shopping"
    r"|groceries|food shop|courses|compra)"
    r"(?: already| now)?$"
    r"|^(?:(?:the|my|die|der|les|la) )?(?:food )?(?:shopping|groceries|einkaufe?|courses|compra)(?:'s| is| are| ist"
    r"| sind| sont| esta)?"
    r"(?: (?:all|now|already|schon|komplett|ganz|completely|toutes|toda|deja|ya))*"
    r" (?:done|bought|finished|erledigt|fertig|gemacht|faites?|finies?"
    r"|hecha|lista)$"
)
_WHOLE = lazy_regex(r"\b(?:whole|entire|ganze[nr]?|komplette[nr]?|toute|entiere|entera|completa)\b")
_RINGS = lazy_regex(r"\b(?:wak|weck|reveil|despert|despiert|alarm)\w*")
STILL_OPEN = "Nothing is changed, it is still on the list"
_NOT_THEN = lazy_regex(
    r"\b(?:not|never|nicht|keine?|pas|jamais|no|nunca|sin|except|ausser|sauf|menos|excepto|leave out|leaving out"
    r"|weglassen|lass\w*)\b(?!.{0,80}\b(?:but"
    r"|sondern|mais|sino|instead)\b)"
)
# "Pas le dimanche" is of every Sunday.
_HABIT = lazy_regex(r"^le \w")
# "From the list", "de la liste": something that is on it.
_OF_LIST = lazy_regex(
    r"(?:from|off|out of|of|on|in|von|vom|aus|auf|du|des|del|sur|dans|en)\b|(?:de|a) (?:la|ma|mi|notre)\b"
)
_RID_OF = lazy_regex(r"\b(?:rid|need|besoin)$")
_SOME_OF_IT = lazy_regex(
    r"\b(?:ones?|last|first|second|it|that|this|those|them|some\w*|\w*thing|eins|eine[ns]|was|letzte\w*|erste\w*|une?|ca"
    r"|dernier\w*|premier\w*|un[oa]|eso|ultim\w*|primer\w*)\b"
)
_BY = lazy_regex(r"(?:by|before|until|till?|bis|avant|d'ici|antes|hasta|para)\b")
_BUT = lazy_regex(r"\b(?:but|aber|mais|pero)\b", re.IGNORECASE)


def not_done(items: Sequence[ListedItem]) -> list[ListedItem]:
    return [item for item in items if not item.done]


def for_each(targets: Targets) -> Sequence[ListedItem]:
    if not targets:
        raise OtherAnswer
    return targets.items


# ------------------------------------------------------------------------------------------------- not wanted, or done


def drop(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """Reminders and to-dos that are not wanted any more."""
    times = find_times(text)
    if numbers := numbers_named(text) or _numbers_like_days(text, not_done(items), times, context.now):
        chosen = [item for item in not_done(items) if item.id in numbers]
        kinds = {item.kind for item in chosen}
        targets = Targets(chosen if len(kinds) == 1 else [], all_meant=True)
    else:
        # Only what comes again can be left out once.
        pool = [
            item for item in not_done(items) if item.often or item.kind == "todo" or not says("leaves_out", fold(text))
        ]
        targets = find_targets(text, pool, context, times, may_keep=True)
    if says("resets", fold(text)) and any(list_names(text)):
        targets = _whole_list(text, not_done(items))
    if targets.unclear and _names_list_alone(text):
        targets = _whole_list(text, not_done(items))
    if not targets and says("negated_request", fold(text)):
        targets = _not_to_ring(text, not_done(items), times, context.now)
    if not targets and (numbers or (names_list(text) and says("clear", fold(text)))):
        return (yield from _drop_unseen(text, numbers))
    found = for_each(targets)
    if any(says("strong_move", part) for part in _PARTS.split(fold(text))[1:]) and times.has_clock:
        raise OtherAnswer  # "my train was cancelled, I take the one at 10:45, change the reminder"
    if targets.unclear:
        return ask_which(found)
    if targets.is_everything and len(found) > 1:
        return ask_for_kind(found)
    is_once = not (says("for_good", fold(text)) or _names_its_habit(found, times))
    if len(found) == 1 and found[0].often and (stopped := stopped_rule(times, found[0], context.now)) is not None:
        return (yield from call_tool("change_reminder", id=found[0].id, **stopped))
    if len(found) == 1 and found[0].often and (left := rule_without_days(found[0], times, fold(text))):
        return (yield from call_tool("change_reminder", id=found[0].id, **on_days(found[0], left)))
    one_skip = is_once and len(found) == 1 and found[0].often
    if one_skip and (skip := find_skip(found[0], times, context.now)) is not None:
        return (yield from leave_out(found[0], skip))
    if is_once and len(found) == 1 and found[0].often and times.of_kind("span"):
        return f"{ONLY_THE_NEXT}: {describe_item(found[0])}"  # it does not come this week
    if says("leaves_out", fold(text)) and found[0].kind == "reminder":
        return f"{ONLY_THE_NEXT}: {describe_item(found[0])}"
    return (yield from _take_away(found, "remove"))


def _numbers_like_days(
    text: str, there: Sequence[ListedItem], times: FoundTimes, now: datetime | None
) -> Sequence[int]:
    """Numbers that read like days of a month, where nothing is due then: "supprime le 1 et le 3"."""
    days = times.of_kind("day")
    if now is None or not days or len(days) < len(times.pieces) or content_words(text):
        return []
    words = [times.text[day.start : day.end] for day in days]
    numbers = [
        int(match[1]) for word in words if (match := re.fullmatch(r"\s*(?:le|la|el|the|die|den)? ?(\d{1,2})", word))
    ]
    numbers += [int(number) for number in re.findall(r"\b(?:le|la|el|die|the) (\d{1,2})\b", fold(times.words))]
    is_day = any(is_old_time(item, day, times, now) for item in there for day in days)
    known = {item.id for item in there}
    return [] if is_day or len(numbers) < len(days) or not known.issuperset(numbers) else numbers


def _not_to_ring(text: str, there: Sequence[ListedItem], times: FoundTimes, now: datetime | None) -> Targets:
    """What somebody does not want to be woken or reminded by: "so don't wake me tomorrow, I'm off". Nothing where it
    names what is not there: "I don't want the garage reminder"."""
    reminders = [item for item in there if item.kind == "reminder"]
    if _RINGS.search(fold(text)):
        reminders = [item for item in reminders if "~alarm" in words_of(item.text)]
    elif all(content_words(clause) for clause in clauses(text) if says("negated_request", fold(clause))):
        return Targets([])
    then = items_at_times(reminders, times, now) if now and times.pieces else []
    return Targets(then or reminders)


def _drop_unseen(text: str, numbers: Sequence[int]) -> Plan:
    """What a sentence names by number or list and nobody has: the tool says so."""
    if numbers and kinds_named(text)[0]:
        answers = []
        for number in numbers:
            answers.append((yield from call_tool("cancel_reminder", id=number)))
        return "\n".join(answers)
    if numbers:
        return describe_todos((yield from call_tool("manage_todo_list", action="remove", ids=list(numbers))))
    name = next(filter(None, list_names(text)), "to-do")
    return describe_todos((yield from call_tool("manage_todo_list", action="clear", list=name)))


def says_whole_list_done(text: str) -> bool:
    """Whether it says of a list as a whole that it is done: "got everything on the shopping list"."""
    folded = fold(without_lists(text))
    if says("resets", fold(text)) and not says("perfect", folded):
        return False
    if _SHOPPING_DONE.match(fold(text).strip(" .!")):
        return True
    every = says_any(("all", "clear"), folded) or _WHOLE.search(folded)
    if not any(list_names(text)) or not every or says_any(("drop", "show"), folded):
        return False
    ends = _PARTICIPLE_AT_END.search(folded) is not None
    if says("puts", folded) and not (ends and says("states", folded)):
        return False
    return ends or says_any(("sense_done", "done"), folded) or _HAS.search(folded) is not None


def _whole_list(text: str, todos: Sequence[ListedItem]) -> Targets:
    name = next(filter(None, list_names(text)), "shopping" if _SHOPPING_DONE.match(fold(text).strip(" .!")) else "")
    of_list = [
        item for item in todos if item.kind == "todo" and (is_same_list(item.list, name) if name else not item.list)
    ]
    return Targets(of_list, all_meant=True)


def _names_list_alone(text: str) -> bool:
    """Whether a sentence names a list, and nothing that is on it: "die Packliste kann weg"."""
    plain, mention = " ".join(text.split()), first_mention(text)
    if mention is None:
        return False
    before, own = fold(plain[: mention[0]]), fold(plain[slice(*mention)])
    first = next(iter(clauses(f"{plain[: mention[0]]}_{plain[mention[1] :]}")), "")
    of_list = _OF_LIST.match(own) is not None and not _RID_OF.search(before)
    return not (of_list or _SOME_OF_IT.search(before) or content_words(first.replace("_", " ")))


def complete(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """To-dos are ticked off; a reminder of what is done need not come, unless it comes again and again."""
    todos = [item for item in not_done(items) if item.kind == "todo"]
    if numbers := numbers_named(text) or _numbers_like_days(text, todos, find_times(text), context.now):
        return describe_todos((yield from call_tool("manage_todo_list", action="complete", ids=list(numbers))))
    if (says("asks", fold(text)) or text.endswith("?")) and not says("mark", fold(text)):
        raise OtherAnswer(asks=True)  # "did I buy the milk" asks
    if _names_deadline(text):
        raise OtherAnswer  # "flights by the end of the week": when it is to be done
    if is_all_open(text):
        if still := parts_still_open(text, todos):
            return f"{STILL_OPEN}: {', '.join(describe_item(item) for item in still)}"
        raise OtherAnswer(asks=True)
    there = not_done(items)
    if not says("except", fold(text)) and not says("all", fold(text)):  # "got the milk, but there was no bread"
        text = _without_missing(_without_missing_side(text))
    targets = find_targets(text, todos, context, find_times(text), may_keep=True)
    if (not targets or targets.is_newest or _SHOPPING_DONE.match(fold(text).strip(" .!"))) and says_whole_list_done(
        text
    ):
        targets = _whole_list(text, todos)
    if not targets or targets.is_newest:
        targets = find_targets(text, there, context, find_times(text), may_keep=True)
    found = for_each(targets)
    if targets.unclear:
        return ask_which(found)
    if any(item.often for item in found):
        raise OtherAnswer
    return (yield from _take_away(found, "complete"))


def _names_deadline(text: str) -> bool:
    """Whether a sentence says until when something is to be done, and nothing of what was done."""
    times, folded = find_times(text), fold(text)
    by = any(_BY.match(_own(piece, times)) for piece in times.of_kind("day", "span"))
    done = says_any(("done", "sense_done", "bare_done", "perfect", "mark"), folded)
    return by and not done and not _PARTICIPLE_AT_END.search(fold(times.words))


def _without_missing_side(text: str) -> str:
    """What stands before "but", or behind it where that was not to be had: "no pickles but got the ham"."""
    before, *behind = _BUT.split(text, maxsplit=1)
    return behind[0] if behind and _MISSING.search(fold(before)) and not _MISSING.search(fold(behind[0])) else before


def _without_missing(text: str) -> str:
    """What is said to be done, without the parts that say of something else that it is not: "milk got, bread not"."""
    parts = _PARTS.split(text)
    done = [part for part in parts if not _MISSING.search(fold(part))]
    return ", ".join(done) if done and len(done) < len(parts) else text


def _take_away(found: Sequence[ListedItem], action: str) -> Plan:
    answers = []
    for item in found:
        if item.kind == "reminder":
            answers.append((yield from call_tool("cancel_reminder", id=item.id)))
    if ids := [item.id for item in found if item.kind == "todo"]:
        answers.append(describe_todos((yield from call_tool("manage_todo_list", action=action, ids=ids))))
    return "\n".join(answers)


def rule_without_days(item: ListedItem, times: FoundTimes, folded: str) -> str:
    """The days that are left, as in a rule, where what comes every day, or on several, is not wanted on some of them:
    "not on Sundays"; "" for anything else."""
    negated = _NOT_THEN.search(folded)
    behind = tuple(piece for piece in times.pieces if negated and piece.start >= negated.end())
    # "Only on weekdays, not at the weekend"; "entre semana sí, los findes no"
    times = replace(
        times, pieces=behind or times.pieces[-1:] if len(times.of_kind("repeat", "span")) > 1 else times.pieces
    )
    rule, named = find_times(item.often).rule, times.rule.removeprefix("FREQ=WEEKLY;BYDAY=")
    habits = [piece for piece in times.of_kind("day") if piece.weekday is not None and _HABIT.match(_own(piece, times))]
    named = named or ",".join(DAY_CODES[piece.weekday or 0] for piece in habits)
    if any(piece.part == "weekend" for piece in times.of_kind("span")):
        named = "SA,SU"
    if times.dropped or not named or "=" in named or not negated:
        return ""
    days = DAY_CODES if rule == "FREQ=DAILY" else tuple(rule.removeprefix("FREQ=WEEKLY;BYDAY=").split(","))
    left = [day for day in days if day in DAY_CODES and day not in named.split(",")]
    return ",".join(left) if 0 < len(left) < len(days) else ""


def _names_its_habit(found: Sequence[ListedItem], times: FoundTimes) -> bool:
    """Whether the one reminder is named by the day on which it comes every week: "mes heures le vendredi"."""
    rule = find_times(found[0].often).rule if len(found) == 1 else ""
    days = times.of_kind("day")
    weekdays = [DAY_CODES[day.weekday] for day in days if day.weekday is not None and _HABIT.match(_own(day, times))]
    return len(weekdays) == len(days) == 1 and rule == f"FREQ=WEEKLY;BYDAY={weekdays[0]}"


def _own(piece: TimePiece, times: FoundTimes) -> str:
    return fold(times.text[piece.start : piece.end])


def on_days(item: ListedItem, days: str) -> dict[str, str]:
    """The next time of a reminder that comes on these days of the week alone, as in a rule."""
    assert item.due is not None
    at = item.due
    while DAY_CODES[at.weekday()] not in days:
        at += timedelta(days=1)
    return {"when": at.strftime(MOMENT), "repeat": f"FREQ=WEEKLY;BYDAY={days}{end_of(item)}"}
