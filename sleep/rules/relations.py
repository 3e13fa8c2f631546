"""Who or what a sentence names, what it says of them, and matters of which there is one at a time. Pure.

What always holds: better few and true. A name is what begins with a capital (or, in scripts without them, stands
where only a name can), never a word that merely begins a sentence; what is quoted in a sentence is not the person's.
The value of an attribute is as it was said, without what was added to it in the same breath; one that has words
quoted from somebody in it is none. A slot is the matter of one subject: two statements fill the same slot only where
subject and matter are the same, so that the codes of two doors, the homes of two sisters are never taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from assistant.core.text import fold_text, lazy_regex
from sleep.rules.pattern_files import load_pattern, read_alternatives, read_pattern_rows

EntityKind = Literal["person", "place", "project", "thing"]

_APPOSITION = load_pattern("relations", "apposition")
_IS_OURS = load_pattern("relations", "is_ours")
_IS_CALLED = load_pattern("relations", "is_called")
_PROJECT = load_pattern("relations", "project")
_OF_PROJECT = load_pattern("relations", "of_project")
_KNOWN = load_pattern("relations", "known")
_BY_RELATION = load_pattern("relations", "by_relation")
_CJK_CALLED = load_pattern("relations", "cjk_called")
_CJK_LIVES = load_pattern("relations", "cjk_lives")
_NO_LONGER = load_pattern("relations", "no_longer")
_OWNED = load_pattern("relations", "owned")
_NEXT = load_pattern("relations", "next")
_TRAILING_CLAUSE = load_pattern("relations", "trailing_clause")


def is_single_relation(relation: str) -> bool:
    """Whether one person has one of these at a time."""
    return relation in read_alternatives("relations", "single_relations")


@dataclass(frozen=True, slots=True)
class Mention:
    """Somebody or something that a sentence speaks of."""

    name: str  # "" where only `alias` ("my sister") is said
    kind: EntityKind | None
    said_of_it: str  # begins with a verb or, of a possession, with that
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
    kind: EntityKind = "person"
    if relation in read_alternatives("relations", "places"):
        kind = "place"
    elif relation in read_alternatives("relations", "animals"):
        kind = "thing"
    rest = re.sub(r"^ (?:now|again|currently|these days)\b", "", found["rest"])
    return Mention(found["name"], kind, rest, f"{found['adjective']}{relation}", _alias(found), owns)


def _alias(found: re.Match[str]) -> str:
    """As the person says it: "my younger sister", whoever tells of it."""
    ours = "our" if re.search(r"\b[Oo]ur\b", found[0][: found.end("relation")]) else "my"
    return f"{ours} {found['adjective']}{found['relation']}"


def _is_no_name(name: str) -> bool:
    return name.split()[0].casefold() in read_alternatives("relations", "not_names")


@dataclass(frozen=True, slots=True)
class AttributeClaim:
    """An attribute that was told."""

    name: str
    value: str
    is_multi_valued: bool = False  # several may hold at once
    is_ended: bool = False  # it was told that it no longer holds


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
    for row, pattern in read_pattern_rows("relations", "predicate"):
        found = pattern.fullmatch(part)
        if found:
            value = _value(found["value"])
            return AttributeClaim(row["name"], value, row.get("is_multi_valued", False)) if value else None
    return None


def _value(raw: str) -> str:
    """ "" where part of it is quoted from somebody."""
    value = _TRAILING_CLAUSE.sub("", raw).strip(" ,;:.")
    return "" if "·" in value else value


SELF_SUBJECT = "self"
PLACE_ATTRIBUTE = "place"
_MATTER = load_pattern("relations", "matter")
_PLACED = load_pattern("relations", "placed")
_FAVOURITE = load_pattern("relations", "favourite")
_PREFERS = load_pattern("relations", "prefers")
_CLAUSE = lazy_regex(r"[,.;:!?。，] ?")
# "Jonas, my best friend from school, lives ...": who they are stands between the name and the verb.
_WHO_THEY_ARE = load_pattern("relations", "who_they_are")
_NO_NAME = load_pattern("relations", "no_name")
_FRONT = lazy_regex(r"^(?:the|a|an|now|in|at|on|to|about|around) ")
_OF_TIME = load_pattern("relations", "of_time")
_LONGEST_SUBJECT = 40


def _ignored() -> frozenset[str]:
    return read_alternatives("relations", "ignored")


@dataclass(frozen=True, slots=True)
class AttributeSlot:
    """A matter of which a subject has one at a time."""

    attribute: str
    subject: str
    value: str  # what is said of it, folded


def find_slots(text: str) -> list[AttributeSlot]:
    """What a statement fills, main clause by main clause."""
    text = _WHO_THEY_ARE.sub(r"\1 ", text)
    folded = " ".join(fold_text(text[:1_000]).replace("’", "'").split())
    return [one for one in dict.fromkeys(_slots(folded)) if not _names_nobody(one, text)]


def _names_nobody(slot: AttributeSlot, text: str) -> bool:
    """Whether it says of somebody how they are, not who they are: "Dad's on the mend" names no father."""
    if not is_single_relation(slot.attribute.removeprefix("of ")):
        return False
    first = slot.value.split(" ")[0]
    named = re.search(rf"(?<!\w){re.escape(first)}(?!\w)", text, re.IGNORECASE)
    return _NO_NAME.match(slot.value) is not None or (named is not None and named[0].islower() and not text.islower())


def _slots(folded: str) -> Iterator[AttributeSlot]:
    for row, form in read_pattern_rows("relations", "form"):
        matter = row["attribute"]
        for found in form.finditer(folded):
            value = _bare(found["value"])
            if not value or (matter in ("home", "work") and _OF_TIME.match(value)):
                continue
            who = found.groupdict().get("who") or _before(folded, found.start())
            subject = _subject(who)
            if matter == "home" and "mov" in found[0] and subject != SELF_SUBJECT and not _is_somebody(who):
                continue
            yield AttributeSlot(matter, subject, value)
    for found in _PLACED.finditer(folded):
        words = [word for word in _before(folded, found.start()).split() if word not in _ignored()]
        yield AttributeSlot(
            PLACE_ATTRIBUTE,
            " ".join(word.removesuffix("'s") for word in words[-3:]) or SELF_SUBJECT,
            _bare(found["value"]),
        )
    for found in _FAVOURITE.finditer(folded):
        yield AttributeSlot(
            f"favourite {found['what'].strip()}", _subject(_before(folded, found.start())), _bare(found["value"])
        )
    for found in _PREFERS.finditer(folded):
        both = "|".join(sorted((found["more"], found["less"])))
        yield AttributeSlot(f"prefers {both}", _subject(_before(folded, found.start())), found["more"])
    for found in _MATTER.finditer(folded):
        owner = " ".join(word for word in found["head"].split() if word not in _ignored())
        yield AttributeSlot(f"of {found['noun']}", owner, _bare(found["value"]))


def _before(folded: str, place: int) -> str:
    """What stands before a verb in its clause."""
    return _CLAUSE.split(folded[max(0, place - _LONGEST_SUBJECT) : place])[-1]


def _subject(who: str) -> str:
    words = [word for word in re.findall(r"[\w'-]+", who) if word not in _ignored()]
    if not words or {words[0], words[-1]} & read_alternatives("relations", "self_words"):
        return SELF_SUBJECT
    return str(words[-1]).removesuffix("'s")


def _is_somebody(who: str) -> bool:
    """Not a meeting that was moved to another room."""
    words = [word for word in re.findall(r"[\w'-]+", who) if word not in _ignored()]
    return (len(words) == 1 and not re.search(r"\b(?:the|my|our)\b", who)) or bool(
        re.search(
            r"\b(?:sister|brother|mum|mom|mother|dad|father|son|daughter|friend|aunt|uncle|cousin|grand\w+|boss"
            r"|parents)\b",
            who,
        )
    )


def _bare(value: str) -> str:
    return _FRONT.sub("", value.strip().strip("\"'“”")).strip()
