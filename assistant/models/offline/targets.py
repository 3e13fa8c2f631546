"""Which of the reminders and to-dos that are there a sentence speaks of. Pure.

What always holds: one is meant only where the words say so. What the words name and nobody has is nothing; what fits
several is all of them, for the caller to ask which; the newest change is meant only by words that name nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.dataclass import dataclass
from assistant.core.quoting import quote_text
from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import TimePiece, find_length
from assistant.core.time_resolve import day_range
from assistant.models.offline.cues import clauses, fold, read_cues, says, spell_things
from assistant.models.offline.lists import is_same_list, list_names, without_lists
from assistant.models.offline.matching import (
    ListedItem,
    count_hits,
    each_named,
    kinds_named,
    matching,
    subject_words,
)
from assistant.models.offline.plans import PlanContext, changed_right_before, find_last_changed

NUMBER = lazy_regex(
    r"(?:#|\b(?:number|no\.?|nummer|nr\.?|numero|item|task|todo|reminder|erinnerung|rappel|recordatorio) )(\d{1,9})\b"
)
# It means what was just spoken of.
_POINTS_BACK = lazy_regex(
    r"\b(?:that|this|it|ihn|es|das|ca|celui|eso|esto|just|gerade|eben|viens de|acab\w+|last|letzte\w*"
    r"|dernier\w*|ultim[oa])\b|-l[ea]\b|\wl[oa]$"
)
_NOT = lazy_regex(r"^(?:not|nicht|pas|no) ")
_NO = lazy_regex(r"^(?:no|nope|nah|nein|nee|non|ach|oh)\W*$")
# "No, wait, it's at six": how it is, and not which one it is.
_STATES = lazy_regex(
    r"^(?:(?:no|nope|nein|nee|non|wait|warte|espera|attends?|finalement|al final|actually|eigentlich|sorry|doch)\b\W*)+"
    r"(?:(?:it'?s|it is|c'est|es ist|ist es|ist|es|sera|wird)\b|(?:erst|um|at|a|a las?)\b)"
)
_MOST_OTHER_WORDS = 4
_LISTED, _SHOWN = (
    ("list_reminders", "manage_todo_list"),
    ("show_agenda", "search_history", "search_memory", "read_history"),
)
_THING = (
    r"(?:one|item|thing|entry|point|task|reminder|punkte?|eintrag|aufgabe|erinnerung|ding|point|element|tache"
    r"|rappel|punto|elemento|cosa|tarea|recordatorio)?"
)
_PLACES = tuple(
    lazy_regex(rf"\b(?:{words})\b(?: {_THING})?")
    for words in (
        "first|1st|erste[nrs]?|premiere?|1er|1ere|primer[oa]?",
        "second|2nd|zweite[nrs]?|deuxieme|2e(?:me)?|segund[oa]",
        "third|3rd|dritte[nrs]?|troisieme|3e(?:me)?|tercer[oa]?",
        "fourth|4th|vierte[nrs]?|quatrieme|cuart[oa]",
        "fifth|5th|funfte[nrs]?|cinquieme|quint[oa]",
    )
)

# "The first two", "les deux premiers", "the last three"
_FIRST_OF = lazy_regex(
    r"\b(?:(?P<end>last|bottom|letzten|dernier\w*|ultim[oa]s)|first|top|ersten|premier\w*|primer[oa]s) "
    r"(?P<number>two|three|2|3|zwei|beiden|drei|deux|trois|dos|tres)\b"
    r"|\b(?P<number2>deux|trois|dos|tres|2|3) (?:(?P<end2>dernier\w*|ultim[oa]s)|premier\w*|primer[oa]s)\b"
)
_PLURAL = lazy_regex(r"\b(?:reminders|erinnerungen|rappels|recordatorios)\b")
# "Quita lo del viernes"
_ALL_OF_DAY = lazy_regex(
    r"\blo (?:de|del|de la|de los) (?:hoy|manana|pasado manana|lunes|martes|miercoles|jueves|viernes|sabado|domingo"
    r"|fin de semana|semana)\b"
)
_THREE = frozenset(["three", "3", "drei", "trois", "tres"])


@dataclass(frozen=True, slots=True)
class Targets:
    """What a sentence speaks of."""

    items: Sequence[ListedItem]
    all_meant: bool = False  # several, and the sentence means each of them
    is_newest: bool = False  # named by nothing but being the newest
    is_everything: bool = False  # whatever there is, and no word says of what kind

    def __bool__(self) -> bool:
        return bool(self.items)

    @property
    def unclear(self) -> bool:
        return len(self.items) > 1 and not self.all_meant


def find_targets(
    text: str, items: Sequence[ListedItem], context: PlanContext, times: FoundTimes, *, may_keep: bool = False
) -> Targets:
    """Of `items`, in the order of what names them best: numbers, words, lists, times, and being the newest."""
    text = spell_things(text)
    folded = fold(text)
    pool = _of_kind(folded, items)
    lists = [name for name in list_names(text) if name]
    on_list = [item for item in pool if item.kind == "todo" and lists and is_same_list(item.list, lists[0])]
    number = NUMBER.search(folded)
    if number and (by_number := [item for item in pool if item.id == int(number[1])]):
        return Targets(by_number)
    if (places := _FIRST_OF.search(folded)) and not content_words(_FIRST_OF.sub(" ", folded)):
        count = 3 if (places["number"] or places["number2"]) in _THREE else 2
        shown = on_list or pool
        return Targets(shown[-count:] if places["end"] or places["end2"] else shown[:count], all_meant=True)
    if (at_place := _at_place(folded, on_list or pool)) is not None:
        return Targets([at_place])
    everything = says("all", fold(times.words))
    if may_keep and (kept := _spared(text, pool, context.now)) is not None:
        named = [item for item in _named(kept[1], on_list or pool, times) if item not in kept[0]]
        alike = [item for item in on_list or pool if item.kind == kept[0][0].kind and item not in kept[0]]
        same_list = [item for item in alike if item.list == kept[0][0].list]
        return Targets(named or same_list, all_meant=True)
    if may_keep and everything and not lists and (then := _all_at_times(times, pool, context.now)):
        return Targets(then, all_meant=True)
    named = _named(text, on_list or pool, times) or _named(text, pool, times)
    if len(named) > 1:
        narrowed = _at_old_times(named, times, context.now)
        several = each_named(without_lists(times.words), on_list or pool)
        if len(several) > 1 and len(narrowed) != 1:
            return Targets(several, all_meant=True)
        return Targets(narrowed, all_meant=everything or says("both", folded))
    if named:
        several = each_named(without_lists(times.words), on_list or pool)
        return Targets(several, all_meant=True) if len(several) > 1 else Targets(named)
    return _without_words(folded, pool, on_list, context, times, is_empty=_names_nothing(text))


def _all_at_times(times: FoundTimes, pool: Sequence[ListedItem], now: datetime | None) -> list[ListedItem]:
    """What is due then, where "all" names nothing but the time: "everything I had for Friday goes, I'm ill"."""
    match = read_cues().patterns["all"].search(fold(times.text))
    if match is None or now is None or not times.of_kind("day", "part"):
        return []
    rest = times.text[match.end() :]
    after = next((piece.start - match.end() for piece in times.pieces if piece.start >= match.end()), None)
    clause = next(iter(clauses(rest)), "") if after is None else rest[:after]
    return [] if content_words(clause) else items_at_times(pool, times, now)


def _names_nothing(text: str) -> bool:
    """Whether a clause says what is to be done without naming a thing: "clear the party list, we've called it off"."""
    if not content_words(text):
        return True
    parts = clauses(text)
    telling = ("all", "clear", "takes_back", "sense_drop", "sense_done", "sense_other", "move", "both", "latest")
    return len(parts) > 1 and any(
        not content_words(part) and not _NO.match(fold(part)) and any(says(name, fold(part)) for name in telling)
        for part in parts
    )


def _at_place(folded: str, shown: Sequence[ListedItem]) -> ListedItem | None:
    """ "The third one on my list": by its place among those that are shown."""
    for place, pattern in enumerate(_PLACES):
        if match := pattern.search(folded):
            rest = f"{folded[: match.start()]} {folded[match.end() :]}"
            return shown[place] if place < len(shown) and not content_words(rest) else None
    return None


def content_words(text: str) -> list[str]:
    """The words that may name what a sentence is about."""
    folded = fold(spell_things(find_times(without_lists(text)).words))
    if length := find_length(folded):
        folded = f"{folded[: length.start]} {folded[length.end :]}"
    for name in (
        "sense_drop",
        "sense_done",
        "sense_not_done",
        "sense_back",
        "sense_more",
        "sense_other",
        "both",
        "latest",
        "clear",
        "all",
        "puts",
        "takes_back",
        "nudges",
        "asks_for",
        "goes_through",
        "needs_no_more",
        "leaves_out",
        "better_then",
    ):
        folded = read_cues().patterns[name].sub(" ", folded)
    return subject_words(folded)


def _of_kind(folded: str, items: Sequence[ListedItem]) -> list[ListedItem]:
    reminders, todos = kinds_named(folded)
    if reminders == todos:
        return list(items)
    of_kind = [item for item in items if item.kind == ("reminder" if reminders else "todo")]
    return of_kind or list(items)


def _named(text: str, pool: Sequence[ListedItem], times: FoundTimes) -> list[ListedItem]:
    """What the words name; in the clause that names it, few words may be left over."""
    named = matching(subject_words(without_lists(text)), pool)
    if not named:
        return []
    best = 0
    for clause in [text, *clauses(text)]:
        words = subject_words(without_lists(clause))
        hits = max(count_hits(words, item) for item in named)
        if hits and len(words) - hits <= _MOST_OTHER_WORDS:
            best = max(best, hits)
    return named if best else []


def _spared(text: str, pool: Sequence[ListedItem], now: datetime | None) -> tuple[list[ListedItem], str] | None:
    """What a sentence excepts or keeps, and the rest of its words; None where it keeps nothing."""
    folded = fold(text)
    if says("except", folded):
        first, *others = read_cues().patterns["except"].split(folded, maxsplit=1)
        rest = " ".join(others)
        spared = each_named(rest, pool) or matching(subject_words(rest), pool)
        return (spared, first) if spared else None
    parts = clauses(folded)
    keeping = [part for part in parts if says("keeps", part) and not says("sense_drop", part)]
    if any(says("others", part) for part in keeping):  # "and leave the rest"
        return None
    keeping += [part for part in parts if _NOT.match(part) and find_times(part).pieces and not content_words(part)]
    spared = [
        item
        for part in keeping
        for item in each_named(part, pool)
        or matching(subject_words(part), pool)
        or (items_at_times(pool, find_times(_NOT.sub("", part)), now) if now else ())
    ]
    if not spared or (len(parts) == len(keeping) and not says("keeps_only", folded)):
        return None
    return spared, " ".join(part for part in parts if part not in keeping)


def _without_words(
    folded: str,
    pool: Sequence[ListedItem],
    on_list: Sequence[ListedItem],
    context: PlanContext,
    times: FoundTimes,
    *,
    is_empty: bool,
) -> Targets:
    everything, lists_named = says("all", fold(times.words)), any(list_names(folded))
    if not on_list and lists_named:
        return Targets([])
    if on_list and is_empty:
        return Targets(on_list, all_meant=everything or says("clear", folded))
    if not is_empty:
        return Targets([])
    if says("both", folded):
        return Targets(_newest_first(pool, context)[:2], all_meant=True)
    states = not times.dropped and len(times.of_kind("clock")) < 2 and _STATES.search(folded) is not None
    if states and not any(call.is_latest for call in context.earlier):
        return Targets([])  # what was told right before is corrected
    states = states and changed_right_before(context)
    if not states and times.pieces and context.now and (then := _at_first_time(pool, times, context.now)):
        several = says("none_at_all", folded) or _PLURAL.search(folded) is not None or _ALL_OF_DAY.search(folded)
        return Targets(then, all_meant=everything or bool(several))
    if everything and says("todo_only", folded) and not lists_named:
        pool = [item for item in pool if not item.list] or pool  # "all my tasks" are not what is to be bought
    if everything and (any(kinds_named(folded)) or not says("names_list", folded)):
        return Targets(
            pool if not times.pieces else [], all_meant=True, is_everything=not any((*kinds_named(folded), lists_named))
        )
    waiting = sorted((item for item in pool if item.kind == "reminder" and item.due), key=lambda item: str(item.due))
    if says("next_one", folded) and waiting and kinds_named(folded)[0]:
        return Targets(waiting[:1])
    if says("latest", folded) and pool:
        return Targets(_newest_first(pool, context)[: 2 if says("two", folded) else 1], all_meant=True)
    if any(kinds_named(folded)) and not _POINTS_BACK.search(folded) and len(pool) > 1:
        return Targets(pool)
    kind, ids = find_last_changed(context)
    newest = [item for item in pool if item.kind == kind and item.id in ids]
    if _speaks_of_other(folded, newest or pool[:1], context):
        return Targets([])
    if newest:
        return Targets(newest, all_meant=says("points_to_several", folded), is_newest=True)
    return Targets(pool[:1] if len(pool) == 1 else [], is_newest=True)


def _speaks_of_other(folded: str, newest: Sequence[ListedItem], context: PlanContext) -> bool:
    """Whether "it" is something else than what was changed last: what the turn right before has shown; and "forget it"
    is about the words that were said last."""
    if changed_right_before(context):
        return False
    shown = [call for call in context.earlier if call.is_latest]
    if not shown or shown[-1].tool not in _LISTED:
        shown = [call for call in shown[-1:] if call.tool in _SHOWN]  # what it read before was not shown
    has_shown = any(quote_text(item.text)[1:-1] in call.result for item in newest for call in shown)
    return not has_shown and (bool(shown) or says("erase_words", folded))


def _newest_first(pool: Sequence[ListedItem], context: PlanContext) -> list[ListedItem]:
    kind, _ = find_last_changed(context)
    return sorted((item for item in pool if item.kind == kind), key=lambda item: -item.id)


# ---------------------------------------------------------------------------------------------------------------- times


def items_at_times(items: Sequence[ListedItem], times: FoundTimes, now: datetime) -> list[ListedItem]:
    """Those that are due then."""
    span = day_range(times, now)
    clocks = times.of_kind("clock")
    kept = [item for item in items if item.due is not None]
    if span is not None:
        kept = [item for item in kept if item.due and span[0] <= item.due < span[1]]
    if clocks:
        minutes = {piece.minutes % 720 for piece in clocks}
        kept = [item for item in kept if item.due and (item.due.hour * 60 + item.due.minute) % 720 in minutes]
    return kept if span is not None or clocks else []


def _at_old_times(named: list[ListedItem], times: FoundTimes, now: datetime | None) -> list[ListedItem]:
    """Of several with the same words those of a time that the sentence names."""
    if now is None:
        return named
    for pieces in (times.dropped, *((piece,) for piece in times.pieces)):
        there = items_at_times(named, replace(times, pieces=tuple(pieces)), now) if pieces else []
        if there and len(there) < len(named):
            return there
    return named


def _at_first_time(pool: Sequence[ListedItem], times: FoundTimes, now: datetime) -> list[ListedItem]:
    days = [number for number, piece in enumerate(times.pieces) if piece.kind == "day"]
    # Of two days the last is the new one: "move today's to tomorrow".
    before = times.pieces[: days[-1]] if len(days) > 1 else ()
    for pieces in (times.dropped, before, times.pieces, times.pieces[:2], times.pieces[:1]):
        if pieces and (there := items_at_times(pool, replace(times, pieces=tuple(pieces)), now)):
            return there
    return []


# "Five in the afternoon" is one time.
_BESIDE = {"clock": "part"}


def new_times(item: ListedItem, times: FoundTimes, now: datetime) -> FoundTimes:
    """The times of a sentence without those by which it says when the item was."""
    kept = list(times.pieces)
    then = times.of_kind("day", "part")
    if len({piece.kind for piece in then}) == 2 and len(then) == len(kept) and find_length(fold(times.text)):
        # "Another half hour tomorrow morning", when it comes anyway
        kept = [] if items_at_times([item], times, now) else kept
    if len(times.of_kind("repeat")) > 1:  # "every week is too much, make that once a month"
        kept = [piece for piece in kept if not (piece.rule and _is_own_rule(item, piece.rule))]
    for kind in ("clock", "day", "part"):
        alike = [piece for piece in kept if piece.kind == kind]
        others = [piece for piece in kept if piece.kind not in (kind, "span", _BESIDE.get(kind))]
        old = [piece for piece in alike if is_old_time(item, piece, times, now)]
        if len(alike) > 1:
            gone = old if len(old) < len(alike) else alike[:-1]
            kept = [piece for piece in kept if piece not in (gone or alike[:-1])]
        elif old and others:
            kept = [piece for piece in kept if piece not in old]
    return replace(times, pieces=tuple(kept))


def _is_own_rule(item: ListedItem, rule: str) -> bool:
    own = find_times(item.often).rule
    return own == rule or own.startswith(f"{rule};BYDAY=")


def is_old_time(item: ListedItem, piece: TimePiece, times: FoundTimes, now: datetime) -> bool:
    """Whether a time of a sentence is when the item is due now, and thus names it."""
    return bool(items_at_times([item], replace(times, pieces=(piece,)), now))
