"""Finds who or what a sentence is about, what it says about them, and attributes that have only one value at a time.
Pure.

Precision is preferred to completeness. A name begins with a capital (or, in scripts without them, is at a position
where only a name can be), and is never just the first word of a sentence; quotations are ignored. An attribute's value
is verbatim, without additions in the same sentence; values that quote others are ignored. A slot belongs to one
subject: two statements fill the same slot only if subject and attribute are the same, so that the codes of two doors,
or the homes of two sisters, are not confused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text, lazy_regex
from sleep.rules.claim_times import split_time
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
    """Return whether one person has only one of these at a time."""
    return relation in read_alternatives("relations", "single_relations")


@dataclass(frozen=True, slots=True)
class Mention:
    """A person or thing that a sentence is about."""

    name: str  # "" if only `alias` ("my sister") is said
    kind: EntityKind | None
    said_of_it: str  # begins with a verb, or of a possession with the thing
    relation: str = ""
    alias: str = ""
    is_possessive: bool = False


def find_mention(sentence: str) -> Mention | None:
    """Return the subject of the sentence if it is a name or a person named by their relation."""
    cjk = _CJK_CALLED.fullmatch(sentence)
    if cjk:
        relation, name = cjk["ja"] or cjk["zh"], cjk["name_ja"] or cjk["name_zh"]
        return Mention(name, "person", "", relation, f"{'私の' if cjk['ja'] else '我'}{relation}")
    lives = _CJK_LIVES.fullmatch(sentence)
    if lives:
        place = lives["place_ja"] or lives["place_zh"]
        return Mention(lives["name_ja"] or lives["name_zh"], None, f"lives in {place}")
    return _in_words(sentence.rstrip(" .!…"))


def _in_words(sentence: str) -> Mention | None:
    for pattern in (_IS_OURS, _IS_CALLED, _APPOSITION):
        match = pattern.fullmatch(sentence)
        if match and not _is_no_name(match["name"]):
            owns = pattern is _APPOSITION and bool(match["owns"])
            return _related(match, owns)
    for pattern in (_PROJECT, _OF_PROJECT):
        match = pattern.fullmatch(sentence)
        if match and not _is_no_name(match["name"] or match["other"]):
            rest = match["rest"] if pattern is _OF_PROJECT else ""
            return Mention(match["name"] or match["other"], "project", rest)
    match = _BY_RELATION.fullmatch(sentence)
    if match:
        return Mention("", None, match["rest"], alias=_alias(match), is_possessive=bool(match["owns"]))
    match = _KNOWN.fullmatch(sentence)
    if match and not _is_no_name(match["name"]):
        return Mention(match["name"], None, match["rest"], is_possessive=bool(match["owns"]))
    return None


def _related(match: re.Match[str], owns: bool) -> Mention:
    relation = match["relation"]
    kind: EntityKind = "person"
    if relation in read_alternatives("relations", "places"):
        kind = "place"
    elif relation in read_alternatives("relations", "animals"):
        kind = "thing"
    rest = re.sub(r"^ (?:now|again|currently|these days)\b", "", match["rest"])
    return Mention(match["name"], kind, rest, f"{match['adjective']}{relation}", _alias(match), owns)


def _alias(match: re.Match[str]) -> str:
    """Return the alias as the user says it ("my younger sister")."""
    ours = "our" if re.search(r"\b[Oo]ur\b", match[0][: match.end("relation")]) else "my"
    return f"{ours} {match['adjective']}{match['relation']}"


def _is_no_name(name: str) -> bool:
    return name.split()[0].casefold() in read_alternatives("relations", "not_names")


@dataclass(frozen=True, slots=True)
class AttributeClaim:
    """A stated attribute."""

    name: str
    value: str
    when: str = ""  # the time that is named with it, in words: "since March"
    is_multi_valued: bool = False  # several values are possible at a time
    is_ended: bool = False  # it is said to be over


def find_attributes(mention: Mention) -> list[AttributeClaim]:
    """Return the attributes in the rest of the sentence, in order."""
    rest = re.sub(r"^[, ]+(?:who |which )?", "", mention.said_of_it)
    if mention.is_possessive:
        match = _OWNED.fullmatch(rest)
        if match is None or not (value := _value(match["value"])):
            return []
        verb = "" if match["verb"].startswith(("is", "are")) else f" {match['verb']}"
        return [AttributeClaim(f"{match['thing']}{verb}", value)]
    claims = [_claim_in_clause(part) for part in _NEXT.split(rest)[:6]]
    return [claim for claim in claims if claim is not None]


def _claim_in_clause(part: str) -> AttributeClaim | None:
    part = _TRAILING_CLAUSE.sub("", part.strip(" ,"))
    ended = _NO_LONGER.fullmatch(part)
    if ended:
        return AttributeClaim("works at" if ended["works"] else "lives in", _value(ended["value"]), is_ended=True)
    for row, pattern in read_pattern_rows("relations", "predicate"):
        plain, when = split_time(part, is_event="is_event" in row) if "has_time" in row else (part, "")
        match = pattern.fullmatch(plain)
        if match:
            value = _value(match["value"])
            return AttributeClaim(row["name"], value, when, row.get("is_multi_valued", False)) if value else None
    return None


def _value(raw: str) -> str:
    """Return the value; "" if part of it is a quotation."""
    value = _TRAILING_CLAUSE.sub("", raw).strip(" ,;:.")
    return "" if "·" in value else value


SELF_SUBJECT = "self"
PLACE_ATTRIBUTE = "place"
_MATTER = load_pattern("relations", "matter")
_HELD_BY = load_pattern("relations", "held_by")
_PLACED = load_pattern("relations", "placed")
_FAVOURITE = load_pattern("relations", "favourite")
_PREFERS = load_pattern("relations", "prefers")
_CLAUSE = lazy_regex(r"[,.;:!?。，] ?")
# In "Jonas, my best friend from school, lives ...", the relation is between the name and the verb.
_WHO_THEY_ARE = load_pattern("relations", "who_they_are")
_NO_NAME = load_pattern("relations", "no_name")
_FRONT = lazy_regex(r"^(?:the|a|an|now|in|at|on|to|about|around) ")
_OF_TIME = load_pattern("relations", "of_time")
_LONGEST_SUBJECT = 40


def _ignored() -> frozenset[str]:
    return read_alternatives("relations", "ignored")


@dataclass(frozen=True, slots=True)
class AttributeSlot:
    """An attribute of which a subject has one value at a time."""

    attribute: str
    subject: str
    value: str  # its value, folded


def find_slots(text: str) -> list[AttributeSlot]:
    """Return the slots that a statement fills, by main clause."""
    text = _WHO_THEY_ARE.sub(r"\1 ", text)
    folded = " ".join(fold_text(text[:1_000]).replace("’", "'").split())
    return [slot for slot in dict.fromkeys(_slots(folded)) if not _names_nobody(slot, text)]


def _names_nobody(slot: AttributeSlot, text: str) -> bool:
    """Return whether it describes how somebody is, not who: "Dad's on the mend" names no father."""
    if not is_single_relation(slot.attribute.removeprefix("of ")):
        return False
    first = slot.value.split(" ")[0]
    named = re.search(rf"(?<!\w){re.escape(first)}(?!\w)", text, re.IGNORECASE)
    return _NO_NAME.match(slot.value) is not None or (named is not None and named[0].islower() and not text.islower())


def _slots(folded: str) -> Iterator[AttributeSlot]:
    for row, form in read_pattern_rows("relations", "form"):
        matter = row["attribute"]
        for match in form.finditer(folded):
            value = _bare(match["value"])
            if not value or (matter in ("home", "work") and _OF_TIME.match(value)):
                continue
            who = match.groupdict().get("who") or _text_before_verb(folded, match.start())
            subject = _subject(who)
            if matter == "home" and "mov" in match[0] and subject != SELF_SUBJECT and not _is_somebody(who):
                continue
            yield AttributeSlot(matter, subject, value)
    for match in _PLACED.finditer(folded):
        words = [word for word in _text_before_verb(folded, match.start()).split() if word not in _ignored()]
        yield AttributeSlot(
            PLACE_ATTRIBUTE,
            " ".join(word.removesuffix("'s") for word in words[-3:]) or SELF_SUBJECT,
            _bare(match["value"]),
        )
    for match in _FAVOURITE.finditer(folded):
        yield AttributeSlot(
            f"favourite {match['what'].strip()}",
            _subject(_text_before_verb(folded, match.start())),
            _bare(match["value"]),
        )
    for match in _PREFERS.finditer(folded):
        both = "|".join(sorted((match["more"], match["less"])))
        yield AttributeSlot(f"prefers {both}", _subject(_text_before_verb(folded, match.start())), match["more"])
    for match in (*_MATTER.finditer(folded), *_HELD_BY.finditer(folded)):
        owner = " ".join(word for word in match["head"].split() if word not in _ignored())
        yield AttributeSlot(f"of {match['noun']}", owner, _bare(match["value"]))


def _text_before_verb(folded: str, place: int) -> str:
    """Return what precedes a verb in its clause."""
    return _CLAUSE.split(folded[max(0, place - _LONGEST_SUBJECT) : place])[-1]


def _subject(who: str) -> str:
    words = [word for word in re.findall(r"[\w'-]+", who) if word not in _ignored()]
    if not words or {words[0], words[-1]} & read_alternatives("relations", "self_words"):
        return SELF_SUBJECT
    return str(words[-1]).removesuffix("'s")


def _is_somebody(who: str) -> bool:
    """Return whether this is a person, and not a meeting that was moved to another room."""
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
