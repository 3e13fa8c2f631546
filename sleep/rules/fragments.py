"""Sentences without a verb or a subject, put beside the one they belong to. Pure.

What always holds: words stay as they were written, in their order. "Friday the 29th, half past nine." says something
only behind the sentence that says of what; "The dentist!" only before the one that goes on about him.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assistant.core.text import lazy_regex
from sleep.rules import clauses as of
from sleep.rules.sentences import Sentence
from sleep.rules.shorthand import spelled_out

_MOST_WORDS = 9
_MOST_OF_A_TOPIC = 4
_LONGEST = 380
_FINITE = lazy_regex(
    r"\b(?:am|is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|shall|should|may|might|must|cannot"
    r"|\w+n't|got|gets?|went|goes?|came|comes?|took|takes?|gave|gives?|made|makes?|said|says?|told|tells?|saw|sees?"
    r"|knew|knows?|thought|thinks?|found|felt|feels?|left|kept|keeps?|heard|began|ran|runs?|sat|stood|lost|won|met"
    r"|bought"
    r"|brought|taught|sold|sent|spent|built|paid|fell|flew|drove|wrote|ate|drank|slept|bit|hit|cut|put|let|set|hurt"
    r"|quit|read|led|became|forgot|meant|lives?|works?|wants?|needs?|likes?|loves?|hates?|looks?|seems?|sounds?|means?"
    r"|hopes?|wish|wishes|starts?|ends?|stays?|plays?|pays?|eats?|drinks?|uses?|guess|suppose|\w{3,}ed)\b"
    r"|\w['’](?:m|re|ve|ll|d)\b|\b(?:it|he|she|that|there|what|who|here)['’]s\b"
    r"|^(?:\w+ ){0,2}\w+['’]s (?:an?|the|my|our|not|on|in|at|with|from|off|\w+ing|\d)\b",
    re.IGNORECASE,
)
_PERSON = lazy_regex(r"^(?:and |but |so )?(?:i|we|you|he|she|they|it|this|that|these|those|there)\b", re.IGNORECASE)
_GOES_ON = lazy_regex(
    r"^(?:and |but |so )?(?:been|since|every|always|never|only|now|it|it's|that's|that is|he's|she's|he|she|they"
    r"|they're"
    r"|which|who|with|from|for|until|till|in|at|on)\b",
    re.IGNORECASE,
)
_OUTCRY = lazy_regex(
    r"^(?:what an?|how|oh|ah|ha|heavens|goodness|gosh|god|bless|poor|silly|lucky|so much|too|no|yes|nope|nah|yeah"
    r"|ugh|wow"
    r"|lol|same|again|perfect|thanks?|please|sorry|never mind|anyway|fine|ok|okay|right|great|lovely)\b",
    re.IGNORECASE,
)


def together(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The sentences, each with the fragments that belong to it."""
    found: list[Sentence] = []
    topic = False
    for one in sentences:
        last = found[-1] if found else None
        if last is not None and _belongs(last, one, topic=topic) and len(last.words) + len(one.words) < _LONGEST:
            found[-1] = Sentence(f"{last.words} {one.words}", f"{last.own} {one.own}")
            topic = False
        else:
            found.append(one)
            topic = _is_topic(one)
    return found


def _belongs(last: Sentence, one: Sentence, *, topic: bool) -> bool:
    if not (_states(last) and _states(one)) or len(last.words) != len(last.own) or len(one.words) != len(one.own):
        return False
    return is_fragment(one) or (topic and bool(_GOES_ON.match(spelled_out(one.own))))


def _states(one: Sentence) -> bool:
    return not (one.is_question or of.orders(one.own) or of.is_small(one.own) or of.supposes(one.own))


def is_fragment(one: Sentence) -> bool:
    """Whether it has neither a verb nor a subject of its own and is no outcry."""
    own = spelled_out(one.own)
    if len(own.split()) > _MOST_WORDS or _OUTCRY.match(own) or of.is_joke(own):
        return False
    return not _FINITE.search(own) and not _PERSON.match(own)


def _is_topic(one: Sentence) -> bool:
    return len(one.own.split()) <= _MOST_OF_A_TOPIC and is_fragment(one) and _states(one)
