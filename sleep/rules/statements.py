"""What a statement names, by its form: about whom, which numbers, days and names, whether it ends, changes or adds
something, and which words of an earlier statement it puts right. Pure.

What always holds: only the main clause counts for what changes ("because ..." tells why); numbers, days and months are
compared as values in any spelling and, days and months, in five languages; scripts without spaces are read as pairs of
characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from assistant.core.text import SPACELESS_RUN, STOP_WORDS, WORD, character_pairs, fold_text, lazy_regex
from sleep.rules.sentences import expand_shorthand

_LONGEST = 1_500
# The dates that days were given when they were learned (`sleep.rules.resolve_dates`).
_DATED = lazy_regex(r" \([^()]*\b(?:19|20)\d\d[^()]*\)$")
_ALIKE = 0.75

_DAYS = (
    "monday mon montag lundi lunes mandag",
    "tuesday tue tues dienstag mardi martes tirsdag",
    "wednesday wed weds mittwoch mercredi miercoles onsdag",
    "thursday thu thur thurs donnerstag jeudi jueves torsdag",
    "friday fri freitag vendredi viernes fredag",
    "saturday sat samstag samedi sabado lordag",
    "sunday sun sonntag dimanche domingo sondag søndag",
)
_MONTHS = (
    "january jan januar janvier enero",
    "february feb februar fevrier febrero",
    "march marz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug aout agosto",
    "september sep sept septembre septiembre",
    "october oct oktober octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember desember decembre diciembre",
)
_DAY = {name: f"day{n}" for n, names in enumerate(_DAYS) for name in names.split()}
_MONTH = {name: f"month{n}" for n, names in enumerate(_MONTHS) for name in names.split()}
_COUNT = {
    word: str(n)
    for n, words in enumerate(
        (
            "zero",
            "one eins",
            "two zwei deux dos",
            "three drei trois tres",
            "four vier quatre cuatro",
            "five funf cinq",
            "six sechs seis",
            "seven sieben",
            "eight acht huit ocho",
            "nine neun neuf",
            "ten zehn dix diez",
            "eleven elf",
            "twelve zwolf douze doce",
        )
    )
    for word in words.split()
    if word != "one"
}
_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_COUNT |= {word: str(n) for n, word in enumerate(_TEENS.split(), 13)}
_COUNT |= {word: str(10 * n) for n, word in enumerate(_TENS.split(), 2)}
_COUNT |= {f"{word}th".replace("tyth", "tieth"): n for word, n in _COUNT.items() if n.isdigit() and 13 <= int(n) < 100}
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_COUNT |= {word: str(n) for n, word in enumerate(_ORDINALS.split(), 3)}
_COMPOUND = lazy_regex(rf"\b({_TENS.replace(' ', '|')})[- ](one|two|three|four|five|six|seven|eight|nine)\b")

_NUMBER = lazy_regex(
    r"(?<![\w.])(\d{1,2})[:.](\d{2})(?!\d)(?: ?(am|pm)\b)?|(?<![\w.])(\d{1,2}) ?(am|pm)\b"
    r"|(?<![\w])(\d+(?:[., ]\d{3})*(?:[.,]\d+)?) ?(k\b|thousand\b|m\b|million\b)?(?:st\b|nd\b|rd\b|th\b)?"
)
_ENDS = lazy_regex(
    r"\b(?:no longer|(?:not|n't|never)\b[^.;]{0,60}\b(?:any ?more|any longer|again)|stopped|stopping|quit|gave up"
    r"|given up"
    r"|giving up|cancel\w*|called off|scrap(?:ped)?|used to|broke up|split up|fell through|fallen through|finished with"
    r"|(?:not|n't)\b[^.;]{0,60}\bafter all|no more|dropped|nicht mehr|aufgehort|abgesagt|ne\b[^.;]{0,40}\bplus|arrete"
    r"|annule|ya no|deje de|cancelad\w|ikke lenger|sluttet|avlyst)\b|不再|已经不|取消|戒了|もう[^。]{0,20}(?:ない"
    r"|ません)|やめ",
)
_DENIES = lazy_regex(
    r"\b(?:not|never|nobody|without|cannot|\w+n't|dont|doesnt|isnt|cant|nicht|kein\w*|ne|pas|no|ikke|aldri|nunca"
    r"|jamais)\b"
    r"|不|没有|ない|ません",
)
_CHANGES = lazy_regex(
    r"\b(?:actually|now|nowadays|these days|changed|changing|changes to|change of plans?|has moved|have moved"
    r"|been moved|moved|moved to"
    r"|moved from"
    r"|from now on|as of|starting (?:from|in|on|next)|instead|correction|i meant|i mean|i was wrong|my mistake|sorry"
    r"|update"
    r"|switch\w*|swapped|turns? out|rather|after all|put back|pushed (?:back|to)|postponed|brought forward|rescheduled"
    r"|went up|gone up|goes up|went down|gone down|raised|lowered|increased|dropped to|replaced|took over|taken over"
    r"|new (?:\w+ ){1,3}(?:is|are)"
    r"|scrap|forget (?:that|what)|not any ?more|no longer|jetzt|doch|stattdessen|eigentlich|maintenant|finalement|ahora"
    r"|en realidad|na|istedenfor|egentlig)\b|现在|其实|改(?:成|为|到)|今は|変わ|しゃなくて",
)
_ADDS = lazy_regex(
    r"\b(?:also|another|too|as well|second|third|other|additional|besides|auch|noch ein\w*|aussi|un autre|tambien"
    r"|otr[oa]"
    r"|ogsa|en til)\b|也|还有|另|も(?:う一|住|好)",
)
_HAPPENED = lazy_regex(
    r"\b(?:went|bought|met|saw|visited|ate|ran|read|watched|finished|paid|flew|drove|walked|cooked|played|got back"
    r"|spent"
    r"|called|wrote|sent|received|won|lost|found|attended|had (?:an?|my|our|the) \w+|was in|were in|(?:was|were"
    r"|got) (?!book|mov|chang|push|postpon|call|nam|brought)\w+ed|habe? \w+ gekauft"
    r"|war(?:en)? in)\b|昨天|昨日|去了|行きました",
)
_INDEFINITE = lazy_regex(
    r"\b(?:have|has|got|there is|there's|book(?:ed)?|made|with|got us) (?:an?|another|one) (?:\w+ ){0,3}"
    r"(?:appointment|meeting|call|visit|check-?up|flight|lesson|party|exam|interview|reservation|date|session|dinner"
    r"|lunch"
    r"|concert|trip|train|delivery)\b|\b(?:einen? termin|un rendez-vous|una cita|en time)\b"
)
_REASON = lazy_regex(
    r",? (?:because|since|so that|due to|which|as (?=the|my|our|we|i|he|she|they)|weil|parce que|porque)\b"
)
_CLAUSES = lazy_regex(r"[,;:.!] | - | and (?=(?:the|my|our|i|we|it|he|she|they)\b)| but | so (?!that)")
_NOT = lazy_regex(
    r"(?:(?P<before>[\w']+)(?P<comma>,?)|\A) *(?:and |so |- )?\b(?P<how>not|instead of|rather than|nicht|statt|pas"
    r"|et non|no|ikke)"
    r" (?P<old>[^,;.!?]{1,60})"
)
_BUT = lazy_regex(
    r"\b(?:not|isn't|aren't|wasn't) (?P<old>[^,;.!?]{1,40}?),? (?:[^.!?]{1,50}, )?(?:but|it's|its|he's|she's|they're)\b"
    r"|\bnicht (?P<alt>[^,;.!?]{1,40}?),? sondern\b"
)
_FROM_TO = lazy_regex(
    r"\b(?:mov\w+|chang\w+|switch\w*|went|gone|go(?:es)?|rais\w+|lower\w+|increas\w+|dropp\w+|reduc\w+|up|down"
    r"|postponed"
    r"|pushed|brought|put)\b[^.;]{0,40}?\bfrom (?P<old>[^,;.!?]{1,40}?) (?:up |down |over )?(?:to|into)\b"
    r"|\bvon (?P<von>[^,;.!?]{1,40}?) (?:nach|auf)\b|\bfra (?P<fra>[^,;.!?]{1,40}?) til\b|\bde (?P<de>\w+) a (?=\w)"
)
_WAS = lazy_regex(
    r"\b(?:used to be|formerly|previously|replac(?:es|ed|ing)) (?P<old>[^,;.!?]{1,40})"
    r"|\bwas (?P<was>[^,;.!?]{1,30}),? (?:and |but )?(?:is |it's |it is )?now\b"
)
# What "not" after these denies, it does not put right.
_AUXILIARY_WORDS = """
am is are was were be been do does did will would can could should shall may might must has have had i'm it's
he's she's we're they're that's there's you're i've we've they've i'd we'd i'll we'll why or if probably
"""
_AUXILIARY = frozenset(_AUXILIARY_WORDS.split())
_CJK_NOT = lazy_regex(
    r"(?:不是|并非)(?P<zh>[^，。,]{1,15})|(?P<ja>[^、。，はが]{1,15})(?:しゃなくて|てはなく)"
    r"|从(?P<cong>[^，。]{1,10})(?:搬|改|换)"
)

_LIKES = lazy_regex(
    r"\b(?:love|like|enjoy|adore|fond of|fan of|into|keen on|mag|liebe|aime|adore|gusta|encanta|liker|elsker)(?:s"
    r"|d)?\b|喜欢|爱|好き"
)
_HATES = lazy_regex(
    r"\b(?:hate|dislike|loathe|detest|can't stand|cannot stand|can't bear|sick of|gone off|deteste|odio|hasse"
    r"|hater)(?:s|d)?\b"
    r"|(?:not|n't|never)\b.{0,20}\b(?:like|love|enjoy|fond of|fan of|into|keen on)|mag (?:\w+ ){0,3}(?:nicht|kein\w*)"
    r"|n'aime pas|no me gusta|liker ikke|不喜欢|讨厌|嫌い|好きしゃ|好きては"
)

_SMALL_WORDS = """
make btw changing plan plans actually now nowadays anymore longer instead correction sorry meant mean update turns used
stopped stop quit gave give given changed change changes moved move switched swapped put back pushed scrap forget
said cancelled canceled another second third really always usually still quite much many lot get got gets getting
go goes going gone went said says tell told think know let okay yes yeah well right like likes love loves enjoy
hate hates dislike prefer prefers user users live lives living lived work works working worked called name named
time today tomorrow yesterday day days week weeks month months year years old new every each until before after
than rather into onto per over around about only one ones thing things don doesn didn isn aren wasn won can t s re
ll ve d im its ich wir der die das ein eine ist sind nicht mehr mein meine meinen unser und auf mit von zu im am
fur jetzt doch je nous le la les un une est sont mon ma mes notre et de du des au aux que qui plus maintenant el
los las es son mi mis nuestro y en por para con ahora jeg vi er og som med til av pa min mitt mine var den det na
ikke lenger bin habe haben hat avons ai as suis soy tengo
"""
_SMALL = (STOP_WORDS | frozenset(_SMALL_WORDS.split())) - frozenset({"may"})
_WHO_WORDS = "i me my we our us the a an user users is are am s m re im ve d ll that this it so just"
_WHO = frozenset(_WHO_WORDS.split())
_CAPITAL = lazy_regex(r"(?<![.!?…:\n] )(?<=[^\W\d_]|[,;\-'’\"“(]|\d)(?<=\S)[\s\"“(]+(?P<name>[A-ZÀ-ÖØ-Þ][\w’'-]*)")
_POSSESSIVE = lazy_regex(r"['’]s\b|s['’](?=\s)")


@dataclass(frozen=True, slots=True)
class Statement:
    """`content` are its words but for small ones, numbers, days and marks of change, as stems; `main` those of the
    clauses in which something changes, or of its main clause; `names` those that are written as names. `values` are
    ("number", "900"), ("day", "day3"), ...; `old` what it says is no longer so, `likes` 1, -1 or 0. `words` are all its
    words in their order."""

    text: str
    words: tuple[str, ...]
    content_stems: frozenset[str]
    main_stems: frozenset[str]
    names: frozenset[str]
    values: frozenset[tuple[str, str]]
    main_values: frozenset[tuple[str, str]]
    replaced: tuple[Statement, ...]
    sentiment: int
    says_ended: bool
    is_negated: bool
    says_changed: bool
    says_additional: bool
    is_past_event: bool
    is_indefinite: bool

    def values_of_kind(self, kind: str, *, main: bool = False) -> frozenset[str]:
        """Its values of a kind; `main`: where something changes, those that stand there."""
        return frozenset(value for found, value in (self.main_values if main else self.values) if found == kind)


def parse_statement(text: str) -> Statement:
    """The first 1,500 characters are read."""
    return _statement(expand_shorthand(" ".join(text[:_LONGEST].split())), with_old=True)


def _statement(text: str, *, with_old: bool) -> Statement:
    folded = fold_text(text)
    bare = _DATED.sub("", folded)
    clause = _REASON.split(bare, maxsplit=1)[0]
    old = tuple(_statement(said, with_old=False) for said in _corrected(bare)) if with_old else ()
    gone = frozenset[str]().union(*(one.content_stems for one in old))
    content, main = frozenset(_stems(folded)), frozenset(_stems(_changed(clause)))
    values = frozenset(_values(bare)) or frozenset(_values(folded))
    for one in old:
        values -= one.values
    return Statement(
        text=text,
        words=tuple(word for word in WORD.findall(_POSSESSIVE.sub("", folded)) if word not in _WHO),
        content_stems=content - gone,
        main_stems=(main - gone) or (content - gone),
        names=frozenset(stem_word(fold_text(found["name"])) for found in _CAPITAL.finditer(f". {text}"))
        & (content - gone),
        values=values,
        main_values=values & frozenset(_values(_changed(clause))) or values,
        replaced=old,
        sentiment=-1 if _HATES.search(folded) else 1 if _LIKES.search(folded) else 0,
        says_ended=not old and bool(_ENDS.search(folded)),
        is_negated=not old and bool(_DENIES.search(folded) or _ENDS.search(folded)),
        says_changed=bool(_CHANGES.search(folded)) or bool(old),
        says_additional=bool(_ADDS.search(folded)),
        is_past_event=bool(_HAPPENED.search(folded)),
        is_indefinite=bool(_INDEFINITE.search(folded)),
    )


def _corrected(folded: str) -> Iterator[str]:
    """What a statement says is no longer so, in its words."""
    for found in _NOT.finditer(folded):
        english = found["how"] in ("not", "instead of", "rather than")
        if found["comma"] or (found["how"] != "not" and english) or (english and found["before"] not in _AUXILIARY):
            yield found["old"]
    for form in (_BUT, _FROM_TO, _WAS, _CJK_NOT):
        for found in form.finditer(folded):
            yield next(group for group in found.groups() if group is not None)


def _changed(clause: str) -> str:
    """The clauses with a mark of change in them, where they name something and its value; else all of it."""
    marked = ", ".join(part for part in _CLAUSES.split(clause) if _CHANGES.search(part))
    told = any(True for _ in _stems(marked)) and any(True for _ in _values(marked))
    return marked if told else clause


def _stems(folded: str) -> Iterator[str]:
    plain = _POSSESSIVE.sub("", _NUMBER.sub(" ", folded))
    for word in WORD.findall(plain):
        if SPACELESS_RUN.fullmatch(word):
            yield from character_pairs(word) or [word]
        elif word not in _SMALL and word not in _COUNT and _of_calendar(word) is None and not word.isdigit():
            yield stem_word(word)


def stem_word(word: str) -> str:
    """A word without the commonest endings of English; others are hardly touched."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word


def is_same_stem(word: str, other: str) -> bool:
    """The same word, or another form of it ("allergic", "allergy")."""
    if word == other:
        return True
    longest = max(len(word), len(other))
    common = next((n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    return common >= max(4, _ALIKE * longest)


def _of_calendar(word: str) -> tuple[str, str] | None:
    bare = word[:-1] if word.endswith("s") and word not in _DAY and word not in _MONTH else word
    if bare in _DAY:
        return ("day", _DAY[bare])
    return ("month", _MONTH[bare]) if bare in _MONTH else None


def _values(folded: str) -> Iterator[tuple[str, str]]:
    folded = _COMPOUND.sub(lambda found: str(int(_COUNT[found[1]]) + int(_COUNT.get(found[2], "1"))), folded)
    for found in _NUMBER.finditer(folded):
        hour, minute, half, bare_hour, bare_half, number, times = found.groups()
        if bare_hour or half:
            yield ("time", _time(hour or bare_hour, minute or "00", half or bare_half))
        elif minute is not None and (":" in found[0] or (int(minute) < 60 and int(hour) < 24)):
            yield ("time", _time(hour, minute, None))
        elif number:
            yield ("number", _number(number, times))
    for word in WORD.findall(folded):
        calendar = _of_calendar(word)
        if calendar is not None and not (word in ("may", "mars", "sun", "sat", "wed") and not _is_date(word, folded)):
            yield calendar
        elif word in _COUNT:
            yield ("number", _COUNT[word])


def _is_date(word: str, folded: str) -> bool:
    """Words that mean something else as well are dates beside a number or after a word of time."""
    return bool(
        re.search(
            rf"\d(?:st|nd|rd|th)?(?: of)? {word}\b|\b(?:in|on|by|until|since|next|last|early|late) {word}\b"
            rf"|\b{word} \d",
            folded,
        )
    )


def _time(hour: str, minute: str, half: str | None) -> str:
    hours = int(hour) % 12 + 12 if half == "pm" else int(hour)
    return f"{hours}:{minute}"


def _number(digits: str, times: str | None) -> str:
    plain = re.sub(r"[., ](?=\d{3}(?:\D|$))", "", digits).replace(",", ".")
    value = float(plain) * {None: 1, "k": 1_000, "thousand": 1_000}.get(times, 1_000_000)
    return f"{value:g}" if value < 1e15 else plain
