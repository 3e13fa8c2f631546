"""What a text names that a summary must not lose: identifiers, numbers, names, tasks. Pure.

Found by their form alone, in any language that has such forms: an identifier mixes letters with digits or signs, a name
begins with a capital where no sentence does, a task begins with what asks for something. The number of a message, as in
#12, is no number of anything.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from assistant.core.text import lazy_regex

# Looking ahead is bounded: on a text without spaces it would take the square of its length.
# Letters of scripts that put spaces between words: what is written without them may stand right beside an identifier.
_LETTER = "A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u0590-\u05ff\u0620-\u064a"
_PART = rf"{_LETTER}\d"
_IDENTIFIER = lazy_regex(
    r"https?://[^\s<>\"']+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]+|(?<![\w/.])[~.]{0,2}(?:/[\w.@+-]+){2,}"
    rf"|(?<![{_PART}_])(?=[{_PART}_-]{{0,64}}\d)(?=[\d_-]{{0,64}}[{_LETTER}]|[{_LETTER}])"
    rf"[{_PART}]+(?:[-_][{_PART}]+)*(?![{_PART}_])"
)
_NUMBER = lazy_regex(rf"(?<![{_PART}_.,#-])[-+]?\d+(?:[.,:/-]\d+)*(?![{_PART}_-])")
_NAME = lazy_regex(r"(?<=[^\s.!?:;] )(?:[A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+)(?: [A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+)*")
_TASK = lazy_regex(
    r"(?im)^[ \t]*(?:[-*] \[ \] |todo:? |(?:please|remember to|remind me to|don't forget to|we need to)\b)[^\n]+"
)
_FORMS = (("tasks", _TASK), ("identifiers", _IDENTIFIER), ("numbers", _NUMBER), ("names", _NAME))
_END = ".,;:!?)]}"


class Words:
    """A text that is asked whether it has this or that in it, in whatever width or case it is written."""

    def __init__(self, text: str) -> None:
        self._folded = folded(text)

    def has(self, value: str) -> bool:
        """A number is there only by itself: 12 is not in 2012, nor in 12.50."""
        wanted = folded(value)
        if wanted not in self._folded:
            return False
        if not wanted[-1:].isdigit() or not _NUMBER.fullmatch(wanted):
            return True
        alone = rf"(?<!\d)(?<!\d[.,:/-]){re.escape(wanted)}(?!\d|[.,:/-]\d)"
        return re.search(alone, self._folded) is not None


def named(text: str) -> Iterator[tuple[str, str]]:
    """(kind, value) of what a text names; kinds "tasks", "identifiers", "numbers", "names", in this order."""
    rest = text
    for kind, form in _FORMS:
        for match in form.finditer(rest):
            value = match[0].strip().rstrip(_END)
            if value:
                yield kind, value
        if kind == "identifiers":
            rest = form.sub(lambda match: " " * len(match[0]), rest)


def missing(source_texts: Iterable[str], summary: str) -> dict[str, list[str]]:
    """What the sources name and the summary does not, by kind ("identifiers", "numbers", "names", "tasks"), in their
    order, each once; kinds of which nothing is missing are left out."""
    there = Words(summary)
    found: dict[str, dict[str, None]] = {}
    for text in source_texts:
        for kind, value in named(text):
            if not there.has(value):
                found.setdefault(kind, {}).setdefault(value)
    return {kind: list(values) for kind, values in found.items()}


def folded(text: str) -> str:
    """The text in one width and case, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
