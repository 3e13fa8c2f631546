"""The ways in which words that are to be erased are written, as regular expressions for texts and for bytes. Pure.

A phrase is found in any case, across any white space, line breaks and quote marks between its words (within a script
without spaces, between its characters), in composed and decomposed form, and as JSON and addresses escape it, however
often; one word only where a word begins, and digits alone as a whole number. A number is found with other signs between
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
"""A character of a script that has no spaces between words."""
# Alternatives, never a class: the same pattern is encoded to search bytes.
_SPACE = (
    r"(?:\s|"
    + "\u00a0|\u2009|\u202f|\u2028|\u3000"
    + r"|\\{1,8}[nrtf]|\\{1,8}u00(?:0[9a-d]|20|a0)|\\{1,8}u(?:3000|2028)|%(?:20|0a|09)|\+)"
)
_SIGN_BETWEEN = rf"(?:{_SPACE}|[-./()])"
# Those of `_SIGN_BETWEEN`, apart: what is a single byte goes at a fraction of the price of a pattern.
_SIGN_BYTES = b" \t\n\r\f\v+-./()"
_BEGIN_LONG_SIGNS = (b"\\", b"%", b"\xc2\xa0", b"\xe2\x80", b"\xe3\x80\x80")
_LONG_SIGNS = re.compile(
    rb"\\\\{0,7}(?:[nrtf]|u00(?:0[9a-d]|20|a0)|u(?:3000|2028))|%(?:20|0a|09)"
    rb"|\xc2\xa0|\xe2\x80\x89|\xe2\x80\xaf|\xe2\x80\xa8|\xe3\x80\x80"
)
_GAP = rf"{_SPACE}+(?:[>|]{_SPACE}*)*"
_LONG_VALUE = 8
_ANCHOR = lazy_regex(r"[a-z0-9]+")
_HIDING = frozenset({"Cc", "Cf", "Zl", "Zp"})


@dataclass(frozen=True)
class WordForm:
    """A way in which a phrase or a value is written."""

    source: str  # the phrase or value
    anchor: bytes  # letters or digits, in small letters, that every copy has: whatever lacks them need not be searched
    text_pattern: str
    data_pattern: str
    is_grouped: bool = False  # the signs of the anchor may have others between them (`without_signs`)
    is_name: bool = False  # a plain word, which is written in bytes as it was said

    @cached_property
    def text(self) -> re.Pattern[str]:
        return re.compile(self.text_pattern, re.IGNORECASE)

    @cached_property
    def data(self) -> re.Pattern[bytes]:
        return re.compile(self.data_pattern.encode(), 0 if self.is_name else re.IGNORECASE)

    @cached_property
    def data_in_any_case(self) -> re.Pattern[bytes]:
        """What `text` finds, in bytes."""
        return re.compile(self.data_pattern.encode(), re.IGNORECASE)


def without_signs(lowered: bytes) -> bytes:
    """UTF-8 in small letters without what may stand between the digits of a number."""
    if any(begin in lowered for begin in _BEGIN_LONG_SIGNS):
        lowered = _LONG_SIGNS.sub(b"", lowered)
    return lowered.translate(None, _SIGN_BYTES)


def list_forms(phrases: Sequence[str], values: Sequence[str]) -> list[WordForm]:
    """Every form of some phrases, and of values, the longest first."""
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
    """With or without signs between its digits; a telephone number with and without the code of its country."""
    for signs in number_spellings(number):
        pattern = rf"{_SIGN_BETWEEN}{{0,3}}".join(signs)
        is_short = signs.isdecimal() and len(signs) < _LONG_VALUE
        text, data = _as_whole_number(pattern) if is_short else (pattern, pattern)
        yield WordForm(number, signs.lower().encode(), text, data, is_grouped=True)


def number_spellings(number: str) -> list[str]:
    """Its digits (an account's number has letters, too), as it was said, and as others may say it."""
    signs = "".join(char for char in number if char.isalnum())
    return list(filter(None, dict.fromkeys((signs, national_number(number)))))


def _as_whole_number(pattern: str) -> tuple[str, str]:
    """Bytes have columns side by side, clocks and counters: a short number is none of these."""
    before = r"(?:(?<![\w:+\[-])|(?<=\\[nrt]))(?<!\d\.)"
    return rf"(?<!\w){pattern}(?!\w)", rf"{before}{pattern}(?!\w|[.:]\d)"


def _word_forms(text: str, is_value: bool) -> Iterator[WordForm]:
    # As it is, too: somebody may have put marks in an order that neither form has.
    for form in (unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text), text):
        if pattern := _pattern(form):
            is_name, data = is_value and form.isalpha(), pattern
            if is_name:
                # A plain word is looked for as a whole word.
                pattern, data = rf"(?<!\w){pattern}(?!\w)", rf"(?:(?<!\w)|(?<=\\[nrt])){pattern}(?!\w)"
            elif form.isdecimal():
                pattern = data = rf"(?<!\d){pattern}(?!\d)"
            elif form.isalpha() and not SPACELESS.match(form):
                # "Anna" is in "Annas" and not in "Joanna".
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
        # Files show a mark instead of what would hide the lines around it.
        return f"(?:{re.escape(char)}|\ufffd|{_escaped(char)})"
    if char.isascii():
        return re.escape(char) if char.isalnum() else f"(?:{re.escape(char)}|%{ord(char):02x})"
    cases = dict.fromkeys((char, char.lower(), char.upper(), char.casefold()))
    # A text may have the one form here and the other there.
    forms = dict.fromkeys((*cases, *(unicodedata.normalize("NFD", case) for case in cases)))
    return f"(?:{'|'.join([*map(re.escape, forms), *map(_escaped, forms), *map(quote, forms)])})"


def _escaped(text: str) -> str:
    """As JSON writes it in ASCII."""
    units = text.encode("utf-16-be")
    return "".join(rf"\\+u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
