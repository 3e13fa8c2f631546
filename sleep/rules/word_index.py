"""Tells without a regular expression that a pattern of the rules has no match in a text, from the words that each of
its matches contains (`required_words`): of some two hundred patterns that are searched for in a sentence few have a
match.

A text is looked at word by word, and it is remembered which pieces a word has. A text is rather searched in vain than
passed over, so that the result is the same with and without the index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from sleep.rules.required_words import PLAIN, Needs, Pieces, find_needs, fingerprint
from sleep.rules.sentence_cache import call_when_forgotten

Search = Callable[..., re.Match[str] | None]

# What is remembered, until it is forgotten with the sentences.
_MOST_TEXTS, _LONGEST_TEXT = 256, 1_000
_MOST_WORDS, _LONGEST_WORD = 16_384, 40
_STORED = Path(__file__).with_name("data") / "required_words.json"


class WordIndex:
    """Which sets of pieces a text has, as the bits of a number. With more patterns there is another index, so that
    threads may go on with this one."""

    def __init__(self, bits: Mapping[str, int], sets: int) -> None:
        """`bits`: by piece, which of the `sets` have it; 0 for what a piece begins with."""
        self._bits = bits
        self._sets = sets
        self._of_word: dict[str, int] = {}
        self.of_text: dict[str, int] = {}  # what `find` has found lately

    def extended(self, needs: Iterable[list[Pieces]]) -> tuple[WordIndex, list[int]]:
        """Return an index that knows these patterns, too, by what each needs, and the bits that each needs."""
        bits, sets, needed = dict(self._bits), self._sets, []
        for of_pattern in needs:
            first = sets
            for pieces in of_pattern:
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
        edged, found, bits = f" {word.translate(PLAIN)} ", 0, self._bits
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

    def add(self, needs: Iterable[list[Pieces]]) -> list[int]:
        """Return what each of these patterns needs, as `may_match` asks for it; 0 if nothing is known."""
        with self._extending:
            self.index, needed = self.index.extended(needs)
        return needed


_known = _Known()
call_when_forgotten(lambda: _known.index.forget())


@cache
def _stored_needs() -> Mapping[str, list[list[Any]]]:
    """What `make docs` has found of the patterns of the rules, by fingerprint."""
    try:
        needs: Mapping[str, list[list[Any]]] = json.loads(_STORED.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return needs


def render_needs(patterns: Iterable[re.Pattern[str]]) -> str:
    """Return the content of the stored file: what each pattern needs, a line each; its source where it is not the
    pattern."""
    lines = {}
    for pattern in patterns:
        needs = [
            [source if source != pattern.pattern else "", [sorted(pieces) for pieces in sets]]
            for source, sets in find_needs(pattern)
        ]
        lines[fingerprint(pattern)] = json.dumps(needs, ensure_ascii=False)
    return "{\n" + ",\n".join(f'"{number}": {line}' for number, line in sorted(lines.items())) + "\n}\n"


def needs_of(pattern: re.Pattern[str]) -> Needs:
    """Return what a pattern needs: as stored, or found, which takes some milliseconds."""
    stored = _stored_needs().get(fingerprint(pattern))
    if stored is None:
        return find_needs(pattern)
    return [(source or pattern.pattern, [frozenset(pieces) for pieces in sets]) for source, sets in stored]


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
    search, first_needed, last_needed = _indexed_search(pattern)
    match, finditer, sub = pattern.match, pattern.finditer, pattern.sub
    known = _known

    def has_needed(found: int) -> bool:
        return found & first_needed == first_needed or found & last_needed == last_needed

    def may_match(text: str, limits: tuple[int, ...] = ()) -> bool:
        return has_needed(pieces_in(text)) or (len(limits) > 1 and limits[1] < len(text))

    def indexed_match(text: str, *limits: int) -> re.Match[str] | None:
        found = known.index.of_text.get(text)
        if found is None or limits or has_needed(found):
            return match(text, *limits)
        return None

    def indexed_finditer(text: str, *limits: int) -> Iterator[re.Match[str]]:
        return finditer(text, *limits) if may_match(text, limits) else iter(())

    def indexed_sub(replacement: Any, text: str, count: int = 0) -> str:
        return sub(replacement, text, count) if may_match(text) else text

    return {
        "search": search,
        "match": indexed_match,
        "finditer": indexed_finditer,
        "sub": indexed_sub,
    }


def indexed_search(pattern: re.Pattern[str]) -> Search:
    """Return the method `search`, as `indexed`. A long pattern without groups is searched for in two parts."""
    return _indexed_search(pattern)[0]


def _indexed_search(pattern: re.Pattern[str]) -> tuple[Search, int, int]:
    """Return the method `search`, and what each match of the pattern needs: the first, or the last."""
    needs = needs_of(pattern)
    whole = pattern.search
    parts = [whole] if len(needs) == 1 else [re.compile(source, pattern.flags).search for source, _ in needs]
    all_needed = _known.add(sets for _, sets in needs)
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

    return search, first_needed, last_needed
