"""Reads from a pattern of the rules which words each of its matches contains. Pure.

A pattern needs sets of pieces of words: a match contains at least one of each. They are found in the parsed form of the
pattern. Where nothing is known, nothing is needed.

For the patterns of the rules `make docs` stores all of this in `data/required_words.json`, since to find it takes half
a second of processor time.

Words and pieces are compared without case, and each digit is a 0. A blank in a piece is the edge of a word; other signs
are words of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib import import_module
from itertools import groupby, product
from math import fsum
from typing import Any

from assistant.core.text import STOP_WORDS

Pieces = frozenset[str]
Strings = frozenset[str]
Parts = Iterable[tuple[Any, Any]]
Needs = list[tuple[str, list[Pieces]]]
"""The patterns to search for instead of one, one or two, and what each needs."""

# A pattern of so many characters is worth to be searched for in two parts.
_WORTH_A_SPLIT = 300
# How many strings or characters a part of a pattern may stand for; more of them say little.
_MOST_STRINGS, _MOST_CHARACTERS = 64, 16
_MOST_SETS = 3
# The words of an alternative are rare if a clause has one of them less often than this.
_RARE = 0.15
_LONGEST_PIECE = 10
# About how often a clause has a piece with so many letters, a word that every text has, and such a sign.
_OF_LENGTH, _OF_STOP_WORD, _OF_SIGN = (1.0, 0.8, 0.5, 0.1, 0.02), 0.3, 0.5
_COMMON_SIGNS = frozenset(" .,'-")
# A set is left out if a clause has one of its pieces more often than this.
_TOO_COMMON = 6.0
# In the strings of a pattern: here a word begins or ends, or neither.
_EDGE = "\b"
_NOTHING: Strings = frozenset({""})
try:
    # How Python itself reads a pattern; there is no public way to it.
    _parser: Any = import_module("re._parser")
    _LITERAL: Any = _parser.LITERAL
except ImportError:  # where it is elsewhere, nothing is known of any pattern, and all are searched for
    _parser = _LITERAL = None


class _Plain(dict[int, str]):
    """Folds characters that `re.IGNORECASE` takes for the same."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        if letter.isspace():
            plain = " "
        elif letter.isdecimal():
            plain = "0"
        elif letter == "_" or letter.isalnum():
            upper = letter.upper()
            plain = (upper if len(upper) == 1 else letter).lower()[0]
        else:
            plain = f" {letter} "
        self[code] = plain
        return plain


PLAIN = _Plain()
"""For `str.translate`: makes words comparable."""


def fingerprint(pattern: re.Pattern[str]) -> str:
    """Return what identifies a pattern with its flags."""
    return sha256(f"{pattern.flags} {pattern.pattern}".encode()).hexdigest()[:16]


def find_needs(pattern: re.Pattern[str]) -> Needs:
    """Return what a pattern needs; a long one without groups is searched for in two parts."""
    sources = [pattern.pattern]
    if len(pattern.pattern) >= _WORTH_A_SPLIT and not pattern.groups:
        sources = split_by_commonness(pattern.pattern, pattern.flags)
    return [(source, required_pieces(source, pattern.flags)) for source in sources]


def required_pieces(pattern: str, flags: int = 0) -> list[Pieces]:
    """Return sets of pieces of words: a match has a piece of each of them. Empty if nothing is known."""
    if _parser is None:
        return []
    _, sets = _of_parts(_parser.parse(pattern, flags))
    useful = {pieces: often for pieces in sets if (often := _commonness(pieces)) < _TOO_COMMON}
    return sorted(useful, key=lambda pieces: (useful[pieces], sorted(pieces)))[:_MOST_SETS]


def _of_parts(parts: Parts) -> tuple[Strings | None, list[Pieces]]:
    """Return all strings that a part of a pattern can stand for, None if these are too many; and the sets of pieces."""
    strings: Strings | None = _NOTHING
    run = _NOTHING  # what the last parts stand for together
    sets: list[Pieces] = []
    for new, needed in _of_each(parts):
        sets += needed
        longer = None if new is None else _joined(run, new)
        if longer is None:
            sets += _pieces(run)
        strings = longer if strings is run else None if strings is None or new is None else _joined(strings, new)
        run = longer or new or _NOTHING
    return strings, [*sets, *_pieces(run)]


def _of_each(parts: Parts) -> Iterator[tuple[Strings | None, list[Pieces]]]:
    """Yield the same of each part; letters that follow each other, which are most of a pattern, are one."""
    for is_literal, alike in groupby(parts, key=lambda part: part[0] is _LITERAL):
        if is_literal:
            yield frozenset({"".join(chr(code) for _, code in alike)}), []
        else:
            yield from (_of_part(str(kind), value) for kind, value in alike)


def _joined(first: Strings, second: Strings) -> Strings | None:
    if len(first) * len(second) > _MOST_STRINGS:
        return None
    return frozenset(map("".join, product(first, second)))


def _of_part(kind: str, value: Any) -> tuple[Strings | None, list[Pieces]]:
    match kind:
        case "IN":
            return _of_characters(value), []
        case "AT":
            return (_NOTHING if str(value) == "AT_NON_BOUNDARY" else frozenset({_EDGE})), []
        case "SUBPATTERN":
            return _of_parts(value[-1])
        case "ATOMIC_GROUP":
            return _of_parts(value)
        case "BRANCH":
            return _of_branches([_of_parts(branch) for branch in value[1]])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _of_repeat(*value)
        case "ASSERT":
            # The text has it, but what follows in the pattern does not stand behind it.
            return _NOTHING, _of_parts(value[1])[1]
        case "ASSERT_NOT":
            return _NOTHING, []
        case _:
            return None, []


def _of_characters(items: list[tuple[Any, Any]]) -> Strings | None:
    characters: set[str] = set()
    for kind, value in items:
        match str(kind), value:
            case "LITERAL", code:
                characters.add(chr(code))
            case "RANGE", (first, last) if last - first < _MOST_CHARACTERS:
                characters |= {chr(code) for code in range(first, last + 1)}
            case "CATEGORY", category if str(category) in ("CATEGORY_SPACE", "CATEGORY_DIGIT"):
                characters.add(" " if str(category) == "CATEGORY_SPACE" else "0")
            case "CATEGORY", category if str(category) == "CATEGORY_NOT_WORD":
                characters.add(" ")
            case _:
                return None
    same = {"0" if character.isdecimal() else character for character in characters}
    return frozenset(same) if len(same) <= _MOST_CHARACTERS else None


def _of_branches(branches: list[tuple[Strings | None, list[Pieces]]]) -> tuple[Strings | None, list[Pieces]]:
    """A match has what one of the branches needs: the best set of each."""
    strings: Strings | None = frozenset()
    pieces: Pieces | None = frozenset()
    for of_branch, sets in branches:
        strings = None if strings is None or of_branch is None else strings | of_branch
        best = min(sets, key=_commonness, default=None)
        pieces = None if pieces is None or best is None else pieces | best
    if strings is not None and len(strings) > _MOST_STRINGS:
        strings = None
    return strings, [pieces] if pieces else []


def _of_repeat(least: int, most: Any, parts: Parts) -> tuple[Strings | None, list[Pieces]]:
    strings, sets = _of_parts(parts)
    if strings is not None and most != 1 and not any(map(_has_letter, strings)):
        # Of many blanks or signs it is enough that words end there.
        strings = frozenset({" "})
    elif strings is None or most != 1:
        return None, sets if least else []
    return strings if least else strings | _NOTHING, sets if least else []


def _has_letter(string: str) -> bool:
    return not string or any(letter == "_" or letter.isalnum() for letter in string)


def _pieces(strings: Strings) -> list[Pieces]:
    """Return a set with a piece of each of these strings; none if one of them has no piece."""
    best = [min(_pieces_of(string), key=_piece_commonness, default="") for string in strings]
    return [frozenset(best)] if all(best) else []


def _pieces_of(string: str) -> Iterator[str]:
    """Yield its words, with a blank at each side where they surely end."""
    inner = string.replace(_EDGE, "").translate(PLAIN)
    # Within a string there is an edge anyway; at its ends it is one of a word, unless a sign stands there.
    before = " " if string.startswith(_EDGE) and not inner.startswith(" ") else ""
    after = " " if string.endswith(_EDGE) and not inner.endswith(" ") else ""
    words = f"{before}{inner}{after}".split(" ")
    for place, word in enumerate(words):
        if word:
            yield f"{' ' * (place > 0)}{word}{' ' * (place < len(words) - 1)}"[:_LONGEST_PIECE]


@cache
def _piece_commonness(piece: str) -> float:
    word = piece.strip(" ")
    edges = len(piece) - len(word)
    if word in _COMMON_SIGNS:
        return _OF_SIGN
    if word in STOP_WORDS:
        return _OF_STOP_WORD
    return _OF_LENGTH[min(len(word), len(_OF_LENGTH) - 1)] / (1 + edges)


def _commonness(pieces: Pieces) -> float:
    return fsum(map(_piece_commonness, pieces))


def split_by_commonness(pattern: str, flags: int) -> list[str]:
    """Return a pattern in two: the alternatives that need a rare word, and the others, which are searched for in most
    texts; or alone, if it has no such alternatives. A text matches it if it matches one of these."""
    rare: list[str] = []
    common: list[str] = []
    for alternative in _alternatives(pattern):
        sets = required_pieces(alternative, flags)
        (rare if sets and _commonness(sets[0]) < _RARE else common).append(alternative)
    return ["|".join(rare), "|".join(common)] if rare and common else [pattern]


def _alternatives(pattern: str) -> list[str]:
    """Return the alternatives of a pattern, also those within a group that is all of it, but for edges of words."""
    cuts, groups = _outer_parts(pattern)
    if cuts:
        parts = [pattern[start:end] for start, end in zip((0, *(cut + 1 for cut in cuts)), (*cuts, None), strict=True)]
        return [alternative for part in parts for alternative in _alternatives(part)]
    if len(groups) == 1:
        start, end = groups[0]
        before, inner, after = pattern[:start], pattern[start + 1 : end], pattern[end + 1 :]
        if before in ("", r"\b", "^") and after in ("", r"\b") and inner.startswith("?:"):
            return [f"{before}(?:{alternative}){after}" for alternative in _alternatives(inner[2:])]
    return [pattern]


def _outer_parts(pattern: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Return where a pattern has `|` outside of groups, and start and end of these groups."""
    cuts, groups, open_at, at = [], [], list[int](), 0
    while at < len(pattern):
        match pattern[at]:
            case "\\":
                at += 1
            case "[":
                # A bracket at the start of a set of characters is one of them.
                at = pattern.index("]", at + (3 if pattern[at + 1] == "^" else 2))
                while _is_escaped(pattern, at):
                    at = pattern.index("]", at + 1)
            case "(":
                open_at.append(at)
            case ")":
                start = open_at.pop()
                if not open_at:
                    groups.append((start, at))
            case "|" if not open_at:
                cuts.append(at)
        at += 1
    return cuts, groups


def _is_escaped(pattern: str, at: int) -> bool:
    return (at - len(pattern[:at].rstrip("\\"))) % 2 == 1
