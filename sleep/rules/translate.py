"""Translates everyday words of German, French or Spanish to English, word by word, so that the rules can compare
statements in different languages. Pure.

The result is only used for comparison and never shown. Names, numbers and other words are unchanged; so is a text that
is not clearly in one of these languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from assistant.core.text import fold_text, lazy_regex
from sleep.rules.pattern_files import load_pattern, read_words
from sleep.rules.sentence_cache import IN_A_TEXT, WITHIN_A_SENTENCE, cached_by_sentence

_LANGUAGES = ("de", "fr", "es")
_TOKEN = lazy_regex(r"\b(?:[cdjlmnst]|qu)['’](?=\w)|\w+(?:-\w+)*", re.IGNORECASE)
_LONGEST = 1_500
_MOST_JOINED = 4
# Letters that join two words in a German compound.
_JOINTS = ("", "s", "n", "es", "en")
_SHORTEST_PART = 3
_LEAST_SHARE = 0.3
_O_CLOCK = load_pattern("translations", "o_clock")
_LATE_NOW = load_pattern("translations", "late_now")
_NO_LONGER = load_pattern("translations", "no_longer")
_ON_DAY = load_pattern("translations", "on_day")
_NEEDLESS_OF = load_pattern("translations", "needless_of")
_OWNED = load_pattern("translations", "owned")


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    """Return the English words by language."""
    lines = read_words("small", "translations") | read_words("everyday", "translations")
    tables: dict[str, dict[str, str]] = {language: {} for language in _LANGUAGES}
    for english, line in lines.items():
        for language, words in zip(_LANGUAGES, line.split("|"), strict=True):
            for word in words.split():
                tables[language].setdefault(word.replace("_", " "), english.replace("_", " "))
    for kind in ("days", "months"):
        for words in read_words(kind).values():
            english, *others = words.split()
            for language, word in ((language, word) for language in _LANGUAGES for word in others if len(word) > 3):
                tables[language].setdefault(word, english)
    return tables


@cache
def _longest_from(language: str) -> Mapping[str, int]:
    """Return, by the first word of what is translated together, how many words that takes at most."""
    longest: dict[str, int] = {}
    for words in _tables()[language]:
        first, *others = words.split(" ")
        longest[first] = max(longest.get(first, 0), min(1 + len(others), _MOST_JOINED))
    return longest


@cache
def _english_words() -> frozenset[str]:
    targets = {part for table in _tables().values() for english in table.values() for part in english.split()}
    return frozenset(targets | set(read_words("language_words")["en"].split()) | {"at", "no", "june", "july"})


@cache
def other_words(english: str) -> tuple[str, ...]:
    """Return the words of the other languages for an everyday word."""
    words = (word for table in _tables().values() for word, meaning in table.items() if meaning == english)
    return tuple(dict.fromkeys(word for word in words if " " not in word))


@cached_by_sentence(WITHIN_A_SENTENCE)
def to_english(text: str) -> str:
    """Translate the first 1,500 characters; an English text, or one in an unknown language, is returned unchanged."""
    language = _find_language(text)
    return _translate(text, language) if language else text


def find_original(english: str, text: str) -> str:
    """Return the words of a text that `to_english` turns into these; "" if there are none."""
    language = "" if english in text else _find_language(text)
    if not language:
        return english if english in text else ""
    tokens, most = _tokens(text), len(english.split()) + _MOST_JOINED
    for place, (start, _, _) in enumerate(tokens):
        for _, end, _ in tokens[place : place + most]:
            if _translate(text[start:end], language) == english:
                return text[start:end]
    return ""


def _tokens(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and plain form of the words."""
    return [(match.start(), match.end(), _plain(match[0])) for match in _TOKEN.finditer(text[:_LONGEST])]


def _find_language(text: str) -> str:
    """Return the language of a text; "" for English and unknown ones."""
    words = [word for _, _, word in _tokens(text)]
    fewest = max(1 + sum(word in _english_words() for word in words), _LEAST_SHARE * len(words))
    if all(sum(_may_be_known(word, name) for word in words) < fewest for name in _LANGUAGES):
        return ""
    known = {name: sum(count for _, count, _ in _meanings(name, words)) for name in _LANGUAGES}
    language = max(known, key=known.__getitem__)
    return language if known[language] >= fewest else ""


def _may_be_known(word: str, language: str) -> bool:
    """Return whether a word may be part of what is known in this language."""
    return word in _parts_of_known(language) or (language == "de" and _of_german(word) is not None)


@cache
def _parts_of_known(language: str) -> frozenset[str]:
    return frozenset(part for words in _tables()[language] for part in words.split(" "))


def _translate(text: str, language: str) -> str:
    tokens = _tokens(text)
    words = [word for _, _, word in tokens]
    parts, end = [], 0
    for place, count, english in _meanings(language, words):
        start = tokens[place][0]
        parts += [text[end:start], english]
        end = tokens[place + count - 1][1]
        parts += [" "] if words[place + count - 1].endswith("'") else []
    plain = _O_CLOCK.sub(lambda match: f"{match[1]}:{match[2] or '00'}", "".join([*parts, text[end:]]))
    plain = _NO_LONGER.sub(lambda match: f"no longer {match['before'] or match['after'] or match['french']}", plain)
    plain = _ON_DAY.sub("on ", _NEEDLESS_OF.sub(r"\1 ", _LATE_NOW.sub(r"now \1", plain)))
    return _OWNED.sub(r"\g<whose>'s \g<thing>", plain)


def _plain(word: str) -> str:
    return fold_text(word).replace("’", "'").replace("ß", "ss").replace("œ", "oe")


def _meanings(language: str, words: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield position, number of words, and English of known words."""
    table, longest, place = _tables()[language], _longest_from(language), 0
    while place < len(words):
        for count in range(min(longest.get(words[place], 1), len(words) - place), 0, -1):
            english = table.get(" ".join(words[place : place + count]))
            if english is None and count == 1 and language == "de":
                english = _of_german(words[place])
            if english is not None:
                yield place, count, english
                place += count
                break
        else:
            place += 1


@cached_by_sentence(IN_A_TEXT)
def _of_german(word: str) -> str | None:
    """Return the English of a genitive ("Bruders"), or of a compound of two everyday words ("Kellercode")."""
    table = _tables()["de"]
    genitive = next((table[word.removesuffix(end)] for end in ("es", "s") if word.removesuffix(end) in table), None)
    if genitive is not None or len(word) < 2 * _SHORTEST_PART:
        return genitive
    for cut in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
        first = next(
            (word[:cut].removesuffix(joint) for joint in _JOINTS if word[:cut].removesuffix(joint) in table), ""
        )
        if first and word[cut:] in table:
            return f"{table[first]} {table[word[cut:]]}"
    return None
