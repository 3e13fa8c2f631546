"""Words of any script: where a text has them, and what of their form does not count. Pure.

What always holds: scripts written without spaces (Chinese, Japanese, Thai, ...; Korean too, for its particles) are read
as overlapping pairs of characters, so that any part of a run is found.
"""

from __future__ import annotations

import unicodedata

from assistant.core.expressions import expression

_SPACELESS = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
PRIVATE = expression("[\ue000-\uf8ff]")
RUN = expression(f"[{_SPACELESS}]+")
_LETTER = f"(?![{_SPACELESS}_])[\\w{_MARKS}]"
LETTER = expression(_LETTER)
WORD = expression(f"[{_SPACELESS}]+|(?:{_LETTER})+")

_STOP_WORDS = """
a about again all also am an and any are as at be been being but by can could d did do does doing don for from had
has have he her here him his how i if in into is isn it its just ll m may me might more most my no not now of on
or our out please re s shall she should so some t than that the their them then there these they this those to too
up us ve very was we were what when where which who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def spread(text: str) -> str:
    """`text` with spaceless runs as overlapping pairs, the last character once more by itself."""
    if text.isascii():
        return text
    text = PRIVATE.sub(" ", unicodedata.normalize("NFKC", text))
    return RUN.sub(lambda run: f" {' '.join(pairs(run[0], alone=True))} ", text)


def asked(question: str) -> list[str]:
    """The different words of a question in their order, folded: of a spaceless run its pairs, or its only letter."""
    found: dict[str, None] = {}
    for run in WORD.findall(PRIVATE.sub(" ", unicodedata.normalize("NFKC", question))):
        pieces = (pairs(run) or [letters(run)]) if RUN.match(run) else [run]
        found.update((fold(piece), None) for piece in pieces if piece)
    return list(found)


def is_spaceless(word: str) -> bool:
    return RUN.match(word) is not None


def pairs(run: str, *, alone: bool = False) -> list[str]:
    """The overlapping pairs of a spaceless run; `alone`: its last character too, so that it is found by itself."""
    chars = letters(run)
    found = [chars[i : i + 2] for i in range(len(chars) - 1)]
    return [*found, chars[-1:]] if alone else found


def letters(run: str) -> str:
    """A run without the signs that `unicode61` takes for separators (vowels of Thai, Lao, Khmer, Burmese)."""
    return "".join(char for char in run if char.isalnum())


class _Folded(dict[int, str]):
    """Case and accents taken away, one character for one, so that places in a folded text are places in the text."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = unicodedata.normalize("NFKD", char)[0].lower()
        folded = plain if len(plain) == 1 else char
        self[code] = folded
        return folded


_FOLDED = _Folded()


def fold(text: str) -> str:
    """`text` without case and accents, as long as before."""
    return text.lower() if text.isascii() else text.translate(_FOLDED)
