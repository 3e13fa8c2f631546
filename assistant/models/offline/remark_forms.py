"""What a short remark says of what is there, by its form: "the two are done", "that was supposed to be tomorrow",
"turns out we have rice", "and again at ten". Pure.

What always holds: such a form is about what the person has, or about what was just set, and sets nothing without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import find_length
from assistant.models.offline.cues import clauses, fold, says, says_any
from assistant.models.offline.lists import without_lists
from assistant.models.offline.matching import ListedItem, count_hits, matching, subject_words, words_of
from assistant.models.offline.plans import PlanContext, changed_right_before, find_last_changed
from assistant.models.offline.pointing import intent_of_part, moves_a_day
from assistant.models.offline.targets import content_words, is_old_time
from assistant.models.offline.timers import is_the_alarm

_DONE = (
    r"(?:done|finished|erledigt|fertig|gemacht|durch|fait(?:e?s?)|fini(?:e?s?)|hech[oa]s?|list[oa]s?|terminad[oa]s?)"
)
_IS = r"(?: (?:are|is|ist|sind|c'est|est|sont|esta|estan|ya|have been|has been|all|now|schon|deja))*"
# "The two are done", "la première est faite"
_PLACES_DONE = lazy_regex(
    r"^(?:both|beide[sn]?|alle zwei|les deux|amb[oa]s|l[oa]s dos|(?:the |die |der |das |le |la |el )?"
    r"(?:first|second|third|erste|zweite|dritte|premiere?|deuxieme|troisieme|primer[oa]?|segund[oa]|tercer[oa]?)"
    rf"(?: (?:one|to-?do|task|aufgabe|tache|tarea))?),?{_IS} {_DONE}[.!]*$"
)
# "I did number 2", "le 1 et le 3 c'est fait"
_NUMBERS_DONE = lazy_regex(
    r"^(?:i(?:'ve| have)? )?(?:did|done|finished|completed) (?:(?:numbers?|no\.?|#) ?)?"
    r"\d{1,3}(?: ?(?:,|and|&) ?\d{1,3})*[.!]*$"
    r"|^(?:(?:numbers?|nummer|nr\.?|numeros?|le|la|the|el) )?\d{1,3}"
    r"(?:(?:,| and| und| et| y)(?: le| la| el)? \d{1,3})*,?"
    rf"{_IS} {_DONE}[.!]*$"
)
# By when a thing is to be done: "by Friday", "pour vendredi"
_BY_DAY = lazy_regex(
    r"\b(?:by|before|for|until|till?|due|bis|fur|zum|vor|pour|avant|d'ici|para|antes|hasta)\b(?: (?!at\b)[\w']+){0,5}$"
)
_OTHER_THAN_DAY = (
    *("asks", "question_word", "show", "anything", "set_reminder", "wake", "reminder_noun", "puts", "teller"),
    *("done", "sense_done", "perfect", "mark", "drop", "sense_drop", "reopen"),
)
_NO_NOT = lazy_regex(r"^(?:not|nothing|none)\b")
_TIMES = ("day", "clock", "part", "before")
_BEGINS = lazy_regex(
    r"\b(?:starts?|begins?|kicks? off|commence|debute|demarre|beginnt|startet|geht .{0,20}los|fangt .{0,20}an|empieza"
    r"|comienza|arranca)\b"
)
# One day of the week, and not each of them.
_THIS_ONE = lazy_regex(
    r"\b(?:this|next|coming|diese[nr]?|nachste[nr]?|kommende[nr]?|ce|cette|prochaine?|este|esta|proxim[oa]|viene)\b"
)
_NONE_THEN = lazy_regex(
    r"^(?:(?:on|am|le|el|this|next|diese[nr]?|nachste[nr]?|kommende[nr]?|ce|cette|este|esta) )?(?:today|tomorrow|heute"
    r"|(?:uber)?morgen|aujourd'hui|demain|hoy|manana|\w+(?:day|tag|di|nes|ado|ingo)|martes|jueves|mittwoch|dimanche"
    r"|week|woche|semaine|semana)(?: (?:prochaine?|que viene|proxim[oa]))?,?"
    r" (?:no(?: hay| tengo)?|keine?n?|pas de|pas d'|sans|sin|without)\b"
)
# Another time for the same: "and again at 10".
_ONCE_MORE_AT = lazy_regex(
    r"^(?:and|und|et|y|then|dann) (?:also |auch |aussi )?"
    r"(?:again|once more|noch ?(?:ein)?mal|encore|otra vez|de nuevo|(?:one|another(?: one)?|noch eine[nr]?|une? autre"
    r"|otr[oa]) (?=(?:at|um|a)\b))"
)
# One more of what was just set: "and on Saturday too", "remind me an hour before as well".
_TOO = lazy_regex(r"\b(?:too|as well|also|auch|ebenso|aussi|egalement|tambien)\b")
# A repeated reminder that is to end some day, which none does.
_ONLY_UNTIL = lazy_regex(
    r"^(?:(?:but|and|aber|und|mais|et|pero|y) )?(?:only|just|nur(?: noch)?|seulement|juste|que|solo)"
    r" (?:until|till|til|up to|bis|jusqu'?(?:a|au|en)|hasta)\b"
)
# "The morning would be better, say nine"
_BETTER = lazy_regex(r"\b(?:better|besser|mieux|mejor|prefer\w*|prefier\w*)\b")
_NOT_THEN = lazy_regex(
    r"^(?:(?:but|aber|mais|pero|and|und|et|y),? )?(?:not|nicht|nur nicht|pas|no|never|except|ausser|sauf|menos"
    r"|excepto)\b"
    r"(?!.*\b(?:but|sondern|mais|sino|instead)\b)"
)
# Other words for what was just set
_SHOULD_SAY = lazy_regex(
    r"^(?:it |that |this )?should (?:say|read|be called) |^(?:das |es )?soll(?:te)? [^,]{2,40} hei(?:ß|ss)en$"
    r"|^(?:ca )?(?:doit|devrait) s'appeler |^(?:eso )?(?:debe|deberia|tiene que) (?:decir|poner|llamarse) "
)
_WAS_TO_BE = lazy_regex(
    r"^(?:(?:no|nein|non|oops|sorry|oh|ach),? )?(?:(?:that|it|this)(?: one)? (?:was (?:supposed|meant) to be"
    r"|should(?:'?ve| have) been|was for)|(?:das|es|die|der) (?:sollte|war)\b(?: doch| eigentlich)*"
    r"|c'etait(?: pour)?|ca (?:devait etre|aurait du etre)|(?:eso |esto )?(?:era|tenia que ser|debia ser) para)\b"
)
# Off a list because it is done: "the hotel can come off my list, it's booked".
_OFF_FOR_DONE = lazy_regex(
    r"\b(?:it'?s|they'?re|that'?s|they are|it is) (?:all |already |now )?(?:bought|paid|done|sent|made|\w{3,}ed)\b"
    r"|\b(?:that'?s|is) one (?:less|fewer|off)\b"
)
# "Rajoute cinq minutes au minuteur"
_ADDS = lazy_regex(
    r"^(?:please |bitte )?(?:r?ajoute|anade|suma|add|give|dale|pack)\w*\b"
    r".* (?:to|on|onto|auf|zum|au|a la|al|a) ?(?:the|my|den|meinen|mon)?\b"
)
# There is enough of it: "turns out we have rice".
_IS_THERE = lazy_regex(
    r"^(?:oh|ah|ach|wait|tiens|vaya)?[ ,]*(?:(?:it )?turns out|it seems|looks like|apparently) (?:that )?"
    r"(?:we|i)(?:'ve)?(?: still| already)? (?:have|got)\b"
    r"|^(?:oh|ah|actually|wait)?[ ,]*(?:we'?re|i'?m|we are|i am) (?:still |actually )?"
    r"(?:fine|good|ok|okay|all right|set) for\b"
    r"|^(?:oh|ah|actually|wait)?[ ,]*(?:we|i)(?:'ve| have)?(?: actually)? (?:still (?:have|got)"
    r"|(?:have|got) (?:still|plenty of|enough|loads of))\b"
    r"|^(?:oh|ah|ach)?[ ,]*(?:wir|ich) hab(?:en?)? (?:ja |doch )?(?:noch|genug)\b"
    r"|^(?:ah |tiens )?(?:finalement |en fait )?(?:on a|j'ai|nous avons|il y a|y a|il reste)"
    r" (?:encore|assez|finalement)\b"
    r"|^(?:ah |vaya )?(?:al final |resulta que )?(?:todavia|aun) (?:tenemos|tengo|queda|quedan|hay)\b"
)

_BACK_ON = lazy_regex(
    r"\b(?:back on|back (?:on)?to|(?:put|bring|want|need|have) (?:[\w']+ ){1,4}back\b"
    r"|(?:put|add|stick|chuck|pop) (?:it|that|them) (?:back|again|on)\b|mets[- ](?:le|la|les) sur|ponl[oa]s? en"
    r"|wieder (?:auf|drauf|rein)|remets?"
    r"|rajoute\w*|otra vez (?:a|en)|de nuevo (?:a|en)|vuelve a (?:poner|anadir)\w*)\b"
)


# "They never came, put them back on my list", of what was ticked off
_PUTS_BACK = lazy_regex(
    r"(?:^|[,;.] (?:so |also |donc |alors |asi que )?)(?:please |bitte )?(?:put (?:it|that|them|those|that one) back"
    r"|(?:setz|schreib|tu|pack)\w* (?:es|das|sie|die) wieder|remets[- ](?:le|la|les|ca)"
    r"|(?:vuelve a (?:poner|anadir)|pon|apunta)l[oa]s? (?:otra vez|de nuevo))\b.*"
    r"(?:list|zettel|aufgaben|to-?dos?|a faire|taches|courses|tareas|pendiente|compra)"
)
_TOO_SOON = lazy_regex(r"\b(?:spoke too soon|parle trop vite|zu fruh gefreut|demasiado pronto)\b")
# "We're away this weekend so no swimming"
_SO_NONE = lazy_regex(
    r"\b(?:so|also|donc|asi que) (?:no|keine?n?|pas d[e']|nada de) ?(?!more|longer|need|point|way|mal)\w"
)
# How it is from now on, by a word that says so.
_FROM_NOW = lazy_regex(
    r"\b(?:now|instead|from now on|after all|turns out|we(?:'ve| have)? (?:said|agreed on|settled on)|actually"
    r"|only needs?"
    r"|finalement|au final|du coup|on a dit|plutot|desormais|dorenavant|maintenant|en fait|jetzt|ab jetzt|kunftig|doch"
    r"|stattdessen|al final|ahora|(?:hemos )?quedamos|en realidad|mejor)\b"
)


def _is_bare(text: str) -> bool:
    """Whether a sentence names no thing: "the morning would be better"."""
    return "?" not in text and not content_words(text)


def says_too(folded: str) -> bool:
    """Whether a folded sentence says that something comes on top: "and on Saturday too"."""
    return _TOO.search(folded) is not None


def leaves_out_days(folded: str) -> bool:
    """Whether a folded sentence begins with what leaves days out: "not on Sundays", "sauf le week-end"."""
    return _NOT_THEN.match(folded) is not None


def has_enough(text: str) -> bool:
    """Whether somebody says that there is enough of something: "we've got enough eggs"."""
    return _IS_THERE.match(fold(text)) is not None


def has_all_but(text: str) -> bool:
    """Whether somebody says that they have got or done all but something: "j'ai tout acheté sauf le saumon"."""
    folded = fold(text)
    done = ("perfect", "sense_done", "done", "bare_done")
    return "?" not in text and says("except", folded) and says("all", folded) and says_any(done, folded)


def ends_some_day(text: str) -> bool:
    """Whether what comes again and again is wanted only until a day."""
    return _ONLY_UNTIL.match(fold(text)) is not None


def points_at_there(text: str) -> bool:
    """Whether a sentence only points at what is there, and says that it is done or was to be otherwise."""
    folded = fold(text)
    if moves_a_day(text) or (_BETTER.search(folded) and _is_bare(text) and find_times(text).pieces):
        return True
    forms = (_PLACES_DONE, _NUMBERS_DONE, _WAS_TO_BE, _ONLY_UNTIL, _SHOULD_SAY)
    if any(form.match(folded) for form in forms) or any(form.search(folded) for form in (_PUTS_BACK, _TOO_SOON)):
        return True
    return _SO_NONE.search(folded) is not None and bool(find_times(text).of_kind("day", "span"))


def is_off_for_done(text: str) -> bool:
    """Whether what comes off a list does so because it is done."""
    return _OFF_FOR_DONE.search(fold(text)) is not None


def was_not_done(text: str, waiting: Sequence[ListedItem], done: Sequence[ListedItem]) -> bool:
    """Whether somebody says that they have not done what only a ticked to-do names: "didn't buy the tea after all"."""
    words = subject_words(without_lists(text)) if done and says("not_done", fold(text)) else []
    if not words or "?" in text or matching(words, waiting):
        return False
    found = matching(words, done)
    return len(found) == 1 and len(words) <= count_hits(words, found[0]) + 1


def is_back(text: str, waiting: Sequence[ListedItem], done: Sequence[ListedItem]) -> bool:
    """Whether a thing that was ticked off goes back on its list: "the milk went bad, put it back on"."""
    words = subject_words(without_lists(text)) if done and _BACK_ON.search(fold(text)) else []
    return bool(words) and "?" not in text and len(matching(words, done)) == 1 and not matching(words, waiting)


def intent_of_remark(text: str, times: FoundTimes, waiting: Sequence[ListedItem], context: PlanContext) -> str:
    """The intent of a remark about what is there or was just set; "" for anything else."""
    folded = fold(text)
    if _PLACES_DONE.match(folded) or _NUMBERS_DONE.match(folded):
        return "complete"
    if _is_enough(text, folded, waiting):
        return "drop"
    just_set = changed_right_before(context)
    if times.of_kind("day", "clock") and _comes_too(text, folded, times, waiting):
        return "remind"
    if just_set and _SHOULD_SAY.match(folded):
        return "rename"
    if _names_new_day(text, folded, times, waiting) or _names_new_hour_of_alarm(text, folded, times, waiting):
        return "move"
    is_bare = just_set and _is_bare(text)
    more = _TOO.search(folded) is not None or _ONCE_MORE_AT.match(folded) is not None
    if is_bare and more and not says("move", folded) and (times.rule or times.of_kind(*_TIMES)):
        return "move" if times.rule or _comes_on_more_days(folded, times, waiting, context) else "remind"
    if is_bare and times.of_kind("before") and not times.of_kind("clock", "day", "repeat"):
        return "move"
    if is_bare and times.rule and not times.of_kind("clock", "day") and "?" not in text and not says("wake", folded):
        return "move"  # "every evening please"
    if is_bare and leaves_out_days(folded) and (times.rule or times.of_kind("span", "day")):
        return "move"
    if (
        is_bare
        and times.of_kind("clock", "day", "part", "before")
        and (_BETTER.search(folded) or _ONLY_UNTIL.match(folded) or times.dropped)
    ):
        return "move"
    if just_set and times.of_kind("clock") and _ONCE_MORE_AT.match(folded):
        return "remind"
    if just_set and times.pieces and not content_words(text) and _WAS_TO_BE.match(folded):
        return "move"
    named = matching(content_words(text), waiting) if times.of_kind("before") else []
    if len(named) == 1 and named[0].kind == "reminder" and not times.of_kind("clock", "day", "repeat"):
        # "Remind me of the notary an hour before", "... as well"
        return "remind" if _TOO.search(folded) else "" if "?" in text else "move"
    is_new = _goes_on_for(text, folded, times, waiting, just_set=just_set)
    if is_new or names_new_time(text, waiting, context.now):
        return "move"
    return intent_of_part(text, waiting, context.now)


def _names_new_day(text: str, folded: str, times: FoundTimes, waiting: Sequence[ListedItem]) -> bool:
    """Whether a sentence says of one to-do by when it is to be done, and nothing else: "flights by Friday", "les
    billets pour vendredi"."""
    days = times.of_kind("day", "span")
    if "?" in text or len(days) != 1 or len(days) < len(times.pieces) or not _BY_DAY.search(folded[: days[0].end]):
        return False
    if says_any(_OTHER_THAN_DAY, folded):
        return False
    words = content_words(text)
    named = matching(words, [item for item in waiting if item.kind == "todo" and not item.list])
    return len(named) == 1 and bool(words) and count_hits(words, named[0]) == len(words)


def _names_new_hour_of_alarm(text: str, folded: str, times: FoundTimes, waiting: Sequence[ListedItem]) -> bool:
    """Whether a sentence names the alarm that is there and an hour, and nothing else: "mon alarme à 6h20"."""
    alarms = [item for item in waiting if item.kind == "reminder" and "~alarm" in words_of(item.text)]
    own = all(word == "~alarm" or "~alarm" in words_of(word) for word in content_words(text))
    only_hour = len(times.of_kind("clock")) == 1 == len(times.pieces)
    return "?" not in text and len(alarms) == 1 and own and only_hour and is_the_alarm(folded)


def tells_new_hour(text: str) -> bool:
    """Whether a sentence tells at what hour something begins: "la réunion commence à 18h30"."""
    return "?" not in text and _BEGINS.search(fold(text)) is not None and bool(find_times(text).of_kind("clock"))


def tells_new_time(text: str) -> bool:
    """Whether a clause says how it is from now on, and when: "finalement on a dit 16h30", "every other day now"."""
    times = find_times(text)
    told = "?" in text or not (times.rule or times.of_kind("clock", "day")) or says("question_word", fold(text))
    return not told and _FROM_NOW.search(fold(text)) is not None


def names_new_time(text: str, waiting: Sequence[ListedItem], now: datetime | None) -> bool:
    """Whether a clause of a sentence says only of one reminder when it is from now on, and that is another time."""
    if now is None or not tells_new_time(text):
        return False
    for clause in clauses(text):
        times, words = find_times(clause), content_words(clause)
        named = matching(words, waiting)
        if len(named) != 1 or named[0].kind != "reminder" or not _FROM_NOW.search(fold(clause)):
            continue
        own = find_times(named[0].often).rule
        fresh = times.rule and own and not own.startswith(times.rule)
        hours = times.of_kind("clock", "day")
        fresh = fresh or (not times.rule and any(not is_old_time(named[0], piece, times, now) for piece in hours))
        if fresh and len(words) - count_hits(words, named[0]) <= (2 if times.rule else 1):
            return True
    return False


def brings_back(text: str, waiting: Sequence[ListedItem], context: PlanContext) -> bool:
    """Whether the reminder that was just taken away is to be there again: "put the bus one back"."""
    latest = [call for call in context.earlier if call.is_latest and call.tool != "list_reminders"]
    taken = bool(latest) and latest[-1].tool == "cancel_reminder"
    return taken and _BACK_ON.search(fold(text)) is not None and not matching(subject_words(text), waiting)


def is_none_then(text: str, times: FoundTimes, named: Sequence[ListedItem]) -> bool:
    """Whether what comes again and again is not wanted on a day or in a week: "tomorrow no vitamins", "no Spanish next
    week"."""
    folded = fold(text)
    if "?" in text or not times.of_kind("day", "span") or not any(item.often for item in named):
        return False
    return _NONE_THEN.match(folded) is not None or (says("none_of", folded) and not times.of_kind("clock"))


def is_none_today(text: str, times: FoundTimes) -> bool:
    """Whether something is not wanted on a day, and no other time is said: "no bread today after all"."""
    folded = fold(text)
    other = times.dropped or times.of_kind("clock") or says("move", folded) or _NO_NOT.match(folded)
    return bool(times.pieces) and not other and "?" not in text and says("none_of", folded)


def _comes_on_more_days(folded: str, times: FoundTimes, waiting: Sequence[ListedItem], context: PlanContext) -> bool:
    """Whether days of the week are named on which what comes every week, and was just set, is to come as well."""
    kind, ids = find_last_changed(context)
    newest = [item for item in waiting if item.kind == kind and item.id in ids]
    weekly = len(newest) == 1 and "WEEKLY;BYDAY=" in find_times(newest[0].often).rule
    days = times.of_kind("day")
    of_week = bool(days) and all(piece.weekday is not None for piece in days)
    return weekly and of_week and not times.of_kind("clock", "before") and not _THIS_ONE.search(folded)


def _comes_too(text: str, folded: str, times: FoundTimes, waiting: Sequence[ListedItem]) -> bool:
    """Whether one reminder is named that is to come on another day, or at another hour of each, as well: "orchids on
    Sunday too", "the pills at nine too"."""
    words = content_words(text)
    named = matching(words, waiting)
    of_hour = not times.of_kind("day", "repeat")
    alone = len(named) == 1 and named[0].kind == "reminder" and (of_hour or not named[0].often)
    is_more = _TOO.search(folded) is not None and not says_any(("move", "asks", "amend"), folded)
    return alone and is_more and "?" not in text and count_hits(words, named[0]) == len(words)


def _is_enough(text: str, folded: str, waiting: Sequence[ListedItem]) -> bool:
    """Whether somebody has what stands on a list to be bought."""
    if not _IS_THERE.match(folded):
        return False
    first, *rest = clauses(text)
    words, others = content_words(without_lists(_IS_THERE.sub("", fold(first)))), content_words(", ".join(rest))
    named = matching(words, waiting)
    is_one = len(named) == 1 and all(item in named for item in matching(others, waiting))
    return is_one and bool(named[0].list) and len(words) == count_hits(words, named[0])


def _goes_on_for(text: str, folded: str, times: FoundTimes, waiting: Sequence[ListedItem], *, just_set: bool) -> bool:
    """Whether what was just set comes so much later or earlier, or a timer runs for longer: "remind me an hour
    earlier", "rajoute cinq minutes au minuteur"."""
    length = find_length(folded)
    if length is None or times.of_kind("clock", "day"):
        return False
    rest = content_words(f"{text[: length.start]} {text[length.end :]}")
    if just_set and not rest and says("set_reminder", folded) and says_any(("later_by", "earlier_by"), folded):
        return True
    runs = any(item.kind == "reminder" and "~timer" in words_of(item.text) for item in waiting)
    return runs and _ADDS.match(folded) is not None and says("timer", folded)
