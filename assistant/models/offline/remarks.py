"""What people say of a thing that is there, without the form of an order: "the dentist one can go", "wrong day, meant
Sunday", "dog's been walked". Pure; a plan as those of `plans`.

A remark is read by its sense (`orders.toml`: not wanted, done, not done, back again, once more, otherwise), by the
thing that it names or, without one, the newest that was changed, and by its time. What always holds: a thing is changed
only where the remark says both which and how; what has the form of an order and says neither is refused plainly, and
only what is left is a statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from assistant.core.quoting import parse_todos
from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_length, find_times
from assistant.core.time_resolve import resolve_times
from assistant.models.offline.agenda_answers import ask
from assistant.models.offline.matching import (
    ListedItem,
    count_hits,
    each_named,
    is_same,
    kinds_named,
    matching,
    subject_words,
    words_of,
)
from assistant.models.offline.orders import Order, fold, list_names, read_orders, says, without_lists
from assistant.models.offline.plans import (
    CANNOT,
    MOMENT,
    OtherAnswer,
    Plan,
    PlanContext,
    ask_which,
    call_tool,
    describe_todos,
    find_last_changed,
    is_list,
    items_at_times,
    read_items,
)

_LATER, _SOONER = ("longer", "later_by"), ("sooner", "earlier_by")
_MOST_OTHER_WORDS = 4
_CLAUSES = lazy_regex(r"\s*[,;.!]+\s+|\s+(?:and|und|et|y|but|aber|mais|pero)\s+", re.IGNORECASE)
_SENSES = ("sense_drop", "sense_done", "sense_not_done", "sense_back", "sense_more", "sense_other", "both", "latest")
_BARE_HOUR = lazy_regex(r"(?<![\w:.])(\d{1,2})(?![\w:.%]|\s*(?:eggs|kg|km|euro|min))")
_SET = lazy_regex(
    r'Reminder (?P<id>\d+) is (?:set|changed): "(?P<text>(?:[^"\\]|\\.)*)", (?:[^"]*?: )?\w+ (?P<due>\S+ \d\d:\d\d)'
)


def remark(order: Order, context: PlanContext) -> Plan:
    """`order.soft`: what fits nothing is a statement, or a question, rather than an order that can't be done."""
    folded = fold(order.text)
    if context.now is None or not {"list_reminders", "manage_todo_list"} <= context.tools:
        raise OtherAnswer
    items = yield from read_items(context)
    times = find_times(order.text)
    if (
        times.pieces
        and order.soft
        and not _content(order.text)
        and not _has_sense(folded)
        and not says("sense_more", folded)
    ):
        return (yield from ask(order, context))
    clauses = _clauses(order.text, items)
    answers = []
    for clause in clauses:
        try:
            answers.append((yield from _one(clause, items, context, context.now)))
        except OtherAnswer:
            continue
    if answers:
        return "\n".join(answers)
    if is_command(folded) or not order.soft:
        return CANNOT
    raise OtherAnswer


def is_command(folded: str) -> bool:
    return says("commands", folded) and not says("forms", folded)


def _clauses(text: str, items: Sequence[ListedItem]) -> list[str]:
    """The parts that each speak of another thing and say something of it; else the whole."""
    parts = [part for part in _CLAUSES.split(text) if part.strip()]
    named = [tuple(item.id for item in _named(part, items)) for part in parts]
    apart = len(parts) > 1 and all(len(ids) == 1 for ids in named) and len(set(named)) == len(parts)
    senses = all(_has_sense(fold(part)) or find_times(part).pieces or _tells_done(part, items) for part in parts)
    return parts if apart and senses and not says("others", fold(text)) else [text]


def _has_sense(folded: str) -> bool:
    return any(says(name, folded) for name in ("sense_drop", "sense_done", "sense_other", "move", "done"))


def _named(text: str, items: Sequence[ListedItem]) -> list[ListedItem]:
    return matching(subject_words(without_lists(text)), [item for item in items if not item.done])


def _tells_done(text: str, items: Sequence[ListedItem]) -> bool:
    """The verb of a thing, in the form of what is over, and no other thing: "tyres checked" of "check the tyres"."""
    words = subject_words(text)
    for item in _named(text, items):
        own = words_of(item.text)
        verbs = [word for word in words if _is_past_of_any(word, [other for other in own if other not in words])]
        if verbs and all(word in verbs or any(is_same(word, other) for other in own) for word in words):
            return True
    return False


def _is_past_of_any(word: str, verbs: Sequence[str]) -> bool:
    spoken = re.sub(r"^(an|auf|aus|ab|ein|weg|um|vor|zu)?ge", r"\1", word)
    is_past = re.search(r"(?:ed|en|ne|ten?|t|ee?s?|i|[aid]d[oa]s?|n)$", word) is not None
    return is_past and any(is_same(spoken, verb) or (len(spoken) > 3 and spoken[:3] == verb[:3]) for verb in verbs)


def _one(text: str, items: Sequence[ListedItem], context: PlanContext, now: datetime) -> Plan:
    folded = fold(text)
    times = find_times(text)
    if says("sense_back", folded) and (last := _last_removed(text, context)) is not None:
        return (yield from call_tool(last[0], **last[1]))
    if says("sense_not_done", folded) and not times.pieces:
        done = matching(subject_words(text), [item for item in items if item.kind == "todo" and item.done])
        if len(done) == 1 and not _named(text, items):
            return describe_todos((yield from call_tool("manage_todo_list", action="reopen", ids=[done[0].id])))
    found, elliptic = _targets(text, items, context, times, now)
    if not found:
        raise OtherAnswer
    kinds = {item.kind for item in found}
    if len(found) == 1 and (new := _new_text(text, found[0])):
        return (yield from _rename(found[0], new))
    length = find_length(folded)
    changes = times.pieces or length or (_BARE_HOUR.search(folded) if says("sense_other", folded) else None)
    is_more = bool(length and says("longer", folded)) or says("same_hour", folded) or says("sense_more", folded)
    is_done = _tells_done(text, found) or (says("sense_done", folded) and not times.pieces) or says("done", folded)
    is_done = is_done and not times.of_kind("clock") and not (is_more and changes)
    drops = says("sense_drop", folded)
    lists = [name for name in list_names(text) if name]
    several = len(found) > 1 and not any(says(name, folded) for name in ("both", "all", "except", "others", "latest"))
    if (is_done or drops) and several and not (lists and not subject_words(without_lists(text))):
        if says("still", folded):
            raise OtherAnswer
        if each_named(without_lists(times.words), found) != found:
            return ask_which(found)
    if is_done and not says("sense_not_done", folded) and (not elliptic or says("both", folded)):
        return (yield from _finish(found, drops))
    stays = not times.of_kind("clock") or bool(items_at_times(found, times, now))
    if drops and stays and not (is_more and changes):
        return (yield from _drop(found))
    if len(found) == 1 and kinds == {"todo"} and lists and not times.pieces and not is_list(found[0].list, lists[-1]):
        result = yield from call_tool("manage_todo_list", action="edit", ids=[found[0].id], list=lists[-1])
        return describe_todos(result)
    if not changes or (elliptic and not (says("sense_other", folded) or says("sense_more", folded) or times.rule)):
        raise OtherAnswer
    if says("teller", folded) and not says("sense_other", folded) and not says("sense_more", folded):
        raise OtherAnswer
    if len(found) > 1 and not (says("all", folded) or says("both", folded)):
        return ask_which(found)
    answers = []
    for item in found:
        answers.append((yield from _shift(item, text, times, now)))
    return "\n".join(answers)


# -------------------------------------------------------------------------------------------------------- which things


def _targets(
    text: str, items: Sequence[ListedItem], context: PlanContext, times: FoundTimes, now: datetime
) -> tuple[list[ListedItem], bool]:
    """What a remark speaks of, and whether it names it by no word of its own."""
    folded = fold(text)
    pool = [item for item in items if not item.done]
    reminders, todos = kinds_named(text)
    pool = [
        i
        for i in pool
        if not ((reminders and i.kind == "todo" and not todos) or (todos and not reminders and i.kind == "reminder"))
    ]
    names = [name for name in list_names(text) if name]
    on_list = [item for item in pool if item.kind == "todo" and names and is_list(item.list, names[0])]
    words = subject_words(without_lists(text))
    hits = max((count_hits(words, item) for item in pool), default=0)
    named = matching(words, pool)
    if says("others", folded) and named and (says("keeps", folded) or says("sense_drop", folded)):
        return [item for item in pool if item not in named and (item.kind == named[0].kind)], False
    if says("except", folded) and named:
        alike = [item for item in pool if item.kind == named[0].kind and item.list == named[0].list]
        return [item for item in alike if item not in named], False
    if named:
        return (
            (named, False) if len(words) - hits <= _MOST_OTHER_WORDS + (2 if _has_sense(folded) else 0) else ([], False)
        )
    if on_list:
        return on_list, False
    if says("both", folded) and pool:
        return pool[-2:], False
    if (
        says("all", folded)
        and times.pieces
        and (old := items_at_times(pool, replace(times, pieces=times.pieces[:1]), now))
    ):
        return old, False
    if says("latest", folded) and pool and (says("sense_drop", folded) or times.pieces):
        newest = _newest_first(pool, context)
        return newest[: 2 if says("two", folded) else 1], False
    if len(_content(text)) > (0 if says("sense_drop", folded) else 1):
        return [], True
    kind, ids = find_last_changed(context)
    return [item for item in pool if item.kind == kind and item.id in ids], True


def _content(text: str) -> list[str]:
    """What a remark speaks of beside its sense and its time."""
    folded = fold(find_times(text).words)
    for name in _SENSES:
        folded = read_orders().patterns[name].sub(" ", folded)
    return subject_words(folded)


def _newest_first(pool: Sequence[ListedItem], context: PlanContext) -> list[ListedItem]:
    kind, _ = find_last_changed(context)
    return sorted((item for item in pool if item.kind == kind), key=lambda item: -item.id)


def _last_removed(text: str, context: PlanContext) -> tuple[str, dict[str, object]] | None:
    """The call that sets again what the newest change took away."""
    if not context.earlier:
        return None
    last = context.earlier[-1]
    for call in reversed(context.earlier[:-1]):
        if (
            last.tool == "cancel_reminder"
            and (match := _SET.match(call.result))
            and int(match["id"]) == last.arguments.get("id")
        ):
            often = find_times(str(call.arguments.get("when", ""))).rule
            when = call.arguments.get("when", "") if often else match["due"]
            return "set_reminder", {"text": match["text"].replace('\\"', '"'), "when": when}
        report = parse_todos(call.result) if call.tool == "manage_todo_list" else None
        taken = last.arguments.get("ids", [])
        if report and report.change == "Added" and last.arguments.get("action") == "remove":
            texts = [line.text for line in report.lines if line.id in taken]
            if texts:
                return "manage_todo_list", {**call.arguments, "items": texts}
    return None


# ----------------------------------------------------------------------------------------------------------- what to do


def _drop(found: Sequence[ListedItem]) -> Plan:
    answers = []
    for item in found:
        if item.kind == "reminder":
            answers.append((yield from call_tool("cancel_reminder", id=item.id)))
    if ids := [item.id for item in found if item.kind == "todo"]:
        answers.append(describe_todos((yield from call_tool("manage_todo_list", action="remove", ids=ids))))
    return "\n".join(answers)


def _finish(found: Sequence[ListedItem], drops: bool) -> Plan:
    """To-dos are ticked off; a reminder of what is done need not come."""
    if any(item.often for item in found) and not drops:
        raise OtherAnswer
    answers = []
    for item in found:
        if item.kind == "reminder":
            answers.append((yield from call_tool("cancel_reminder", id=item.id)))
    if ids := [item.id for item in found if item.kind == "todo"]:
        answers.append(describe_todos((yield from call_tool("manage_todo_list", action="complete", ids=ids))))
    return "\n".join(answers)


def _rename(item: ListedItem, new: str) -> Plan:
    if item.kind == "todo":
        return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[item.id], items=[new])))
    return (yield from call_tool("change_reminder", id=item.id, text=new))


_SWAPS = tuple(
    lazy_regex(pattern)
    for pattern in (
        # "not butter, margarine"; "pas beurre, margarine"
        r"\b(?:not|nicht|kein\w*|pas|no)\s+(?:\w+\s+)?(?P<old>[\w-]+)\s*[,;:-]?\s*"
        r"(?:but |sondern |c'est |sino |mais |it'?s )?(?:\w{1,3} )?(?P<new>[\w-]+)$",
        # "butter no, margarine"
        r"(?P<old>[\w-]+) (?:no|nicht|non)\s*,\s*(?:queria decir |sondern |je voulais dire )?(?P<new>[\w-]+)$",
        # "6 eggs not 12"; "it is leclerc and not carrefour"
        r"(?P<new>[\w-]+)(?: \w+)?\s*,?\s*(?:y |and |und |et )?"
        r"(?:not|nicht|pas|no)\s+(?:\w{1,4} ){0,2}(?P<old>[\w-]+)(?: \w+)?$",
    )
)


def _new_text(text: str, item: ListedItem) -> str:
    """The words of a thing with one swapped for another, where the remark says which for which."""
    folded, plain = fold(text).strip(" .!?"), " ".join(text.split())
    if find_times(text).pieces or len(folded) > 120 or says("needless", folded):
        return ""
    own = fold(item.text)
    for pattern in _SWAPS:
        for match in pattern.finditer(folded):
            old, new = match["old"], match["new"]
            there = re.search(rf"(?<!\w){re.escape(old)}(?!\w)", own)
            if there and new not in words_of(own) and new not in read_orders().order_words:
                written = plain[match.start("new") : match.end("new")]
                return f"{item.text[: there.start()]}{written}{item.text[there.end() :]}"
    return ""


def _shift(item: ListedItem, text: str, times: FoundTimes, now: datetime) -> Plan:
    folded = fold(text)
    length = find_length(folded)
    only_length = length and not times.of_kind("day", "clock", "repeat", "part")
    later, sooner = (any(says(name, folded) for name in names) for names in (_LATER, _SOONER))
    if only_length and length and item.due and (later or sooner):
        at = item.due + (-1 if sooner else 1) * timedelta(minutes=length.minutes, days=length.days)
        return (yield from _set(item, at, bool(length.minutes), ""))
    days = times.of_kind("day")
    if len(days) > 1:  # the day that it was comes first
        times = replace(
            times, pieces=tuple(piece for piece in times.pieces if piece.kind != "day" or piece is days[-1])
        )
    if not times.pieces and (hour := _BARE_HOUR.search(folded)):
        times = find_times(f"at {hour[1]}")
    resolved = resolve_times(times, now, item.due)
    if resolved is None:
        raise OtherAnswer
    if (
        says("sense_more", folded)
        and item.kind == "reminder"
        and not (says("sense_other", folded) and not times.has_clock)
    ):
        when = f"every day at {resolved.at:%H:%M}" if item.often == "every day" else resolved.at.strftime(MOMENT)
        return (yield from call_tool("set_reminder", text=item.text, when=when))
    at = _nearest(item, times, resolved.at, now)
    rule = times.rule
    start = at if not rule or times.has_clock or times.has_day else item.due or at
    if not rule and item.often and times.of_kind("day") and (day := re.match(r"every (\w+day)\b", item.often)):
        rule = f"FREQ=WEEKLY;BYDAY={_code(resolved.at)}" if day[1] != "weekday" else ""
    elif rule == "FREQ=WEEKLY" and item.due:
        rule = f"FREQ=WEEKLY;BYDAY={_code(item.due)}"
    return (yield from _set(item, start, times.has_clock, rule))


def _nearest(item: ListedItem, times: FoundTimes, at: datetime, now: datetime) -> datetime:
    """Of an hour that may be of the morning or the afternoon the one nearer to what it was."""
    clocks = times.of_kind("clock")
    if not item.due or item.often or times.of_kind("day", "part") or len(clocks) != 1 or clocks[0].half:
        return at
    first = item.due.replace(hour=at.hour % 12, minute=at.minute)
    readings = [moment for moment in (first, first + timedelta(hours=12)) if moment > now]
    if at.hour > 12 or clocks[0].minutes >= 720:
        return at
    return min(readings, key=lambda moment: abs(moment - item.due) if item.due else timedelta(0), default=at)


def _set(item: ListedItem, at: datetime, has_clock: bool, rule: str) -> Plan:
    if item.kind == "todo":
        due = at.strftime(MOMENT if has_clock else "%Y-%m-%d")
        return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[item.id], due=due)))
    if rule:
        return (yield from call_tool("change_reminder", id=item.id, when=at.strftime(MOMENT), repeat=rule))
    return (yield from call_tool("change_reminder", id=item.id, when=at.strftime(MOMENT)))


def _code(at: datetime) -> str:
    return ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[at.weekday()]
