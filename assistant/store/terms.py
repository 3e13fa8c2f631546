"""The words of texts and questions: what the full-text index is given, and how a question is put to it. Pure.

What always holds:
- The index is contentless: it holds what `index_text` makes of a record's words, never the words themselves. Whoever
  writes, rebuilds or deletes a row of it uses this function, or what was deleted would go on being found.
- A question becomes single words, each quoted: of whatever a person or a model types, nothing is left that FTS5 could
  read as syntax.
- Scripts written without spaces (Chinese, Japanese, Thai, ...; Korean too, for its particles) are indexed as
  overlapping pairs of characters, so that any part of a run is found; `unicode61` alone would make one word of a whole
  sentence. It costs up to two bytes of index for each byte of such text; English takes half a byte.
- Private-use characters are taken out of texts, so that the scope's own term can be met in no text.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_WORDS = 24
"""How many different words of a question count; the rest of a longer one is left out."""

_SPACELESS = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_RUN = re.compile(f"[{_SPACELESS}]+")
_LETTER = f"(?![{_SPACELESS}_])[\\w{_MARKS}]"
LETTER = re.compile(_LETTER)
WORD = re.compile(f"[{_SPACELESS}]+|(?:{_LETTER})+")

_STOP_WORDS = """
a about again all also am an and any are as at be been being but by can could d did do does doing don for from had
has have he her here him his how i if in into is isn it its just ll m may me might more most my no not now of on
or our out please re s shall she should so some t than that the their them then there these they this those to too
up us ve very was we were what when where which who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of a question. `text` is folded; `match` is how FTS5 is asked for it. A piece of a spaceless run is
    found anywhere, any other word only whole."""

    text: str
    match: str
    spaceless: bool = False


def index_text(text: str, scope: str, speaker: str | None = None) -> str:
    """What the full-text index is given of a record with these words, said by `speaker` in `scope`; nothing where
    nothing was said."""
    if not text:
        return ""
    return f"{scope_term(scope)} {spread(f'{speaker}: {text}' if speaker else text)}"


def scope_term(scope: str) -> str:
    """The term that every row of a scope carries, so that a small scope is not searched for among a large one's rows.
    It saves time only; what may be seen is decided by the scope column."""
    digest = hashlib.blake2b(scope.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return "".join(chr(0xE000 + byte) for byte in digest)


def spread(text: str) -> str:
    """`text` with spaceless runs as overlapping pairs, the last character once more by itself."""
    if text.isascii():
        return text
    text = _PRIVATE.sub(" ", unicodedata.normalize("NFKC", text))
    return _RUN.sub(lambda run: f" {' '.join(_pairs(run[0], alone=True))} ", text)


def query_words(query: str) -> list[QueryWord]:
    """The different words of a question in their order, stop words left out unless there is nothing else."""
    found: dict[str, QueryWord] = {}
    for run in WORD.findall(_PRIVATE.sub(" ", unicodedata.normalize("NFKC", query))):
        for word in _asked(run):
            found.setdefault(word.text, word)
            if len(found) >= 4 * MOST_WORDS:
                break
    words = [word for word in found.values() if word.text not in STOP_WORDS] or list(found.values())
    return words[:MOST_WORDS]


def _asked(run: str) -> Iterator[QueryWord]:
    if not _RUN.match(run):
        yield QueryWord(fold(run), f'"{run}"')
        return
    letters = _letters(run)
    if len(letters) == 1:
        yield QueryWord(fold(letters), f'"{letters}"*', spaceless=True)
    for pair in _pairs(run):
        yield QueryWord(fold(pair), f'"{pair}"', spaceless=True)


def _pairs(run: str, *, alone: bool = False) -> list[str]:
    letters = _letters(run)
    pairs = [letters[i : i + 2] for i in range(len(letters) - 1)]
    return [*pairs, letters[-1:]] if alone else pairs


def _letters(run: str) -> str:
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


def either(words: Sequence[QueryWord]) -> str:
    """The FTS5 expression for rows that hold any of the words."""
    return f"({' OR '.join(word.match for word in words)})"


def together(parts: Sequence[str]) -> str:
    """The FTS5 expression for rows that fit all the parts."""
    return " AND ".join(parts)


def near(one: QueryWord, other: QueryWord, words: int) -> str:
    """The FTS5 expression for rows where the two stand at most `words` words apart."""
    return f"NEAR({one.match} {other.match}, {words})"
