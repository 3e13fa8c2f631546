"""Whether a sentence may be an order, or may only tell something: by its form, its words, and how likely an intent is.
Pure.

What always holds: what has the form of an order is never taken as surely told, and neither is what speaks of something
done, off, back or otherwise, so that nobody is told "Noted" alone instead of that nothing was done.
"""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.models.offline.cues import clauses, fold, says, says_any
from assistant.models.offline.exchanges import wants_exchange
from assistant.models.offline.intents import is_understood, rank_without_items
from assistant.models.offline.lists import names_list
from assistant.models.offline.matching import subject_words
from assistant.models.offline.mood import has_others_do, is_order, tells_without_subject
from assistant.models.offline.pointing import points_in_part
from assistant.models.offline.remark_forms import (
    has_all_but,
    has_enough,
    leaves_out_days,
    points_at_there,
    tells_new_hour,
    tells_new_time,
)
from assistant.models.offline.targets import content_words
from assistant.models.offline.whole_lists import plan_for_whole_list

# From this chance on, a sentence is a statement for sure; from the second on, it may be one.
SURE = 0.93
LIKELY = 0.3
# "J'ai le lait" may be of a thing that was to be got.
HAS_IT = lazy_regex(
    r"^(?:(?:ca y est|c'est bon|ok|bon|vale|bueno|ya|listo),? )?(?:j'ai|on a|nous avons|tengo|tenemos) "
    r"(?:bien |deja |ya )?(?:(?:le|la|les|el|los|las) |l')\w"
)
# It begins with what may be a verb that nobody here knows: "entgrate die Spatzen", "dégivre les moineaux".
_VERB_FIRST = lazy_regex(
    r"^(?!(?:heute?|gestern|morgen|jetzt|dann|aber|und|weil|wenn|dass|auch|noch|nur|elle|il|je|on|ce|que|une"
    r"|aujourd\w*|hoy"
    r"|ayer|ella|este|esta|donde|que|para|come)\b)[^\W\d_]{3,}(?<!st)"
    r" (?:(?:mal|bitte|mir|uns|den|die|das|dem|meinen?|einen?)"
    r"|(?<=e )(?:le|la|les|mon|ma|mes|du|des|un|une)|(?<=[ae] )(?:el|los|las|al|mi|mis|un|una))\b"
)
_GREETING = lazy_regex(
    r"^(?:hi|hello|hey|hallo|moin|servus|guten (?:tag|morgen|abend)|bonjour|bonsoir|salut|coucou|hola|buenas"
    r"|buenos d[ií]as|good (?:morning|evening|afternoon))(?: there)?[\s,.!]+(?=\w)",
    re.IGNORECASE,
)
# One more of what was just set.
SAME_AGAIN = lazy_regex(
    r"^(?:the )?same (?=tomorrow|on |at |for |next |every )"
    r"|\b(?:(?:the )?same (?:again|thing)(?: again)?|once more|one more time"
    r"|(?:noch ?(?:ein)?mal )?(?:das (?:gleiche|selbe)|dasselbe)(?: noch ?(?:ein)?mal)?"
    r"|(?:encore )?(?:la m[eê]me chose|pareil|le m[eê]me rappel)(?: encore)?"
    r"|(?:otra vez )?(?:lo mism(?:o|ito)|el mismo (?:recordatorio|aviso))(?: otra vez)?)\b",
    re.IGNORECASE,
)
# "Ich bin" is not the English order.
_GERMAN_AM = lazy_regex(r"\b(?:ich bin|bin ich)\b")
# "Ma tâche n'est pas ... mais ..."
_THIS_NOT_THAT = lazy_regex(
    r"(?:,|\band|\bund|\bet|\by) (?:not|nicht|pas|no) (?:the |der |die |das |le |la |el |a |de |d')?[\w-]+[.!]*$"
)
NOT_BUT = lazy_regex(r"\b(?:not|nicht?|pas|no)\b.{1,60}\b(?:but|sondern|mais|sino)\b")
# A few words of which no intent is as likely, and no cue is in them, want nothing.
_LIKELY_MEANT = 0.6
# From this chance on, a sentence without any cue of an order is a statement, whatever the person has.
_PLAINLY_TOLD = 0.85
# From this chance on, a sentence that has no word of a change is a statement.
_TOLD_BY_WORDS = 0.8
_FRAGMENT_WORDS = 3
_A_THING = 2
# "Omar ne mange pas de gluten", which reads like "no gluten" for a list
_DECLARES_NOT = lazy_regex(r"^(?!(?:ne|tu|vous)\b)[a-z][\w-]*(?: [a-z][\w-]*)? n(?:e |')(?!(?:me|te|nous) )\w+ pas\b")
_NEVER = lazy_regex(r"\b(?:never|nie|niemals|jamais|nunca)\b")
_MORE = lazy_regex(r"^(?:and|und|et|y|plus|also|ach ja|oh and)\b,? (?!not?\b|nicht\b|pas\b)\w")
_SHORT_CORRECTION = 8
_FEW_WORDS = 5
# Below it, what has mostly unknown words is of another language.
DOUBTFUL = 0.5
# From this chance on, what has no sign of a change only tells something.
_ONLY_TELLS = 0.85
# From this chance on, not even the mood of an order makes one.
_SURELY_TOLD = 0.99
# From these chances on, what is neither question nor order tells something.
_SAID = 0.6
_SAID_OR_ASKED = 0.75
TOLD = frozenset(["statement", "question"])
# Without any of these, what reads like a statement changes nothing that is there.
CHANGE_CUES = (
    "set_reminder",
    "wake",
    "nudges",
    "wants_reminder",
    "drop",
    "not_needed",
    "move",
    "rename",
    "swaps",
    "done",
    "mark",
    "reopen",
    "snooze",
    "sense_drop",
    "sense_done",
    "sense_not_done",
    "sense_back",
    "sense_more",
    "sense_other",
    "puts",
    "runs_out",
    "needs_no_more",
    "skips",
    "asks_for",
    "goes_through",
)
_ORDER_CUES = (
    "question",
    "asks",
    "show",
    "agenda",
    "list_only",
    "next_one",
    "open_todos",
    "question_word",
    "anything",
    "imperative",
    "commands",
    "cannot",
    "of_the_world",
    "world",
    "add",
    "not_due",
    "latest",
    "both",
    "takes_back",
    "runs_out",
)
# What may be about a thing that is there: that it is done, off, back, due at another time or to be otherwise.
_SIGNS_OF_CHANGE = (
    *("done", "already_done", "sense_done", "sense_not_done", "sense_drop", "sense_back", "sense_more", "sense_other"),
    *("amend", "swaps", "not_due", "earlier_by", "later_by", "sooner", "longer", "still", "keeps", "runs_out"),
    *("asks_for", "commands", "points_to_several", "todo_noun", "reminder_noun", "alarm", "timer"),
)
# What is needed may be meant for a list.
_NEEDED = lazy_regex(
    r"\b(?:(?:we|i)(?: really| also)? need|(?:wir brauchen|ich brauche)|il (?:me |nous )?(?:faut|faudrait)"
    r"|(?:j'ai|on a|nous avons) besoin|necesit(?:o|amos)|(?:me|nos) h\w+ falta|hay que)\b"
)
# Of these, what only says that something is otherwise: it is an order only where it names a thing that is there.
_OF_A_NAMED_THING = frozenset(
    ["amend", "sense_other", "sense_more", "swaps", "points_to_several", "keeps", "still", "sooner", "longer"]
)
NOUN_CUES = ("agenda_noun", "reminder_noun", "todo_noun")
_WEAK_CUES = ("asks_for", "goes_through", "sense_other", "sense_more")
STRONG_CUES = tuple(name for name in CHANGE_CUES if name not in _WEAK_CUES)
_REQUEST_CUES = (
    "set_reminder",
    "wake",
    "wants_reminder",
    "nudges",
    "puts",
    "drop",
    "move",
    "snooze",
    "imperative",
    "skips",
    "sense_drop",
    "mark",
)
# The form of an order, whatever it is about; and what orders are about.
ORDER_FORMS = (
    *_REQUEST_CUES,
    "commands",
    "add",
    "cannot",
    "rename",
    "undo",
    "sense_back",
)
# What shows that somebody tells something.
_DECLARING = ("forms", "teller", "states", "tells_past", "of_a_thing", "of_oneself", "keep")
_ORDER_NOUNS = ("reminder_noun", "todo_noun", "names_list", "alarm", "timer")


# What to do, by the form of its verb: "Mama zurückrufen", "rappeler maman", "llamar a mamá".
INFINITIVE = lazy_regex(
    r"^(?!.*\b(?:ich|wir|er|sie|es|man|du|je|j'|on|il|elle|i|we|he|she|it|ist|sind|war|est|es|was|is)\b)"
    r"(?:(?:\w+(?:er|ir|re|ar))\b(?! (?:heißt|ist|war))|.*\b\w{2,}(?:en|ern|eln)$)"
)
# "Die Rollläden hochfahren": what is to be done, by a verb whose prefix is not apart from it.
_SEPARABLE = lazy_regex(
    r"^(?!.*\b(?:ich|wir|er|sie|man|will|wollen|muss|mussen|soll|sollen|kann|konnen|lassen|wird|werden|hat|haben"
    r"|sind)\b)"
    r"(?:bitte |mal )?(?:der|die|das|den|dem|alle|mein\w*|unser\w*) (?:\w+ ){1,4}"
    r"(?:ab|an|aus|auf|zu|ein|hoch|runter|raus|rein|weg|um|los|herunter|hinunter|vor)\w{3,}(?:en|ern|eln)(?: bitte)?$"
)
_HEADED = lazy_regex(r"^[^:]{3,40}:\s")
# What has been done: "stairs hoovered", "Treppe ist geputzt", "l'escalier est aspiré", "escalera aspirada". With its
# accent in French, where "aspire" orders.
_PARTICIPLE = lazy_regex(
    r"\b(?:\w{2,}(?:ed|[aeiou]ught|orn|ken|ten)|(?:re)?paid|sent|sold|hung|swept|built|fed|given|seen|shut|fixed"
    r"|sorted|rung|sewn|mown"
    r"|drawn|thrown|hidden|laid|dealt with|(?:\w{0,6}ge\w{3,}|be\w{3,}|ver\w{3,}|er\w{3,}|ent\w{3,}|\w{3,}ier)(?:t|en)"
    r"|\w{3,}(?:é|ée|és|ées)|\w{2,}(?:ad|id)[oa]s?"
    # As typed without its accent, of what is done at home.
    r"|(?:achet|pay|envoy|rang|lav|nettoy|repar|reserv|command|post|trouv|recuper|termin|regl|sign|imprim|repass|rappel"
    r"|prepar|coup|arros|jet)(?:ee?s?))$",
    re.IGNORECASE,
)
_OF_ONESELF = lazy_regex(r"^(?:j'|(?:je|i|ich|wir|we|nous|yo|me) )")
_NEGATES = lazy_regex(
    r"\b(?:not|n't|never|nicht|kein\w*|nie|pas|jamais|no|nunca|wrong|falsch|to (?:be|get|have)|zu|cancel\w*"
    r"|call\w*|move\w*|postpone\w*|verschoben|verlegt|abgesagt|annul\w*|report\w*|decal\w*|cancelad\w*|aplazad\w*"
    r"|movid\w*)\b"
)


def begins_with_time(text: str, times: FoundTimes) -> str:
    """What a thing to do is meant for that stands behind its time alone: "in two hours: call mum", "heute noch zu tun:
    Vermieter mailen", "in zwei Stunden Mama anrufen"."""
    if not times.pieces or times.of_kind("span"):
        return ""
    head = _HEADED.match(text)
    before = find_times(head[0]) if head else None
    if head and before is not None and before.pieces and not subject_words(before.words.rstrip(": ")):
        if not content_words(text[head.end() :]) and says("drop", fold(text[head.end() :])):
            return ""  # "Sunday: cancel both"
        is_asked = before.has_clock or before.of_kind("delta", "repeat") or says("set_reminder", fold(before.text))
        return "remind" if is_asked else "add"
    first = times.pieces[0]
    if not first.start and re.search("HOURLY|MINUTELY", first.rule) and not says_any(_DECLARING, fold(times.words)):
        return "remind"  # "every four hours eye drops"
    is_first = not first.start and times.of_kind("delta") and len(times.pieces) == 1
    return "remind" if is_first and INFINITIVE.match(fold(times.words)) else ""


def may_say_done(text: str) -> bool:
    """Whether a few words, not about oneself, end with what has been done to something."""
    words = text.strip(" .!,✅").split()
    is_short = 2 <= len(words) <= _FEW_WORDS and not _OF_ONESELF.match(fold(text))
    return is_short and _PARTICIPLE.search(words[-1]) is not None and not _NEGATES.search(fold(text))


def may_be_order(text: str) -> bool:
    """Whether a sentence may want something done, whatever the person has."""
    folded = fold(text)
    if says("resembles", folded):
        return False
    if plan_for_whole_list(text) is not None or wants_exchange(text) or points_at_there(text):
        return True
    if says_any(("bare_done", "not_first", "leaves_out", "days_until", "arithmetic", "summarises"), folded):
        return True
    if (
        tells_without_subject(text)
        or has_others_do(text)
        or has_enough(text)
        or has_all_but(text)
        or tells_new_time(text)
        or points_in_part(text)
    ):
        return True  # a to-do that is there may be done with it
    if HAS_IT.match(folded) and len(folded.split()) <= _FEW_WORDS and "?" not in text:
        return True
    if (
        any(map(may_say_done, (text, *clauses(text))))
        or begins_with_time(text, find_times(text))
        or says("writes_down", folded)
    ):
        return True
    if _THIS_NOT_THAT.search(folded) and len(folded.split()) <= _SHORT_CORRECTION:
        return True
    if NOT_BUT.search(folded) and (names_what_orders_are_about(text) or says("swaps", folded)):
        return True
    times = find_times(text)
    if times.dropped or tells_new_hour(text):
        return True  # one time instead of another
    if times.rule and 0 < len(times.words.split()) <= _A_THING:
        return True  # "the rent every month" may be of a thing that is there
    if times.pieces and leaves_out_days(folded) and len(folded.split()) <= _FEW_WORDS:
        return True  # "sauf le vendredi"
    if _MORE.match(folded) and len(folded.split()) <= _FRAGMENT_WORDS:
        return True  # "and butter"
    intent, chance = rank_without_items(text)[0]
    if chance < DOUBTFUL and not is_understood(text) and not may_be_request(text):
        return False
    is_fragment = chance < _LIKELY_MEANT and len(text.split()) <= _FRAGMENT_WORDS
    if is_fragment and not says_any((*CHANGE_CUES, *NOUN_CUES, *_ORDER_CUES), folded):
        return bool(times.pieces) or names_list(folded)
    # Who tells of an alarm that rang wants none.
    nouns = () if says("tells_past", folded) else NOUN_CUES
    strong, weak = says_any((*STRONG_CUES, *nouns), folded), says_any(_WEAK_CUES, folded)
    plain = not (strong or weak) and not says_any(_ORDER_CUES, folded)
    if says("sense_other", folded) and times.of_kind("day", "clock") and chance < SURE:
        return True  # that something is at another time may be of a thing that is there
    if intent == "statement" and chance >= (_TOLD_BY_WORDS if not strong else SURE) and not may_be_request(text):
        return False
    told = intent == "question" or (intent == "statement" and chance >= (_PLAINLY_TOLD if plain else SURE))
    return not told or bool(times.pieces) or strong or weak


def may_be_meant(text: str) -> bool:
    """Whether a sentence has the form of an order, or speaks of what orders are about and does not surely tell: it is
    never answered as if it had only told something."""
    folded = fold(text)
    intent, chance = rank_without_items(text)[0]
    surely_told = intent == "statement" and (chance >= SURE or says("tells_past", folded))
    if says("resembles", folded) or tells_without_subject(text):
        return False
    nouns = says_any(_ORDER_NOUNS, folded) or _VERB_FIRST.match(folded) is not None
    return says_any(ORDER_FORMS, folded) or (not surely_told and nouns)


def commands(text: str) -> bool:
    """Whether a sentence has the mood of an order, in any of its clauses."""
    if _SEPARABLE.match(fold(text).strip(" .!")):
        return True
    if is_order(text) and is_order(find_times(text).words):  # in "dentiste le 20" no verb stands before "le"
        return True
    text = _GREETING.sub("", text, count=1)
    if tells_without_subject(text):
        return False
    chance, folded = dict(rank_without_items(text))["statement"], fold(text)
    declares = chance >= DOUBTFUL and says_any(("forms", "states", "teller"), folded)
    told = declares or chance >= _SURELY_TOLD or says_any(("resembles", "keep", "tells_done"), folded)
    return not told and any(says("command_verb", fold(clause)) for clause in clauses(text))


def _tells_duty(text: str) -> bool:
    """Whether somebody tells what they have to do, and when: a reminder may be meant."""
    return says("duty", fold(text)) and bool(find_times(text).of_kind("clock", "day", "part", "delta"))


def only_tells(text: str) -> bool:
    """Whether a sentence shows that it tells something: it is likely, no clause of it has the form of an order, and it
    has no sign that a reminder or a to-do was to change."""
    text = _GREETING.sub("", text, count=1)
    if _tells_duty(text) or commands(text) or any(says_any(ORDER_FORMS, fold(c)) for c in clauses(text)[1:]):
        return False
    folded = _GERMAN_AM.sub("", fold(text))
    if tells_without_subject(text):
        return not find_times(text).of_kind("clock")
    chance = dict(rank_without_items(text))["statement"]
    if not says_any(_DECLARING, folded):
        return False
    told = chance >= _ONLY_TELLS or (chance >= DOUBTFUL and says_any(("forms", "teller"), folded) and "?" not in text)
    return told and not says_any(_SIGNS_OF_CHANGE, folded) and (chance >= _ONLY_TELLS or not find_times(text).pieces)


def tells_unless_named(text: str) -> bool:
    """Whether a sentence only tells something where it names no reminder and no to-do that the person has: "my sister
    moved to Bergen", "the dentist moved"."""
    text = _GREETING.sub("", text, count=1)
    if _tells_duty(text):
        return False
    folded = _GERMAN_AM.sub("", fold(text))
    chances = dict(rank_without_items(text))
    declares = chances["statement"] >= DOUBTFUL and says_any(("forms", "teller", "states"), folded)
    told = declares or (chances["statement"] >= _SAID and sum(chances[name] for name in TOLD) >= _SAID_OR_ASKED)
    signs = [name for name in _SIGNS_OF_CHANGE if name not in _OF_A_NAMED_THING]
    if _NEVER.search(folded):  # "I never lived in Bonn" says of nothing that it is not done yet
        signs = [name for name in signs if name not in ("sense_done", "sense_not_done")]
    if not told or "?" in text or says_any(signs, folded) or may_be_meant(text):
        return False
    return says("tells_past", folded) or not find_times(text).pieces


def tells_need(text: str) -> bool:
    """Whether a sentence says that something is needed: "we need eggs"."""
    return "?" not in text and (_NEEDED.search(fold(text)) is not None or says("duty", fold(text)))


def names_what_orders_are_about(text: str) -> bool:
    """Whether a sentence speaks of reminders, to-dos or lists."""
    return says_any(_ORDER_NOUNS, fold(text))


def is_likely_told(text: str) -> bool:
    """Whether a sentence is likelier to tell or ask than to be an order."""
    return rank_without_items(text)[0][0] in TOLD


def may_be_told(text: str) -> bool:
    """Whether a sentence may tell something, whatever else it does."""
    told = sum(chance for intent, chance in rank_without_items(text) if intent in TOLD)
    return told >= LIKELY or not may_be_request(text) or _DECLARES_NOT.match(fold(text)) is not None


def asks_for_reminder(text: str) -> bool:
    return says_any(("set_reminder", "wake", "wants_reminder", "nudges"), fold(text)) and may_be_request(text)


def may_be_request(text: str) -> bool:
    """Whether a sentence has words of an order."""
    folded = fold(text)
    return says_any(_REQUEST_CUES, folded) and not says("resembles", folded)
