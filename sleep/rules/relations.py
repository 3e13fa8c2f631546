"""Who or what a sentence names, and what it says of them: patterns of whole sentences. Pure.

What always holds: better few and true. A name is what begins with a capital (or, in scripts without them, stands
where only a name can), never a word that merely begins a sentence; what is quoted in a sentence is not the person's.
The value of an attribute is as it was said, without what was added to it in the same breath; one that has words
quoted from somebody in it is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from assistant.core.text import lazy_regex

EntityKind = Literal["person", "place", "project", "thing"]

_SINGLE = """
wife husband partner fiancé fiancée girlfriend boyfriend mother father mum mom dad landlord landlady boss manager
doctor dentist therapist accountant lawyer
"""
_SEVERAL = """
sister brother son daughter child uncle aunt cousin niece nephew grandmother grandfather grandson granddaughter friend
neighbour neighbor colleague teacher trainer tenant roommate flatmate mentor client sister-in-law brother-in-law
mother-in-law father-in-law stepmother stepfather stepson stepdaughter
"""
SINGLE_RELATIONS = frozenset(_SINGLE.split())
"""Relations of which one person has one at a time; of the others there may be several."""
_PEOPLE = SINGLE_RELATIONS | frozenset(_SEVERAL.split())
_ANIMALS = frozenset({"cat", "dog", "horse", "rabbit", "parrot"})
_PLACES = frozenset(
    {"cabin", "cottage", "house", "flat", "apartment", "office", "school", "gym", "church", "garage", "farm", "studio"}
)

CAPITAL_LETTERS = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĖĘĚĞĢĪĶĹĽĻŁŃŇŅŌŐŒŘŚŠŞȘŤȚŪŮŰŲŹŻŽΑ-ΩА-ЯЁ"
_SURNAME = (
    rf"(?:(?:van|von|de|del|della|der|den|da|di|dos|la|le|el|al|bin|ten|ter) ){{0,2}}[{CAPITAL_LETTERS}][\w’-]{{0,40}}"
)
NAME_PATTERN = rf"[{CAPITAL_LETTERS}][\w’-]{{0,40}}(?:['’][{CAPITAL_LETTERS}]\w{{0,20}})?(?: {_SURNAME}){{0,3}}"
_OURS = r"(?:[Mm]y|[Oo]ur|[Tt]he user's|[Uu]ser's)"
_ADJECTIVE = r"(?:(?:older|younger|elder|eldest|youngest|oldest|little|big|twin|best|good|old|new|late) )?"
_RELATION = "|".join(sorted(_PEOPLE | _ANIMALS | _PLACES, key=lambda word: (-len(word), word)))
_REL = rf"(?P<adjective>{_ADJECTIVE})(?P<relation>{_RELATION})"

_NO_NAMES = """
i it this that these those there here he she they we you my our his her their your its the a an and but or so if when
where what who why how is are was were do does did yes no not now then today tomorrow yesterday please remember note
also both all some every everyone nobody somebody next last one two three first second monday tuesday wednesday
thursday friday saturday sunday january february march april may june july august september october november december
"""
_NOT_NAMES = frozenset(_NO_NAMES.split())

_APPOSITION = lazy_regex(rf"{_OURS} {_REL}(?:,)? (?P<name>{NAME_PATTERN})(?P<owns>'s)?(?P<rest>(?:[ ,].*)?)")
_IS_OURS = lazy_regex(rf"(?P<name>{NAME_PATTERN}),? (?:is|was) (?P<owner>{_OURS}) {_REL}(?P<rest>(?:[ ,].*)?)")
_IS_CALLED = lazy_regex(
    rf"{_OURS} {_REL}(?:'s name)? (?:is|are)(?: called| named)? (?P<name>{NAME_PATTERN})(?P<rest>(?:, .*| and .*)?)"
)
_PROJECT = lazy_regex(
    rf"(?:(?:I'm|I am|We're|We are|I|We) (?:work(?:ing)? on|start(?:ed|ing)|running|building|leading)) (?:the |an? )?"
    rf"(?:[\w-]+ )?(?:[Pp]roject(?: called| named)?,? (?P<name>{NAME_PATTERN})|(?P<other>{NAME_PATTERN}) "
    rf"project)(?P<rest>(?:[ ,].*)?)"
)
_OF_PROJECT = lazy_regex(
    rf"(?:[Tt]he (?P<name>{NAME_PATTERN}) [Pp]roject|[Pp]roject (?P<other>{NAME_PATTERN}))(?P<rest> .*)"
)
_KNOWN = lazy_regex(rf"(?P<name>{NAME_PATTERN})(?P<owns>'s)?(?P<rest>[ ,].*)")
_BY_RELATION = lazy_regex(rf"(?P<alias>{_OURS} {_REL})(?P<owns>'s)?(?P<rest>[ ,].*)")

_KIN_JA = "妹|姉|兄|弟|母|父|妻|夫|娘|息子|友人|同僚|上司"
_KIN_ZH = "姐姐|妹妹|哥哥|弟弟|妈妈|母亲|爸爸|父亲|妻子|丈夫|女儿|儿子|朋友|同事|老板"
_CJK_CALLED = lazy_regex(
    rf"(?:私の)?(?P<ja>{_KIN_JA})の名前は(?P<name_ja>[^\s、。はがをの]{{1,12}}?)(?:です|だ)?[。]?"
    rf"|我(?:的)?(?P<zh>{_KIN_ZH})(?:叫|名叫|的名字(?:是|叫))(?P<name_zh>[\u3400-\u9fff]{{2,4}})[。]?"
)
_CJK_LIVES = lazy_regex(
    rf"(?:私の)?(?:{_KIN_JA})の(?P<name_ja>[^\s、。はがをの]{{1,12}})(?:さん)?は"
    r"(?P<place_ja>[^\s、。はがを]{1,20})に住んで(?:いる|います)[。]?"
    r"|(?P<name_zh>[\u3400-\u9fff]{2,4})(?:现在)?住在(?P<place_zh>[\u3400-\u9fff\w]{1,20}?)[。]?"
)


@dataclass(frozen=True, slots=True)
class Mention:
    """Somebody or something that a sentence speaks of. `name` is "" where only `alias` ("my sister") is said; `rest` is
    what is said of it, beginning with a verb, or, where it `owns` something, with that."""

    name: str
    kind: EntityKind | None
    said_of_it: str
    relation: str = ""
    alias: str = ""
    is_possessive: bool = False


def find_mention(sentence: str) -> Mention | None:
    """What the sentence is about, if it is a name or somebody whom the person calls by a relation."""
    cjk = _CJK_CALLED.fullmatch(sentence)
    if cjk:
        relation, name = cjk["ja"] or cjk["zh"], cjk["name_ja"] or cjk["name_zh"]
        return Mention(name, "person", "", relation, f"{'私の' if cjk['ja'] else '我'}{relation}")
    lives = _CJK_LIVES.fullmatch(sentence)
    if lives:
        place = lives["place_ja"] or lives["place_zh"]
        return Mention(lives["name_ja"] or lives["name_zh"], None, f"lives in {place}")
    return _in_words(sentence.rstrip(" .!…"))


def _in_words(said: str) -> Mention | None:
    for pattern in (_IS_OURS, _IS_CALLED, _APPOSITION):
        found = pattern.fullmatch(said)
        if found and not _is_no_name(found["name"]):
            owns = pattern is _APPOSITION and bool(found["owns"])
            return _related(found, owns)
    for pattern in (_PROJECT, _OF_PROJECT):
        found = pattern.fullmatch(said)
        if found and not _is_no_name(found["name"] or found["other"]):
            rest = found["rest"] if pattern is _OF_PROJECT else ""
            return Mention(found["name"] or found["other"], "project", rest)
    found = _BY_RELATION.fullmatch(said)
    if found:
        return Mention("", None, found["rest"], alias=_alias(found), is_possessive=bool(found["owns"]))
    found = _KNOWN.fullmatch(said)
    if found and not _is_no_name(found["name"]):
        return Mention(found["name"], None, found["rest"], is_possessive=bool(found["owns"]))
    return None


def _related(found: re.Match[str], owns: bool) -> Mention:
    relation = found["relation"]
    kind: EntityKind = "place" if relation in _PLACES else "thing" if relation in _ANIMALS else "person"
    rest = re.sub(r"^ (?:now|again|currently|these days)\b", "", found["rest"])
    return Mention(found["name"], kind, rest, f"{found['adjective']}{relation}", _alias(found), owns)


def _alias(found: re.Match[str]) -> str:
    """As the person says it: "my younger sister", whoever tells of it."""
    ours = "our" if re.search(r"\b[Oo]ur\b", found[0][: found.end("relation")]) else "my"
    return f"{ours} {found['adjective']}{found['relation']}"


def _is_no_name(name: str) -> bool:
    return name.split()[0].casefold() in _NOT_NAMES


_VALUE = r"(?P<value>\S.{0,160}?)"
_PREDICATES: tuple[tuple[str, str, bool], ...] = (
    (rf"(?:(?:now|currently|still) )?(?:lives?|is living) (?:in|at|near|with|on) {_VALUE}", "lives in", False),
    (rf"(?:has |have )?(?:just )?moved (?:from .{{1,60}}? )?to {_VALUE}", "lives in", False),
    (rf"(?:now |currently )?works? (?:at|for) {_VALUE}", "works at", False),
    (rf"(?:now |currently )?works? as {_VALUE}", "works as", False),
    (rf"(?:was|is) born (?:on|in) {_VALUE}", "born", False),
    (r"(?:is|turned|has turned|will be) (?:now )?(?P<value>\d{1,3})(?: years? old)?", "age", False),
    (r"(?:goes to|attends|is at) (?P<value>.{1,80}? (?:school|university|kindergarten|college))", "school", False),
    (rf"stud(?:ies|y|ied) {_VALUE}", "studies", False),
    (rf"is (?:married|engaged) to {_VALUE}", "married to", False),
    (rf"(?:is|are) allergic to {_VALUE}", "allergic to", True),
    (rf"(?:really )?(?:likes?|loves?|enjoys?|prefers?) {_VALUE}", "likes", True),
    (rf"(?:hates?|dislikes?|can't stand|doesn't like|does not like) {_VALUE}", "dislikes", True),
    (rf"speaks? {_VALUE}", "speaks", True),
    (rf"plays? {_VALUE}", "plays", True),
    (r"(?:has|owns) (?P<value>an? .{1,120}?)", "has", True),
    (r"drives? (?P<value>an? .{1,120}?)", "drives", False),
    (rf"starts? (?:at|on|in) {_VALUE}", "starts at", False),
    (rf"(?:is due|ends?|finish(?:es)?) (?:at|on|in|by) {_VALUE}", "ends at", False),
    (rf"opens? (?:at|on) {_VALUE}", "opens at", False),
    (rf"clos(?:es?) (?:at|on) {_VALUE}", "closes at", False),
    (rf"costs? {_VALUE}", "costs", False),
    (rf"is led by {_VALUE}", "led by", False),
    (rf"(?:is|lies) in (?P<value>[{CAPITAL_LETTERS}].{{0,80}}?)", "is in", False),
    (r"is (?P<value>(?:an?|the) .{1,120}?)", "is", True),
)
_PATTERNS = [(lazy_regex(pattern), name, several) for pattern, name, several in _PREDICATES]
_NO_LONGER = lazy_regex(
    rf"(?:no longer|doesn't|does not) (?:lives?|(?P<works>works?)) (?:in|at|for) {_VALUE}(?: any ?more| anymore)?"
)
_OWNED = lazy_regex(
    rf"(?P<thing>[a-z][\w-]*(?: [a-z][\w-]*){{0,2}}?) (?P<verb>is on|is at|is in|is|are|starts? at|ends? at|opens? at"
    rf"|closes? at|costs?) {_VALUE}"
)
_VERBS = (
    r"(?:no longer|now|currently|still|lives?|has|is|are|was|moved|works?|goes|attends|stud(?:ies|y|ied)|turned|likes?"
    r"|loves?|enjoys?|prefers?|hates?|dislikes?|can't|doesn't|does not|speaks?|plays?|owns|drives?|starts?|ends?|opens?"
    r"|closes?|costs?|finish(?:es)?|lies|will be)"
)
_NEXT = lazy_regex(rf",? (?:and|but) (?={_VERBS}\b)|, (?:who |which )?(?={_VERBS}\b)")
_TRAILING_CLAUSE = lazy_regex(
    r"(?:,? (?:and|but|because|since|so|while|where|which|who) (?:i|we|he|she|they|it|that|this|my|our|his|her)\b.*"
    r"|,? (?:now|these days|at the moment|currently|again))$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AttributeClaim:
    """An attribute that was told: `several` may hold at once; `over` where it was told that it does not hold."""

    name: str
    value: str
    is_multi_valued: bool = False
    is_ended: bool = False


def find_attributes(mention: Mention) -> list[AttributeClaim]:
    """What the rest of the sentence says of it, in its order."""
    rest = re.sub(r"^[, ]+(?:who |which )?", "", mention.said_of_it)
    if mention.is_possessive:
        found = _OWNED.fullmatch(rest)
        if found is None or not (value := _value(found["value"])):
            return []
        verb = "" if found["verb"].startswith(("is", "are")) else f" {found['verb']}"
        return [AttributeClaim(f"{found['thing']}{verb}", value)]
    said = [_claim_in_clause(part) for part in _NEXT.split(rest)[:6]]
    return [one for one in said if one is not None]


def _claim_in_clause(part: str) -> AttributeClaim | None:
    part = _TRAILING_CLAUSE.sub("", part.strip(" ,"))
    gone = _NO_LONGER.fullmatch(part)
    if gone:
        return AttributeClaim("works at" if gone["works"] else "lives in", _value(gone["value"]), is_ended=True)
    for pattern, name, several in _PATTERNS:
        found = pattern.fullmatch(part)
        if found:
            value = _value(found["value"])
            return AttributeClaim(name, value, several) if value else None
    return None


def _value(raw: str) -> str:
    """ "" where part of it is quoted from somebody."""
    value = _TRAILING_CLAUSE.sub("", raw).strip(" ,;:.")
    return "" if "·" in value else value
