"""What the form of a sentence says beside what the person has, before its words are weighed: "not butter, margarine" is
about the butter that is there, whatever else its words make likely. Pure.

What always holds: a form decides only where something is there that it can be about.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import find_length
from assistant.models.offline.changes import says_whole_list_done
from assistant.models.offline.cues import clauses, fold, read_cues, says, says_any
from assistant.models.offline.list_forms import heads_list, heads_todo, is_for_list, notes_quoted, puts_on_list
from assistant.models.offline.lists import list_names, names_list, without_lists
from assistant.models.offline.matching import ListedItem, count_hits, each_named, is_other_list, matching, subject_words
from assistant.models.offline.mood import has_others_do, is_participle_first, tells_without_subject
from assistant.models.offline.order_signs import (
    HAS_IT,
    INFINITIVE,
    SAME_AGAIN,
    TOLD,
    asks_for_reminder,
    begins_with_time,
    commands,
    may_be_request,
    may_say_done,
    names_what_orders_are_about,
    tells_need,
)
from assistant.models.offline.plain_forms import asks_for_all_of, duty_by_day, tells_of_cancelled
from assistant.models.offline.plans import PlanContext, find_last_changed
from assistant.models.offline.pointing import items_of_moved_day
from assistant.models.offline.remark_forms import (
    brings_back,
    has_all_but,
    intent_of_remark,
    is_back,
    is_none_then,
    is_none_today,
    is_off_for_done,
    tells_new_hour,
    was_not_done,
)
from assistant.models.offline.rewording import names_swap
from assistant.models.offline.targets import content_words, is_old_time
from assistant.models.offline.tense_forms import intent_of_tense, tells_of_past_day, tells_what_happened
from assistant.models.offline.timers import is_bare_alarm, is_the_alarm
from assistant.models.offline.word_swaps import tells_which

_HOUR_AT_END = lazy_regex(r"(?<![\w:.])\d{1,2}[.!]*$")
_ONCE_MORE = lazy_regex(r"\b(?:again|once more|noch ?mal|encore une fois|otra vez)\b")
_ASKS_TO_REMIND = lazy_regex(
    r"^(?:please |bitte )?(?:remind (?:me|us)|erinner\w* (?:mich|uns)|rappelle[- ](?:moi|nous)|recuerda(?:me|nos))\b"
)
_BARE_REMINDER = lazy_regex(
    r"^[^\W\d_]+(?: [^\W\d_]+){0,3}[- ]?(?:reminder|erinnerung)\b|^(?:reminder|erinnerung|rappel"
    r"|recordatorio)\b(?! about)"
)
_MAIL = lazy_regex(
    r"^(?:please |bitte )?(?:read|check|open|lies|lese|lis|ouvre|lee(?:me)?|abre|mira)(?: me| mir|[- ]moi)? (?:my"
    r"|meine|mes|mis|the|los|die|les) "
    r"(?:new |neuen |nuevos )?(?:e-?mails?|mails?|messages?|nachrichten|correos?|mensajes?|texts|whatsapps?)\b"
)
_MISTAKEN = lazy_regex(
    r"\b(?:wrong|mixed up|muddled|messed up|mistake|my mistake|mistyped|falsch\w*|vertan|verwechselt|vertippt"
    r"|trompe\w*|erreur"
    r"|gour+e\w*|plante de (?:jour|date|heure)|emmele\w*|equivo\w+|confund\w+|error|i mean(?:t)?"
    r"|mein(?:t?e)? ich|ich meinte|voulais dire|(?:queria|quise) decir)\b"
)
_NOT_TOLD = ("cannot", "asks", "question", "world", "imperative")
_OF_OTHERS = lazy_regex(r"\b(?:ils|elles|il|elle) (?:ne |n'|se |s'|y |en )?(?!y\b|fau|peu|pourr|va\b|reste)\w{3,}")
_SHORT = 5
_BY_SO_LONG = ("longer", "later_by", "earlier_by", "sooner")
_OTHERWISE = lazy_regex(  # "a bit later, at eight": not once more
    r"\b(?:instead|rather|later|earlier|stattdessen|lieber|spater|fruher|plutot|plus (?:tard|tot)|mejor"
    r"|mas (?:tarde|temprano)|not just|not only|nicht nur|pas (?:que|seulement)|no solo)\b"
)
_INSTEAD = lazy_regex(r"\b(?:instead|rather|stattdessen|lieber|besser|plutot|mejor)\b")
_BELONGS = lazy_regex(
    r"\b(?:should (?:be|go)|belongs?|go(?:es)?|gehor\w*|muss\w* eher|vont?|(?:devr|aur)ai(?:en)?t|van?|deberian?"
    r"|pertenecen?|tendrian? que)\b"
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """What its intent depends on."""

    text: str
    folded: str
    times: FoundTimes
    waiting: Sequence[ListedItem]  # what is not done yet
    context: PlanContext
    likeliest: str  # intent by the weights
    corrects: bool

    @property
    def named(self) -> list[ListedItem]:
        """What the words of the sentence name."""
        return matching(subject_words(without_lists(self.text)), self.waiting)


def intent_of_form(
    text: str, items: Sequence[ListedItem], context: PlanContext, likeliest: str, *, corrects: bool
) -> str:
    """The intent that the form alone tells; "" where it tells none."""
    folded, times = fold(text), find_times(text)
    waiting = [item for item in items if not item.done]
    done = [item for item in items if item.done and item.kind == "todo"]
    if was_not_done(text, waiting, done) or is_back(text, waiting, done) or brings_back(text, waiting, context):
        return "reopen"
    sentence = _Sentence(text, folded, times, waiting, context, likeliest, corrects)
    return _intent_at_once(sentence) or _intent_of_rest(sentence)


def admits_mistake(text: str) -> bool:
    """Whether a sentence says that something said before it was wrong."""
    return "?" not in text and _MISTAKEN.search(fold(text)) is not None


def _intent_at_once(it: _Sentence) -> str:
    """The intent of what nothing else in the sentence can change; "" for none."""
    if says_any(("recalls", "days_until"), it.folded):
        return "question" if says("recalls", it.folded) else "ask"
    if (
        says("resembles", it.folded)
        or tells_which(it.text)
        or (it.likeliest == "remind" and _tells_appointment(it.text, it.folded))
    ):
        return "statement"
    if (it.likeliest in ("remind", "move", "ask") and not it.named and tells_what_happened(it.text)) or (
        it.likeliest == "ask" and tells_of_past_day(it.text)
    ):
        return "statement"
    is_new = it.likeliest == "cannot" or (it.likeliest == "move" and not it.waiting)
    if is_new and _OF_OTHERS.search(it.folded) and not says_any(_NOT_TOLD, it.folded):
        return "statement"  # "à la boulangerie ils ferment le mercredi"
    if _is_beyond(it.folded) or (says("summarises", it.folded) and not it.times.of_kind("day")):
        return "cannot"
    if says("asks_of_world", it.folded.strip(" ¿")) and not it.named and not names_list(it.text):
        return "cannot"
    if items_of_moved_day(it.text, it.waiting, it.context.now):
        return "move"
    if asks_for_all_of(it.text):
        return "ask"
    if notes_quoted(it.text) and not (it.named or says("reminder_noun", it.folded)):
        return "add"
    if (has_all_but(it.text) or is_participle_first(it.text)) and it.named:
        return "complete"
    if it.likeliest == "add" and _ASKS_TO_REMIND.match(it.folded) and not names_list(it.text):
        return "remind"
    if it.likeliest == "ask" and _is_bare_reminder(it):
        return "remind"
    if heads_todo(it.text):
        return "add"
    if not it.corrects and (duty := duty_by_day(it.text, it.context.now)) and not _is_there(duty[0], it.waiting):
        return "add"
    if _is_not_to_come(it.folded, it.waiting) or is_none_then(it.text, it.times, it.named):
        return "drop"
    if is_none_today(it.text, it.times) and _is_that(it.text, it.times, it.named, it.context.now):
        return "drop"  # "no bread today after all"
    if names_swap(it.text, it.waiting):
        return "rename"
    if by_tense := intent_of_tense(it.text, it.times, it.waiting, it.likeliest):
        return by_tense
    if remark := intent_of_remark(it.text, it.times, it.waiting, it.context):
        return remark
    if says("not_due", it.folded) and any(item.due and item.kind == "todo" for item in it.waiting):
        return "undated"
    return ""


def _intent_of_rest(it: _Sentence) -> str:
    asks = it.text.endswith("?") or says("asks", it.folded)
    if says("writes_down", it.folded) or (
        tells_need(it.text.rstrip("? ")) and names_list(it.text) and not says("asks", it.folded)
    ):
        return "add"
    is_done = not asks and says_whole_list_done(it.text)
    is_for_one = is_for_list(it.text, it.likeliest, it.waiting) or heads_list(it.text, it.likeliest)
    if is_for_one and not asks and not is_done:
        return "add"
    if says("snooze", it.folded) and not content_words(it.text) and it.likeliest not in ("move", "ask"):
        return "move"
    if not asks and any(list_names(it.text)) and says("resets", it.folded):
        return "drop"
    if is_done:
        return "complete"
    if not asks and it.likeliest == "statement" and is_bare_alarm(it.folded, it.times):
        return "remind"
    if not asks and (begins := begins_with_time(it.text, it.times)):
        return begins
    if it.likeliest == "statement" and says("more", it.folded) and _is_more(it):
        return "add"
    named = it.named
    if not (named or asks) and it.likeliest in ("drop", "move", "complete", "ask") and puts_on_list(it.text):
        return "add"
    if named and says("off_list", it.folded) and not says("mark", it.folded) and not says("relist", it.folded):
        return "complete" if is_off_for_done(it.text) else "drop"
    heading = read_cues().patterns["list_heading"].match(it.folded)
    if named and heading and says("drop", it.folded[heading.end() :]):
        return "drop"
    if it.likeliest == "statement" and not (asks or it.times.pieces) and _calls_off(it.folded, it.text, named):
        return "drop"
    if not asks and tells_of_cancelled(it.text) and _is_that(it.text, it.times, named, it.context.now):
        return "drop"
    undone = it.likeliest == "complete" and not says_any(("done", "sense_done", "bare_done", "perfect"), it.folded)
    belongs = it.likeliest == "move" or undone or _BELONGS.search(it.folded) or _INSTEAD.search(it.folded)
    if belongs and not (it.times.pieces or asks) and _names_other_list(it.text, named, it.waiting):
        return "relist"
    is_done = says("bare_done", it.folded) or (not it.times.pieces and _says_done(it.text, named))
    if named and not asks and is_done:
        return "complete"
    if (
        not asks
        and (it.likeliest in TOLD or HAS_IT.match(it.folded))
        and _has_done(it.text, it.folded, named, it.waiting)
    ):
        return "complete"
    once_more = SAME_AGAIN.search(it.folded) or (_ONCE_MORE.search(it.folded) and says("same_hour", it.folded))
    if not asks and once_more and it.times.of_kind("day") and not says("move", it.folded):
        return "remind"
    if not asks and _moves(
        it.folded, it.text, it.times, named, it.waiting, it.context, it.likeliest, corrects=it.corrects
    ):
        return "move"
    if it.likeliest == "ask" and not asks and any(list_names(it.text)) and says("puts", it.folded):
        return "add"
    return "" if asks or named else _intent_of_mood(it.text, it.folded, it.times, it.likeliest)


def _is_there(thing: str, waiting: Sequence[ListedItem]) -> bool:
    """Whether something that waits has the words of a thing, and not the verb alone: "pagar la luz" is no rent."""
    words = [word for word in subject_words(thing) if not INFINITIVE.match(word)] or subject_words(thing)
    return any(count_hits(words[-2:], item) for item in waiting)


def _is_beyond(folded: str) -> bool:
    """Whether it wants words forgotten, something reckoned, or somebody told."""
    if _MAIL.match(folded):
        return True
    about_words = says("words_said", folded) and says_any(("drop", "erase_words"), folded)
    return about_words or says_any(("arithmetic", "tells_others"), folded)


def _is_not_to_come(folded: str, waiting: Sequence[ListedItem]) -> bool:
    """Whether no reminder is wanted, or one that comes again and again is to be left out once."""
    reminders = [item for item in waiting if item.kind == "reminder"]
    return bool(reminders) and (
        says("negated_request", folded) or (says("leaves_out", folded) and any(item.often for item in reminders))
    )


def _is_bare_reminder(it: _Sentence) -> bool:
    """Whether a sentence only names a reminder and its time: "homework reminder Sunday evening"."""
    words = content_words(it.text)
    is_new = bool(words) and not it.named and it.times.names_moment and "?" not in it.text
    return is_new and _BARE_REMINDER.search(it.folded) is not None and not says_any(("asks", "show"), it.folded)


def _is_more(it: _Sentence) -> bool:
    """Whether it names more of what was just put on a list."""
    return _added_last(it.context) and not it.times.pieces and not says("sense_done", it.folded)


def _added_last(context: PlanContext) -> bool:
    last = context.earlier[-1] if context.earlier else None
    return last is not None and last.is_latest and last.arguments.get("action") == "add"


def _tells_appointment(text: str, folded: str) -> bool:
    said = fold(find_times(text).words)
    return says("has_appointment", said) and not (says("duty", folded) or asks_for_reminder(text))


def _calls_off(folded: str, text: str, named: Sequence[ListedItem]) -> bool:
    """Whether a sentence says of one reminder, and of nothing else, that it is off: "the dentist is cancelled"."""
    if len(named) != 1 or named[0].kind != "reminder" or not says("sense_drop", folded):
        return False
    if not says_any(("states", "needs_no_more"), folded):
        return False
    rest = content_words(text)
    return bool(rest) and count_hits(rest, named[0]) == len(rest)


def _is_that(text: str, times: FoundTimes, named: Sequence[ListedItem], now: datetime | None) -> bool:
    """Whether all words and times of a sentence are those of one reminder."""
    if len(named) != 1 or named[0].kind != "reminder" or now is None:
        return False
    words = content_words(text)
    then = all(is_old_time(named[0], piece, times, now) for piece in times.pieces)
    return then and bool(words) and count_hits(words, named[0]) == len(words)


def _intent_of_mood(text: str, folded: str, times: FoundTimes, likeliest: str) -> str:
    """What a sentence wants that names nothing that is there, and is likeliest to tell or to ask."""
    # What would move nothing that is there may be for how long something new takes: "eggs, six minutes".
    moves = likeliest == "move" and bool(content_words(text)) and not says("move", folded)
    is_length = not times.pieces or (moves and {piece.kind for piece in times.pieces} == {"delta"})
    if (moves or likeliest in (*TOLD, "ask", "cannot")) and is_length and _is_bare_length(text, folded):
        return "remind"
    beyond = has_others_do(text) or (likeliest in (*TOLD, "ask") and _is_for_others(text, folded))
    return "cannot" if beyond else ""


def _is_bare_length(text: str, folded: str) -> bool:
    """ "Pasta is on, eleven minutes": a clause that is a length and nothing else asks for a timer."""
    if says("tells_past", folded) or any(tells_without_subject(clause) for clause in clauses(text)):
        return False
    for clause in map(fold, clauses(text)):
        length = find_length(clause)
        if length and length.minutes and not content_words(f"{clause[: length.start]} {clause[length.end :]}"):
            return True
    return False


def _is_for_others(text: str, folded: str) -> bool:
    """Whether it begins with a verb that orders, of nothing that is looked up or kept here."""
    looks = ("show", "show_only", "goes_through", "asks_to_tell", "agenda_noun", "open_todos")
    own = (*looks, "puts", "writes_down", "tells_past", "keep")
    orders = says("command_verb", folded) and commands(text)
    return orders and not says_any(own, folded) and not names_what_orders_are_about(text)


def _has_done(text: str, folded: str, named: Sequence[ListedItem], waiting: Sequence[ListedItem]) -> bool:
    """Whether somebody says that they have done what a to-do names, in whatever words: "I've brought the eggs"."""
    found = each_named(without_lists(text), waiting) or named
    words = content_words(text)
    only_these = len(words) <= sum(count_hits(words, item) for item in found) + 1
    # "J'ai le lait" is of what is to be bought; "j'ai le dentiste" of no task.
    has_it = HAS_IT.match(folded) is not None and all(item.list for item in found)
    is_done = says("perfect", folded) or has_it
    return bool(found) and is_done and only_these and all(item.kind == "todo" for item in found)


def _says_done(text: str, named: Sequence[ListedItem]) -> bool:
    """Whether a sentence says of one thing, in few words, that it has been done."""
    words = text.strip(" .!,✅").split()
    if not may_say_done(text) or says("sense_drop", fold(text)):
        return False
    rest = content_words(" ".join(words[:-1]))
    return len(named) == 1 and bool(rest) and count_hits(rest, named[0]) == len(rest)


def _names_other_list(text: str, named: Sequence[ListedItem], waiting: Sequence[ListedItem]) -> bool:
    """Whether a sentence is about one to-do, and names a list on which that is not."""
    lists, known = [name for name in list_names(text) if name], {item.list for item in waiting if item.list}
    is_one = len(named) == 1 and named[0].kind == "todo"
    return is_one and any(is_other_list(name, named[0].list, known) for name in lists)


def _moves(
    folded: str,
    text: str,
    times: FoundTimes,
    named: Sequence[ListedItem],
    waiting: Sequence[ListedItem],
    context: PlanContext,
    likeliest: str,
    *,
    corrects: bool,
) -> bool:
    """Whether it says when something that is there is to be instead."""
    length = find_length(folded)
    if not (times.pieces or length or _HOUR_AT_END.search(folded)):
        return False
    rest = content_words(f"{text[: length.start]} {text[length.end :]}" if length else text)
    just_set = any(call.is_latest for call in context.earlier) and bool(find_last_changed(context)[1])
    if not rest:
        short = len(folded.split()) <= _SHORT and not may_be_request(folded) and not says("agenda_noun", folded)
        otherwise = says("set_reminder", folded) and _OTHERWISE.search(folded) is not None
        return (corrects or admits_mistake(text) or otherwise or (short and likeliest != "ask")) and just_set
    reminders = [item for item in named if item.kind == "reminder"]
    if len(reminders) == 1 and likeliest in ("remind", "ask", "cannot") and is_the_alarm(folded):
        return True
    if not (times.pieces or length) and likeliest != "remind":
        return False
    alone = len(named) == 1 and count_hits(rest, named[0]) == len(rest)
    if alone and reminders and likeliest == "remind" and _OTHERWISE.search(folded):
        return True
    # "Leave the roast another quarter of an hour."
    if alone and length and not times.has_clock and named[0].kind == "reminder" and says_any(_BY_SO_LONG, folded):
        return True
    whole = alone and bool(times.pieces)
    told = likeliest in ("ask", "add", "statement", "question") and (
        says("amend", folded) or bool(times.dropped) or tells_new_hour(text) or bool(reminders and times.rule)
    )
    # "Do the roses on Sunday", which are due on Saturday.
    days, now = times.of_kind("day", "span"), context.now
    other_day = likeliest == "ask" and bool(days) and whole and (bool(named[0].due) or named[0].kind == "todo")
    other_day = other_day and now is not None and not is_old_time(named[0], days[0], times, now)
    return whole and (told or other_day or "→" in folded)
