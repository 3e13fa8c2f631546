"""The words that are to be forgotten: what of a text is known again elsewhere; words found, counted and cut out of
texts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from assistant.core.erasure_patterns import SPACELESS, WordForm, list_forms, without_signs
from assistant.core.erasure_values import (
    MIN_LETTERS,
    MIN_SPACELESS_LETTERS,
    find_values,
    find_words,
    may_have_words,
    value_kind,
)
from assistant.core.text import STOP_WORDS, WORD, fold_text, lazy_regex

_SENTENCE_END = lazy_regex(
    "[.!?\u2026]{1,9}[\"')\\]\u201d\u2019\u00bb*_]{0,9}(?=\\s|$)|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d]*"
)
_EMPTY_LINE = lazy_regex(
    r"[ \t]*+(?:>[ \t]*+)*+(?:[-*+\u2022]|\d{1,3}[.)])?[ \t]*+(?:\*\*[^*\n]*\*\*:?[ \t]*)?(?:\[[ xX]\][ \t]*)?"
    r"(?:\(\d{4}-\d\d-\d\d\)[ \t]*)?"
)
_MOST_CHARACTERS = 200_000
_LONGEST_PHRASE = 300
_FEWEST, _FEWEST_SPACELESS = 12, 6
_LAST_SHOWN = 60
# From here on, looking whether any of them is there takes as long as looking for all.
_MANY_WORDS = 40
SEARCHED_FORMS = "plain, escaped (JSON, percent), UTF-16, base64 and compressed"
PREVIEW_LENGTHS = (300, 400)
"""How many characters of a long text notes, MEMORY.md and prompts show, the last of them an ellipsis."""


class PhraseMatcher:
    """Some phrases, and values (`find_values`), which are whole words and may have other signs between their digits.
    In texts, not in bytes, also `learned` sentences and single `words`. Without any, nothing is found."""

    def __init__(
        self,
        phrases: Sequence[str],
        values: Sequence[str] = (),
        learned: Sequence[str] = (),
        words: Collection[str] = (),
    ) -> None:
        self.phrases, self.values = tuple(phrases), tuple(values)
        self._forms = list_forms(self.phrases, self.values)
        self._learned_forms = list_forms(learned, ())
        self._words = frozenset(words)
        self._has_grouped = any(form.is_grouped for form in self._forms)

    def __bool__(self) -> bool:
        return bool(self._forms or self._learned_forms or self._words)

    def _present(self, lowered: bytes) -> Iterator[WordForm]:
        joined = without_signs(lowered) if self._has_grouped else b""
        return (form for form in self._forms if form.anchor in (joined if form.is_grouped else lowered))

    def _present_in_text(self, text: str) -> Iterator[WordForm]:
        lowered = text.casefold().encode(errors="surrogatepass")
        yield from self._present(lowered)
        yield from (form for form in self._learned_forms if form.anchor in lowered)

    def _word_spans(self, text: str) -> Iterator[tuple[int, int]]:
        words = self._words
        is_worth_while = words and (len(words) > _MANY_WORDS or may_have_words(text, words))
        return ((start, end) for start, end, word in find_words(text) if word in words) if is_worth_while else iter(())

    def _spans(self, text: str) -> list[tuple[int, int]]:
        found = (match.span() for form in self._present_in_text(text) for match in form.text.finditer(text))
        return _merged([*found, *self._word_spans(text)])

    def _byte_spans(self, data: bytes) -> list[tuple[int, int]]:
        forms = self._present(data.lower())
        return _merged(match.span() for form in forms for match in form.data.finditer(data))

    def matches(self, text: str) -> bool:
        return self._has_phrase(text) or any(True for _ in self._word_spans(text))

    def _has_phrase(self, text: str) -> bool:
        return any(form.text.search(text) for form in self._present_in_text(text))

    def match_ends(self, data: bytes) -> list[int]:
        """Where in UTF-8 bytes the copies end."""
        return [end for _, end in self._byte_spans(data)]

    def matched(self, data: bytes) -> set[str]:
        """Which of the phrases and values are in UTF-8 bytes."""
        return {form.source for form in self._present(data.lower()) if form.data.search(data)}

    def matched_in_any_case(self, data: bytes) -> set[str]:
        """As `matched`, with names in any case, as they are found in texts."""
        return {form.source for form in self._present(data.lower()) if form.data_in_any_case.search(data)}

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
        list of texts, and becomes `instead` elsewhere; keys that have more than a single word of them go with their
        values, except those of the format itself."""
        if isinstance(value, str):
            return (self.remove_from_text(value) or instead) if self.matches(value) else value
        if isinstance(value, dict):
            return {
                key: self.remove_from_json(item, instead, own_keys)
                for key, item in value.items()
                if key in own_keys or not self._has_phrase(key)
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
    spaceless = sum(bool(SPACELESS.match(char)) for char in letters)
    return len(letters) >= MIN_LETTERS or spaceless >= MIN_SPACELESS_LETTERS


def identifying_phrases(text: str, *, with_cut_ends: bool = True) -> list[str]:
    """The sentences and lines of what somebody said that are long enough to be known again elsewhere; `with_cut_ends`,
    of a long text also what stands last where only a part of it is shown."""
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
    flat = " ".join(text[:_MOST_CHARACTERS].split()) if with_cut_ends else ""
    phrases += [_last_shown(flat[: length - 1]) for length in PREVIEW_LENGTHS if len(flat) > length]
    return list(dict.fromkeys(phrases))


def tells_of(entry: str, memory: str) -> bool:
    """Whether a memory tells something of an entry that was merged into it: its numbers and identifiers, or its names
    where it has none of these, or half of the words of the shorter of both. In doubt it does."""
    values = find_values(entry)[0]
    telling = [value for value in values if value_kind(value) in ("number", "identifier")] or values
    if not telling or PhraseMatcher((), telling).matches(memory):
        return True
    words, told = _weighty_words(entry), _weighty_words(memory)
    return 2 * len(words & told) >= min(len(words), len(told))


def _weighty_words(text: str) -> set[str]:
    return {word for word in WORD.findall(fold_text(text)) if len(word) >= MIN_LETTERS and word not in STOP_WORDS}


def _last_shown(text: str) -> str:
    """The end of a text that was cut off, with whole sentences before it so that it is known again."""
    starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]
    return text[max(start for start in starts if start <= len(text) - _LAST_SHOWN) :].strip()


def _is_long(phrase: str) -> bool:
    spaceless = len(SPACELESS.findall(phrase))
    return spaceless >= _FEWEST_SPACELESS or (len(phrase) >= _FEWEST and len(phrase.split()) >= 2)


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
