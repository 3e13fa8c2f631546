"""What is said beside an order and belongs to no thing: why it is given, that it is put right while it is said, that
there is enough of something. Pure.

What always holds: the words of a person are stored whole whatever is left out here, and what is left names something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.models.offline.chatter import without_chatter
from assistant.models.offline.cues import fold, read_cues, says, says_any
from assistant.models.offline.lists import order_subject
from assistant.models.offline.matching import ListedItem, is_same, matching, subject_words, words_of
from assistant.models.offline.moments import SENTENCE_PARTS
from assistant.models.offline.targets import content_words
from assistant.models.offline.tense_forms import stays_open

BETWEEN_ORDERS = lazy_regex(
    r"\s*[,;.]\s+(?:(?:and|und|et|y|but|aber|mais|pero|ach und|oh and)\s+)?|\s+(?:and|und|et|y|but|aber|mais|pero)\s+"
    r"(?:also |auch |aussi |tambien |también )?",
    re.IGNORECASE,
)
_DROPS = ("drop", "sense_drop")
# "While you're at it", between two orders.
_FILLER = lazy_regex(
    r",? ?\b(?:while you'?re at it|tant que tu y es|pendant que tu y es|wenn du schon (?:dabei|dran) bist|ya que estas"
    r"|de paso)\b,? ?"
)
# "At 8 on Saturdays, no scrap that, every day": only what stands behind it counts.
_TAKEN_BACK = lazy_regex(
    r"(?:[,;.–-]+ |\s)(?:(?:oh|ah|ach|ne|no|non|nein|nee|wait|attends|espera),? )*"
    r"(?:(?:scrap|scratch|strike|forget) that|(?:ach )?quatsch|vergiss das|ich meine?|oublie(?: ca)?|je (?:dis|raconte)"
    r" n'importe quoi|olvida eso|borra eso|que digo)[,:;.–-]* (?=\S)"
)
# "Put them on a list called band", of what the sentence before names
_PUTS_THEM = lazy_regex(
    r"(?:please |and )?(?:put|pop|stick|add|chuck|bung|mets|note|schreib\w*|pack\w*|setz\w*|tu|pon|mete)[- ]?"
    r"(?:it|them|those|these|that|this|le|la|les|ca|tout|die|das|sie|l[oa]s?)"
    r" (?:[^ ]+ ){0,4}(?:lists?|\w*liste|lista)\b"
)
# "One less thing on my list", of what is done or somebody else does
_ONE_LESS = lazy_regex(
    r"[,;.–-]+ (?:so |that's |also |donc |asi que )*(?:one (?:(?:less|fewer) (?:thing|job|task)"
    r"|(?:thing|job|task) (?:less|fewer))|eine (?:sache|aufgabe) weniger|une (?:chose|tache) de moins"
    r"|una (?:cosa|tarea) menos)"
    r"(?: (?:on|for|off|to|in|auf|fur|zu|sur|pour|dans|a|en|para|que)\b[^,;.]*)?(?=[\s.!]*$)"
)
# What begins why something is wanted, in front of the order or behind it.
_BECAUSE = lazy_regex(
    r",? (?:because(?! of)|cos|cuz|coz|since|as|weil|denn|parce que?|puisque|car|vu que|porque|ya que|que)\s+(?=\w)"
)
_SO = re.compile(r"(?:(?:so|and|donc|alors|also|deshalb|asi que|así que|entonces)\s+)", re.IGNORECASE)
# "The vet's shut Fridays": no time of anything else.
_SHUT = lazy_regex(
    r"(?:'s|\bis|\bare|'re|\bist|\bsind|\best|\bsont|\besta|\bestan) (?:always |normally |immer |toujours |siempre )?"
    r"(?:shut|closed|fully booked|zu|geschlossen|ausgebucht|ferme\w*|complet\w*|cerrad[oa]s?)\b"
)
_A_REMINDER = lazy_regex(r"\b(?:a|one|une?|eine?|un) (?:reminder|rappel|erinnerung|recordatorio)\b")
_ASKING = ("set_reminder", "wants_reminder", "nudges")
_PRONOUN = lazy_regex(
    r"\b(?:it|them|that|one|her|him|es|sie|ihn|das|dran|(?:d'|de |a )?(?:le|la|les|l'|y|en)(?= \w+(?:er|ir|re)\b)"
    r"|\w{3,}[aei]rl[oae]s?)\b"
)
# What there is: "milk we have", "du lait on en a", "Milch haben wir"
_ENOUGH = lazy_regex(
    r"(?:^|\b)(?:(?:(?:that|those|them) )?(?:we|i)(?:'ve)? (?:still |already )?(?:have|got)\b(?! to\b)"
    r"|(?:on|j')? ?en a(?:i)?(?: encore| deja| assez| plein)?$|haben wir\b|hab ich\b"
    r"|(?:ya )?(?:hay|tenemos|tengo)(?: en casa)?$)"
)
# "Eggs, no wait we have eggs", within a list
_THERE_IS = lazy_regex(
    r"[^,;:.]+, (?:(?:oh|ah|ach|no|non|nein|nee|wait|attends|espera|actually|en fait|doch),? )+"
    r"(?:(?:we|i) have|on en a|j'en ai|haben wir|hab ich|tenemos|tengo|hay)\b[^,;:.]*,?(?= )",
    re.IGNORECASE,
)
_NOT_THAT = lazy_regex(
    r"^(?:(?:oh|ah|ach|no|non|nein|nee|wait|attends|espera|sorry|pardon|perdon|finally|finalement),? )*"
    r"(?:not|nicht|keine?n?|pas(?: de| d')?|no|nope|non|nein)\b[ ,]*"
)
_ONLY = lazy_regex(
    r"^(?:(?:so|then|dann|also|alors|pues|just|only|nur|bloss|juste|seulement|rien que|solo|solamente|presque|nearly"
    r"|(?:there(?:'s| is| are) |we have |we'?ve got )?(?:hardly|barely|scarcely) (?:any|much)"
    r"|(?:wir haben )?kaum noch"
    r"|(?:il )?(?:ne )?(?:reste |y a )?(?:presque |quasi(?:ment)? )?plus de|(?:apenas|casi no) (?:nos )?(?:queda|hay)n?"
    r"|almost|fast|casi|maybe|vielleicht|peut-etre)\b[ ,]*)+"
    r"(?:(?:of|de la|de l'|d'|de|du|des|la|les)(?:\b|(?<=')) ?)?(?=\w)"
)
_LEFT_AT_END = lazy_regex(r"(?<=\w) (?:left|übrig|mehr)$", re.IGNORECASE)
_ALL_OF_THEM = lazy_regex(
    r"(?:and |und |et |y )?(?:(?:put |mets |mettre )?(?:both|all|all of (?:them|it)|the lot|beide[sn]?"
    r"|alle[sn]?|die beiden"
    r"|(?:tous |toutes )?les (?:deux|trois)|deux|tout(?: ca)?|los dos|las dos|dos|todo(?: eso)?"
    r"|presque|nearly|almost|fast|casi))"
)
# "For the camping trip", "pour la fête", "two things for later"
_WHAT_FOR = lazy_regex(
    r"(?:(?:for|fur|pour|para) (?:(?:the|my|our|die|das|den|unser\w*|la|le|les|l'|notre|el|los|las) ?)?\w+"
    r"(?: (?:trip|party|weekend|holiday|fest|reise|urlaub|fete|voyage|viaje|fiesta))?"
    r"|(?:there(?:'s| are)? )?(?:(?:two|three|four|zwei|drei|vier|deux|trois|quatre|dos|tres|cuatro|some|a few"
    r"|ein paar|quelques) )(?:more |other )?(?:things|jobs|sachen|dinge|choses|trucs|cosas)\b.*"
    r"|(?:before|bevor|avant|antes) (?:i|it|we|ich|wir|que|d'|de)\b.*)"
)
_SAID_BEFORE = frozenset(
    ["oh", "ah", "ach", "no", "non", "nein", "nee", "wait", "attends", "espera", "but", "aber", "mais", "pero", "still"]
)
# "Joghurt, Naturjoghurt mein ich"
_IS_MEANT = lazy_regex(r",? (?:i mean(?:t)?|mein(?:t?e)? ich|je veux dire|quiero decir|mejor dicho)\b.*$")


# "Thank goodness", beside what is done
_SIGH = lazy_regex(
    r"(?:ouf|enfin|phew|whew|finally|at last|yay|thank (?:god|goodness|heavens)|endlich|gott sei dank|puh|por fin"
    r"|menos mal|uf|great|super)"
)
_SENTENCE_CLAUSES = lazy_regex(r"\s*[,;.!]\s+(?:(?:and|und|et|y|but|aber|mais|pero)\s+)?|\s+(?:but|aber|mais|pero)\s+")


def puts_them(text: str) -> bool:
    """Whether a sentence only says on which list that is to stand which the sentence before names."""
    return _PUTS_THEM.match(fold(text)) is not None


def counts_things(text: str) -> bool:
    """Whether an order says first how many things follow: "two things for my list, ..."."""
    first, *others = _SENTENCE_CLAUSES.split(text)
    return bool(others) and says_how_many(first)


def says_how_many(head: str) -> bool:
    """Whether a clause only says how many things follow, or what for: "two things for the weekend"."""
    return _WHAT_FOR.fullmatch(fold(head)) is not None


def without_what_stays(text: str, items: Sequence[ListedItem]) -> str:
    """A sentence without its clauses that say of a thing that it is left as it is, and without sighs: "the gate is
    fixed, thank goodness, the hinges are for another day"; as it is where nothing else names a thing."""
    parts = _SENTENCE_CLAUSES.split(text)
    waiting = [item for item in items if not item.done]
    stay = [part for part in parts if stays_open(part) and matching(content_words(part) or words_of(part), waiting)]
    kept = [part for part in parts if part.strip() and part not in stay and not _SIGH.fullmatch(fold(part))]
    if len(kept) == len(parts) or not any(matching(content_words(part), waiting) for part in kept):
        return text
    return ", ".join(kept)


def tells_when_shut(part: str) -> bool:
    """Whether a part of a sentence says when something is closed or full: "the vet's shut Fridays"."""
    return _SHUT.search(fold(part)) is not None and bool(find_times(part).pieces)


def without_told_times(text: str, items: Sequence[ListedItem]) -> str:
    """What names a thing that is there and its new hour, without a clause that names none of them and another time:
    "the shop shuts at 3, so I'd better get the cello at 2"."""
    parts = [part for part in SENTENCE_PARTS.split(text) if part.strip()]
    shut = [part for part in parts if tells_when_shut(part)]
    if shut and any(find_times(part).pieces for part in parts if part not in shut):
        # Whose shop it is may be named there alone.
        return ", ".join(find_times(part).words if part in shut else part for part in parts)
    named = [part for part in parts if matching(content_words(part), items) and find_times(part).has_clock]
    other = [part for part in parts if part not in named and find_times(part).pieces and content_words(part)]
    other = [part for part in other if not (matching(content_words(part), items) or says("move", fold(part)))]
    return ", ".join(part for part in parts if part not in other) if named and other else text


def without_asides(text: str) -> str:
    """An order in its plain form, without what is said beside it."""
    return without_chatter(as_put_right(_without_fillers(_without_count(_THERE_IS.sub("", text)))))


def _without_count(text: str) -> str:
    """A sentence without that there is one thing less to do."""
    folded = fold(text)
    match = _ONE_LESS.search(folded) if len(folded) == len(text) else None
    return text[: match.start()] if match else text


def _without_fillers(text: str) -> str:
    """An order without what only joins it to another one: "and while you're at it get rid of the rota"."""
    folded = fold(text)
    if len(folded) != len(text) or (match := _FILLER.search(folded)) is None:
        return text
    before, after = text[: match.start()].rstrip(), text[match.end() :].lstrip()
    return f"{before} {after}" if before and after else text


def as_put_right(text: str) -> str:
    """A sentence that is taken back in its middle as it was meant: what it is about, and the times behind that."""
    folded = fold(text)
    match = _TAKEN_BACK.search(folded) if len(folded) == len(text) else None
    if match is None or find_times(text).dropped:
        return text
    before, after = find_times(text[: match.start()]), text[match.end() :]
    if not before.pieces or not find_times(after).pieces:
        return text
    subject = before.words.strip(" ,;.")
    return f"{subject}, {after}" if subject else after


def order_without_reason(text: str) -> str:
    """The part of a sentence that asks for a reminder, where it says by itself what and when, and another part
    tells why and names a time of its own: "it's bin day tomorrow, remind me tonight at 9 to put them out"."""
    folded = fold(text)
    if len(folded) != len(text) or not find_times(text).pieces:
        return text
    starts = [at for at in (_start_of(name, folded) for name in _ASKING) if at is not None]
    if match := _A_REMINDER.search(folded):
        starts.append(match.start())
    start = min(starts, default=0)
    why, order = text[:start].rstrip(" ,;:.-–"), text[start:]
    if start and (begin := _start_of_time(text[:start])) < start:
        start = begin
        why, order = text[:start].rstrip(" ,;:.-–"), text[start:]
    if start and order_subject(find_times(why).words) and find_times(why).pieces and _says_when(find_times(order)):
        own = find_times(order).words
        if not _PRONOUN.search(fold(own)) and content_words(own):
            text = order
        elif _PRONOUN.search(fold(own)) and order_subject(own):
            text = f"{order}: {find_times(why).words}"
    match = _BECAUSE.search(fold(text))
    if match is not None:
        order, why = text[: match.start()], text[match.end() :]
        told = find_times(why)
        asks = says_any((*_ASKING, "wake"), fold(order))
        if asks and told.of_kind("clock", "day") and find_times(order).has_clock and content_words(order):
            return order
    return text


def _start_of_time(before: str) -> int:
    """Where the time begins that stands in the clause of the order, before its verb: "they run out on the 19th, so on
    the 17th at ten tell me ..."; the end of the text where none does."""
    ends = [match.end() for match in SENTENCE_PARTS.finditer(before)]
    start = ends[-1] if ends else len(before)
    start += so.end() if (so := _SO.match(before[start:])) else 0
    times = find_times(before[start:])
    return start if times.has_clock and not order_subject(times.words) else len(before)


def _start_of(name: str, folded: str) -> int | None:
    match = read_cues().patterns[name].search(folded)
    return match.start() if match else None


def _says_when(times: FoundTimes) -> bool:
    """Whether times say a day and an hour, or from when on."""
    tonight = any(piece.offset is not None for piece in times.of_kind("part"))
    return times.has_clock and (times.has_day or bool(times.of_kind("repeat")) or tonight)


def settled_things(things: Sequence[str]) -> list[str]:
    """What is to stand on a list after all that was said of it: without what there is ("milk we have") and what was
    taken back ("not jam"), and of a thing that is said again only the longer words; the things as they are where
    nothing would be left."""
    kept: list[str] = []
    for place, thing in enumerate(things):
        folded = fold(thing)
        if _ALL_OF_THEM.fullmatch(folded) or (not place and len(things) > 1 and _WHAT_FOR.fullmatch(folded)):
            continue
        if kept or len(things) > 1:
            gone = _taken_back(folded)
            if gone is not None:
                kept = [other for other in kept if not _is_of(gone, other)] if gone else kept[:-1]
                continue
        if (match := _ONLY.match(folded)) and len(folded) == len(thing):
            thing = _LEFT_AT_END.sub("", thing[match.end() :])
        thing = thing[: match.start()] if kept and (match := _IS_MEANT.search(fold(thing))) else thing
        again = next((other for other in kept if _is_longer(thing, other)), None)
        kept = [thing if other == again else other for other in kept] if again else [*kept, thing]
    return [thing for thing in dict.fromkeys(kept) if thing] or list(things)


def _taken_back(folded: str) -> list[str] | None:
    """The words of what a folded clause says not to be wanted; None where it wants something."""
    enough, denied = _ENOUGH.search(folded), _NOT_THAT.match(folded)
    if enough:
        words = words_of(f"{folded[: enough.start()]} {folded[enough.end() :]}")
        return [word for word in words if word not in read_cues().order_words and word not in _SAID_BEFORE]
    return words_of(folded[denied.end() :]) if denied and folded[denied.end() :].strip() else None


def _is_of(words: Sequence[str], thing: str) -> bool:
    return any(is_same(word, own) for word in words if len(word) > 2 for own in words_of(thing))


def _is_longer(thing: str, other: str) -> bool:
    """Whether a thing is the other, said more exactly: "10 metre cable" after "cable"."""
    one, two = words_of(thing), words_of(other)
    whole = set(two) < set(one) or (len(one) == len(two) == 1 and one[0].endswith(two[0]) and one != two)
    return whole and not says_any(("more", "both"), fold(thing)) and not says("puts", fold(thing))


def drops_behind(text: str, items: Sequence[ListedItem]) -> tuple[str, str] | None:
    """What a sentence wants kept or more of, and the order behind it that takes something else away: "double up on the
    tomatoes and lose the basil"."""
    for end in BETWEEN_ORDERS.finditer(text):
        other, order = text[: end.start()], text[end.end() :]
        begins = fold(" ".join(order.split()[:2]))
        if (
            says_any(_DROPS, begins)
            and says_any(("keeps", "wants_more"), fold(other))
            and not says_any(_DROPS, fold(other))
            and matching(subject_words(order), items)
            and matching(subject_words(other), items)
        ):
            return other, order
    return None
