"""Identifying values in text: numbers, names, identifiers, mail and web addresses, paths, quoted texts, dates, and
passwords. They identify a message even where the words around them differ. Whether other messages contain them too is
for the stores to check. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import date

from assistant.core.calendar import MONTHS, WEEKDAYS
from assistant.core.text import SPACELESS_RUN, STOP_WORDS, WORD, fold_text, lazy_regex
from assistant.core.time_names import MONTH_NAMES

MIN_LETTERS, MIN_SPACELESS_LETTERS = 4, 2
"""A text with fewer letters or digits (or characters of a script without spaces) is too short to search for."""
_LONGEST_VALUE = 120
_MOST_VALUES = 2000
_MOST_WORDS_OF_RUNS = 300
_ARTICLES = (
    "the my our his her der die das dem den mein meine meinem ein eine le la les mon ma mes un une el los mi mis su i"
)
_DETERMINERS = frozenset(_ARTICLES.split())
_MIN_GROUPED = 6
_MOST_WORDS_OF_A_SECRET = 8
_CALENDAR = frozenset((*MONTHS, *WEEKDAYS))

_WORD = r"[^\W\d_]+(?:['\u2019-][^\W\d_]+){0,5}"
_CAPITAL = r"[A-ZÀ-ÖØ-Þ][^\W\d_]+(?:['\u2019-][^\W\d_]+){0,5}"
_PARTICLE = r"(?:(?:van|von|der|den|de|del|della|di|da|du|des|la|le|los|las|zu|ten|ter|bin|al|y|of)\s)"
SENTENCES = lazy_regex(
    r"(?<=[.!?\u2026])(?<!\b[DMS]r\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bProf\.)(?<!\bSra\.)(?<!\b[A-Z]\.)"
    r"[\"')\]\u201d\u2019\u00bb]*\s+|\n+"
)
_QUOTED = lazy_regex(
    '"([^"\n]{4,})"|\u201c([^\u201c\u201d\n]{4,})\u201d|\u201e([^\u201e\u201c\u201d\n]{4,})[\u201c\u201d]'
    "|\u00ab\\s*+([^\u00ab\u00bb\n]{3,}[^\u00ab\u00bb\\s])\\s*+\u00bb"
    "|`([^`\n]{4,})`|(?<!\\w)'([^'\n]{4,})'(?!\\w)|\u2018([^\u2018\u2019\n]{4,})\u2019|\u300c([^\u300c\u300d\n]{2,})\u300d"
)
# JSON field names are quoted too, and occur in all JSON.
_FIELD_NAME = lazy_regex(r'(?<=[{,])\s{0,20}"\w{1,40}"(?=\s{0,20}:)')
_DIGIT_GROUPS = lazy_regex(r"(?<!\w)[+(]{0,2}\d+(?:(?:[ \u00a0\u202f./()-]|\) ){1,2}\d+)+(?!\w)")
_ACCOUNT = lazy_regex(r"\b[A-Z]{2}\d{2}(?:[ \u00a0]?[A-Z0-9]{2,4}){2,8}(?![A-Za-z0-9])")
_DATE = lazy_regex(
    rf"\b\d{{1,2}}(?:\.|st|nd|rd|th|er|\u00ba)?\s(?:(?:de|of)\s)?{_WORD}\.?,?(?:\s(?:de|del))?\s\d{{4}}\b"
    rf"|\b{_WORD}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}}\b"
)
_MONTH_NAMES = [lazy_regex(names) for names in MONTH_NAMES]
_DIALLED = lazy_regex(r"(?:\+|0)[\d \u00a0\u202f./()-]{7,24}")
_NOT_DIALLED = lazy_regex(r"[^\d+]")
# Country codes have one to three digits; the trunk prefix 0 is not dialled from abroad.
_PREFIX = lazy_regex(r"(?:\+|00)(?:1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|\d{3})0?|0")
_MIN_NATIONAL = 8
_PLACE = lazy_regex(
    rf"\b{_CAPITAL}(?:\s{_PARTICLE}{{0,4}}{_CAPITAL}){{0,8}}\s\d{{1,5}}[a-z]?\b"
    rf"|(?<![\d:.,])\b\d{{1,5}},?\s(?:{_WORD}\s){{0,3}}{_CAPITAL}(?:\s{_CAPITAL})*"
)
_NAMES = lazy_regex(rf"\b{_CAPITAL}(?:\s(?:{_PARTICLE}{{0,2}}){_CAPITAL})+")
_NAME = lazy_regex(rf"\b{_CAPITAL}")
_PARTS = lazy_regex(r"[\W_]+")
_OWN_DATE = lazy_regex(r"\b(\d{4})(?:-\d{2}(?:-\d{2}(?:[ T,]+[\d:. ]+)?)?)?")
_TOKEN = lazy_regex(r"\S+")
_EDGES = ".,;:!?()[]{}<>\"'`*_\u00ab\u00bb\u201e\u201c\u201d\u2018\u2019\u2026\u00bf\u00a1\u300c\u300d\u3002\u3001"
_SIGNS = lazy_regex(r"\w[@:\\_=+#$%&^~|]+\w|://|^[~/]?\w*/\w+/|\w\.\w|[a-zß-ÿ][A-Z]|\b(?:\w+-){3}\w")
_SECRET = lazy_regex(
    r"pass(?:word|phrase|code|wort)|\bpin\b|kennwort|losung|geheimwort|mot de passe|contraseña|\bclave|parole",
    re.IGNORECASE,
)
_LIKE_A_SECRET = lazy_regex(r"\bcode|\bkey\b|\blogin|secret|geheim|schlüssel|zugang|\bclé|motto", re.IGNORECASE)
_IS = lazy_regex(
    r"(?:\b(?:is|was|ist|war|lautet|heißt|est|es|était|era|becomes|reads)\b\s*(?:now\b|jetzt\b|maintenant\b|ahora\b)?"
    r"|[:=\u2192])\s*",
    re.IGNORECASE,
)
_NEXT_PART = lazy_regex(r"[,;]\s|\s(?:and|und|et|y|for|für|pour|para)\s", re.IGNORECASE)
_TIME = lazy_regex(r"\d{1,2}(?::\d{2}){1,2}(?:[ap]m)?|\d{1,2}(?:[ap]m|h|uhr)|\d+(?:st|nd|rd|th)", re.IGNORECASE)
_COUNTED = lazy_regex(r"(?<![\w#:/.-])\d+(?:[ \u00a0\u202f.,'\u2019]\d+)*(?![\w:/-])")
_YEAR = lazy_regex(r"(?:19|20)\d\d")
_FEWEST_DIGITS = 3
_WITHOUT_SIGNS = str.maketrans("", "", " \u00a0\u202f.,'\u2019")
_WINDOW = 4
_GERMAN = lazy_regex(
    r"\b(?:ist|und|nicht|mein|meine|meinem|meiner|der|das|ich|wir|auf|für|mit|bei|heißt)\b", re.IGNORECASE
)


def find_values(text: str) -> tuple[list[str], list[str]]:
    """Return the identifying values of a text: those that identify it anywhere, and weak ones that do so only in texts
    derived from it (runs of words, secrets in doubt, and nouns of a language that capitalises them all)."""
    own: dict[str, None] = {}
    weak: dict[str, None] = {}
    sentences = SENTENCES.split(text)
    # Values beyond the limit are dropped, so the most important come first.
    for is_own, value in (found for sentence in sentences for found in _secrets(sentence)):
        _keep(own if is_own else weak, [value])
    shaped = [value for line in text.splitlines() for value in _shaped_values(line)]
    _keep(own, sorted(shaped, key=lambda value: " " in value and not is_number(value)))
    for sentence in sentences:
        _keep(weak if _GERMAN.search(sentence) else own, _single_names(sentence))
    if len(text.split()) <= _MOST_WORDS_OF_RUNS:
        _keep(weak, _runs(text))
    own_values = list(own)[:_MOST_VALUES]
    return own_values, [value for value in weak if value not in own][:_MOST_VALUES]


def _keep(values: dict[str, None], found: Iterable[str]) -> None:
    values.update((value, None) for value in found if _is_long_enough(value))


def is_written_by_us(value: str, years: range) -> bool:
    """Return whether it is a date or year (within `years`) in the form in which our own texts have them."""
    rest = _OWN_DATE.sub(lambda match: "" if int(match[1]) in years else match[0], value)
    return rest != value and sum(map(str.isalnum, rest)) < MIN_LETTERS


def find_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, word) for what may identify a text even when paraphrased: words of some length, without case,
    accents and plural s; numbers except years; and overlapping windows of scripts without spaces."""
    for match in WORD.finditer(fold_text(text)):
        start, word = match.start(), match[0]
        if SPACELESS_RUN.match(word):
            length = min(_WINDOW, len(word))
            pieces = range(len(word) - length + 1) if length >= MIN_SPACELESS_LETTERS else ()
            yield from ((start + at, start + at + length, word[at : at + length]) for at in pieces)
        elif len(word) >= MIN_LETTERS and not word.isdecimal():
            yield start, match.end(), word[:-1] if word.endswith("s") and len(word) > MIN_LETTERS else word
    for match in _COUNTED.finditer(text):
        digits = digits_of(match[0])
        if len(digits) >= _FEWEST_DIGITS and not _YEAR.fullmatch(digits):
            yield *match.span(), digits


def may_have_words(text: str, words: Collection[str]) -> bool:
    """Return whether `find_words` may find one of `words`; a cheap pre-check."""
    folded = fold_text(text) if words else ""
    joined = folded.translate(_WITHOUT_SIGNS) if any(map(str.isdecimal, words)) else ""
    return any(word in (joined if word.isdecimal() else folded) for word in words)


def digits_of(value: str) -> str:
    return "".join(char for char in value if char.isdigit())


def is_number(value: str) -> bool:
    """Return whether it consists of digits in any grouping, or is an account number."""
    return not any(char.islower() for char in value) and len(digits_of(value)) * 2 > sum(map(str.isalnum, value))


def national_number(number: str) -> str:
    """Return the significant digits of a telephone number, the same from home and abroad; "" for other numbers."""
    if not _DIALLED.fullmatch(number):
        return ""
    national = _PREFIX.sub("", _NOT_DIALLED.sub("", number), count=1)
    return national if len(national) >= _MIN_NATIONAL else ""


def find_days(text: str) -> list[str]:
    """Return full dates written in words, in the calendar's four languages, as ISO dates."""
    days = []
    for match in _DATE.finditer(text):
        numbers = [int(number) for number in re.findall(r"\d+", match[0])]
        names = [number for word in re.findall(_WORD, match[0]) if (number := _month(word))]
        if len(numbers) == 2 and len(names) == 1:
            with suppress(ValueError):
                days.append(date(numbers[1], names[0], numbers[0]).isoformat())
    return days


def _month(word: str) -> int:
    folded = fold_text(word)
    return next((number for number, names in enumerate(_MONTH_NAMES, 1) if names.fullmatch(folded)), 0)


def value_kind(value: str) -> str:
    """Return roughly what kind of value it is."""
    if is_number(value):
        return "number"
    if "@" in value or "/" in value or any(char.isdigit() for char in value):
        return "identifier"
    return "name" if " " not in value else "phrase"


def _shaped_values(line: str) -> Iterator[str]:
    """Values recognised by their form."""
    for match in _QUOTED.finditer(_FIELD_NAME.sub(" ", line)):
        yield next(filter(None, match.groups())).strip()
    for pattern in (_DATE, _PLACE):
        yield from (match[0] for match in pattern.finditer(line) if not _is_of_the_calendar(match[0].split()[-1]))
    for match in _NAMES.finditer(line):
        words = match[0].split()
        if len(words) > 2 or (words[0].lower() not in _DETERMINERS and not _is_of_the_calendar(words[-1])):
            yield match[0]
    for pattern in (_ACCOUNT, _DIGIT_GROUPS):
        for match in pattern.finditer(line):
            if len(digits_of(match[0])) >= _MIN_GROUPED:
                yield match[0].strip()
                # Parts of a number are not values of their own.
                line = line.replace(match[0], " " * len(match[0]))
    for match in _TOKEN.finditer(line):
        yield from _identifiers(match[0].strip(_EDGES))


def _identifiers(token: str) -> Iterator[str]:
    """Yield a token that is not a plain word (contains digits, signs or inner capitals), and such parts of it."""
    digits = len(digits_of(token))
    if _TIME.fullmatch(token) or not (digits or _SIGNS.search(token)):
        return
    if not any(map(str.isalpha, token)) and digits < (MIN_LETTERS if token.isdecimal() else _MIN_GROUPED):
        return
    yield token
    for part in _PARTS.split(token):
        if part != token and len(part) > MIN_LETTERS and any(map(str.isdigit, part)) and not part.isdecimal():
            yield part


def _secrets(sentence: str) -> Iterator[tuple[bool, str]]:
    """Yield the values that a sentence gives for a password or the like, and whether each is strong."""
    is_own = bool(_SECRET.search(sentence))
    if not is_own and not _LIKE_A_SECRET.search(sentence):
        return
    for found in _IS.finditer(sentence):
        rest = sentence[found.end() :].strip().strip(_EDGES)
        for value in dict.fromkeys((rest, _NEXT_PART.split(rest)[0].strip(_EDGES))):
            words = value.split()
            if words and len(words) <= _MOST_WORDS_OF_A_SECRET and not {word.lower() for word in words} <= STOP_WORDS:
                yield is_own or len(words) > 1, value


def _single_names(sentence: str) -> Iterator[str]:
    """Capitalised words after the first word of a sentence."""
    first = True
    for match in _TOKEN.finditer(sentence):
        word = match[0].strip(_EDGES)
        if not word:
            continue
        name = _NAME.fullmatch(word)
        if not first and name is not None and not _is_of_the_calendar(word) and not (word.isupper() and len(word) < 6):
            yield name[0]
        first = False


def _runs(text: str) -> Iterator[str]:
    """Runs of three words, two of them significant."""
    for sentence in SENTENCES.split(text):
        words = [match for match in _TOKEN.finditer(sentence) if match[0].strip(_EDGES)]
        for run in zip(words, words[1:], words[2:], strict=False):
            bare = [match[0].strip(_EDGES) for match in run]
            if sum(len(word) >= MIN_LETTERS and word.lower() not in STOP_WORDS for word in bare) >= 2:
                yield sentence[run[0].start() : run[-1].end()].strip(_EDGES)


def _is_of_the_calendar(text: str) -> bool:
    return all(word.lower() in _CALENDAR for word in text.split())


def _is_long_enough(value: str) -> bool:
    letters = sum(map(str.isalnum, value))
    spaceless = sum(char > "\u2e7f" for char in value)
    return len(value) <= _LONGEST_VALUE and (letters >= MIN_LETTERS or spaceless >= MIN_SPACELESS_LETTERS)
