"""Tells without a regular expression that a pattern of the rules has no match in a text, from the words that each of
its matches contains: of some two hundred patterns that are searched for in a sentence few have a match.

What a pattern needs is read from its parsed form: sets of pieces of words, of each of which a match contains at least
one. A text is looked at word by word, and it is remembered which pieces a word has. Where nothing is known, nothing is
needed: a text is rather searched in vain than passed over, so that the result is the same with and without the index.

Words and pieces are compared without case, and each digit is a 0. A blank in a piece is the edge of a word; other signs
are words of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product

# How Python itself reads a pattern; there is no public way to it.
from re import _parser as parser  # type: ignore[attr-defined]
from threading import Lock
from typing import Any

from assistant.core.text import STOP_WORDS
from sleep.rules.sentence_cache import call_when_forgotten

Pieces = frozenset[str]
Strings = frozenset[str]
Parts = Iterable[tuple[Any, Any]]
Search = Callable[..., re.Match[str] | None]

# What is remembered, until it is forgotten with the sentences.
_MOST_TEXTS, _LONGEST_TEXT = 256, 1_000
_MOST_WORDS, _LONGEST_WORD = 16_384, 40
# How many strings or characters a part of a pattern may stand for; more of them say little.
_MOST_STRINGS, _MOST_CHARACTERS = 64, 16
_MOST_SETS = 3
# An alternative with a rare word, and a pattern that is worth to be searched for in two parts, by its characters.
_RARE, _WORTH_A_SPLIT = 0.15, 300
_LONGEST_PIECE = 10
# About how often a clause has a piece with so many letters, a word that every text has, and such a sign.
_OF_LENGTH, _OF_STOP_WORD, _OF_SIGN = (1.0, 0.8, 0.5, 0.1, 0.02), 0.3, 0.5
_COMMON_SIGNS = frozenset(" .,'-")
# A set is left out if a clause has one of its pieces more often than this.
_TOO_COMMON = 6.0
# In the strings of a pattern: here a word begins or ends, or neither.
_EDGE = "\b"
_NOTHING: Strings = frozenset({""})


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


_PLAIN = _Plain()


# ----------------------------------------------------------------------------------------------- what a pattern needs


def required_pieces(pattern: str, flags: int = 0) -> list[Pieces]:
    """Return sets of pieces of words: a match has a piece of each of them. Empty if nothing is known."""
    _, sets = _of_parts(parser.parse(pattern, flags))
    useful = {pieces: often for pieces in sets if (often := _commonness(pieces)) < _TOO_COMMON}
    return sorted(useful, key=lambda pieces: (useful[pieces], sorted(pieces)))[:_MOST_SETS]


def _of_parts(parts: Parts) -> tuple[Strings | None, list[Pieces]]:
    """Return all strings that a part of a pattern can stand for, None if these are too many; and the sets of pieces."""
    strings: Strings | None = _NOTHING
    run = _NOTHING  # what the last parts stand for together
    sets: list[Pieces] = []
    for kind, value in parts:
        new, needed = _of_part(str(kind), value)
        sets += needed
        longer = None if new is None else _joined(run, new)
        if longer is None:
            sets += _pieces(run)
        run = longer or new or _NOTHING
        strings = None if strings is None or new is None else _joined(strings, new)
    return strings, [*sets, *_pieces(run)]


def _joined(first: Strings, second: Strings) -> Strings | None:
    if len(first) * len(second) > _MOST_STRINGS:
        return None
    return frozenset(map("".join, product(first, second)))


def _of_part(kind: str, value: Any) -> tuple[Strings | None, list[Pieces]]:
    match kind:
        case "LITERAL":
            return frozenset({chr(value)}), []
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
    inner = string.replace(_EDGE, "").translate(_PLAIN)
    # Within a string there is an edge anyway; at its ends it is one of a word, unless a sign stands there.
    before = " " if string.startswith(_EDGE) and not inner.startswith(" ") else ""
    after = " " if string.endswith(_EDGE) and not inner.endswith(" ") else ""
    words = f"{before}{inner}{after}".split(" ")
    for place, word in enumerate(words):
        if word:
            yield f"{' ' * (place > 0)}{word}{' ' * (place < len(words) - 1)}"[:_LONGEST_PIECE]


def _piece_commonness(piece: str) -> float:
    word = piece.strip(" ")
    edges = len(piece) - len(word)
    if word in _COMMON_SIGNS:
        return _OF_SIGN
    if word in STOP_WORDS:
        return _OF_STOP_WORD
    return _OF_LENGTH[min(len(word), len(_OF_LENGTH) - 1)] / (1 + edges)


def _commonness(pieces: Pieces) -> float:
    return sum(map(_piece_commonness, pieces))


def split_by_commonness(pattern: str, flags: int) -> list[str]:
    """Return a pattern in two: the alternatives that need a rare word, and the others, which are searched for in most
    texts; or alone, if it has no such alternatives. A text matches it if it matches one of these."""
    rare, common = [], []
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


# ------------------------------------------------------------------------------------------------- what a text has


class WordIndex:
    """Which sets of pieces a text has, as the bits of a number. With more patterns there is another index, so that
    threads may go on with this one."""

    def __init__(self, bits: Mapping[str, int], sets: int) -> None:
        """`bits`: by piece, which of the `sets` have it; 0 for what a piece begins with."""
        self._bits = bits
        self._sets = sets
        self._of_word: dict[str, int] = {}
        self.of_text: dict[str, int] = {}  # what `find` has found lately

    def extended(self, patterns: Iterable[tuple[str, int]]) -> tuple[WordIndex, list[int]]:
        """Return an index that knows these patterns, too (with their flags), and the bits that each needs."""
        bits, sets, needed = dict(self._bits), self._sets, []
        for pattern, flags in patterns:
            first = sets
            for pieces in required_pieces(pattern, flags):
                for piece in pieces:
                    for end in range(1, len(piece)):
                        bits.setdefault(piece[:end], 0)
                    bits[piece] = bits.get(piece, 0) | 1 << sets
                sets += 1
            needed.append((1 << sets) - (1 << first))
        return WordIndex(bits, sets), needed

    def find(self, text: str) -> int:
        """Return the bits of all sets of which the text has a piece."""
        found, of_word = 0, self._of_word
        for word in text.split():
            of_one = of_word.get(word)
            found |= self._look_at(word) if of_one is None else of_one
        if len(text) <= _LONGEST_TEXT:
            if len(self.of_text) >= _MOST_TEXTS:
                self.of_text.clear()
            self.of_text[text] = found
        return found

    def _look_at(self, word: str) -> int:
        """Return the bits of a word with the signs around it."""
        if len(word) > _LONGEST_WORD:
            return (1 << self._sets) - 1
        edged, found, bits = f" {word.translate(_PLAIN)} ", 0, self._bits
        ends = range(1, len(edged) + 1)
        for start in range(len(edged)):
            for end in ends[start:]:
                of_piece = bits.get(edged[start:end])
                if of_piece is None:
                    break
                found |= of_piece
        if len(self._of_word) >= _MOST_WORDS:
            self._of_word.clear()
        self._of_word[word] = found
        return found

    def forget(self) -> None:
        """Free what is remembered. Harmless while another thread uses it."""
        self.of_text.clear()
        self._of_word.clear()


class _Known:
    """The index of all patterns that are known so far."""

    def __init__(self) -> None:
        self.index = WordIndex({}, 0)
        self._extending = Lock()

    def add(self, patterns: Iterable[tuple[str, int]]) -> list[int]:
        """Return what each of these patterns needs, as `may_match` asks for it."""
        with self._extending:
            self.index, needed = self.index.extended(patterns)
        return needed


_known = _Known()
call_when_forgotten(lambda: _known.index.forget())


def add_patterns(patterns: Iterable[tuple[str, int]]) -> list[int]:
    """Take up patterns with their flags, which takes a millisecond each. Return what each of them needs, as `pieces_in`
    has it; 0 if nothing is known."""
    return _known.add(patterns)


def pieces_in(text: str) -> int:
    """Return what a text has, to compare it with what many patterns need: each bit of that must be in it."""
    index = _known.index
    found = index.of_text.get(text)
    return index.find(text) if found is None else found


def indexed(pattern: re.Pattern[str]) -> dict[str, Any]:
    """Return the methods of a pattern that need not look at a text without what is needed.

    - Where a search ends within the text (`endpos`), nothing is known: a word may end there that has no edge.
    - To match at one place takes no longer than to look at a text for the first time.
    """
    (needed,) = add_patterns([(pattern.pattern, pattern.flags)])
    match, finditer, sub = pattern.match, pattern.finditer, pattern.sub
    known = _known

    def may_match(text: str, limits: tuple[int, ...] = ()) -> bool:
        return pieces_in(text) & needed == needed or (len(limits) > 1 and limits[1] < len(text))

    def indexed_match(text: str, *limits: int) -> re.Match[str] | None:
        found = known.index.of_text.get(text)
        if found is None or found & needed == needed or limits:
            return match(text, *limits)
        return None

    def indexed_finditer(text: str, *limits: int) -> Iterator[re.Match[str]]:
        return finditer(text, *limits) if may_match(text, limits) else iter(())

    def indexed_sub(replacement: Any, text: str, count: int = 0) -> str:
        return sub(replacement, text, count) if may_match(text) else text

    return {
        "search": indexed_search(pattern),
        "match": indexed_match,
        "finditer": indexed_finditer,
        "sub": indexed_sub,
    }


def indexed_search(pattern: re.Pattern[str]) -> Search:
    """Return the method `search`, as `indexed`. A long pattern without groups is searched for in two parts."""
    sources = [pattern.pattern]
    if len(pattern.pattern) >= _WORTH_A_SPLIT and not pattern.groups:
        sources = split_by_commonness(pattern.pattern, pattern.flags)
    whole = pattern.search
    parts = [whole] if len(sources) == 1 else [re.compile(source, pattern.flags).search for source in sources]
    all_needed = add_patterns((source, pattern.flags) for source in sources)
    (first, first_needed), (last, last_needed) = ((parts[n], all_needed[n]) for n in (0, -1))

    def search(text: str, *limits: int) -> re.Match[str] | None:
        if limits:
            return whole(text, *limits)
        found = pieces_in(text)
        match = first(text) if found & first_needed == first_needed else None
        if first is last or found & last_needed != last_needed:
            return match
        other = last(text)
        # Which of two comes first is only known of the whole.
        return whole(text) if match is not None and other is not None else match or other

    return search
