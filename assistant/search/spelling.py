"""Finds the intended word for a misspelt one: words that sound alike or differ by one typing error. Pure.

A known word is never replaced, nor are short words, numbers and words with digits. Sounds are approximate on purpose:
the same for what English, German, French and Spanish spell in several ways ("spair" and "spare", "yave" and "llave"),
and only used to choose among known words.
"""

from __future__ import annotations

import difflib
import re
from array import array
from collections.abc import Iterable, Sequence

from assistant.core.text import fold_text, lazy_regex

_SHORTEST = 4
_SHORTEST_SOUND = 3
_SHORTEST_SLIP = 5
# Maximum number of letters in only one of two words: a typing error makes two, a different spelling of a sound a few
# more.
_MOST_OTHER_LETTERS = 4
_MANY = 200
# Applied in this order; then double letters become one.
_SOUNDS = (
    (lazy_regex(r"ph"), "f"),
    (lazy_regex(r"sch|sh|ch"), "x"),
    (lazy_regex(r"qu?|ck|c(?![eiy])"), "k"),
    (lazy_regex(r"g(?=[ei])"), "j"),
    (lazy_regex(r"ll(?=[aeiou])"), "y"),
    (lazy_regex(r"[cz]|ß|ts"), "s"),
    (lazy_regex(r"ai|ei|ay|ey|ae|ea"), "e"),
    (lazy_regex(r"ie|ee"), "i"),
    (lazy_regex(r"au|ou|eau|oe|œ"), "o"),
    (lazy_regex(r"[wv]"), "b"),
    (lazy_regex(r"(?<=\w)y"), "i"),
    (lazy_regex(r"h"), ""),
    (lazy_regex(r"(\w)\1+"), r"\1"),
    (lazy_regex(r"(?<=\w\w\w)e?s?$", re.MULTILINE), ""),
)


_SHORTEST_CONSONANT_WORD = 3
_VOWELS = lazy_regex(r"[aeiouyäöü]")
_DOUBLES = lazy_regex(r"(\w)\1+")
_FIRST_VOWELS = lazy_regex(r"[aeiouyäöü]+")

# Letters that may begin the same word; h is silent.
_BEGINNINGS = {letter: group[0] for group in ("ckqsxz", "bvwfp", "jgyl", "aeiou") for letter in group}


_SOUNDS_KEPT = 65_536
_sounds: dict[str, str] = {}


def sound_of(word: str) -> str:
    """Return approximately how a word sounds, in any of the four languages."""
    return sounds_of([word])[0]


def sounds_of(words: Sequence[str]) -> list[str]:
    """Return how each of these words of letters sounds: many together take much less time than one by one."""
    if len(_sounds) > _SOUNDS_KEPT:
        _sounds.clear()
    sounds = {word: _sounds.get(word) for word in words}
    missing = [word for word, sound in sounds.items() if sound is None]
    if missing:
        joined = fold_text("\n".join(missing))
        for pattern, written in _SOUNDS:
            joined = pattern.sub(written, joined)
        made = dict(zip(missing, joined.split("\n"), strict=True))
        _sounds.update(made)
        sounds |= made
    return [sounds[word] or "" for word in words]


class KnownWords:
    """Words that may be meant, indexed by beginning and length, so that few are compared."""

    def __init__(self, words: Iterable[str]) -> None:
        self._groups: dict[tuple[str, int], _Group] = {}
        self.add(words)

    def add(self, words: Iterable[str]) -> None:
        for word in words:
            self._groups.setdefault((_beginning(word), len(word)), _Group()).words.append(word)

    def nearest(self, word: str, most: int) -> list[str]:
        """Return at most `most` words that may be meant by an unknown one, likeliest first."""
        if not _may_be_slip(word):
            return []
        own, letters, beginning = sound_of(word), _letters(word), _beginning(word)
        others = [
            other
            for length in range(len(word) - 2, len(word) + 3)
            if (group := self._groups.get((beginning, length))) is not None
            for other in group.with_letters(letters)
            if _may_be_slip(other)
        ]
        alike = [
            other for other, sound in zip(others, sounds_of(others), strict=True) if _is_alike(word, own, other, sound)
        ]
        alike.sort(key=lambda other: (difflib.SequenceMatcher(None, word, other).ratio(), other), reverse=True)
        return alike[:most]


class _Group:
    """Words with the letters of each as a bit mask, computed when a misspelt word is compared with them."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._masks = array("Q")

    def with_letters(self, letters: int) -> Iterable[str]:
        """Return the words that have most of these letters and few others."""
        words, masks = self.words, self._masks
        masks.extend(map(_letters, words[len(masks) :]))
        if len(masks) >= _MANY:
            # Slow to import; whoever searches so many words has it.
            import numpy as np

            others = np.bitwise_count(np.frombuffer(masks, np.uint64) ^ np.uint64(letters))
            return [words[i] for i in np.flatnonzero(others <= _MOST_OTHER_LETTERS).tolist()]
        return [words[i] for i, mask in enumerate(masks) if (letters ^ mask).bit_count() <= _MOST_OTHER_LETTERS]


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the likeliest intended word; "" for none."""
    return next(iter(KnownWords(known).nearest(word, 1)), "")


def likely_word(word: str, known: Iterable[str]) -> str:
    """Return the only word with the same consonants, whatever its vowels ("kee" for "key", "dantist" for "dentist");
    "" for none and for several. Weaker evidence than `nearest_word`: it holds only where nothing else is found, and
    whoever uses it says so."""
    if len(word) < _SHORTEST_CONSONANT_WORD or not word.isalpha():
        return ""
    alike = {other for other in known if other != word and _has_same_consonants(word, other)}
    return next(iter(alike)) if len(alike) == 1 else ""


def _has_same_consonants(word: str, other: str) -> bool:
    if not other.isalpha() or len(other) < _SHORTEST_CONSONANT_WORD or abs(len(word) - len(other)) > 2:
        return False
    if _beginning(word) != _beginning(other):
        return False
    for one, two in ((word, other), (sound_of(word), sound_of(other))):
        own, theirs = (_VOWELS.sub("", _DOUBLES.sub(r"\1", text)) for text in (one, two))
        if own and own == theirs and (len(own) > 1 or _is_one_edit(word, other)):
            return True
    return False


def _letters(word: str) -> int:
    """Return a bit mask of a word's letters, approximately."""
    bits = 0
    for letter in set(word):
        bits |= 1 << (ord(letter) & 31)
    return bits


def _beginning(word: str) -> str:
    letter = word[1:2] if word[:1] == "h" else word[:1]
    return _BEGINNINGS.get(letter, letter)


def _may_be_slip(word: str) -> bool:
    return len(word) >= _SHORTEST and word.isalpha()


def _is_alike(word: str, own: str, other: str, sound: str) -> bool:
    """`own` and `sound`: how they sound."""
    if own == sound:
        return len(own) >= _SHORTEST_SOUND
    if min(len(word), len(other)) < _SHORTEST_SLIP:
        return False
    return (_is_one_edit(word, other) or _is_one_edit(own, sound)) and not _has_other_vowel(word, other)


def is_one_slip(one: str, other: str) -> bool:
    """Return whether they differ by one inserted, missing, replaced or moved letter, and have the same first vowel:
    that is heard clearly, so that another one makes another word ("lunch" and "launch")."""
    return _is_one_edit(one, other) and not _has_other_vowel(one, other)


def _is_one_edit(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    start = 0
    while start < len(short) and short[start] == long[start]:
        start += 1
    if len(short) != len(long):
        return short[start:] == long[start + 1 :]
    return short[start + 1 :] == long[start + 1 :] or (
        short[start + 2 :] == long[start + 2 :] and short[start : start + 2] == long[start : start + 2][::-1]
    )


def _has_other_vowel(one: str, other: str) -> bool:
    """Return whether the first vowels differ, in letter and sound, and not because two letters were swapped."""
    first, second = _FIRST_VOWELS.search(one), _FIRST_VOWELS.search(other)
    if first is None or second is None or first[0][0] == second[0][0]:
        return False
    return sound_of(first[0]) != sound_of(second[0]) and sorted(one) != sorted(other)
