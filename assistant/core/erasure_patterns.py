"""Regular expressions that find text to be erased, in all its spellings, in strings and bytes. Pure.

A phrase matches in any case, across white space, line breaks and quote marks between its words (in scripts without
spaces, between its characters), composed or decomposed, and escaped any number of times as in JSON and URLs. A single
word matches only at the start of a word, digits only as a whole number; a number also matches with separators between
its digits.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property
from urllib.parse import quote

from assistant.core.dataclass import dataclass
from assistant.core.erasure_values import digits_of, is_number, national_number
from assistant.core.text import lazy_regex

SPACELESS = lazy_regex("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9f]")
"""A character of a script without spaces between words."""
# Alternatives, not a character class: the pattern is also encoded to search bytes.
_SPACE = (
    r"(?:\s|"
    + "\u00a0|\u2009|\u202f|\u2028|\u3000"
    + r"|\\{1,8}[nrtf]|\\{1,8}u00(?:0[9a-d]|20|a0)|\\{1,8}u(?:3000|2028)|%(?:20|0a|09)|\+)"
)
_SIGN_BETWEEN = rf"(?:{_SPACE}|[-./()])"
# The characters of `_SIGN_BETWEEN`, split up: removing single bytes is far cheaper than a pattern.
_SIGN_BYTES = b" \t\n\r\f\v+-./()"
_BEGIN_LONG_SIGNS = (b"\\", b"%", b"\xc2\xa0", b"\xe2\x80", b"\xe3\x80\x80")
_LONG_SIGNS = re.compile(
    rb"\\\\{0,7}(?:[nrtf]|u00(?:0[9a-d]|20|a0)|u(?:3000|2028))|%(?:20|0a|09)"
    rb"|\xc2\xa0|\xe2\x80\x89|\xe2\x80\xaf|\xe2\x80\xa8|\xe3\x80\x80"
)
_GAP = rf"{_SPACE}+(?:[>|]{_SPACE}*)*"
_LONG_VALUE = 8
_HEX = frozenset(b"0123456789abcdef")
_HEX_AND_DASH = _HEX | {ord("-")}
_DIGEST_LENGTH = 32  # of the shortest digest, salt or UUID that is stored, in hexadecimal digits
_LIKELY_IN_DIGEST = 12  # shorter ones are in the digests of a long log by chance
_ANCHOR = lazy_regex(r"[a-z0-9]+")
_HIDING = frozenset({"Cc", "Cf", "Zl", "Zp"})


@dataclass(frozen=True)
class WordForm:
    """One way to write a phrase or a value."""

    source: str  # the phrase or value
    anchor: bytes  # lower-case letters or digits that every copy contains; used as a cheap pre-check
    text_pattern: str
    data_pattern: str
    is_grouped: bool = False  # the anchor may be interrupted by separators (`without_signs`)
    is_name: bool = False  # a plain word; in bytes it matches only in its original case

    @cached_property
    def text(self) -> re.Pattern[str]:
        return re.compile(self.text_pattern, re.IGNORECASE)

    @cached_property
    def _data(self) -> re.Pattern[bytes]:
        return re.compile(self.data_pattern.encode(), 0 if self.is_name else re.IGNORECASE)

    def find_data(self, data: bytes, *, in_any_case: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the spans of all matches in bytes; `in_any_case`: also of names in another case, as in text. Short
        hexadecimal text ("cafe", "BEF50") is found by chance in the digests of records: these are no copies of it."""
        pattern = self._data_in_any_case if in_any_case else self._data
        spans = (match.span() for match in pattern.finditer(data))
        return (span for span in spans if not is_in_digest(data, *span)) if self._is_short_hex else spans

    @cached_property
    def _is_short_hex(self) -> bool:
        signs = [char for char in self.source.lower() if char.isalnum()]
        return len(signs) < _LIKELY_IN_DIGEST and _HEX.issuperset("".join(signs).encode())

    @cached_property
    def _data_in_any_case(self) -> re.Pattern[bytes]:
        return re.compile(self.data_pattern.encode(), re.IGNORECASE)


def is_in_digest(data: bytes, start: int, end: int) -> bool:
    """Return whether a span is a part of a digest, a salt or a UUID: lower-case hexadecimal digits, with dashes in
    between, and more of them than the span has."""
    first, last = max(0, start - 2 * _DIGEST_LENGTH), min(len(data), end + 2 * _DIGEST_LENGTH)
    if not set(data[start:end]) <= _HEX_AND_DASH:
        return False
    left, right = start, end
    while left > first and data[left - 1] in _HEX_AND_DASH:
        left -= 1
    while right < last and data[right] in _HEX_AND_DASH:
        right += 1
    return sum(byte in _HEX for byte in data[left:right]) >= _DIGEST_LENGTH


def without_signs(lowered: bytes) -> bytes:
    """Remove the characters that may separate digits from lower-case UTF-8."""
    if any(begin in lowered for begin in _BEGIN_LONG_SIGNS):
        lowered = _LONG_SIGNS.sub(b"", lowered)
    return lowered.translate(None, _SIGN_BYTES)


def list_forms(phrases: Sequence[str], values: Sequence[str]) -> list[WordForm]:
    """Return every form of the phrases and values, the longest first."""
    written: dict[str, WordForm] = {}
    for text in sorted({*phrases, *values}, key=lambda text: (-len(text), text)):
        is_value = text in values and text not in phrases
        forms = _number_forms(text) if _is_grouped(text, is_value) else _word_forms(text, is_value)
        for form in forms:
            written.setdefault(form.text_pattern, form)
    return list(written.values())


def _is_grouped(text: str, is_value: bool) -> bool:
    return is_number(text) and (is_value or len(digits_of(text)) >= _LONG_VALUE)


def _number_forms(number: str) -> Iterator[WordForm]:
    """Forms with and without separators; for a telephone number, with and without the country code."""
    for signs in number_spellings(number):
        pattern = rf"{_SIGN_BETWEEN}{{0,3}}".join(signs)
        is_short = signs.isdecimal() and len(signs) < _LONG_VALUE
        text, data = _as_whole_number(pattern) if is_short else (pattern, pattern)
        yield WordForm(number, signs.lower().encode(), text, data, is_grouped=True)


def number_spellings(number: str) -> list[str]:
    """Return its digits (and letters, for account numbers) as given, and without the country code."""
    signs = "".join(char for char in number if char.isalnum())
    return list(filter(None, dict.fromkeys((signs, national_number(number)))))


def _as_whole_number(pattern: str) -> tuple[str, str]:
    """Match only a whole number: bytes contain adjacent columns, times and counters."""
    before = r"(?:(?<![\w:+\[-])|(?<=\\[nrt]))(?<!\d\.)"
    return rf"(?<!\w){pattern}(?!\w)", rf"{before}{pattern}(?!\w|[.:]\d)"


def _word_forms(text: str, is_value: bool) -> Iterator[WordForm]:
    # The original too: its combining marks may be in neither canonical order.
    for form in (unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text), text):
        if pattern := _pattern(form):
            is_name, data = is_value and form.isalpha(), pattern
            if is_name:
                # A plain word matches only as a whole word.
                pattern, data = rf"(?<!\w){pattern}(?!\w)", rf"(?:(?<!\w)|(?<=\\[nrt])){pattern}(?!\w)"
            elif form.isdecimal():
                pattern = data = rf"(?<!\d){pattern}(?!\d)"
            elif form.isalpha() and not SPACELESS.match(form):
                # Matches "Annas", not "Joanna".
                pattern, data = rf"(?<![^\W\d_]){pattern}", rf"(?:(?<![^\W\d_])|(?<=\\[nrt])){pattern}"
            yield WordForm(text, _anchor(text), pattern, data, is_name=is_name)


def _anchor(text: str) -> bytes:
    return max(_ANCHOR.findall(unicodedata.normalize("NFC", text).lower()), key=len, default="").encode()


def _pattern(phrase: str) -> str:
    return _GAP.join(_word(word) for word in phrase.split())


def _word(word: str) -> str:
    parts, before = [], ""
    for char in word:
        if before and SPACELESS.match(before) and SPACELESS.match(char):
            parts.append(f"(?:{_GAP})?")
        parts.append(_char(char))
        before = char
    return "".join(parts)


def _char(char: str) -> str:
    if char == "\\":
        return r"\\+"
    if char in "\"'/":
        return rf"(?:\\*{char}|\\+u00{ord(char):02x}|%{ord(char):02x})"
    if unicodedata.category(char) in _HIDING:
        # Files show U+FFFD in place of control characters.
        return f"(?:{re.escape(char)}|\ufffd|{_escaped(char)})"
    if char.isascii():
        return re.escape(char) if char.isalnum() else f"(?:{re.escape(char)}|%{ord(char):02x})"
    cases = dict.fromkeys((char, char.lower(), char.upper(), char.casefold()))
    # One text may mix both normal forms.
    forms = dict.fromkeys((*cases, *(unicodedata.normalize("NFD", case) for case in cases)))
    return f"(?:{'|'.join([*map(re.escape, forms), *map(_escaped, forms), *map(quote, forms)])})"


def _escaped(text: str) -> str:
    """The text as JSON escapes it in ASCII."""
    units = text.encode("utf-16-be")
    return "".join(rf"\\+u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
