"""Phrases to be erased: which parts of a text are searched elsewhere, and how matches are found, counted and removed.
Pure."""

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
# Above this, the pre-check costs as much as the search.
_MANY_WORDS = 40
SEARCHED_FORMS = "plain, escaped (JSON, percent), UTF-16, base64 and compressed"
PREVIEW_LENGTHS = (300, 400)
"""Lengths at which notes, MEMORY.md and prompts truncate a long text (including the ellipsis)."""


class PhraseMatcher:
    """Matches phrases, and values (`find_values`) as whole words or numbers with separators. In text, not in bytes, it
    also matches `learned` sentences and single `words`. Without any of them nothing matches."""

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
        return _merged(span for form in self._present(data.lower()) for span in form.find_data(data))

    def matches(self, text: str) -> bool:
        return self._has_phrase(text) or any(True for _ in self._word_spans(text))

    def _has_phrase(self, text: str) -> bool:
        return any(form.text.search(text) for form in self._present_in_text(text))

    def match_ends(self, data: bytes) -> list[int]:
        """Return the end offsets of all matches in UTF-8 bytes."""
        return [end for _, end in self._byte_spans(data)]

    def matched(self, data: bytes) -> set[str]:
        """Return which phrases and values occur in UTF-8 bytes."""
        return {form.source for form in self._present(data.lower()) if any(form.find_data(data))}

    def matched_in_any_case(self, data: bytes) -> set[str]:
        """Like `matched`, but ignoring the case of names, as in text."""
        return {form.source for form in self._present(data.lower()) if any(form.find_data(data, in_any_case=True))}

    def blank_bytes(self, data: bytes) -> bytes:
        """Replace matches by spaces, keeping the length."""
        blanked = bytearray(data)
        for start, end in self._byte_spans(data):
            blanked[start:end] = b" " * (end - start)
        return bytes(blanked)

    def remove_from_text(self, text: str) -> str:
        """Remove the sentences or lines that contain a match; "" if nothing is left. A text without matches is returned
        unchanged."""
        spans = self._spans(text)
        if not spans:
            return text
        for start, end in reversed(_merged(_sentence(text, *span) for span in spans)):
            text = _cut(text, start, end)
        # Removing may have joined parts to a new match.
        return self.remove_from_text(text) if text.strip() else ""

    def excerpt(self, text: str, around: int = 30) -> str:
        """Return one line that shows the first match in its context; words that it would cut are left out."""
        start, end = next(iter(self._spans(text)), (0, 2 * around))
        first, last = max(0, start - around), min(end, start + 3 * around) + around
        before, match, after = text[first:start], text[start : min(end, last)], text[min(end, last) : last]
        if first and not text[first - 1].isspace():
            before = before.partition(" ")[2]
        if last < len(text) and not text[last].isspace():
            after = after.rpartition(" ")[0]
        return " ".join(f"{before}{match}{after}".split())

    def remove_from_json(self, value: Any, instead: str, own_keys: Collection[str] = ()) -> Any:
        """Apply `remove_from_text` to every string of a JSON value. A string that becomes empty is dropped from a list
        of strings and replaced by `instead` elsewhere. A key that contains a phrase is removed with its value, unless
        it is in `own_keys` (keys of the format)."""
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
        """Return whether nothing of a text would be left."""
        return self.matches(text) and not self.remove_from_text(text)


def is_searchable_phrase(text: str) -> bool:
    """Return whether a text is long enough to be searched everywhere without unrelated matches."""
    letters = [char for char in text if char.isalnum()]
    spaceless = sum(bool(SPACELESS.match(char)) for char in letters)
    return len(letters) >= MIN_LETTERS or spaceless >= MIN_SPACELESS_LETTERS


def identifying_phrases(text: str, *, with_cut_ends: bool = True) -> list[str]:
    """Return the sentences and lines of a text that are long enough to identify it elsewhere; `with_cut_ends` adds the
    ends of its truncated forms (`PREVIEW_LENGTHS`)."""
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
    """Return whether a memory repeats content of an entry merged into it: its numbers and identifiers, else its names,
    else half of the words of the shorter one. If in doubt, True."""
    values = find_values(entry)[0]
    telling = [value for value in values if value_kind(value) in ("number", "identifier")] or values
    if not telling or PhraseMatcher((), telling).matches(memory):
        return True
    words, told = _weighty_words(entry), _weighty_words(memory)
    return 2 * len(words & told) >= min(len(words), len(told))


def _weighty_words(text: str) -> set[str]:
    return {word for word in WORD.findall(fold_text(text)) if len(word) >= MIN_LETTERS and word not in STOP_WORDS}


def _last_shown(text: str) -> str:
    """Return the end of a truncated text, extended back to whole sentences so that it is long enough to identify."""
    starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]
    return text[max(start for start in starts if start <= len(text) - _LAST_SHOWN) :].strip()


def _is_long(phrase: str) -> bool:
    spaceless = len(SPACELESS.findall(phrase))
    return spaceless >= _FEWEST_SPACELESS or (len(phrase) >= _FEWEST and len(phrase.split()) >= 2)


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a span to the sentences it touches."""
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
    """Remove a span, and its whole line if only a bullet or date would remain."""
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    rest = text[line:start] + text[end:stop]
    if _EMPTY_LINE.fullmatch(rest):
        return text[:line] + text[stop + 1 :] if stop < len(text) else text[: max(0, line - 1)]
    head = text[:start].rstrip(" ") if text[end : end + 1] in (" ", "", "\n") else text[:start]
    return head + text[end:]
