"""How people speak of somebody or something by name: patterns of whole sentences. Pure.

What always holds: better few and true. A name is what begins with a capital (or, in scripts without them, stands where
only a name can), never a word that merely begins a sentence; what is quoted in a sentence is not the person's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from assistant.core.text import lazy_regex

Kind = Literal["person", "place", "project", "thing"]

_SINGLE = """
wife husband partner fiancé fiancée girlfriend boyfriend mother father mum mom dad landlord landlady boss manager
doctor dentist therapist accountant lawyer
"""
_SEVERAL = """
sister brother son daughter child uncle aunt cousin niece nephew grandmother grandfather grandson granddaughter friend
neighbour neighbor colleague teacher trainer tenant roommate flatmate mentor client sister-in-law brother-in-law
mother-in-law father-in-law stepmother stepfather stepson stepdaughter
"""
SINGLE = frozenset(_SINGLE.split())
"""Relations of which one person has one at a time; of the others there may be several."""
_PEOPLE = SINGLE | frozenset(_SEVERAL.split())
_ANIMALS = frozenset({"cat", "dog", "horse", "rabbit", "parrot"})
_PLACES = frozenset(
    {"cabin", "cottage", "house", "flat", "apartment", "office", "school", "gym", "church", "garage", "farm", "studio"}
)

CAPITAL = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĖĘĚĞĢĪĶĹĽĻŁŃŇŅŌŐŒŘŚŠŞȘŤȚŪŮŰŲŹŻŽΑ-ΩА-ЯЁ"
_SURNAME = rf"(?:(?:van|von|de|del|della|der|den|da|di|dos|la|le|el|al|bin|ten|ter) ){{0,2}}[{CAPITAL}][\w’-]{{0,40}}"
NAME = rf"[{CAPITAL}][\w’-]{{0,40}}(?:['’][{CAPITAL}]\w{{0,20}})?(?: {_SURNAME}){{0,3}}"
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

_APPOSITION = lazy_regex(rf"{_OURS} {_REL}(?:,)? (?P<name>{NAME})(?P<owns>'s)?(?P<rest>(?:[ ,].*)?)")
_IS_OURS = lazy_regex(rf"(?P<name>{NAME}),? (?:is|was) (?P<owner>{_OURS}) {_REL}(?P<rest>(?:[ ,].*)?)")
_IS_CALLED = lazy_regex(
    rf"{_OURS} {_REL}(?:'s name)? (?:is|are)(?: called| named)? (?P<name>{NAME})(?P<rest>(?:, .*| and .*)?)"
)
_PROJECT = lazy_regex(
    rf"(?:(?:I'm|I am|We're|We are|I|We) (?:work(?:ing)? on|start(?:ed|ing)|running|building|leading)) (?:the |an? )?"
    rf"(?:[\w-]+ )?(?:[Pp]roject(?: called| named)?,? (?P<name>{NAME})|(?P<other>{NAME}) project)(?P<rest>(?:[ ,].*)?)"
)
_OF_PROJECT = lazy_regex(rf"(?:[Tt]he (?P<name>{NAME}) [Pp]roject|[Pp]roject (?P<other>{NAME}))(?P<rest> .*)")
_KNOWN = lazy_regex(rf"(?P<name>{NAME})(?P<owns>'s)?(?P<rest>[ ,].*)")
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
    kind: Kind | None
    rest: str
    relation: str = ""
    alias: str = ""
    owns: bool = False


def mention(sentence: str) -> Mention | None:
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
        return Mention("", None, found["rest"], alias=_alias(found), owns=bool(found["owns"]))
    found = _KNOWN.fullmatch(said)
    if found and not _is_no_name(found["name"]):
        return Mention(found["name"], None, found["rest"], owns=bool(found["owns"]))
    return None


def _related(found: re.Match[str], owns: bool) -> Mention:
    relation = found["relation"]
    kind: Kind = "place" if relation in _PLACES else "thing" if relation in _ANIMALS else "person"
    rest = re.sub(r"^ (?:now|again|currently|these days)\b", "", found["rest"])
    return Mention(found["name"], kind, rest, f"{found['adjective']}{relation}", _alias(found), owns)


def _alias(found: re.Match[str]) -> str:
    """As the person says it: "my younger sister", whoever tells of it."""
    ours = "our" if re.search(r"\b[Oo]ur\b", found[0][: found.end("relation")]) else "my"
    return f"{ours} {found['adjective']}{found['relation']}"


def _is_no_name(name: str) -> bool:
    return name.split()[0].casefold() in _NOT_NAMES
