"""Words of English by what they tell of a sentence: whose life it is about, how long it holds. Pure.

What always holds: a word may be in several classes; plurals and the possessive are found by their singular.
"""

from __future__ import annotations

from functools import cache

from assistant.core.text import lazy_regex
from sleep.rules.pattern_files import read_words

_NONE: frozenset[str] = frozenset()
_TOKEN = lazy_regex(r"[a-zà-ÿ]+(?:-[a-zà-ÿ]+)*(?:'[a-z]+)?")
_TAIL = lazy_regex(r"'(?:s|ll|d|ve|re)?$")


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, without numbers."""
    return _TOKEN.findall(text)


@cache
def _classes_by_word() -> dict[str, frozenset[str]]:
    classes: dict[str, frozenset[str]] = {}
    for name, words in read_words("classes").items():
        for word in words.split():
            classes[word] = classes.get(word, frozenset()) | {name}
    return classes


def classify_word(word: str) -> frozenset[str]:
    """What a word in lower case tells; empty where nothing is known of it."""
    by_word = _classes_by_word()
    word = _TAIL.sub("", word)
    found = by_word.get(word)
    if found is None and word.endswith("s") and len(word) > 3:
        found = by_word.get(word[:-1])
        if found is None and word.endswith("ies"):
            found = by_word.get(f"{word[:-3]}y")
        if found is None and word.endswith("es"):
            found = by_word.get(word[:-2])
    if found is None and "-" in word:
        return frozenset().union(*(classify_word(part) for part in word.split("-") if part))
    return found or _NONE
