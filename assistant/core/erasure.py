"""Erasure: what a person wants forgotten, what was found of it, what became of it; and the words to be forgotten,
found, counted and cut out of texts. Pure.

A report never has more of the words than a person needs to see what would go; after the erasure it has none. A
phrase is found in any case, across any white space, line breaks and quote marks between its words (within a script
without spaces, between its characters), in composed and decomposed form, and as JSON escapes it, however often.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote

from assistant.core.erasure_values import MIN_LETTERS, MIN_SPACELESS_LETTERS, is_number
from assistant.core.text import lazy_regex


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What to erase in `scope`: either messages, journal entries and memories, with everything made of them, or every
    copy of a text."""

    scope: str
    messages: tuple[int, ...] = ()
    entries: tuple[int, ...] = ()
    memories: tuple[str, ...] = ()  # ids, or the beginnings of ids
    text: str = ""  # found in any case, and however its words are spaced or broken into lines
    digits: str = ""  # the beginning of a memory's id, or else the number of a message
    keep_backups: bool = False  # backups that have the words are listed, not removed
    keep_messages: bool = False  # of a memory or entry: messages that it came from stay, and nothing is learned of them

    def __bool__(self) -> bool:
        return bool(self.messages or self.entries or self.memories or self.text.strip() or self.digits)


@dataclass(frozen=True, slots=True)
class ErasureMatches:
    """What was found in one place."""

    kind: str  # the place ("messages", "summaries", "journal", ...)
    count: int
    examples: tuple[str, ...] = ()  # some of it, one line each


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """What an erasure would remove; nothing was changed yet. False where there is nothing to remove."""

    request: ErasureRequest
    messages: tuple[int, ...]  # blanked in the log
    places: tuple[ErasureMatches, ...]
    related: tuple[str, ...] = ()  # journal entries learned from these messages in other words; they stay unless named
    backups: tuple[str, ...] = ()  # backups and copies of databases that have the words
    finished: tuple[ErasureResult, ...] = ()  # interrupted erasures of the scope that were finished just now
    values: tuple[str, ...] = ()  # what these messages alone said: numbers, names and the like
    leftovers: tuple[ErasureLeftover, ...] = ()  # where nothing can be removed: what still has the words
    came_from: tuple[str, ...] = ()  # the messages that a memory or entry came from, a line each

    def __bool__(self) -> bool:
        return bool(self.places) or (bool(self.backups) and not self.request.keep_backups)


LeftoverKind = Literal["not_done", "own_file", "other_scope", "same_words", "former_home", "kept_backup"]
"""Why words are still there: work that has to be repeated, a person's own file, another person's words, another message
that says the same, a data folder put aside by a restore, a backup that the request keeps."""


@dataclass(frozen=True, slots=True)
class ErasureLeftover:
    """Words that are still there."""

    where: str  # the file (relative to the data folder) or the store
    count: int  # how often
    why: str  # or what to do; a text for people
    kind: LeftoverKind = "not_done"


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What was removed, and what a search through every byte of the data folder still found."""

    messages: tuple[int, ...]
    places: tuple[ErasureMatches, ...]
    leftovers: tuple[ErasureLeftover, ...]
    complete: bool  # everything the program may remove is removed; what is left is for a person to decide
    files_searched: int
    value_kinds: tuple[str, ...] = ()  # of each value that was searched for ("number")
    was_resumed: bool = False  # this finished an interrupted erasure, and `places` are what was still there


_SPACELESS = lazy_regex("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9f]")
# Alternatives, never a class: the same pattern is encoded to search bytes.
_SPACE = (
    r"(?:\s|"
    + "\u00a0|\u2009|\u202f|\u2028|\u3000"
    + r"|\\+[nrtf]|\\+u00(?:0[9a-d]|20|a0)|\\+u(?:3000|2028)|%(?:20|0a|09)|\+)"
)
_GAP = rf"{_SPACE}+(?:[>|]{_SPACE}*)*"
_SENTENCE_END = lazy_regex(
    "[.!?\u2026]+[\"')\\]\u201d\u2019\u00bb*_]*(?=\\s|$)|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d]*"
)
_EMPTY_LINE = lazy_regex(
    r"[ \t]*(?:>[ \t]*)*(?:[-*+\u2022]|\d{1,3}[.)])?[ \t]*(?:\*\*[^*\n]*\*\*:?[ \t]*)?(?:\[[ xX]\][ \t]*)?"
    r"(?:\(\d{4}-\d\d-\d\d\)[ \t]*)?"
)
_MOST_CHARACTERS = 20_000
_LONGEST_PHRASE = 300
_FEWEST, _FEWEST_SPACELESS = 12, 6
_LAST_SHOWN = 60
_LONG_VALUE = 8
_ANCHOR = lazy_regex(r"[a-z0-9]+")
SEARCHED_FORMS = "plain, escaped (JSON, percent), UTF-16, base64 and compressed"
_HIDING = frozenset({"Cc", "Cf", "Zl", "Zp"})
PREVIEW_LENGTHS = (300, 400)
"""How many characters of a long text notes, MEMORY.md and prompts show, the last of them an ellipsis."""


class PhraseMatcher:
    """Some phrases, and values (`find_values`), which are whole words and may have other signs between their digits.
    Without any, nothing is found."""

    def __init__(self, phrases: Sequence[str], values: Sequence[str] = ()) -> None:
        self.phrases, self.values = tuple(phrases), tuple(values)
        self._forms = list(_forms(self.phrases, self.values))
        self._compiled: dict[int, tuple[re.Pattern[str], re.Pattern[bytes]]] = {}

    def __bool__(self) -> bool:
        return bool(self._forms)

    def _present(self, lowered: bytes) -> Iterator[tuple[re.Pattern[str], re.Pattern[bytes], str]]:
        for number, form in enumerate(self._forms):
            if form.anchor in lowered:
                if number not in self._compiled:
                    data = re.compile(form.data.encode(), re.IGNORECASE)
                    self._compiled[number] = re.compile(form.text, re.IGNORECASE), data
                yield *self._compiled[number], form.source

    def _spans(self, text: str) -> list[tuple[int, int]]:
        folded = text.casefold().encode(errors="surrogatepass")
        return _merged(match.span() for pattern, _, _ in self._present(folded) for match in pattern.finditer(text))

    def _byte_spans(self, data: bytes) -> list[tuple[int, int]]:
        return _merged(
            match.span() for _, pattern, _ in self._present(data.lower()) for match in pattern.finditer(data)
        )

    def matches(self, text: str) -> bool:
        folded = text.casefold().encode(errors="surrogatepass")
        return any(pattern.search(text) for pattern, _, _ in self._present(folded))

    def match_ends(self, data: bytes) -> list[int]:
        """Where in UTF-8 bytes the copies end."""
        return [end for _, end in self._byte_spans(data)]

    def matched(self, data: bytes) -> set[str]:
        """Which of the phrases and values are in UTF-8 bytes."""
        return {source for _, pattern, source in self._present(data.lower()) if pattern.search(data)}

    def blank_bytes(self, data: bytes) -> bytes:
        """Bytes of the same length with spaces in place of the words."""
        blanked = bytearray(data)
        for start, end in self._byte_spans(data):
            blanked[start:end] = b" " * (end - start)
        return bytes(blanked)

    def remove_from_text(self, text: str) -> str:
        """The text without the sentences, or lines, that have the words, "" where nothing is left; a text without the
        words as it is."""
        spans = self._spans(text)
        if not spans:
            return text
        for start, end in reversed(_merged(_sentence(text, *span) for span in spans)):
            text = _cut(text, start, end)
        # What was apart may have come together.
        return self.remove_from_text(text) if text.strip() else ""

    def excerpt(self, text: str, around: int = 30) -> str:
        """One line that shows a person where the words stand."""
        start, end = next(iter(self._spans(text)), (0, 2 * around))
        cut = text[max(0, start - around) : min(end, start + 3 * around) + around]
        return " ".join(cut.split())

    def remove_from_json(self, value: Any, instead: str, own_keys: Collection[str] = ()) -> Any:
        """A JSON value with every text in it cut as by `remove_from_text`. Where nothing is left of one it goes from a
        list of texts, and becomes `instead` elsewhere; keys that have the words go with their values, except those of
        the format itself."""
        if isinstance(value, str):
            return (self.remove_from_text(value) or instead) if self.matches(value) else value
        if isinstance(value, dict):
            return {
                key: self.remove_from_json(item, instead, own_keys)
                for key, item in value.items()
                if key in own_keys or not self.matches(key)
            }
        if isinstance(value, list):
            texts = all(isinstance(item, str) for item in value)
            kept = [item for item in value if not (texts and self._is_all(item))]
            return [self.remove_from_json(item, instead, own_keys) for item in kept]
        return value

    def _is_all(self, text: str) -> bool:
        """Whether nothing of a text would be left."""
        return self.matches(text) and not self.remove_from_text(text)


def is_searchable_phrase(text: str) -> bool:
    """Whether a text is long enough to be looked for everywhere without meeting what has nothing to do with it."""
    letters = [char for char in text if char.isalnum()]
    spaceless = sum(bool(_SPACELESS.match(char)) for char in letters)
    return len(letters) >= MIN_LETTERS or spaceless >= MIN_SPACELESS_LETTERS


def identifying_phrases(text: str) -> list[str]:
    """The sentences and lines of what somebody said that are long enough to be known again elsewhere; of a long text
    also what stands last where only a part of it is shown."""
    phrases: list[str] = []
    room = _MOST_CHARACTERS
    for line in text.splitlines():
        start = 0
        for end in [*(match.end() for match in _SENTENCE_END.finditer(line)), len(line)]:
            phrase = line[start:end].strip()[:_LONGEST_PHRASE].strip(".!?\u3002 ")
            start = end
            if _is_long(phrase) and room > 0:
                phrases.append(phrase)
                room -= len(phrase)
    flat = " ".join(text[:_MOST_CHARACTERS].split())
    phrases += [_last_shown(flat[: length - 1]) for length in PREVIEW_LENGTHS if len(flat) > length]
    return list(dict.fromkeys(phrases))


def _last_shown(text: str) -> str:
    """The end of a text that was cut off, with whole sentences before it so that it is known again."""
    starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]
    return text[max(start for start in starts if start <= len(text) - _LAST_SHOWN) :].strip()


def _is_long(phrase: str) -> bool:
    spaceless = len(_SPACELESS.findall(phrase))
    return spaceless >= _FEWEST_SPACELESS or (len(phrase) >= _FEWEST and len(phrase.split()) >= 2)


@dataclass(frozen=True, slots=True)
class _Form:
    """A way in which a phrase or a value is written."""

    source: str  # the phrase or value
    anchor: bytes  # letters or digits, in small letters, that every copy has: whatever lacks them need not be searched
    text: str  # a regular expression
    data: str  # one for bytes


def _forms(phrases: Sequence[str], values: Sequence[str]) -> Iterator[_Form]:
    written: dict[str, _Form] = {}
    for text in sorted({*phrases, *values}, key=lambda text: (-len(text), text)):
        as_value = text in values and text not in phrases
        anchor = b"" if as_value and is_number(text) else _anchor(text)
        # As it is, too: somebody may have put marks in an order that neither form has.
        for form in (unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text), text):
            if pattern := _value(form) if as_value and is_number(form) else _pattern(form):
                whole = _Form(text, anchor, pattern, pattern)
                written.setdefault(pattern, _bounded(whole, form) if as_value else whole)
    yield from written.values()


def _anchor(text: str) -> bytes:
    return max(_ANCHOR.findall(unicodedata.normalize("NFC", text).lower()), key=len, default="").encode()


def _bounded(form: _Form, value: str) -> _Form:
    """What is short, or a plain word, is looked for as a whole word. Bytes have columns side by side, clocks and
    counters: a short number is none of these, and a name is written as it was."""
    is_plain = value.isalpha() or value.isdecimal()
    if not is_plain or (value.isdecimal() and len(value) >= _LONG_VALUE):
        return form
    data = rf"(?-i:(?:(?<!\w)|(?<=\\[nrt])){form.text}(?!\w))"
    if value.isdecimal():
        data = rf"(?<![\w:+\[-])(?<!\d\.){form.text}(?!\w|[.:]\d)"
    return replace(form, text=rf"(?<!\w){form.text}(?!\w)", data=data)


def _value(number: str) -> str:
    """A number, with or without signs between its digits."""
    return rf"(?:{_SPACE}|[-./()]){{0,3}}".join(char for char in number if char.isalnum())


def _pattern(phrase: str) -> str:
    return _GAP.join(_word(word) for word in phrase.split())


def _word(word: str) -> str:
    parts, before = [], ""
    for char in word:
        if before and _SPACELESS.match(before) and _SPACELESS.match(char):
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


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """The whole sentences that a span touches."""
    line = text.rfind("\n", 0, start) + 1
    earlier = [match.end() for match in _SENTENCE_END.finditer(text, line, start)]
    begin = earlier[-1] if earlier else line
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    later = _SENTENCE_END.search(text, max(start, end - 1), stop)
    return begin, later.end() if later else stop


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _cut(text: str, start: int, end: int) -> str:
    """The text without a span, and without the line where only its bullet, or its date, would be left."""
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    rest = text[line:start] + text[end:stop]
    if _EMPTY_LINE.fullmatch(rest):
        return text[:line] + text[stop + 1 :] if stop < len(text) else text[: max(0, line - 1)]
    head = text[:start].rstrip(" ") if text[end : end + 1] in (" ", "", "\n") else text[:start]
    return head + text[end:]
