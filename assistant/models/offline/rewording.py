"""The plan that gives a thing other words: "not butter, margarine", "rename it to …". Pure; as `plans` tells."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from assistant.core.text import lazy_regex
from assistant.core.time_language import N
from assistant.core.time_names import NUMBERS
from assistant.core.time_pieces import find_times
from assistant.core.time_readers import find_length
from assistant.models.offline.cues import fold, read_cues, says
from assistant.models.offline.lists import is_same_list, list_names, tidy_item, without_lists
from assistant.models.offline.matching import ListedItem, count_hits, is_same, matching, subject_words, words_of
from assistant.models.offline.plans import OtherAnswer, Plan, PlanContext, ask_which, call_tool, describe_todos
from assistant.models.offline.targets import find_targets

_ARTICLE = r"(?:(?:the|an?|la|le|les|el|los|las|die|der|das|den|dem|du|des|de la|un|une|una|eine?[nr]?) |de l'|d'|l')?"
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
        r"(?:call (?:it|that)|ponle|llamalo|nenn (?:es|sie|ihn)|appelle[- ]l[ea]|renomme[- ]l[ea](?: en)?"
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
        rf"^{_ARTICLE}(?P<old>[^,]+?) (?:is|are|ist|est|es)(?: (?:actually|really|now|eigentlich|jetzt|doch|en fait"
        rf"|maintenant|en realidad|ahora))* {_ARTICLE}(?P<new>[^,]+?)(?: (?:now|jetzt|maintenant|ahora|actually))?,"
        r" (?:so |please |bitte )?(?:fix|change|correct|update|rename|edit|ander|korrigier|corrige|change|modifie"
        r"|cambia|arregla)\w* .*$",
        r"(?P<old>.+?)\s+(?:should be called|should (?:say|be|read)|soll|doit s'appeler|que se llame)\s+"
        r"(?!\d{1,2}(?:[:.h]\d\d)?(?: ?[ap]m\b)?(?:,| not| nicht| instead|$))(?P<new>.+?)(?:\s+hei(?:ß|ss)en)?$",
    )
)
_NOT_BUT = lazy_regex(
    rf"(?:\bnot|n't|\bpas|\bniche?t?|\bno (?:es|era)|\bno)\s+{_ARTICLE}(?P<old>[\w -]+?)\s*[,;]?\s*"
    rf"\b(?:but|it'?s|it was|c'est|c'etait|mais|sondern|es war|sino(?: que)?|es|era) {_ARTICLE}"
    rf"(?P<new>[\w' -]+?)(?: soll .*| i need .*"
    rf"| i have .*|,.*)?$"
)
# "it's the building society not the bank, fix that"; "era escribir a Pablo, no a Pedro"
_THIS_NOT_THAT = lazy_regex(
    rf"\b(?:it'?s|es|c'est|era|ist|is|mean|meant|meinte?|(?:queria|quise) decir|voulais dire)"
    rf" (?P<new>[^,.;]+?),? (?:and |y |et |und )?"
    rf"(?:not|nicht|pas|no) (?:a |de |to |an )?{_ARTICLE}(?P<old>[\w-]+(?: [\w-]+)?)(?:,.*)?$"
)
_CLAUSE = lazy_regex(r",? (?:i|we|that|who|whom|que|qu'|qui|a quien|al que|a la que|ich|muss|wir|den|die)\b")
_TO_WHOM = lazy_regex(r"^(?:a|al|to) (?=\w)", re.IGNORECASE)
_SWAPS = tuple(
    lazy_regex(pattern)
    for pattern in (
        # "not Lukas but Luisa"; "c'est pas Paul que je dois appeler, c'est Paula"
        rf"(?:\bnot|\bpas|\bnicht|\bno es)\s+{_ARTICLE}(?P<old>[\w-]+)\b[^,;]*[,;]?.*?"
        rf"(?:\bit'?s|\bbut|\bc'est|\bsondern|\bsino|\bes)\s+(?:con |con la )?{_ARTICLE}(?P<new>[\w-]+)",
        # "not butter, margarine"; "pas du lait, du lait d'avoine"
        rf"\b(?:not|niche?t?|keine?n?|pas|no)\s+{_ARTICLE}(?P<old>[\w-]+(?: [\w-]+)?)\s*[,;:-]\s*"
        rf"(?:but |sondern |c'est |sino |mais |it'?s |plutot |lieber |rather )?{_ARTICLE}"
        r"(?P<new>[\w'-]+(?: [\w'-]+){0,3})$",
        # "butter no, margarine"
        r"(?P<old>[\w-]+) (?:no|nicht|non)\s*,\s*(?:queria decir |sondern |sino |je voulais dire |mejor )?"
        r"(?P<new>[\w'-]+(?: [\w'-]+){0,3})$",
        # "Emilia hol ich ab, nicht Emma"
        r"^(?P<new>[\w-]{3,}) [^,]{3,40}, (?:not|nicht|pas|no) (?:a |de )?(?P<old>[\w-]{3,})$",
        # "Den Hundefriseur muss ich anrufen, nicht den Tierarzt"
        rf"^{_ARTICLE}(?P<new>[\w-]{{3,}}) (?:muss|soll|will|mochte) (?:ich|man) [^,]{{3,40}}?,? (?:und )?nicht"
        rf" (?:bei )?{_ARTICLE}(?P<old>[\w-]{{3,}})$",
        # "I have to call the insurance, not the bank"
        rf"(?<= )(?P<new>[\w-]{{3,}}),? (?:and |y |und |et )?(?:not|nicht|pas|no) {_ARTICLE}(?P<old>[\w-]{{3,}})$",
        # "6 eggs not 12"; "it is leclerc and not carrefour"
        r"(?P<new>[\w-]+)(?: \w+)?\s*,?\s*(?:y |and |und |et )?"
        r"(?:not|nicht|pas|no)\s+(?:\w{1,4} ){0,2}(?P<old>[\w-]+)(?: \w+)?$",
    )
)


# "Rather margarine than butter", "make that pears, not apples"
_NO_NOT = lazy_regex(r"^(?:(?:no|nope|nein|nee|ne|non)[, ]+)+(?=(?:not|nicht?|keine?n?|pas|no)\b)", re.IGNORECASE)
# Where the old words stand: "in the gift todo".
_PLACE = lazy_regex(
    r" (?:in|on|at|for|from|dans|sur|en|beim?|im|auf|vo[nm]|del?|du)(?: (?:the|my|la|le|ma|mon|mi|el|der|dem|den|die"
    r"|das|meine[rnm]?)| l')? ?(?P<where>[^,;]{1,40})$"
)
_OF = ("", "de", "d'", "of", "et", "and", "und", "y")
_CONTRAST = lazy_regex(
    r"\b(?:instead|rather|make (?:it|that)|statt|stattdessen|anstatt|anstelle|lieber|plutot|au lieu|en vez|en lugar"
    r"|mejor|prefer\w*|sondern|sino|(?:no|not|nicht|non),? (?:it'?s|es|c'est|but))\b"
)
# "Two litres of milk", of milk
_NUMBER_WORDS = "|".join(word for word, number in NUMBERS.items() if number > 1 and word.isalpha())
_NUMBER_BEFORE = lazy_regex(rf"(?<!\w)(?P<number>\d{{1,3}}|{_NUMBER_WORDS}) $")
_LONGEST_SWAP = 60
# How alike a word is to the one that is meant instead.
_LIKE = 0.7


_MEANT = lazy_regex(
    r"^(?:(?:no|nein|non|sorry|pardon|oops),? )*(?:(?:i mean(?:t)?|ich mein(?:t?e)?|je voulais dire|quise decir)"
    r" (?P<new>[\w' -]{3,40})"
    r"|(?P<new2>[\w' -]{3,40}?),? (?:i mean(?:t)?|mein(?:t?e)? ich|je voulais dire|quise decir))$"
)
# "The insurance, not the bank, correct that"
_PUT_RIGHT = lazy_regex(
    r"[,;.]? +(?:so |and |please |bitte )*(?:fix|correct|change|update|korrigier\w*|ander\w*|corrige\w*|rectifie\w*"
    r"|modifie\w*|arregla\w*|cambia\w*)"
    r"(?:[- ](?:it|that|this|the (?:reminder|to-?do|task)|das|es|ca|la|le|eso))?(?: please| bitte| stp| porfa)?$",
    re.IGNORECASE,
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


def _plain(text: str) -> str:
    """The words without marks of quotation and at the ends."""
    return " ".join(re.sub('[«»„“”"]', " ", text).split()).strip(" .!?")


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
    if _find_appended(text, items) or _find_other_number(plain, items):
        return True
    swap = _find_swap(plain, items) or _find_new_name(plain, items) or _find_meant(plain, items)
    if swap is None or _HAS_OTHER.search(fold(text)) or _GOT_ONE.match(fold(text)):
        return False
    others = [item for item in items if item is not swap[0] and not item.done and item.list == swap[0].list]
    if any(fold(item.text) == fold(swap[1]) for item in others):
        return False  # "grapes found, no ham": both are there
    # It may be for another list.
    return all(is_same_list(swap[0].list, name) for name in filter(None, list_names(text)))


def _find_swap(plain: str, items: Sequence[ListedItem]) -> tuple[ListedItem, str] | None:
    plain = _NO_NOT.sub("", _PUT_RIGHT.sub("", plain).strip(" ,;."))
    swaps = ((item, _swapped(plain, fold(plain), item)) for item in items if not item.done)
    return next(((item, new) for item, new in swaps if new), None)


def rename(text: str, items: Sequence[ListedItem], context: PlanContext) -> Plan:
    """A thing gets other words, or one word of it another."""
    plain = _plain(text)
    folded = fold(plain)
    if _GOT_ONE.match(folded):
        raise OtherAnswer
    waiting = [item for item in items if not item.done]
    if (more := _find_appended(text, waiting) or _find_other_number(plain, waiting)) is not None:
        return (yield from _reword(*more))
    if (swap := _find_swap(plain, waiting)) is not None:
        return (yield from _reword(*swap))
    if (renamed := _find_new_name(plain, waiting) or _find_meant(plain, waiting)) is not None:
        return (yield from _reword(*renamed))
    match = next((m for pattern in _NEW_NAMES if (m := pattern.search(folded))), None)
    if match is None:
        raise OtherAnswer
    new = tidy_item(without_lists(plain[match.start("new") : match.end("new")]))
    if (find_length(fold(new)) and not _is_thing(fold(new))) or read_cues().order_words.issuperset(words_of(new)):
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
    if len(found) != 1 or len(match[group].split()) < 2 or not _is_thing(match[group]):
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
        if match is None or not match.groupdict().get("old"):
            continue
        new = tidy_item(without_lists(plain[match.start("new") : match.end("new")]))
        found = matching(subject_words(match["old"]), [item for item in items if not item.done])
        if len(found) == 1 and _is_thing(fold(new)) and not (found[0].kind == "reminder" and _is_hour(new)):
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


def _swapped(plain: str, folded: str, item: ListedItem) -> str:
    """The words of a thing with some swapped for others, where the sentence says which for which."""
    own = fold(item.text)
    if (match := _NOT_BUT.search(folded)) and match["new"] not in own:
        written = _TO_WHOM.sub("", plain[match.start("new") : match.end("new")])
        named = _TO_WHOM.sub("", _CLAUSE.split(match["old"])[0])  # "Paul, whom I have to call"
        # "nicht Herr Özkan, sondern Frau Özdemir": a part of the name may be written otherwise.
        for old, new in ((match["old"], written), (named, written), (match["old"].split()[-1], written.split()[-1])):
            if len(old) > 2 and (place := own.find(old)) >= 0:
                return f"{item.text[:place]}{new}{item.text[place + len(old) :]}"
    if (match := _THIS_NOT_THAT.search(folded)) and (place := own.find(match["old"])) >= 0:
        words = plain[match.start("new") : match.end("new")].split()
        known = read_cues().order_words | set(words_of(item.text))
        while words and fold(words[0]) in known:
            words = words[1:]
        while words and fold(words[-1]) in known:
            words = words[:-1]
        if words:
            return f"{item.text[:place]}{' '.join(words)}{item.text[place + len(match['old']) :]}"
    says_when = find_times(plain).pieces or find_length(folded)
    if _CONTRAST.search(folded) and not says_when and (new := _other_words(plain, folded, item)):
        return new
    for pattern in _SWAPS:
        for match in pattern.finditer(folded):
            old, new = match["old"], match["new"]
            there = re.search(rf"(?<!\w){re.escape(old)}(?!\w)", own)
            if there and new != old and new not in own and _is_thing(new):
                written = plain[match.start("new") : match.end("new")]
                return f"{item.text[: there.start()]}{written}{item.text[there.end() :]}"
    return ""


def _other_words(plain: str, folded: str, item: ListedItem) -> str:
    """Where all that a sentence names is one run of words of a thing and one run of others: these in place of those."""
    own, known = words_of(item.text), read_cues().order_words
    runs: list[tuple[bool, int, int]] = []  # whether of the thing, from where, to where
    for match in re.finditer(r"[\w-]+", _CONTRAST.sub(lambda found: " " * len(found[0]), folded)):
        if match[0] in known and match[0] not in own:
            continue
        is_own = any(is_same(match[0], word) for word in own)
        gap = folded[runs[-1][2] : match.start()].strip() if runs else ""
        if runs and runs[-1][0] == is_own and fold(gap) in _OF:
            runs[-1] = (is_own, runs[-1][1], match.end())
        else:
            runs.append((is_own, match.start(), match.end()))
    others = [number for number, (is_own, _, _) in enumerate(runs) if not is_own]
    if not others and len(runs) == 1 and len(own) == 1 and folded[runs[0][1] : runs[0][2]] not in own:
        return plain[runs[0][1] : runs[0][2]]  # "Hafermilch" is more than "Milch"
    if len(others) != 1 or len(runs) != 2:
        return ""
    _, start, end = runs[others[0]]
    _, old_start, old_end = runs[others[0] - 1 if others[0] else 1]
    if old_start > end and folded[end:old_start].strip() in ("", "of", "de", "d'", "von"):
        end = old_end  # "make that brown bread"
    if number := _NUMBER_BEFORE.search(folded[:start]):
        start = number.start("number")
    place = fold(item.text).find(folded[old_start:old_end])
    if old_end < start and folded[old_end:start].strip() in ("de", "d'", "of"):
        start = old_start  # "du lait d'avoine"
    if place < 0 or end - start > _LONGEST_SWAP or not _is_thing(folded[start:end]):
        return ""
    return f"{item.text[:place]}{plain[start:end]}{item.text[place + old_end - old_start :]}"


def _is_thing(words: str) -> bool:
    """Whether words name something to have or to do, rather than when or what to change."""
    times, length = find_times(words), find_length(words)
    # "should be 2 hours later"
    rest = f"{words[: length.start]} {words[length.end :]}" if length else words
    if says("times_a_day", words):
        return False
    return not times.pieces and not read_cues().order_words.issuperset(words_of(rest))


def _reword(item: ListedItem, new: str) -> Plan:
    if item.kind == "todo":
        return describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[item.id], items=[new])))
    return (yield from call_tool("change_reminder", id=item.id, text=new))
