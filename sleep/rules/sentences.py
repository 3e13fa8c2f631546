"""What a person wrote, sentence by sentence, with what is not their own voice told apart. Pure.

What always holds: `words` is verbatim but for white space; in `own`, what stands between quotation marks or in code is
blanked, so that no rule reads somebody else's words as the person's. Lines that quote or are code are no sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from assistant.core.text import lazy_regex

BLANK = "·"
_ASIDE = lazy_regex(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^(?: {4}|\t)[^\n]*$|^[ \t]*>[^\n]*$", re.DOTALL | re.MULTILINE)
# As long as a quotation may be: what is never closed must not be looked for to the end, again and again.
_LONG = r"{1,300}"
_WITHIN = lazy_regex(
    rf"`[^`\n]{_LONG}`|\"[^\"\n]{_LONG}\"|“[^”\n]{_LONG}”|«[^»\n]{_LONG}»|„[^“”\n]{_LONG}[“”]"
    rf"|「[^」\n]{_LONG}」|『[^』\n]{_LONG}』"
)
_BREAK = lazy_regex(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])[」』”]*|\n\s*")
# A point that ends no sentence: abbreviations, initials, numbers before a number or in front of a month.
_ABBREVIATION = lazy_regex(
    r"(?:\b(?:dra?|mrs?|ms|st|sra?|hr|fr|mme|mlle|prof|vs|approx|ca|bzw|z\.\s?b|e\.g|i\.e|jr)"
    r"|\b[B-HJ-Z])\.$",
    re.IGNORECASE,
)
_NUMBER = lazy_regex(r"(?:\bn[or]|\b\d{1,2})\.$", re.IGNORECASE)
_GOES_ON = lazy_regex(r"\d|(?:jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[kc]t|nov|de[csz])", re.IGNORECASE)
_LOOKED_BACK = 12
_LISTED = lazy_regex(r"(?:[-*•+]|\d{1,2}[.)]|\[[ x]?\])\s+")
_WH = r"(?:what|where|when|who|whom|whose|why|how|which)"
_AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might"
    r"|isn'?t|aren'?t|don'?t|doesn'?t|didn'?t|can'?t|won'?t)"
)
_ASKS = lazy_regex(
    rf"(?:(?:and|so|but|or|ok(?:ay)?|hey|hi|well|also|then)[ ,]+)*(?:{_WH}(?:'s|'re| {_AUXILIARY})\b"
    rf"|(?:which|what|how|whose) \w+ {_AUXILIARY}\b|how (?:much|many|long|far|old|often)\b|(?:what|how) (?:about|if)\b"
    r"|(?:can|could|do|does|did|should|would|will) (?:an?|people|anyone|most|two|three) "
    rf"|{_AUXILIARY} (?:i|you|we|they|he|she|it|my|our|the|there|this|that|these|any\w*|some\w*)\b"
    r"|(?:is|are|does|did) (?!allergic|due|called|from|based|now|not|also|always)\w+ .*\b(?:ok(?:ay)?|safe|bad|good"
    r"|rude"
    r"|normal|worth|true|better|too (?:many|much|late|early)|the same|like|enough|possible|legal)\b[^,;]{0,30}$)"
    rf"|.*\b(?:what|how|where|when|why|who) (?:do|does|did|should|can|could|would) (?:i|we|they|he|she|it)\b",
    re.IGNORECASE,
)
_ASKS_CJK = lazy_regex(
    r"[吗嗎呢]$|什么|甚麼|为什么|怎么|怎麼|哪[里裡儿个個]|谁|誰|几点|多少|(?:です|ます|でした|ました)か$"
    r"|何(?:[がをで時]|です)|どこ|いつ(?!も)|だれ|どうして|なぜ"
)
_MARK = lazy_regex(r"[?？]\W*$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`words` as they were written, `own` as long as that, without what is quoted in it."""

    words: str
    own: str

    @property
    def is_question(self) -> bool:
        """With its mark, or without it in the order of words that asks."""
        bare = self.own.rstrip(".!。！… ")
        return bool(_MARK.search(self.own) or _ASKS.match(self.own) or _ASKS_CJK.search(bare))

    @property
    def has_mark(self) -> bool:
        return bool(_MARK.search(self.own))


def sentences(text: str) -> list[Sentence]:
    """In their order; what has no letter of the person's own is none."""
    own = own_words(text)
    found: list[Sentence] = []
    for start, end in _spans(own):
        listed = _LISTED.match(own, start, end)
        start = listed.end() if listed else start
        words = Sentence(" ".join(text[start:end].split()), " ".join(own[start:end].replace("’", "'").split()))
        if any(map(str.isalpha, words.own)):
            found.append(words)
    return found


def own_words(text: str) -> str:
    """The text without what is quoted in it."""
    return _WITHIN.sub(_blanked, _ASIDE.sub(_gone, text))


def _gone(found: re.Match[str]) -> str:
    """As long as it was, so that places stay places."""
    return "".join("\n" if char == "\n" else " " for char in found[0])


def _blanked(found: re.Match[str]) -> str:
    """The marks stay, and the end of a sentence that ends with the quotation."""
    text, after = found[0], found.string[found.end() : found.end() + 2]
    ends = text[-2] in ".!?" and after[:1].isspace() and after[1:].isupper()
    return f"{text[0]}{BLANK * (len(text) - 2 - ends)}{text[-2:] if ends else text[-1]}"


def _spans(own: str) -> Iterator[tuple[int, int]]:
    start = _skipped(own, 0)
    for found in _BREAK.finditer(own):
        said = own[max(start, found.start() - _LOOKED_BACK) : found.start()]
        if "\n" not in found[0] and _is_inside(said, own[found.end() : found.end() + 3]):
            continue
        # Marks that close a quotation belong to what they close.
        end = found.end() - (len(found[0]) - len(found[0].rstrip()))
        if end > start:
            yield start, end
            start = _skipped(own, found.end())
    if start < len(own):
        yield start, len(own)


def _is_inside(said: str, following: str) -> bool:
    if _ABBREVIATION.search(said):
        return True
    return bool(_NUMBER.search(said) and _GOES_ON.match(following))


def _skipped(own: str, start: int) -> int:
    while start < len(own) and own[start].isspace():
        start += 1
    return start
