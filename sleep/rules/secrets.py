"""Finds what looks like a password, a key, a PIN or a card number, in English, German, French and Spanish. Secrets stay
where they were said and stored, and are left out of everything sent unasked. Pure.

A secret is recognized by its format (API keys, card numbers with check digit), or by a word that names it, followed by
a value that is not a word. Years, dates, telephone and order numbers, addresses and postal codes are not secrets.
Measured on a seeded table (`tests/unit/test_secret_patterns.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from assistant.core.text import find_in_windows
from sleep.rules.pattern_files import load_pattern, read_alternatives, read_words

_KNOWN_FORM = load_pattern("secrets", "known_form", indexed=False)
_PASSWORD_WORD = load_pattern("secrets", "password_word", indexed=False)
_PASSWORD_WORDS = load_pattern("secrets", "password_words", indexed=False)
_CODE_WORDS = load_pattern("secrets", "code_words", indexed=False)
_PIN_FROM = load_pattern("secrets", "pin_from", indexed=False)
_CODE = load_pattern("secrets", "code_is", indexed=False)
_CODE_TOO = load_pattern("secrets", "code_too", indexed=False)
_CODE_CHANGED = load_pattern("secrets", "code_changed", indexed=False)
_CARD = load_pattern("secrets", "card", indexed=False)
# Kind of secret, pattern, and the key of the words in `needed` of secrets.toml without which the pattern cannot match.
_PATTERNS = (
    ("key", _KNOWN_FORM, "known_form"),
    ("password", load_pattern("secrets", "password_is", indexed=False), "password"),
    ("password", load_pattern("secrets", "password_quoted", indexed=False), "password"),
    ("password", load_pattern("secrets", "password_changed", indexed=False), "password"),
    ("password", load_pattern("secrets", "password_from", indexed=False), "password"),
    ("password", load_pattern("secrets", "password_then", indexed=False), "password"),
    ("password", load_pattern("secrets", "password_mixed", indexed=False), "password"),
    ("password", _PASSWORD_WORD, "password"),
    ("password", _PASSWORD_WORDS, "password"),
    ("password", _CODE_WORDS, "code_word"),
    ("password", load_pattern("secrets", "phrase_is", indexed=False), "phrase"),
    ("password", load_pattern("secrets", "said_first", indexed=False), "named"),
    ("key", load_pattern("secrets", "key_is", indexed=False), "key"),
    ("key", load_pattern("secrets", "named_key_is", indexed=False), "key"),
    ("PIN", load_pattern("secrets", "pin_is", indexed=False), "pin"),
    ("PIN", _PIN_FROM, "code"),
    ("PIN", load_pattern("secrets", "pin_then", indexed=False), "code"),
    ("PIN", load_pattern("secrets", "unlocked_with", indexed=False), "unlock"),
    ("PIN", _CODE, "code"),
    ("PIN", _CODE_TOO, "code"),
    ("PIN", _CODE_CHANGED, "code"),
    ("PIN", load_pattern("secrets", "code_named", indexed=False), "code"),
    ("PIN", load_pattern("secrets", "combination_turns", indexed=False), "code"),
    ("password", load_pattern("secrets", "clave_is", indexed=False), "clave"),
    ("card number", _CARD, ""),
)
_NEEDED = frozenset(needed for _, _, needed in _PATTERNS if needed)
# Words that several patterns need and that are rarer than common ones like "pass".
_NAMES = {
    "password": load_pattern("secrets", "names_password", indexed=False),
    "code": load_pattern("secrets", "names_code", indexed=False),
}
# Number of texts without secrets to remember, by hash: each compaction checks all messages again.
_CLEAN_KEPT = 10_000
_clean: set[int] = set()
_CARD_WORD = load_pattern("secrets", "card_word", indexed=False)
_HARMLESS_CODE = load_pattern("secrets", "harmless_code", indexed=False)
_ASKED_FOR = load_pattern("secrets", "asked_for", indexed=False)
_BEFORE_CODE = 16
_CARD_DIGITS = 16
_CARDS_BEGIN = "23456"
# Maximum length of a private key, and of a sentence with any other secret.
_LONGEST_KEY, _LONGEST = 8_200, 1_000
_SHORT = 16_000
_END = ".,;:!?)]}\"'»”"


class Secret(NamedTuple):
    """A secret at characters [start, end) of a text."""

    kind: str  # "password", "key", "PIN" or "card number"
    start: int
    end: int


def compile_secret_patterns() -> None:
    """Compile all patterns, which takes some 50 ms; else the first text that names a password or a code does."""
    for pattern in (*(pattern for _, pattern, _ in _PATTERNS), *_NAMES.values(), _CARD_WORD, _HARMLESS_CODE):
        pattern.search("")


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets in order, without overlaps."""
    secrets: list[Secret] = []
    if (number := hash(text)) in _clean:
        return secrets
    for secret in sorted(_candidates(text), key=lambda secret: (secret.start, -secret.end)):
        if not secrets or secret.start >= secrets[-1].end:
            secrets.append(secret)
    if not secrets:
        if len(_clean) >= _CLEAN_KEPT:
            _clean.clear()
        _clean.add(number)
    return secrets


def has_secret(text: str) -> bool:
    return bool(find_secrets(text))


def mask_secrets(text: str) -> str:
    """Return `text` with each secret replaced by its kind."""
    pieces, at = [], 0
    for secret in find_secrets(text):
        pieces += [text[at : secret.start], f"[{secret.kind} left out]"]
        at = secret.end
    return "".join([*pieces, text[at:]])


def find_secret_values(sources: Iterable[str]) -> dict[str, str]:
    """Return the kind of each secret value in `sources`."""
    return {source[secret.start : secret.end]: secret.kind for source in sources for secret in find_secrets(source)}


def leave_out_secrets(text: str, values: Mapping[str, str]) -> str:
    """Return `text` without its own secrets and those of its sources (`find_secret_values`), whatever words surround
    them."""
    for value in sorted(values, key=len, reverse=True):
        if value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"[{values[value]} left out]", text)
    return mask_secrets(text)


def asks_for_secret(question: str) -> bool:
    """Return whether it asks for something that may be secret, so that the answer may contain it."""
    return _ASKED_FOR.search(question) is not None


def _candidates(text: str) -> Iterator[Secret]:
    @cache
    def names_card() -> bool:
        return any(True for _ in find_in_windows(_CARD_WORD, text, _LONGEST))

    absent = _absent_words(text)
    for kind, pattern, needed in _PATTERNS:
        if needed in absent:
            continue
        longest = _LONGEST_KEY if pattern is _KNOWN_FORM else _LONGEST
        # Of a short text it is known by now that it has them.
        words = _needed_words(needed) if len(text) > _SHORT else ()
        for match in find_in_windows(pattern, text, longest, words):
            for group, found in match.groupdict().items():
                value = (found or "").rstrip(_END)
                if value and _is_secret(pattern, match, value, text, names_card):
                    yield Secret(kind, match.start(group), match.start(group) + len(value))


def _absent_words(text: str) -> frozenset[str]:
    """Return which `needed` words a short text lacks, checked once for all patterns; "" where it lacks the digits with
    which cards begin. A long text is checked in windows."""
    if len(text) > _SHORT:
        return frozenset()
    folded = text.casefold()
    present = {word for word in _all_needed_words() if word in folded}
    absent = {name for name in _NEEDED if present.isdisjoint(_needed_words(name))}
    absent |= {name for name in _NAMES.keys() - absent if not _NAMES[name].search(text)}
    return frozenset(absent if any(digit in text for digit in _CARDS_BEGIN) else {*absent, ""})


@cache
def _all_needed_words() -> frozenset[str]:
    return frozenset(word for name in _NEEDED for word in _needed_words(name))


@cache
def _needed_words(name: str) -> tuple[str, ...]:
    return tuple(read_words("needed", "secrets")[name].split()) if name else ()


def _is_secret(
    pattern: re.Pattern[str], match: re.Match[str], value: str, text: str, names_card: Callable[[], bool]
) -> bool:
    if pattern is _PASSWORD_WORD:
        return value.casefold() not in read_alternatives("secrets", "no_password")
    if pattern in (_PASSWORD_WORDS, _CODE_WORDS):
        words = re.split(r"[ '’]", value.casefold())
        lists = ("no_passphrase", "no_password") if pattern is _CODE_WORDS else ("no_passphrase",)
        return all(read_alternatives("secrets", name).isdisjoint(words) for name in lists)
    if pattern in (_CODE, _CODE_TOO, _CODE_CHANGED, _PIN_FROM):
        return not _HARMLESS_CODE.search(text, max(0, match.start() - _BEFORE_CODE), match.start("value"))
    if pattern is _CARD:
        digits = [int(char) for char in value if char.isdigit()]
        return _has_check_digit(digits) and (len(digits) == _CARD_DIGITS or names_card())
    return True


def _has_check_digit(digits: list[int]) -> bool:
    """Return whether the digits pass the Luhn check, like card numbers."""
    doubled = (2 * digit - 9 * (digit > 4) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
