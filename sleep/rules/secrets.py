"""What looks like a password, a key, a PIN or the number of a card, in English, German, French and Spanish, so that it
is kept where it was said and stored, and is put into nothing that is sent unasked. Pure.

What always holds: a secret is told by its form (the keys of providers, card numbers with their check digit), or by the
word that names it, with a value that is no word of a sentence. Years, dates, telephone and order numbers, addresses and
postal codes are none. Measured on a seeded table (`tests/unit/test_secret_patterns.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sleep.rules.pattern_files import load_pattern, read_alternatives

_PASSWORD_WORD = load_pattern("secrets", "password_word")
_PASSWORD_WORDS = load_pattern("secrets", "password_words")
_PIN_FROM = load_pattern("secrets", "pin_from")
_CODE = load_pattern("secrets", "code_is")
_CODE_TOO = load_pattern("secrets", "code_too")
_CARD = load_pattern("secrets", "card")
_PATTERNS = (
    ("key", load_pattern("secrets", "known_form")),
    ("password", load_pattern("secrets", "password_is")),
    ("password", load_pattern("secrets", "password_quoted")),
    ("password", load_pattern("secrets", "password_changed")),
    ("password", load_pattern("secrets", "password_from")),
    ("password", load_pattern("secrets", "password_then")),
    ("password", load_pattern("secrets", "password_mixed")),
    ("password", _PASSWORD_WORD),
    ("password", _PASSWORD_WORDS),
    ("password", load_pattern("secrets", "phrase_is")),
    ("password", load_pattern("secrets", "said_first")),
    ("key", load_pattern("secrets", "key_is")),
    ("key", load_pattern("secrets", "named_key_is")),
    ("PIN", load_pattern("secrets", "pin_is")),
    ("PIN", _PIN_FROM),
    ("PIN", load_pattern("secrets", "pin_then")),
    ("PIN", load_pattern("secrets", "unlocked_with")),
    ("PIN", _CODE),
    ("PIN", _CODE_TOO),
    ("card number", _CARD),
)
_CARD_WORD = load_pattern("secrets", "card_word")
_HARMLESS_CODE = load_pattern("secrets", "harmless_code")
_ASKED_FOR = load_pattern("secrets", "asked_for")
_BEFORE_CODE = 16
_CARD_DIGITS = 16
_END = ".,;:!?)]}\"'»”"


class Secret(NamedTuple):
    """A value at characters [start, end) of a text."""

    kind: str  # "password", "key", "PIN" or "card number"
    start: int
    end: int


def find_secrets(text: str) -> list[Secret]:
    """In their order; none overlaps another."""
    secrets: list[Secret] = []
    for secret in sorted(_candidates(text), key=lambda secret: (secret.start, -secret.end)):
        if not secrets or secret.start >= secrets[-1].end:
            secrets.append(secret)
    return secrets


def has_secret(text: str) -> bool:
    return any(True for _ in _candidates(text))


def mask_secrets(text: str) -> str:
    """`text` with what kind of secret it was in place of each."""
    for secret in reversed(find_secrets(text)):
        text = f"{text[: secret.start]}[{secret.kind} left out]{text[secret.end :]}"
    return text


def find_secret_values(sources: Iterable[str]) -> dict[str, str]:
    """What kind of secret each value is that stands in `sources`."""
    return {source[secret.start : secret.end]: secret.kind for source in sources for secret in find_secrets(source)}


def leave_out_secrets(text: str, values: Mapping[str, str]) -> str:
    """`text` without the secrets of its sources (`find_secret_values`), whatever words stand around them here, nor its
    own."""
    for value in sorted(values, key=len, reverse=True):
        if value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"[{values[value]} left out]", text)
    return mask_secrets(text)


def asks_for_secret(question: str) -> bool:
    """Whether it names what may be a secret, so that an answer may have one."""
    return _ASKED_FOR.search(question) is not None


def _candidates(text: str) -> Iterator[Secret]:
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            for group, found in match.groupdict().items():
                value = (found or "").rstrip(_END)
                if value and _is_secret(pattern, match, value, text):
                    yield Secret(kind, match.start(group), match.start(group) + len(value))


def _is_secret(pattern: re.Pattern[str], match: re.Match[str], value: str, text: str) -> bool:
    if pattern is _PASSWORD_WORD:
        return value.casefold() not in read_alternatives("secrets", "no_password")
    if pattern is _PASSWORD_WORDS:
        return read_alternatives("secrets", "no_passphrase").isdisjoint(re.split(r"[ '’]", value.casefold()))
    if pattern in (_CODE, _CODE_TOO, _PIN_FROM):
        return not _HARMLESS_CODE.search(text, max(0, match.start() - _BEFORE_CODE), match.start("value"))
    if pattern is _CARD:
        digits = [int(char) for char in value if char.isdigit()]
        return _has_check_digit(digits) and (len(digits) == _CARD_DIGITS or bool(_CARD_WORD.search(text)))
    return True


def _has_check_digit(digits: list[int]) -> bool:
    """By Luhn, as card numbers have one."""
    doubled = (2 * digit - 9 * (digit > 4) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
