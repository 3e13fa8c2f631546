"""Plans that set something new: reminders, alarms and timers, and things on lists. Pure; as `plans` tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from assistant.core.text import lazy_regex
from assistant.core.time_language import H
from assistant.core.time_pieces import FoundTimes, are_joined, find_times
from assistant.core.time_readers import find_length
from assistant.core.time_resolve import resolve_times
from assistant.models.offline.asides import counts_things, order_without_reason, says_how_many, settled_things
from assistant.models.offline.chatter import without_told
from assistant.models.offline.cues import TEA, fold, read_cues, says, says_any
from assistant.models.offline.exceptions import BEYOND_RULES, find_exception, first_and_rule
from assistant.models.offline.lists import (
    ListPart,
    list_parts,
    names_list,
    order_subject,
    quoted_items,
    spell_headings,
    split_items,
    todo_items,
)
from assistant.models.offline.matching import ListedItem, count_hits
from assistant.models.offline.moments import (
    MOST_PARTS,
    PARTS,
    SENTENCE_PARTS,
    each_with_moment,
    joined_moments,
    of_twenty_four,
    phrase_of,
    spell_alarms,
    split_between,
    without_reason,
)
from assistant.models.offline.moves import move
from assistant.models.offline.order_signs import SAME_AGAIN
from assistant.models.offline.plain_forms import duty_by_day, has_deadline, last_day, names_past_day
from assistant.models.offline.plans import MOMENT, OtherAnswer, Plan, PlanContext, call_tool, describe_todos
from assistant.models.offline.targets import content_words, find_targets
from assistant.models.offline.timers import several_timers, without_for

_MORE_PARTS = lazy_regex(r"\s*[,;:]\s+(?:(?:and|und|et|y)\s+)?|\s+(?:and|und|et|y)\s+", re.IGNORECASE)
_BARE_HOUR = lazy_regex(
    rf"(?:\b(?:for|at|auf|um|a|pour|para|las)\s+)?\b(\d{{1,2}})\b|\b(?:for|at|auf|um|a|las)\s+({H})"
)
# What a reminder without words of its own is called, by how its order begins.
_NAMES = (
    ("wecker", "Wecker"),
    ("weck", "Wecker"),
    ("reveil", "Réveil"),
    ("sonne", "Réveil"),
    ("alarme", "Alarme"),
    ("alarma", "Alarma"),
    ("alarm", "Alarm"),
    ("despert", "Despertador"),
    ("despier", "Despertador"),
    ("levanta", "Despertador"),
    ("wake", "Wake up"),
)
_ON_THE_LIST = "It is on the list, without an alarm. To be reminded, say when: remind me to … tomorrow at 9."

# "Wecker auf 6 und einen auf 7"
_FOR_HOUR = lazy_regex(
    r"\b(?:auf|for) (?=\d{1,2}(?:[:.]\d\d)?(?: |$|,)(?! ?(?:min|std|stunden?|sek|hours?|h\b|people|eggs)))",
    re.IGNORECASE,
)
# "And another", "und einen", "und nochmal"
_ANOTHER = lazy_regex(
    r"^(?:(?:and |und |et |y )?(?:another|one|einen?|nochmal|noch mal|again|une? autre|otr[oa])[ ,]*)+$", re.IGNORECASE
)
# What an alarm does, which is no name of it.
_RINGS_AT_END = lazy_regex(
    r"(?:^|(?<= ))(?:(?:to )?(?:go(?:es)? off|ring|sound)|klingel[nt]+|lautet|sonner?|suen[ea])[\s.!]*$"
)
# What stands before the day of a thing, and is no other thing: "the present, due the 22nd".
_OF_DUE = frozenset(["due", "deadline", "fallig", "frist", "spatestens", "by"])
_FROM_NOW_ON = lazy_regex(
    r",? *\b(?:from now on|ab (?:jetzt|sofort)|in zukunft|künftig|à partir de maintenant|désormais|dorénavant"
    r"|de ahora en adelante|a partir de ahora)\b",
    re.IGNORECASE,
)
_IS_PAST = "That time has passed, so nothing is set. Say one that is still to come: remind me to … tomorrow at 9."
_AT_WHICH_HOURS = "At what times? Nothing is set yet. Say them: remind me every day at 9 and at 18 to …"
_FOR_HOW_LONG = "For how long? Nothing is set yet. Say it with the time: set a timer for 10 minutes."
_FOR_WHEN = "For when? Nothing is set yet. Say it with the time: set an alarm for 7 tomorrow."


def remind(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """What has no time, or where no reminder can be set, goes on the to-do list, with a word that it will not ring."""
    if _only_later(text):
        return (yield from move(text, items, context))
    if (again := _again(text, items, context)) is not None:
        return (yield from call_tool("set_reminder", **again))
    anew = _FROM_NOW_ON.sub(" ", text)
    if (says("keeps_only", fold(text)) or anew != text) and _names_repeating(anew, items, context):
        return (yield from move(anew, items, context))
    text, folded = anew, fold(anew)
    if says("snooze", folded) and all(word.startswith("~") for word in content_words(text)):
        raise OtherAnswer(sure=False)  # there is nothing that could come later
    if says("asks_to_tell", folded) and not find_times(text).pieces:
        raise OtherAnswer(asks=True)
    wakes, answers = says("wake", folded) or says("alarm", folded), []
    rings = wakes or says("timer", folded)
    if says("times_a_day", folded) and not find_times(text).of_kind("clock", "part"):
        return _AT_WHICH_HOURS
    if names_past_day(text):
        return _IS_PAST
    text = read_cues().patterns["times_a_day"].sub("every day", text)
    excepted = find_exception(text)
    text = excepted.rest if excepted else text
    for what, when in _reminders_in(text):
        if rings and not when:
            return _FOR_HOW_LONG if says("timer", folded) else _FOR_WHEN
        if excepted and "set_reminder" in context.tools:
            repeating = first_and_rule(when, excepted, context.now, wakes=wakes) if context.now else None
            if repeating is None:
                return BEYOND_RULES
            answers.append((yield from call_tool("set_reminder", text=what, **repeating)))
        elif when and "set_reminder" in context.tools:
            answers.append((yield from call_tool("set_reminder", text=what, **_when(when, context.now, wakes=wakes))))
        else:
            item = f"{what} ({when})" if when else what
            result = yield from call_tool("manage_todo_list", action="add", items=[item])
            answers.append(f"{describe_todos(result)}\n\n{_ON_THE_LIST}")
    return "\n".join(answers)


def _only_later(text: str) -> bool:
    """Whether what came is to come again in a while, and nothing is named: "vuelve a avisarme en media hora"."""
    pieces, folded = find_times(text).pieces, fold(text)
    only_so_long = bool(pieces) and all(piece.kind == "delta" and piece.minutes for piece in pieces)
    return only_so_long and says("again", folded) and not says("more", folded) and not content_words(text)


def _when(phrase: str, now: datetime | None, *, wakes: bool) -> dict[str, str]:
    """The moment and how often, as the tool takes them; the words themselves where they are not understood here."""
    times = find_times(phrase)
    resolved = resolve_times(times, now, wakes=wakes) if now else None
    if resolved is None or any(piece.minutes for piece in times.of_kind("delta")):
        return {"when": phrase}
    when = {"when": resolved.at.strftime(MOMENT)}
    return when | {"repeat": resolved.rule} if resolved.rule else when


def _again(text: str, items: Sequence[ListedItem], context: PlanContext) -> dict[str, str] | None:
    """One more of what there is: on another day at the same hour, or at another hour as well."""
    folded, times = fold(text), find_times(text)
    is_more = says("again", folded) or says("sense_more", folded) or SAME_AGAIN.search(folded)
    if context.now is None or not times.pieces or not is_more:
        return None
    if says("snooze", folded) and not content_words(text):
        return None  # "not now, tell me again in ten minutes": it comes later, and not twice
    text = SAME_AGAIN.sub(" ", text)
    reminders = [item for item in items if item.kind == "reminder"]
    targets = find_targets(text, reminders, context, times)
    if len(targets.items) != 1:
        return None
    item = targets.items[0]
    words = content_words(text)
    if len(words) > count_hits(words, item) + 1:
        return None
    if (before := times.of_kind("before")) and item.due and not times.of_kind("clock", "day"):
        earlier = item.due - timedelta(minutes=before[0].minutes, days=before[0].days)
        return {"text": item.text, "when": earlier.strftime(MOMENT)}
    at = resolve_times(times, context.now, item.due)
    if at is None:
        return None
    rule = find_times(item.often).rule
    if rule == "FREQ=DAILY" and not times.of_kind("day"):
        return {"text": item.text, "when": f"every day at {at.at:%H:%M}"}
    return {"text": item.text, "when": at.at.strftime(MOMENT)}


def _names_repeating(text: str, items: Sequence[ListedItem], context: PlanContext) -> bool:
    """Whether it speaks of a reminder that comes again and again, and of nothing else."""
    repeating = [item for item in items if item.kind == "reminder" and item.often]
    words = content_words(text)
    found = find_targets(text, repeating, context, find_times(text)).items if words else ()
    return len(found) == 1 and count_hits(words, found[0]) == len(words)


def _reminders_in(text: str) -> list[tuple[str, str]]:
    """(what, when) of each reminder that a sentence asks for."""
    if not TEA.search(text):
        return _reminders_without_marks(text)
    # "Du thé demain": without its accent, what is before the day would be "the", and a part of the time.
    marked = TEA.sub(lambda match: f"{match[0]}~", text)
    return [(what.replace("~", ""), when.replace("~", "")) for what, when in _reminders_without_marks(marked)]


def _reminders_without_marks(text: str) -> list[tuple[str, str]]:
    text = order_without_reason(text)
    folded = fold(text)
    wakes = says("wake", folded)
    rings = wakes or says("alarm", folded)
    if wakes and (alone := without_reason(text)):
        return _reminders_in(alone)
    text = spell_alarms(text) if rings else text
    times = find_times(_FOR_HOUR.sub("at ", text) if rings else text)
    if says("timer", folded) and len(timers := several_timers(text)) > 1:
        return timers
    if says("timer", folded) or (not times.pieces and find_length(folded)):
        length = find_length(folded)
        minutes = length.minutes or length.days * 1440 if length else 0
        rest = f"{text[: length.start]} {text[length.end :]}" if length else ""
        if minutes:
            return [(order_subject(without_for(rest)) or "Timer", f"in {minutes} minutes")]
    times = of_twenty_four(times)
    clocks = times.of_kind("clock")
    parts = [piece for piece in times.pieces if piece.part and piece.kind in ("part", "repeat")]
    if len(clocks) < 2 and 1 < len(parts) <= MOST_PARTS and are_joined(times, parts):
        # "every morning and every evening"
        others = [piece for piece in times.pieces if piece not in parts]
        return [(order_subject(times.words), phrase_of(times, [part, *others])) for part in parts]
    hours = times.of_kind("clock", "part")
    if len(clocks) == 1 and 1 < len(hours) <= MOST_PARTS and are_joined(times, hours):
        # "at midday and at 6"
        others = [piece for piece in times.pieces if piece not in hours]
        words = times.words.replace(" and ", " ").replace(" und ", " ")
        return [(order_subject(words), phrase_of(times, [hour, *others])) for hour in hours]
    if len(clocks) > 1 and not are_joined(times, clocks) and (event := _before_event(times)):
        return [event]
    if 1 < len(clocks) <= MOST_PARTS:
        return _several(times)
    if len(days := times.joined_days) > 1 and len(days) <= MOST_PARTS and not times.rule:
        others = [piece for piece in times.pieces if piece not in days]
        return [(order_subject(times.words.replace(" and ", " ")), phrase_of(times, [day, *others])) for day in days]
    if not clocks and not times.rule and 1 < len(parts_of_days := joined_moments(times)) <= MOST_PARTS:
        # "tonight and tomorrow morning"; "tomorrow morning the dog, and in the evening the cat"
        return [(order_subject(times.words), phrase_of(times, pieces)) for pieces in parts_of_days]
    if len(clocks) < 2 and not times.rule and len(own := each_with_moment(times)) > 1:
        return own
    deltas = times.of_kind("delta")
    if 1 < len(deltas) <= MOST_PARTS and are_joined(times, deltas):
        return [(_subject(times.words, folded, wakes=wakes), phrase_of(times, [delta])) for delta in deltas]
    when = times.phrase
    if (
        rings
        and not (clocks or times.rule or times.of_kind("delta", "part"))
        and (hour := _BARE_HOUR.search(fold(times.words)))
    ):
        words = f"{times.words[: hour.start()]} {times.words[hour.end() :]}"
        return [(_subject(words, folded, wakes=wakes), f"{when} at {hour[1] or hour[2]}".strip())]
    return [(_subject(times.words, folded, wakes=wakes), when)]


def _subject(words: str, folded: str, *, wakes: bool) -> str:
    """What a reminder is called."""
    subject = order_subject(words)
    if says("alarm", folded) and (ring := _RINGS_AT_END.search(fold(subject))):
        subject = subject[: ring.start()].rstrip(" ,")
    if subject and not (wakes and len(subject.split()) < 2):
        return subject
    name = next((name for word, name in _NAMES if word in folded), "Reminder")
    return f"{name}: {subject}" if subject else name


def _before_event(times: FoundTimes) -> tuple[str, str] | None:
    """What is at one time, to be reminded of at another: "notary on Thursday at 3, tell me the day before at 6"."""
    parts = split_between(times, SENTENCE_PARTS)
    read = [find_times(part) for part in parts]
    calls = [
        n
        for n, part in enumerate(parts)
        if any(says(name, fold(part)) for name in ("set_reminder", "wants_reminder", "nudges"))
    ]
    calls = calls[-1:]  # "don't let me miss the 8:15, wake me at 7"
    names_more = [word for n in calls for word in content_words(parts[n]) if not word.startswith("~")]
    if not calls or not read[calls[0]].of_kind("clock", "before") or names_more:
        return None
    others = [one for n, one in enumerate(read) if n != calls[0]]
    event = next((one for one in others if one.of_kind("clock")), None)
    call, subject = read[calls[0]], ", ".join(filter(None, (order_subject(one.words) for one in others)))
    if event is None or not subject:
        return None
    days = [] if call.of_kind("day", "repeat") else [phrase_of(one, one.of_kind("day")) for one in others]
    return subject, " ".join([*filter(None, days), call.phrase])


def _several(times: FoundTimes) -> list[tuple[str, str]]:
    """One for each hour: with its own words where it has some, else with those of all."""
    parts = split_between(times, PARTS)
    read = [find_times(part) for part in parts]
    if len(parts) < 2 or any(len(part.of_kind("clock")) != 1 for part in read):
        parts = [part for part in split_between(times, _MORE_PARTS) if find_times(part).of_kind("clock")]
        read = [find_times(part) for part in parts]
    if len(parts) < 2:
        clock = times.of_kind("clock")[-1]
        kept = [piece for piece in times.pieces if piece.kind != "clock" or piece is clock]
        return [(order_subject(times.words), phrase_of(times, kept))]
    whole = _ANOTHER.sub("", order_subject(times.words))
    whole = whole or (
        _subject("", fold(times.text), wakes=True) if says_any(("wake", "alarm"), fold(times.text)) else ""
    )
    subjects = [order_subject(part.words) if content_words(part.text) else "" for part in read]
    shared = " ".join(
        times.text[piece.start : piece.end]
        for piece in times.pieces
        if piece.kind in ("repeat", "day") and len(times.of_kind(piece.kind)) == 1
    )
    known = next(filter(None, subjects), "") if sum(map(bool, subjects)) == 1 else ""
    reminders = []
    for part, subject in zip(read, subjects, strict=True):
        has_day = part.of_kind("repeat", "day") or any(piece.offset is not None for piece in part.of_kind("part"))
        own = part.phrase if has_day else f"{shared} {part.phrase}"  # "tonight" is today
        plain = re.sub(r"^(?:und|and|et|y) |(?: und| and| et| y)$", "", known or whole)
        reminders.append((subject if all(subjects) else plain, own.strip()))
    return reminders


def add(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """Things on a list, or on several, with a day where one is named."""
    if duty := duty_by_day(text, context.now):
        what, day = duty
        return describe_todos((yield from call_tool("manage_todo_list", action="add", items=[what], due=day)))
    head, _, rest = text.partition(":")
    # "Two things for the weekend: honey and nuts, on the shopping list"
    text = rest.strip() if names_list(rest) and says_how_many(head) else text
    parts = list_parts(spell_headings(text))
    if len(parts) == 1:
        return (yield from _add_to(parts[0], context))
    answers = []
    for part in parts:
        answers.append((yield from _add_to(part, context)))
    return "\n".join(answers)


def _add_to(part: ListPart, context: PlanContext) -> Plan:
    text, times = part.words, find_times(part.words)
    name = part.name or (_list_of_last_addition(context) if not part.is_named and says("more", fold(text)) else "")
    heading = says("add_heading", fold(text)) or says("list_heading", fold(text))
    # "Bread for Friday" is a thing to buy; "due Friday" and "by Friday" are no part of one.
    is_due = not name or has_deadline(text)
    due = times.phrase if times.has_day and is_due else ""
    due = (_due_date(times, context.now) if due and context.now else "") or due
    if not (name or due) and times.of_kind("span") and context.now:  # "this weekend"
        due = last_day(times, context.now)
    dated = [find_times(each).has_day for each in PARTS.split(text)]
    freely = (
        bool(name)
        or (len(dated) > 1 and all(dated))
        or (bool(heading) and "," in text)
        or says("several", fold(text))
        or counts_things(text)
        or "," in text
    )
    words = times.words if due else text
    words = order_subject(words) if says("set_reminder", fold(text)) and not part.is_named else words
    things = quoted_items(text) or without_told(settled_things(split_items(todo_items(words), freely=freely)))
    things = [thing for thing in things if not (due and fold(thing) in _OF_DUE)] or things
    if not all(things):
        raise OtherAnswer
    arguments: dict[str, object] = {"action": "add", "items": things, **({"list": name} if name else {})}
    own = [find_times(each) for each in split_items(todo_items(text), freely=freely)] if due else []
    if ":" in text and find_times(text.partition(":")[0]).has_day:
        own = []  # the day is that of all
    if context.now and len(own) == len(things) > 1 and any(each.has_day for each in own[:-1]):
        result = ""
        for thing, each in zip(things, own, strict=True):
            day = _due_date(each, context.now)
            result = yield from call_tool(
                "manage_todo_list", **{**arguments, "items": [thing]}, **({"due": day} if day else {})
            )
        return describe_todos(result)
    return describe_todos((yield from call_tool("manage_todo_list", **arguments, **({"due": due} if due else {}))))


def _due_date(times: FoundTimes, now: datetime) -> str:
    at = resolve_times(times, now) if times.has_day else None
    return at.at.strftime(MOMENT if times.has_clock else "%Y-%m-%d") if at else ""


def _list_of_last_addition(context: PlanContext) -> str:
    """Something else for the list that was added to just now: "and butter"."""
    last = context.earlier[-1] if context.earlier else None
    return str(last.arguments.get("list", "")) if last and last.arguments.get("action") == "add" else ""
