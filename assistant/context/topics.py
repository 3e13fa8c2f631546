"""What a text is about, in a few of its own words: for a line that stands where the text was. Pure."""

from __future__ import annotations

from collections import Counter

from assistant.core.text import lazy_regex

_WORD = lazy_regex(r"(?<!\w)[^\W\d_][\w'’-]{3,30}(?!\w)")
_LOOKED_AT = 4_000
_FIRST_WORDS = 24
_CANDIDATES = 40
# Words that every text has say nothing of this one.
_COMMON_WORDS = """
about above after again against also been before being below between both cannot could does doing down during each else
every from further have having here into itself just like line lines made make many more most much must name none null
only other over same shall should since some such than that their them then there these they this those through true
false type under until value very want were what when where which while will with within without would your yours
aber auch dass dies dieser doch eine einem einen einer haben kann mehr nach nicht noch oder schon sein sich sind über
unter wenn wird dans avec cette être leur mais pour plus sont tout como esta este para pero porque sobre todo ikke eller
hvis også skal være noen dette https http
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def topics(text: str, most: int = 5) -> tuple[str, ...]:
    """The words that stand in it most often and mean something, in the order in which they come; the first characters
    of a text in a script without spaces. The first 4,000 characters are looked at."""
    seen = text[:_LOOKED_AT]
    folded = seen.lower()
    counted = Counter(_WORD.findall(folded))
    telling = [word for word, _ in counted.most_common(_CANDIDATES) if word not in _COMMON]
    if len(telling) < 2:
        first = " ".join(seen.split())[:_FIRST_WORDS]
        return (first,) if first else ()
    best = sorted(telling, key=lambda word: (-counted[word], -len(word)))[:most]
    # Lower case has as many characters in nearly all scripts; where it has not, it is shown as it is.
    spelled = seen if len(seen) == len(folded) else folded
    places = sorted((folded.find(word), len(word)) for word in best)
    return tuple(spelled[place : place + length] for place, length in places)
