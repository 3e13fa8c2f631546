"""What a sentence says of somebody or something that it names: attributes with their values. Pure.

What always holds: a value is as it was said, without what was added to it in the same breath; one that holds words
quoted from somebody is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assistant.core.text import lazy_regex
from sleep.rules.relations import CAPITAL, Mention

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
    (rf"(?:is|lies) in (?P<value>[{CAPITAL}].{{0,80}}?)", "is in", False),
    (r"is (?P<value>(?:an?|the) .{1,120}?)", "is", True),
)  # fmt: skip
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
_ENDS = lazy_regex(
    r"(?:,? (?:and|but|because|since|so|while|where|which|who) (?:i|we|he|she|they|it|that|this|my|our|his|her)\b.*"
    r"|,? (?:now|these days|at the moment|currently|again))$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """An attribute that was told: `several` may hold at once; `over` where it was told that it does not hold."""

    name: str
    value: str
    several: bool = False
    over: bool = False


def told_of(about: Mention) -> list[Said]:
    """What the rest of the sentence says of it, in its order."""
    rest = re.sub(r"^[, ]+(?:who |which )?", "", about.rest)
    if about.owns:
        found = _OWNED.fullmatch(rest)
        if found is None or not (value := _value(found["value"])):
            return []
        verb = "" if found["verb"].startswith(("is", "are")) else f" {found['verb']}"
        return [Said(f"{found['thing']}{verb}", value)]
    said = [_said(part) for part in _NEXT.split(rest)[:6]]
    return [one for one in said if one is not None]


def _said(part: str) -> Said | None:
    part = _ENDS.sub("", part.strip(" ,"))
    gone = _NO_LONGER.fullmatch(part)
    if gone:
        return Said("works at" if gone["works"] else "lives in", _value(gone["value"]), over=True)
    for pattern, name, several in _PATTERNS:
        found = pattern.fullmatch(part)
        if found:
            value = _value(found["value"])
            return Said(name, value, several) if value else None
    return None


def _value(raw: str) -> str:
    """ "" where part of it is quoted from somebody."""
    value = _ENDS.sub("", raw).strip(" ,;:.")
    return "" if "·" in value else value
