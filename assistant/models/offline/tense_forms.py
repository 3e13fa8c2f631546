"""What a sentence says by its tense: that something happened, is not done yet, or has to be done at another time. Pure.

What always holds: what is said to be still open is neither ticked off nor taken away.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes
from assistant.models.offline.cues import fold, says, says_any
from assistant.models.offline.lists import without_lists
from assistant.models.offline.matching import ListedItem, matching, subject_words
from assistant.models.offline.mood import tells_in_french

_PARTS = lazy_regex(r"\s*[,;.!]\s+|\s+(?:but|aber|mais|pero)\s+")
_STILL_OPEN = lazy_regex(
    r"\b(?:not (?:yet|done)|(?:have|has|did)n'?t (?:[\w']+ ){1,5}yet|(?:is|are)n'?t (?:done|finished)"
    r"|still (?:to do|open|left|missing)|still (?:have|has)(?:n'?t| not) \w+"
    r"|noch (?:immer )?(?:nicht|offen)"
    r"|(?:^|noch )?fehl(?:t|en)(?: noch)?|pas encore|toujours pas|(?:il )?manque\w*|todavia no|aun no|(?:me "
    r"|nos )?faltan?)\b"
)
# As it is, for now.
_LEFT = lazy_regex(
    r"\b(?:still (?:to (?:do|go|come)|open|outstanding|left)|(?:for |on )?(?:an)?other (?:day|time)|(?:is|are) left$"
    r"|^(?:only|just) .* left$|stays? (?:put|on|at|as|there|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    r"|leave as (?:it )?is|as (?:planned|it is)|unchanged|half (?:done|finished)|wie geplant|halb fertig"
    r"|comme prevu|como estaba|bleib\w*(?: (?:so|bei|am|dabei|wie))?|ein andermal|spater mal"
    r"|reste(?:nt)? (?:comme|a|le|pour|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)"
    r"|^(?:il )?reste(?:nt)? (?:plus )?(?:que )?(?:le|la|les|l')|(?:une )?autre (?:fois|jour)"
    r"|pas encore|(?:se )?quedan?(?: (?:como|el|para|por))?|otro dia|ya (?:lo )?hare)\b"
    r"|^(?:but |aber |mais |pero )?(?:(?:do )?keep|garde|behalte?|guarda)"
    r" (?:the |my |die |den |das |le |la |les |el |los )"
)
_HAS_TO = lazy_regex(r"\b(?:muss|mussen|soll|has to|have to|needs? to|must|doit|doivent|faut|tienen? que|debe[n]?)\b")
# "Mum called at eight", "mamá llamó a las 8"; in French by its participle.
_HAPPENED = lazy_regex(
    r"^(?!(?:zeig|sag|lies|les|schau|guck|nenn|erzahl|gib)\w*\b)(?:(?:my|our|the) )?[a-z'-]+(?: [a-z'-]+)?"
    r" (?:called|rang|phoned|texted|came|left|arrived|woke|went|wrote"
    r"|said|told|asked"
    r"|had|was|were|got|slept|started|finished|stopped|turned up|showed up)\b"
    r"|^(?:(?:mi|el|la|los|las|nuestr[oa]) )?[^\W\d_]+(?: [^\W\d_]+)? [^\W\d_]{2,}(?:ó|aron|ieron)\b",
)
_WAS = lazy_regex(r"\b(?:war|waren|hatte|hatten|gab|was|were|went|etait|s'est|fue|fueron|estuvo)\b")


def tells_what_happened(text: str) -> bool:
    """Whether a sentence with a subject tells of the past: with an hour it reads like what is to come."""
    plain, folded = " ".join(text.split()).replace("’", "'").lower().strip(" .!"), fold(text)
    if "?" in text or says_any(("set_reminder", "wake", "wants_reminder", "asks", "question", "done"), folded):
        return False
    return tells_in_french(plain) or _HAPPENED.match(plain) is not None


def tells_of_past_day(text: str) -> bool:
    """Whether a sentence tells how it was on a day: "the appointment on Tuesday was fine"."""
    folded = fold(text)
    return "?" not in text and _WAS.search(folded) is not None and not says_any(("asks", "question_word"), folded)


def _is_open(part: str) -> bool:
    return _STILL_OPEN.search(fold(part)) is not None and not says("needless", fold(part))


def parts_still_open(text: str, waiting: Sequence[ListedItem]) -> list[ListedItem]:
    """What a sentence, in some of its parts, says to be still open."""
    todos = [item for item in waiting if item.kind == "todo"]
    parts = [part for part in _PARTS.split(text) if _is_open(part)]
    return [item for part in parts for item in matching(subject_words(without_lists(part)), todos)]


def stays_open(part: str) -> bool:
    """Whether a part of a sentence says of a thing that it is left as it is: "the photos are still to go", "the vet
    stays on Friday", "only the invitations left"."""
    folded = fold(part)
    return _LEFT.search(folded) is not None and not says_any(("drop", "sense_drop", "move"), folded)


def is_all_open(text: str) -> bool:
    """Whether each part of a sentence says that something is still open."""
    parts = [part for part in _PARTS.split(text) if part.strip()]
    return all(map(_is_open, parts))


def intent_of_tense(text: str, times: FoundTimes, waiting: Sequence[ListedItem], likeliest: str) -> str:
    """The intent of what says that a to-do is open still, or has to be done at another time; "" for anything else."""
    if "?" in text or times.of_kind("clock"):
        return ""
    if parts_still_open(text, waiting) and (is_all_open(text) or _names_done(text, waiting)):
        return "complete"
    moves = likeliest == "complete" and times.of_kind("day", "span", "delta") and _HAS_TO.search(fold(text))
    return "move" if moves else ""


def _names_done(text: str, waiting: Sequence[ListedItem]) -> bool:
    """Whether a part that does not say so names something that waits."""
    parts = [part for part in _PARTS.split(text) if part.strip() and not _is_open(part)]
    return any(matching(subject_words(without_lists(part)), waiting) and not says("drop", fold(part)) for part in parts)
