"""The plan that gives a thing other words: "not butter, margarine", "rename it to …". Pure; as `plans` tells."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from assistant.core.text import lazy_regex
from assistant.core.time_language import N
from assistant.core.time_pieces import find_times
from assistant.core.time_readers import find_length
from assistant.models.offline.cues import fold, read_cues
from assistant.models.offline.lists import is_same_list, list_names, tidy_item, without_lists
from assistant.models.offline.matching import ListedItem, count_hits, matching, subject_words, words_of
from assistant.models.offline.order_signs import may_be_request
from assistant.models.offline.plans import OtherAnswer, Plan, PlanContext, ask_which, call_tool, describe_todos
from assistant.models.offline.targets import find_targets
from assistant.models.offline.word_swaps import ARTICLE, find_doubled, find_swap, is_thing

_NEW_NAMES = tuple(
    lazy_regex(pattern)
    for pattern in (
        r"^(?:please |bitte )?(?:make|change|mach\w*) (?:it|that|das|es|da)? ?(?:to |lieber |bitte )?(?P<new>.+?)"
        r" (?:instead of|rather than|statt|anstatt|anstelle von) (?P<old>.+?)(?: draus| daraus)?$",
        r"\b(?:rename|reword|change)\s+(?P<old>.+?)\s+(?:to say|to read|to|as|into)\s+(?P<new>.+)$",
        r"(?:renomme\w*|renombra\w*|benenne?|umbenenne?n?|nenne?|(?:ae?nder|korrigier|bessere?)e?|cambia\w*|change)\s+(?P<old>.+?)\s+"
        r"(?:in|en|a|por|zu|to)\s+(?P<new>.+?)(?: um)?$",
        r"(?:replace|ersetze?|remplace[rz]?|sustituye|reemplaza|swap)\s+(?P<old>.+?)\s+"
        r"(?:with|by|for|durch|mit|par|por|con)\s+(?P<new>.+)$",
        r"(?:(?:statt|anstatt|anstelle|instead of|en vez de|en lugar de)\s+|au lieu d(?:e\s+|'))(?P<old>.+?)\s+"
        r"(?:it should (?:say|be|read)|it'?s|it is|c'est|es(?= (?:el|la|un|una|a) )|ist es|ca doit etre"
        r"|ce (?:sera|doit etre)|que (?:ponga|sea|diga)|soll(?:en|te|ten)?(?: (?:da|es|jetzt|doch))*|(?:waren|sind) es"
        r"|mach|schreib|nimm|bitte|lieber|besser|put|make it|get|mets|ecris|note|prends|pon"
        r"|compra|mejor|plutot)\s+"
        r"(?P<new>.+?)(?:\s+(?:stehe?n|hin|sein))*$",
        r"^(?:mets|prends|note|ecris) (?P<new>.+?) (?:a la place|au lieu) d(?:e |u |es |')(?P<old>.+)$",
        r"(?P<new>.+?) (?:instead of|rather than|statt|anstatt|anstelle von|au lieu d[eu]|a la place d[eu]|en vez de"
        r"|en lugar de) (?P<old>.+)$",
        r"(?:donde (?:dice|pone)) (?P<old>\w+) .*\b(?:por|pon) (?P<new>[\w ]+)$",
        r"(?:donde (?:dice|pone)|where it says|wo) (?P<old>.+?) (?:steht |pon|put|schreib|mets)\w*,? (?P<new>.+)$",
        r"\bmach\w* aus (?P<old>[\w-]+) (?P<new>[\w-]+)(?: (?:beim?|im|in der) .*)?$",
        r"\baus (?P<old>.+?) (?:mach|mache|wird|machen wir)(?: bitte| doch)? (?P<new>.+)$",
        r"(?:call (?:it|that)|ponle|llamalo|nenn (?:es|sie|ihn)|appelle-l[ea]|appelle l[ea](?= \w+$)"
        r"|renomme-l[ea](?: en)?"
        r"|rename it(?: to)?|renombral[oa](?: a| como)?)\s+(?P<new>.+)$",
        # "change le nom du rappel réunion, mets entretien"
        r"\b(?:le nom|el nombre|the name|den namen?) (?:du|de la|de l'|del|of the|of|von|der|des) (?P<old>.+?),?"
        r" (?:mets|en|a|ponle|por|to|put|make it|call it|zu|in|auf) (?P<new>.+)$",
        r"^(?P<old>[^>→]{2,40}?) ?(?:->|=>|→) ?(?P<new>[^>→]{2,40})$",
        r"^rename (?:the )?(?:reminder|to-?do|task) (?P<old>[\w' -]{2,40}?),? (?:put|to|as|call it) (?P<new>.+)$",
        r"^(?P<old>.{2,40}?) umbenennen (?:in|zu) (?P<new>.+)$",
        r"^(?:change|modifie|corrige|remplace)(?:[- ](?:le|la|ca))? (?:en|par) (?P<new>.+)$",
        # "Make the milk oat milk"
        r"^(?:please )?make (?:the |my )?(?P<old>[\w-]{3,}) (?P<new>(?:[\w-]+ ){1,3}(?P=old))$",
        r"^mach\w* (?:aus )?(?:die |den |das |der |dem )?(?P<old>\w{3,}) (?:zu )?(?P<new>\w{2,}(?P=old))$",
        # "It should say vet with Rex"
        r"^(?:it |that |this )?should (?:say|read|be called) (?P<new>.+)$",
        r"^(?:das |es )?soll(?:te)? (?P<new>[^,]{2,40}) hei(?:ß|ss)en$",
        r"^(?:ca )?(?:doit|devrait) s'appeler (?P<new>.+)$",
        r"^(?:eso )?(?:debe|deberia|tiene que) (?:decir|poner|llamarse) (?P<new>.+)$",
        # "the shed is actually a fence, fix the todo"
        rf"^{ARTICLE}(?P<old>[^,]+?) (?:is|are|ist|est|es)(?: (?:actually|really|now|eigentlich|jetzt|doch|en fait"
        rf"|maintenant|en realidad|ahora))* {ARTICLE}(?P<new>[^,]+?)(?: (?:now|jetzt|maintenant|ahora|actually))?,"
        r" (?:so |please |bitte )?(?:fix|change|correct|update|rename|edit|ander|korrigier|corrige|change|modifie"
        r"|cambia|arregla)\w* .*$",
        r"(?P<old>.+?)\s+(?:should be called|should (?:say|be|read)|soll|doit s'appeler|que se llame)\s+"
        r"(?!\d{1,2}(?:[:.h]\d\d)?(?: ?[ap]m\b)?(?:,| not| nicht| instead|$))(?P<new>.+?)(?:\s+hei(?:ß|ss)en)?$",
    )
)
# Where the old words stand: "in the gift todo".
_PLACE = lazy_regex(
    r" (?:in|on|at|for|from|dans|sur|en|beim?|im|auf|vo[nm]|del?|du)(?: (?:the|my|la|le|ma|mon|mi|el|der|dem|den|die"
    r"|das|meine[rnm]?)| l')? ?(?P<where>[^,;]{1,40})$"
)
# How alike a word is to the one that is meant instead.
_LIKE = 0.7
_MEANT = lazy_regex(
    r"^(?:(?:no|nein|non|sorry|pardon|oops),? )*(?:(?:i mean(?:t)?|ich mein(?:t?e)?|je voulais dire|quise decir)"
    r" (?P<new>[\w' -]{3,40})"
    r"|(?P<new2>[\w' -]{3,40}?),? (?:i mean(?:t)?|mein(?:t?e)? ich|je voulais dire|quise decir))$"
)
# "Add 'bring the form' to the school reminder"
_APPENDED = lazy_regex(
    r"^(?:please |bitte |can you |tu peux |puedes )*(?:add|append|r?ajoute[rz]?|anade\w*|agrega\w*|erganze?|fug\w*"
    r"|schreib\w*|setz\w*)"
    r" ['\"“„«‘]?(?P<new>[^'\"“”„«»‘’]{2,60}?)['\"”“»’]? (?P<where>(?:to|zu[rm]?|auf|in|au|a la|a l'|al|a|dans|en) "
    r".*\b(?:reminder|\w*erinnerung|rappel|recordatorio)\b.*)$"
)
# "Make it three pints of milk, not two"
_OTHER_NUMBER = lazy_regex(
    rf"\b(?P<new>{N}) (?P<what>[^,;]{{2,40}}?),? (?:not|rather than|instead of|statt|anstatt|nicht|pas"
    rf"|plutot que|au lieu de|no"
    rf"|en vez de|en lugar de) (?P<old>{N})\b[ .!]*$"
)


_SHOULD_SAY = lazy_regex(
    r"^[^,;]{2,40} (?:should (?:say|read|be called)|soll(?:te)?|doit (?:s'appeler|dire)"
    r"|(?:debe|deberia) (?:decir|llamarse)) (?P<new>[^,;]{2,60})$"
)
_ONE = frozenset(["1", "one", "a", "ein", "eins", "eine", "un", "une", "uno", "una"])


_COURTESY_BEHIND = lazy_regex(
    r"(?<![\s,]),? (?:please|pls|plz|bitte|stp|svp|porfa|por favor|s'il te pla[iî]t)$", re.IGNORECASE
)


def _plain(text: str) -> str:
    """The words without marks of quotation, marks at the ends, and courtesy."""
    plain = " ".join(re.sub('[«»„“”"]', " ", text).split()).strip(" .!?")
    return _COURTESY_BEHIND.sub("", plain)


# "Still haven't called the vet but I have booked the sitter"
_NOT_YET = lazy_regex(
    r"\b(?:still (?:have|has)(?:n't| not)|toujours pas|pas encore|(?:immer )?noch nicht|todavia no|aun no)\b.*"
    r" (?:but|mais|aber|pero)\b"
)
# "Pas trouvé les cornichons mais j'ai le jambon"
_HAS_OTHER = lazy_regex(
    r"\b(?:but|aber|mais|pero) (?:i )?(?:got|have|hab\w*|j'ai|on a|tengo|tenemos|cog\w+|compr\w+)\b"
)
# "Found the grapes, no ham"
_GOT_ONE = lazy_regex(
    r"^(?:(?:i|we|ich|wir|on a|j'ai|ya he|he)(?:'ve)? )?(?:got|found|bought|picked up"
    r"|hab\w* (?:die|den|das)|trouve|pris|achete|cogi|compre|encontre|encontrado)\b"
    r".*, ?(?:but |aber |mais |pero )?(?:no|not|kein\w*|nicht|pas)\b"
)


def names_swap(text: str, items: Sequence[ListedItem]) -> bool:
    """Whether a sentence says words of a thing that is there, and which others are to be in their place."""
    plain = _plain(text)
    if _find_appended(text, items) or _find_other_number(plain, items) or find_doubled(text, items):
        return True
    swap = find_swap(plain, items) or _find_new_name(plain, items) or _find_meant(plain, items)
    if swap is None or _GOT_ONE.match(fold(text)) or any(form.search(fold(text)) for form in (_HAS_OTHER, _NOT_YET)):
        return False
    if _is_there(*swap, items):
        return False  # "grapes found, no ham"
    # It may be for another list.
    return all(is_same_list(swap[0].list, name) for name in filter(None, list_names(text)))


def _is_there(old: ListedItem, new: str, items: Sequence[ListedItem]) -> bool:
    """Whether the list of a thing has what would be its new name."""
    others = [item for item in items if item is not old and not item.done and item.list == old.list]
    return any(fold(item.text) == fold(new) for item in others)


def is_new_name(text: str) -> bool:
    """Whether a sentence only says what something is to be called, "and" or not: "it should say wash and wax"."""
    match = _SHOULD_SAY.match(fold(text))
    return match is not None and not may_be_request(match["new"])


def rename(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """A thing gets other words, or one word of it another."""
    plain = _plain(text)
    folded = fold(plain)
    if _GOT_ONE.match(folded):
        raise OtherAnswer
    waiting = [item for item in items if not item.done]
    more = find_doubled(text, waiting) or _find_appended(text, waiting) or _find_other_number(plain, waiting)
    if more is not None:
        return (yield from _reword(*more))
    if (swap := find_swap(plain, waiting) or _find_new_name(plain, waiting) or _find_meant(plain, waiting)) is not None:
        if swap[0].kind == "todo" and _is_there(*swap, waiting):
            # "More tomatoes, no basil": what is to be in its place is there.
            return describe_todos((yield from call_tool("manage_todo_list", action="remove", ids=[swap[0].id])))
        return (yield from _reword(*swap))
    match = next((m for pattern in _NEW_NAMES if (m := pattern.search(folded))), None)
    if match is None:
        raise OtherAnswer
    new = tidy_item(without_lists(plain[match.start("new") : match.end("new")]))
    if (find_length(fold(new)) and not is_thing(fold(new))) or read_cues().order_words.issuperset(words_of(new)):
        raise OtherAnswer
    old = match.groupdict().get("old") or folded[: match.start()]
    targets = find_targets(old, waiting, context, find_times(old))
    found = targets.items
    if not found:
        raise OtherAnswer
    if len(found) > 1:
        return ask_which(found)
    return (yield from _reword(found[0], new))


def _find_appended(text: str, items: Sequence[ListedItem]) -> tuple[ListedItem, str] | None:
    """The one reminder that gets more words, and all that it has then."""
    written = " ".join(text.split()).strip(" .!")
    match = _APPENDED.match(fold(written))
    if match is None or find_times(match["new"]).pieces or find_length(match["new"]):
        return None
    reminders = [item for item in items if item.kind == "reminder" and not item.done]
    words = subject_words(match["where"])
    found = matching(words, reminders) if words else reminders
    more = tidy_item(written[match.start("new") : match.end("new")])
    return (found[0], f"{found[0].text}, {more}") if len(found) == 1 and subject_words(more) else None


def _find_other_number(plain: str, items: Sequence[ListedItem]) -> tuple[ListedItem, str] | None:
    """The one thing of which there are to be more or fewer."""
    folded = fold(plain)
    match = _OTHER_NUMBER.search(folded)
    if match is None or find_times(plain).pieces or find_length(folded):
        return None
    old = re.compile(rf"(?<!\w){re.escape(match['old'])}(?!\w)")
    named = matching(subject_words(match["what"]), [item for item in items if not item.done])
    found = [item for item in named if old.search(fold(item.text))]
    if not found and len(named) == 1 and match["old"] in _ONE and not re.search(r"\d", named[0].text):
        return named[0], plain[match.start("new") : match.end("what")]  # "2 milks not 1"
    if len(found) != 1 or (place := old.search(fold(found[0].text))) is None:
        return None
    new = plain[match.start("new") : match.end("new")]
    return found[0], f"{found[0].text[: place.start()]}{new}{found[0].text[place.end() :]}"


def _is_hour(new: str) -> bool:
    """Whether it is an hour rather than other words: "change the taxi to 8", "a las 8"."""
    return new.strip(" .!").isdigit() and int(new.strip(" .!")) <= 24


def _find_meant(plain: str, items: Sequence[ListedItem]) -> tuple[ListedItem, str] | None:
    """The one thing with a word that is said again and more of it: "i meant olive oil", of "order oil"."""
    match = _MEANT.match(fold(plain))
    if match is None or find_times(plain).pieces:
        return None
    group = "new" if match["new"] else "new2"
    new, last = plain[match.start(group) : match.end(group)], match[group].split()[-1]
    if len(match[group].split()) == 1:
        return _find_misheard(new, items)
    word = re.compile(rf"(?<!\w){re.escape(last)}(?!\w)")
    found = [item for item in items if word.search(fold(item.text)) and match[group] not in fold(item.text)]
    if len(found) != 1 or len(match[group].split()) < 2 or not is_thing(match[group]):
        return None
    place = word.search(fold(found[0].text))
    return (found[0], f"{found[0].text[: place.start()]}{new}{found[0].text[place.end() :]}") if place else None


def _find_misheard(new: str, items: Sequence[ListedItem]) -> tuple[ListedItem, str] | None:
    """The one thing with a word like the one that was meant: "i meant Katie", of "ring Kate"."""
    own = {word for item in items for word in words_of(item.text)}
    if fold(new) in own or fold(new) in read_cues().order_words:
        return None
    near = difflib.get_close_matches(fold(new), own, n=2, cutoff=_LIKE)
    found = [item for item in items if near and near[0] in words_of(item.text)]
    if len(near) != 1 or len(found) != 1:
        return None
    place = re.search(rf"(?<!\w){re.escape(near[0])}(?!\w)", fold(found[0].text))
    return (found[0], f"{found[0].text[: place.start()]}{new}{found[0].text[place.end() :]}") if place else None


def _find_new_name(plain: str, items: Sequence[ListedItem]) -> tuple[ListedItem, str] | None:
    """The one thing that a sentence names with the name that it is to have: "swap milk for oat milk"."""
    for pattern in _NEW_NAMES:
        match = pattern.search(fold(plain))
        if match is None or not (old := match.groupdict().get("old")) or _is_hour(old) or find_times(old).pieces:
            continue
        new = tidy_item(without_lists(plain[match.start("new") : match.end("new")]))
        found = matching(subject_words(match["old"]), [item for item in items if not item.done])
        if len(found) == 1 and is_thing(fold(new)) and not (found[0].kind == "reminder" and _is_hour(new)):
            old = tidy_item(plain[match.start("old") : match.end("old")])
            return found[0], _in_place(found[0].text, old, _without_place(new, found[0]))
    return None


def _without_place(new: str, item: ListedItem) -> str:
    """The new words without those that say of which thing they are: "Lea in the gift todo"."""
    match = _PLACE.search(fold(new))
    words = subject_words(match["where"]) if match else []
    known = match is not None and count_hits(words, item) == len(words)
    return new[: match.start()] if match and known else new


def _in_place(text: str, old: str, new: str) -> str:
    """A text with new words where it has the old ones; the new ones alone where these say more than that."""
    place = re.search(rf"(?<!\w){re.escape(fold(old))}(?!\w)", fold(text))
    rest = words_of(f"{text[: place.start()]} {text[place.end() :]}") if place else []
    if place is None or not rest or set(rest) & set(words_of(new)):
        return new
    return f"{text[: place.start()]}{new}{text[place.end() :]}"


def _reword(item: ListedItem, new: str) -> Plan:
    if item.kind == "todo":
        return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[item.id], items=[new])))
    return (yield from call_tool("change_reminder", id=item.id, text=new))
