"""Twice as much of a thing that is on a list: "double up on the tomatoes". Pure.

What always holds: the thing stays on its list, and only its amount is another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assistant.core.text import lazy_regex
from assistant.models.offline.cues import fold
from assistant.models.offline.lists import without_lists
from assistant.models.offline.matching import ListedItem, count_hits, matching, subject_words

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
