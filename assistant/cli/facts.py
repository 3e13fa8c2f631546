"""What a text names that a summary must not lose: identifiers, numbers, names, tasks. Pure.

Found by their form alone, in any language that has such forms: an identifier mixes letters with digits or signs, a name
begins with a capital where no sentence does, a task begins with what asks for something.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_IDENTIFIER = re.compile(
    r"https?://[^\s<>\"']+|[\w.+-]+@[\w-]+\.[\w.-]+|(?<![\w/.])[~.]{0,2}(?:/[\w.@+-]+){2,}"
    r"|\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*\b"
)
_NUMBER = re.compile(r"(?<![\w.,-])[-+]?\d+(?:[.,:/-]\d+)*(?![\w-])")
_NAME = re.compile(r"(?<=[^\s.!?:;] )(?:[A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+)(?: [A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+)*")
_TASK = re.compile(
    r"(?im)^[ \t]*(?:[-*] \[ \] |todo:? |(?:please|remember to|remind me to|don't forget to|we need to)\b)[^\n]+"
)
_END = ".,;:!?)]}"


def missing(source_texts: Iterable[str], summary: str) -> dict[str, list[str]]:
    """What the sources name and the summary does not, by kind ("identifiers", "numbers", "names", "tasks"), in their
    order, each once; kinds of which nothing is missing are left out."""
    there = _folded(summary)
    found: dict[str, dict[str, None]] = {}
    for text in source_texts:
        rest = text
        for kind, form in (("tasks", _TASK), ("identifiers", _IDENTIFIER), ("numbers", _NUMBER), ("names", _NAME)):
            for match in form.finditer(rest):
                value = match[0].strip().rstrip(_END)
                if value and _folded(value) not in there:
                    found.setdefault(kind, {}).setdefault(value)
            if kind == "identifiers":
                rest = form.sub(lambda match: " " * len(match[0]), rest)
    return {kind: list(values) for kind, values in found.items()}


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
