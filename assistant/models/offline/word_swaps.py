"""Which words of a thing a sentence puts in the place of which: "not butter, margarine", "it's Carla I need to ring,
not Clara". Pure.

What always holds: the words that go are in the thing, those that come are not, and name something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assistant.core.text import lazy_regex
from assistant.core.time_names import NUMBERS
from assistant.core.time_pieces import find_times
from assistant.core.time_readers import find_length
from assistant.models.offline.cues import fold, read_cues, says
from assistant.models.offline.lists import without_lists
from assistant.models.offline.matching import ListedItem, count_hits, is_same, matching, subject_words, words_of

ARTICLE = r"(?:(?:the|an?|la|le|les|el|los|las|die|der|das|den|dem|du|des|de la|un|une|una|eine?[nr]?) |de l'|d'|l')?"
# Where a sentence goes on about the person who says it: "... que je dois payer".
_OF_ONESELF = (
    r"(?: soll .*| (?:(?:that|which|who) )?i(?:'ve| (?:need|have|want|must|should|meant|was)) .*"
    r"| (?:(?:mit|an|von|zu|bei) )?(?:die|den|das|der|dem) (?:ich|wir) .*"
    r"| (?:that|who) (?:goes|needs|does|plays|has to) .*| qui (?:va|fait|doit) .*| (?:el|la) que (?:va|tiene) .*"
    r"| qu(?:e (?:je|j'|on|nous)|'on|'il faut).*|(?: a quien| lo)? que (?:tengo|hay|debo|tenemos|quiero) .*|,.*)?$"
)
_NOT_BUT = lazy_regex(
    rf"(?:\bnot|n't|\bpas|\bniche?t?|\bno (?:es|era)|\bno)\s+{ARTICLE}(?P<old>[\w -]+?)\s*[,;]?\s*"
    rf"\b(?:but|it'?s|it was|c'est|c'etait|mais|sondern|es war|sino(?: que)?|es|era) {ARTICLE}"
    rf"(?P<new>[\w' -]+?){_OF_ONESELF}"
)
# "it's the building society not the bank, fix that"; "era escribir a Pablo, no a Pedro"
_THIS_NOT_THAT = lazy_regex(
    rf"\b(?:it'?s|es|c'est|era|ist|is|mean|meant|meinte?|(?:queria|quise) decir|voulais dire)"
    rf" (?P<new>[^,.;]+?),? (?:and |y |et |und )?"
    rf"(?:not|nicht|pas|no) (?:a |de |to |an |for |fur |pour |para |avec |mit |con |with )?{ARTICLE}"
    rf"(?P<old>[\w-]+(?: [\w-]+)??){_OF_ONESELF}"
)
_CLAUSE = lazy_regex(r",? (?:i|we|that|who|whom|que|qu'|qui|a quien|al que|a la que|ich|muss|wir|den|die)\b")
# "I meant Katie", "Friday, not Thursday"
_SAYS_WHAT_IS_NOT = lazy_regex(
    r"(?:i meant|ich meinte) \w+[\s.!]*$|\w,? (?:not|nicht|pas|no) (?:an? |de |den |die |das |der |the )?[\w-]+[\s.!]*$"
)
# "It's not the rent, it's the electricity bill I have to pay"
_DENIES_ONE_THING = lazy_regex(
    r"^(?:(?:no|nein|nee|non|sorry|pardon|perdon|oops|wait)[,. ]+)*"
    r"(?:(?:it|that)(?:(?:'?s| is) not| isn'?t) |(?:es |das )?ist nicht |(?:ce n'est|c'est) pas |no (?:es|era) )"
    r"[^,;]{2,40}(?:[,;] ?| )(?:but|it'?s|that'?s|c'est|sondern|sino|es|era) \w"
)
# "It's not the milk that's off": how something is, and not what it is.
_TELLS_OF_IT = lazy_regex(
    r"\b(?:that|who|which)(?:'s| (?:is|was|has|had|went|gets?|got|comes?|does|did|makes?|needs?))\b|,? (?:die|der|das)"
    r" \w+ (?:ist|war|hat)\b|\bqui\b|\bque (?:esta|es|se|ha|va|viene|era)\b"
)
_LAST_ARTICLE = lazy_regex(r"\b(?:(?:the|an?|la|le|les|el|los|las|die|der|das|den|dem|du|des|une?|una) |l')$")
_TO_WHOM = lazy_regex(r"^(?:a|al|to) (?=\w)", re.IGNORECASE)
_SWAPS = tuple(
    lazy_regex(pattern)
    for pattern in (
        # "not Lukas but Luisa"; "c'est pas Paul que je dois appeler, c'est Paula"
        rf"(?:\bnot|\bpas|\bnicht|\bno es)\s+{ARTICLE}(?P<old>[\w-]+)\b[^,;]*[,;]?.*?"
        rf"(?:\bit'?s|\bbut|\bc'est|\bsondern|\bsino|\bes)\s+(?:con |con la )?{ARTICLE}(?P<new>[\w-]+)",
        # "not butter, margarine"; "pas du lait, du lait d'avoine"
        rf"\b(?:not|niche?t?|keine?n?|pas|no)\s+{ARTICLE}(?P<old>[\w-]+(?: [\w-]+)?)\s*[,;:-]\s*"
        rf"(?:but |sondern |c'est |sino |mais |it'?s |plutot |lieber |rather )?{ARTICLE}"
        r"(?P<new>[\w'-]+(?: [\w'-]+){0,3})$",
        # "butter no, margarine"
        r"(?P<old>[\w-]+) (?:no|nicht|non)\s*,\s*(?:queria decir |sondern |sino |je voulais dire |mejor )?"
        r"(?:(?:es|c'est|it'?s|es ist) (?:a )?)?"
        rf"(?P<new>[\w'-]+(?: (?!que\b|quien\b|a\b)[\w'-]+){{0,3}}){_OF_ONESELF}",
        # "Emilia hol ich ab, nicht Emma"
        r"^(?P<new>[\w-]{3,}) [^,]{3,40}, (?:not|nicht|pas|no) (?:a |de )?(?P<old>[\w-]{3,})$",
        # "Den Hundefriseur muss ich anrufen, nicht den Tierarzt"
        rf"^{ARTICLE}(?P<new>[\w-]{{3,}}) (?:muss|soll|will|mochte) (?:ich|man) [^,]{{3,40}}?,? (?:und )?nicht"
        rf" (?:bei )?{ARTICLE}(?P<old>[\w-]{{3,}})$",
        # "I have to call the insurance, not the bank"
        rf"(?<= )(?P<new>[\w-]{{3,}}),? (?:and |y |und |et )?(?:not|nicht|pas|no) {ARTICLE}(?P<old>[\w-]{{3,}})$",
        # "6 eggs not 12"; "it is leclerc and not carrefour"
        r"(?P<new>[\w-]+)(?: \w+)?\s*,?\s*(?:y |and |und |et )?"
        r"(?:not|nicht|pas|no)\s+(?:\w{1,4} ){0,2}(?P<old>[\w-]+)(?: \w+)?$",
    )
)
# "Rather margarine than butter", "make that pears, not apples"
_NO_NOT = lazy_regex(r"^(?:(?:no|nope|nein|nee|ne|non)[, ]+)+(?=(?:not|nicht?|keine?n?|pas|no)\b)", re.IGNORECASE)
# "The insurance, not the bank, correct that"
_PUT_RIGHT = lazy_regex(
    r"[,;.]? +(?:so |and |please |pls |bitte |stp |porfa |can you |could you |kannst du |tu peux |puedes )*"
    r"(?:fix|correct|change|update|korrigier\w*|ander\w*|corrige\w*|rectifie\w*"
    r"|modifie\w*|arregla\w*|cambia\w*)"
    r"(?:[- ](?:it|that|this|the (?:reminder|to-?do|task)|das|es|ca|la|le|eso|l[ea] (?:rappel|tache)))?(?: one)?"
    r"(?: please| pls| bitte| stp| porfa)?$",
    re.IGNORECASE,
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


def says_what_is_not(text: str) -> bool:
    """Whether a sentence says what was meant, or denies one thing for another: it may be about what is there."""
    return _SAYS_WHAT_IS_NOT.search(fold(text)) is not None or denies_one_thing(text)


def denies_one_thing(text: str) -> bool:
    """Whether a sentence says of one thing that it is another: "it's not the rent, it's the electricity bill"."""
    return "?" not in text and _DENIES_ONE_THING.match(fold(text)) is not None and not tells_which(text)


def tells_which(text: str) -> bool:
    """Whether a sentence says of which thing something is true: "it's not the milk that's off, it's the cheese"."""
    folded = fold(text)
    return _DENIES_ONE_THING.match(folded) is not None and _TELLS_OF_IT.search(folded) is not None


def find_swap(plain: str, items: Sequence[ListedItem]) -> tuple[ListedItem, str] | None:
    """The first thing of which a sentence says some words and which others are to be in their place, and all that it
    is to say then; None for none."""
    if tells_which(plain):
        return None
    plain = _NO_NOT.sub("", _PUT_RIGHT.sub("", plain).strip(" ,;."))
    swaps = ((item, _swapped(plain, fold(plain), item)) for item in items if not item.done)
    return next(((item, new) for item, new in swaps if new), None)


def _swapped(plain: str, folded: str, item: ListedItem) -> str:
    """The words of a thing with some swapped for others, where the sentence says which for which."""
    own = fold(item.text)
    if (match := _NOT_BUT.search(folded)) and match["new"] not in own:
        written = _TO_WHOM.sub("", plain[match.start("new") : match.end("new")])
        named = _TO_WHOM.sub("", _CLAUSE.split(match["old"])[0])  # "Paul, whom I have to call"
        # "nicht Herr Özkan, sondern Frau Özdemir": a part of the name may be written otherwise.
        for old, new in ((match["old"], written), (named, written), (match["old"].split()[-1], written.split()[-1])):
            if len(old) > 2 and (place := own.find(old)) >= 0:
                before = _with_article(item.text[:place], folded[: match.start("new")])
                return f"{before}{new}{item.text[place + len(old) :]}"
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
            if there and new != old and new not in own and is_thing(new):
                written = plain[match.start("new") : match.end("new")]
                return f"{item.text[: there.start()]}{written}{item.text[there.end() :]}"
    return ""


def _with_article(before: str, said: str) -> str:
    """What stands before a word of a thing, with the article that another has: "payer le", "c'est la"."""
    old, new = _LAST_ARTICLE.search(before.lower()), _LAST_ARTICLE.search(said)
    return f"{before[: old.start()]}{new[0]}" if old and new else before


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
    if place < 0 or end - start > _LONGEST_SWAP or not is_thing(folded[start:end]):
        return ""
    return f"{item.text[:place]}{plain[start:end]}{item.text[place + old_end - old_start :]}"


def is_thing(words: str) -> bool:
    """Whether words name something to have or to do, rather than when or what to change."""
    times, length = find_times(words), find_length(words)
    # "should be 2 hours later"
    rest = f"{words[: length.start]} {words[length.end :]}" if length else words
    if says("times_a_day", words):
        return False
    return not times.pieces and not read_cues().order_words.issuperset(words_of(rest))


# Twice as much of a thing that is on a list: it stays there, and only its amount is another.
_LEAD = (
    r"^(?:(?:please|ok|also|and|actually|let's|let us|can you|could you|we should|we need to|i need to|bitte|und|dann"
    r"|doch|nimm|kauf|setz|wir brauchen|ich brauche|et|alors|il (?:nous )?faut|il me faut|prends|mets|stp|y|mejor"
    r"|por favor|necesitamos|necesito|pon|compra)[ ,]+)*"
)
_TWICE = (
    r"(?:double(?:z)?(?: up)?(?: on)?|doubling(?: up)?(?: on)?|twice (?:as many|as much|the)|double the amount of"
    r"|verdoppel\w*|verdopple|(?:die )?doppelte? (?:menge(?: an| von)?|so viele?)|doppelt so viele?|doppelt"
    r"|(?:deux fois|2 fois) plus d(?:e|es|')|le double d(?:e|es|')"
    r"|dobla\w*|duplica\w*|el doble de)"
)
_DOUBLE = lazy_regex(rf"{_LEAD}{_TWICE}\s*(?P<what>[^,;.]{{2,40}})[.!]*$")
_SEVERAL = lazy_regex(r"\b(?:and|und|et|y)\b")
_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?![\w.,])")


def find_doubled(text: str, items: Sequence[ListedItem]) -> tuple[ListedItem, str] | None:
    """The one to-do of which there is to be twice as much, and its words then; None where a sentence says no such
    thing, or more than that."""
    match = _DOUBLE.match(fold(text))
    if match is None or _SEVERAL.search(match["what"]):
        return None
    words = subject_words(without_lists(match["what"]))
    named = matching(words, [item for item in items if item.kind == "todo" and not item.done])
    if len(named) != 1 or count_hits(words, named[0]) < len(words):
        return None
    item = named[0]
    amount = _NUMBER.search(item.text)
    if amount is None:
        return item, f"2x {item.text}"
    return item, f"{item.text[: amount.start()]}{int(amount[0]) * 2}{item.text[amount.end() :]}"
