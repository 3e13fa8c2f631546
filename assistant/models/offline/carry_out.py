"""What a sentence wants, and how far it is carried out: the results so far decide the next call. Pure.

A sentence that may be an order is read against what the person has: its intents are ranked (`intents`), and the first
whose plan finds something to do is carried out. What always holds: an order is never answered as a statement, and what
fits nothing is refused in words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import cache

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex
from assistant.core.time_pieces import find_times
from assistant.models.offline.additions import add, remind
from assistant.models.offline.agenda_answers import ask, look_up
from assistant.models.offline.asides import BETWEEN_ORDERS, drops_behind, tells_when_shut, without_what_stays
from assistant.models.offline.changes import complete, drop
from assistant.models.offline.cues import fold, read_cues, says, says_any
from assistant.models.offline.exchanges import exchange, pair_to_exchange
from assistant.models.offline.intents import is_understood, rank_intents, rank_without_items
from assistant.models.offline.lists import list_names, names_list, order_subject, without_lists
from assistant.models.offline.matching import ListedItem, count_hits, matching, subject_words, words_of
from assistant.models.offline.mood import tells_without_subject
from assistant.models.offline.moves import move, relist, spell_hours, undate
from assistant.models.offline.order_signs import (
    DOUBTFUL,
    LIKELY,
    NOT_BUT,
    NOUN_CUES,
    STRONG_CUES,
    SURE,
    TOLD,
    asks_for_reminder,
    commands,
    may_be_meant,
    may_be_request,
)
from assistant.models.offline.order_spelling import spell_lists
from assistant.models.offline.plain_forms import only_tells_of_new
from assistant.models.offline.plans import (
    CANNOT,
    OtherAnswer,
    Plan,
    PlanContext,
    ToolFailedError,
    ToolStep,
    call_tool,
    changed_right_before,
    describe_todos,
    find_last_changed,
    names_item,
    read_items,
    refuse,
)
from assistant.models.offline.pointing import moves_in_part
from assistant.models.offline.remark_forms import brings_back, is_off_for_done, points_at_there
from assistant.models.offline.rewording import is_new_name, names_swap, rename
from assistant.models.offline.sentence_forms import admits_mistake, intent_of_form
from assistant.models.offline.targets import content_words
from assistant.models.offline.timers import is_the_alarm
from assistant.models.offline.undo import UNCHANGED, do_to_other, is_taken_back, other_number, reopen, undo
from assistant.models.offline.whole_lists import plan_for_whole_list
from assistant.models.offline.word_swaps import find_doubled

# From these chances on, nothing of what the person has would change it.
_SURELY_NEW = {"cannot": 0.9, "add": 0.9, "remind": 0.9}
_CLEAR = 0.8
# From this chance on, what declares something of a thing and names no time only tells it.
_DECLARED = 0.85
# Below it, nothing is done for an intent that is not the likeliest.
_LEAST = 0.15
_MOST_ORDERS = 4
_MOST_PARTS = 8
_SURE_PART = 0.6
_NEW = frozenset(["add", "remind", "ask", "cannot"])
_CHANGING = frozenset(["add", "complete", "drop", "move", "remind", "rename", "relist", "reopen", "undated"])
_NOT_HAD = lazy_regex(
    r"(?:no|pas d(?:e|es|u)?|plus d(?:e|es|u)?|kein\w*|there (?:was|were|is) no|(?:il )?(?:n')?y (?:a|avait|en avait)"
    r" (?:plus|pas)|(?:en )?(?:a|avait) (?:plus|pas) d(?:e|u|es)?|no (?:habia|hay|quedaba\w*)|sin)\b"
)
_INSTEAD = lazy_regex(
    r"\b(?:instead|in its place|stattdessen|dafür|dafur|à la place|a la place|en su lugar|lieber|plutôt|plutot"
    r"|mejor)\b",
    re.IGNORECASE,
)
# "No eggs needed, but do get butter"
_NOT_NEEDED = lazy_regex(
    r"^no \w.* (?:needed|required)$|\bbrauch\w* (?:wir |ich )?(?:nicht|kein\w*)\b"
    r"|\b(?:no hacen? falta|laisse tomber|on s'en passe)\b"
)
_GET_OTHER = lazy_regex(
    r"\s*(?:(?:do|please|just|we need to|we should|i'll|bitte|dann) )*(?:get|buy|grab|kauf\w*|hol\w*|nimm|prends"
    r"|achete\w*|compra|coge)\b"
    r"(?: (?:some|mir|uns|nous|lieber|plutot|mejor))*|\s*(?:dafur|stattdessen|plutot|mejor|instead)\b"
)
MAYBE_AN_ORDER = (
    "I took that as something you told me: it is noted, and no reminder or to-do was changed. If you wanted one, say "
    'it as an order: "remind me to … tomorrow at 9", "add … to my list", "cancel the reminder about …".'
)
UNCLEAR_ORDER = (
    "I can't do that offline, or I don't understand it: nothing was changed, and your message is kept. Offline I set "
    "reminders, keep lists and find what you told me: say `help` for examples. Anything else needs a language model."
)

NOT_UNDERSTOOD = 'I don\'t understand "{part}" offline, so nothing was changed for it.'

# "Laisse tomber", of which nothing can be meant
_NOTHING_THERE = "All right. You have no reminder and no to-do, so there is nothing to change."

Reader = Callable[[str, Sequence[ListedItem], PlanContext], Plan]


@dataclass(frozen=True, slots=True)
class NoOrder:
    """A sentence that tells or asks something, and is no order."""

    used: int  # so many results were read to see it
    asks: bool = False
    sure: bool = True
    names_item: bool = True  # or may: nothing was read


def run_plan(text: str, results: Sequence[str], context: PlanContext, *, corrects: bool) -> ToolStep | str | NoOrder:
    """The next call, or the answer, or that it is no order. `corrects`: it has the form of a correction, which changes
    something that is there or what was told, and sets nothing new."""
    return _run(carry_out(text, context, corrects=corrects), results)


def run_look_up(text: str, results: Sequence[str], context: PlanContext) -> ToolStep | str | NoOrder:
    """As `run_plan`, for a question that nothing told answers."""
    return _run(look_up(text, context), results)


def _run(plan: Plan, results: Sequence[str]) -> ToolStep | str | NoOrder:
    used = 0
    try:
        step = next(plan)
        for result in results:
            used += 1
            step = plan.send(result)
        return step
    except StopIteration as end:
        return str(end.value)
    except OtherAnswer as other:
        return NoOrder(used, other.asks, other.sure, other.names_item)
    except ToolFailedError as error:
        return f"That did not work: {error}"


def carry_out(text: str, context: PlanContext, *, corrects: bool = False) -> Plan:
    """Raises `OtherAnswer` for a statement or a question about what was told."""
    if is_taken_back(text):
        return UNCHANGED
    if says("lets_it_be", fold(text)):
        if not changed_right_before(context):
            raise OtherAnswer
        return (yield from undo(text, (), context))
    if says("undo", fold(text)) and (changed_right_before(context) or not says("drop", fold(text))):
        return (yield from undo(text, (), context))
    if (number := other_number(text)) is not None:
        if not changed_right_before(context):
            raise OtherAnswer  # what was told is put right
        return (yield from do_to_other(number, (yield from read_items(context)), context))
    if not corrects and asks_for_reminder(text):
        from assistant.models.offline.events import remind_before_event

        if (answer := (yield from remind_before_event(text, context))) is not None:
            return answer
    # "No, on Thursday" is about what was just said, and about nothing before it.
    if corrects and not content_words(text) and not brings_back(text, (), context):
        context = replace(context, earlier=[call for call in context.earlier if call.is_latest])
        kind, changed = find_last_changed(context)
        if not changed:
            raise OtherAnswer
        text = spell_hours(text) if kind == "reminder" else text
    text = spell_lists(text, ())
    if (of_list := plan_for_whole_list(text)) is not None:
        todos = yield from read_items(context, reminders=False)
        return (yield from of_list(spell_lists(text, {item.list for item in todos if item.list}), todos))
    items = yield from _read_what_counts(text, context)
    text = without_what_stays(spell_lists(text, {item.list for item in items if item.list}), items)
    if (pair := pair_to_exchange(text, items)) is not None:
        return (yield from exchange(*pair))
    if (swap := _swap(text, items)) is not None:
        return (yield from _carry_out_swap(*swap, context))
    parts = _several_orders(text, items) if not corrects else [text]
    try:
        if parts != [text]:
            answers, known = [], ""
            for part in parts:
                known = next((name for name in list_names(part) if name), known)
                if known and says("puts", fold(part)) and not names_list(part):
                    part = f"{part} on the {known.replace(' ', '-')} list"  # "bananas off the shopping, but add grapes"
                answers.append((yield from _carry_out_one(part, items, context)))
            return "\n".join(answers)
        if (drops := drops_behind(text, items)) is not None:
            other, order = drops
            dropped = yield from _carry_out_one(order, items, context)
            return dropped if says("keeps", fold(other)) else f"{dropped}\n{NOT_UNDERSTOOD.format(part=other)}"
        return (yield from _carry_out_one(text, items, context, corrects=corrects))
    except OtherAnswer as other:
        other.names_item = names_item(text, items)
        raise


def _swap(text: str, items: Sequence[ListedItem]) -> tuple[ListedItem, str] | None:
    """A to-do that is to go, and the order that puts something else in its place: "milk off and put oat milk on"."""
    parts = [part for part in BETWEEN_ORDERS.split(text) if part.strip()]
    if len(parts) != 2 or find_times(text).pieces:
        return None
    gone, new = parts
    named = matching(
        subject_words(without_lists(gone)), [item for item in items if item.kind == "todo" and not item.done]
    )
    takes = says_any(("drop", "sense_drop", "needs_no_more"), fold(gone)) or _NOT_NEEDED.search(fold(gone))
    puts = says("puts", fold(new)) or _GET_OTHER.match(fold(new))
    if len(named) != 1 or not takes or says_any(("sense_drop", "needs_no_more"), fold(new)) or not puts:
        return None
    other = _plain_new(new)
    # "Take milk off and put oat milk": what it is like is what goes.
    others = [item for item in items if item is not named[0]]
    return (named[0], other) if content_words(other) and not matching(subject_words(other), others) else None


def _plain_new(new: str) -> str:
    """The thing that takes the place of another, without the words that say so: "dafür Butter"."""
    put = _INSTEAD.sub(" ", new)
    verb = _GET_OTHER.match(fold(put))
    return put[verb.end() :] if verb and not says("puts", fold(new)) else put


def _carry_out_swap(gone: ListedItem, new: str, context: PlanContext) -> Plan:
    removed = yield from call_tool("manage_todo_list", action="remove", ids=[gone.id])
    put = new
    if gone.list and not any(list_names(new)):
        put = f"{new} on the {gone.list.replace(' ', '-')} list"
    return f"{describe_todos(removed)}\n{(yield from add(put, (), context))}"


def _read_what_counts(text: str, context: PlanContext) -> Generator[ToolStep, str, list[ListedItem]]:
    """What the person has, as far as it may change how a sentence is read."""
    folded = fold(text)
    intent, chance = rank_without_items(text)[0]
    more_of_it = says("again", folded) or says("sense_more", folded)
    changing = ("rename", "swaps", "move", "off_list", "sense_drop", "sense_back", "reopen")
    otherwise = ("amend", "instead", "later_by", "earlier_by", "keeps_only", "snooze")
    more_of_it = more_of_it or (intent == "remind" and (says_any(otherwise, folded) or is_the_alarm(folded)))
    more_of_it = more_of_it or says_any(changing, folded) or "→" in text
    more_of_it = more_of_it or (intent == "add" and not list_names(text))  # perhaps a list by its name alone
    if chance >= _SURELY_NEW.get(intent, 2) and not more_of_it and not BETWEEN_ORDERS.search(text):
        return []
    only_lists = names_list(text) and not says_any(("reminder_noun", "lists_all"), folded)
    return (yield from read_items(context, reminders=not only_lists))


def _several_orders(text: str, items: Sequence[ListedItem]) -> list[str]:
    """The orders of a sentence that gives several, each with all that is said until the next begins; else the whole."""
    if is_off_for_done(text) or is_new_name(text) or (NOT_BUT.search(fold(text)) and names_swap(text, items)):
        return [text]
    ends = [match.span() for match in BETWEEN_ORDERS.finditer(text)]
    if not 0 < len(ends) <= _MOST_PARTS:
        return [text]
    starts = [0, *(end for _, end in ends)]
    orders: list[tuple[int, int]] = [(0, ends[0][0])]
    for start, end in zip(starts[1:], [*(begin for begin, _ in ends[1:]), len(text)], strict=True):
        if text[start:end].strip() and all(_order_of(text[one:two], items) for one, two in (orders[-1], (start, end))):
            orders.append((start, end))
        else:
            orders[-1] = (orders[-1][0], end)
    parts = [text[start:end] for start, end in orders]
    intents = [_order_of(part, items) for part in parts]
    if intents[0] == "complete" and any(_NOT_HAD.match(fold(part)) for part in parts[1:]):
        return parts[:1]  # "grapes found, no ham": that is still to be got
    if not 1 < len(parts) <= _MOST_ORDERS or not all(intents):
        return [text]
    if intents[0] == "remind" and not any(map(may_be_request, parts[1:])):
        return [text]  # "remind me of the bins tonight at 7 and of the glass tomorrow at 8": one order for both
    lists = [tuple(filter(None, list_names(part))) for part in parts]
    several = (all(lists) and len(set(lists)) == len(parts)) or len(set(intents)) > 1
    same_kind = intents[0] in ("remind", "move") and rank_intents(text, items)[0][0] == intents[0]
    return parts if several or same_kind else [text]


def _order_of(part: str, items: Sequence[ListedItem]) -> str:
    """What a part of a sentence surely orders, where it says all that it needs; else ""."""
    if _only_names(part, items) or tells_when_shut(part):
        return ""  # "the tea and the coffee", behind their verb
    if find_doubled(part, items):
        return "rename"
    intent, chance = rank_intents(part, items)[0]
    return intent if intent in _CHANGING and chance > _SURE_PART and _stands_alone(part, intent, items) else ""


def _only_names(part: str, items: Sequence[ListedItem]) -> bool:
    """Whether a part of a sentence is a thing that is there, and says nothing of it."""
    words = [word for word in words_of(part) if word not in read_cues().articles]
    found = matching(words, items)
    return bool(found) and count_hits(words, found[0]) == len(words)


def _stands_alone(part: str, intent: str, items: Sequence[ListedItem]) -> bool:
    """Whether an order names what it is about, and when where it sets something."""
    if intent == "remind":
        times = find_times(part)
        return bool(times.pieces) and bool(content_words(part)) and bool(order_subject(times.words))
    if intent == "add":
        return bool(content_words(part)) and (any(list_names(part)) or names_list(part) or says("puts", fold(part)))
    return bool(matching(subject_words(without_lists(part)), items))


def _carry_out_one(text: str, items: Sequence[ListedItem], context: PlanContext, *, corrects: bool = False) -> Plan:
    mistaken = admits_mistake(text) and changed_right_before(context)  # "mixed up the days, it's Monday"
    points = mistaken or points_at_there(text) or names_item(text, items)
    if (tells_without_subject(text) or only_tells_of_new(text)) and not points:
        raise OtherAnswer
    ranked = rank_intents(text, items)
    first = intent_of_form(text, items, context, ranked[0][0], corrects=corrects)
    ranked.sort(key=lambda pair: pair[0] != first)
    requests = may_be_request(text)
    plain = not (requests or names_list(text) or says_any(("cannot", *STRONG_CUES, *NOUN_CUES), fold(text)))
    declares = says("forms", fold(text)) and says("states", fold(text)) and not find_times(text).pieces
    states = (
        says("states", fold(text)) or says("forms", fold(text)) or (ranked[0][1] < DOUBTFUL and not is_understood(text))
    )
    chances = dict(ranked)
    for intent, chance in ranked:
        if intent in TOLD:
            if says("erase_words", fold(text)) and not says("teller", fold(text)):
                break
            if commands(text) and moves_in_part(text, items, context.now):
                return (yield from move(text, items, context))
            raise OtherAnswer(
                asks=intent == "question",
                sure=not may_be_meant(text)
                and (chance >= (_DECLARED if declares else SURE) or (plain and (intent == ranked[0][0] or states))),
            )
        if corrects and intent in _NEW and chance < _CLEAR:
            raise OtherAnswer
        if chance < _LEAST and intent != ranked[0][0]:
            break
        try:
            moves = intent == "cannot" and moves_in_part(text, items, context.now)
            return (yield from readers_by_intent()["move" if moves else intent](text, items, context))
        except OtherAnswer:
            if intent in ("ask", "cannot"):
                raise OtherAnswer(asks=True) from None
            continue
    likely_told = sum(chances[intent] for intent in TOLD) >= LIKELY
    if not says("erase_words", fold(text)) and (likely_told or not requests):
        raise OtherAnswer(sure=False)
    if not (items or content_words(text) or "?" in text):
        return _NOTHING_THERE
    if moves_in_part(text, items, context.now):
        return (yield from move(text, items, context))
    return refuse(text)


def _cannot(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    yield from ()
    asks = "?" in text or says("asks", fold(text))
    if asks and not says_any(("you_do", "arithmetic"), fold(text)):
        raise OtherAnswer(asks=True)  # what it is about may have been told
    return refuse(text) if says_any(("erase_words", "words_said"), fold(text)) else CANNOT


@cache
def readers_by_intent() -> dict[str, Reader]:
    """Return what carries out each kind of order, by the name of its intent."""
    return {
        "add": add,
        "ask": ask,
        "cannot": _cannot,
        "complete": complete,
        "drop": drop,
        "move": move,
        "remind": remind,
        "rename": rename,
        "reopen": reopen,
        "relist": relist,
        "undated": undate,
    }
