"""Small text functions that every room shares: lazy regular expressions, words of any script, counts and durations,
and the one way to shorten or clean a line. Pure; imports nothing of the project.

Regular expressions are compiled at their first use: a start needs few of the hundreds in the project, and compiling
all of them would take a third of it. Scripts written without spaces (Chinese, Japanese, Thai, ...; Korean too, for
its particles) are read as overlapping pairs of characters, so that any part of a run is found.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar, cast
from urllib.parse import urlsplit


class _LazyPattern:
    """Stands for the `re.Pattern`; what was asked once is found at once from then on."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, self._flags)
        attribute = getattr(self._compiled, name)
        setattr(self, name, attribute)
        return attribute


def lazy_regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, for its methods: the functions of `re` do not take it. A fault in it shows at its first use."""
    return cast(re.Pattern[str], _LazyPattern(pattern, flags))


P = ParamSpec("P")
T = TypeVar("T")
_SHORT = 2_000


async def beside_loop(length: int, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What `work` gives, which looks at a text of this length: of a long one in a worker thread, so that others are
    served meanwhile."""
    if length <= _SHORT:
        return work(*arguments, **named)
    return await asyncio.to_thread(work, *arguments, **named)


# What an expression looks through at once, in characters: some milliseconds of the slowest.
_WINDOW = 16_384
_LOOKED_BACK = 32


def find_in_windows(
    pattern: re.Pattern[str], text: str, longest: int, needed: Sequence[str] = ()
) -> Iterator[re.Match[str]]:
    """The matches of `pattern` in a text of any length, as `finditer` gives them; of those over `longest` characters
    some may be missing. `re` keeps the interpreter until it has found something, and with it the loop, from whatever
    thread: here another thread has its turn after some milliseconds.

    Where only texts match that have one of the words `needed` (casefolded) in them, windows without are passed over."""
    at = 0
    while at < len(text):
        stop = at + _WINDOW
        window_end = min(stop + longest, len(text))
        if needed:
            # What an expression looks back at stands before it.
            window = text[max(0, at - _LOOKED_BACK) : window_end].casefold()
            if not any(word in window for word in needed):
                at = stop
                continue
        for match in pattern.finditer(text, at, window_end):
            if match.start() >= stop:
                break
            yield match
            at = match.end()
        at = max(at, stop)


def search_in_windows(pattern: re.Pattern[str], text: str, longest: int) -> re.Match[str] | None:
    """The first of `find_in_windows`."""
    return next(find_in_windows(pattern, text, longest), None)


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """`1 memory`, `2,000 memories`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def format_bytes(count: int) -> str:
    """`1.2 kB`, `3.4 MB`."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def format_duration(seconds: float) -> str:
    """A duration: `12 s`, `4 min 5 s`, `3 h 20 min`, `12 d 3 h`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"


_SPACELESS = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
PRIVATE_USE = lazy_regex("[\ue000-\uf8ff]")
SPACELESS_RUN = lazy_regex(f"[{_SPACELESS}]+")
_LETTER = f"(?![{_SPACELESS}_])[\\w{_MARKS}]"
LETTER = lazy_regex(_LETTER)
WORD = lazy_regex(f"[{_SPACELESS}]+|(?:{_LETTER})+")

# Letters of scripts that put spaces between words: what is written without them may stand right beside an identifier.
IDENTIFIER_CHARS = "A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u0590-\u05ff\u0620-\u064a\\d"
_IDENTIFIER_LETTER = IDENTIFIER_CHARS.removesuffix(r"\d")
# Looking ahead is bounded: on a text without spaces it would take the square of its length.
IDENTIFIER = lazy_regex(
    r"https?://[^\s<>\"']+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]+|(?<![\w/.])[~.]{0,2}(?:/[\w.@+-]+){2,}"
    rf"|(?<![{IDENTIFIER_CHARS}_])(?=[{IDENTIFIER_CHARS}_-]{{0,64}}\d)"
    rf"(?=[\d_-]{{0,64}}[{_IDENTIFIER_LETTER}]|[{_IDENTIFIER_LETTER}])"
    rf"[{IDENTIFIER_CHARS}]+(?:[-_][{IDENTIFIER_CHARS}]+)*(?![{IDENTIFIER_CHARS}_])"
)
LONGEST_IDENTIFIER = 2_000
"""A longer one, in characters, is taken for several."""
_MEASURE = lazy_regex(r"\d+[^\W\d_]{1,3}|[^\W\d_]{1,2}\d{1,2}")

_STOP_WORDS = """
a about again all also am an and any are as at be been being but by can could d did do does doing don for from had
has have he her here him his how i if in into is isn it its just ll m may me might more most my no not now of on
or our out please re s shall she should so some t than that the their them then there these they this those to too
up us ve very was we were what when where which who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def split_spaceless_runs(text: str) -> str:
    """`text` with spaceless runs as overlapping pairs, the last character once more by itself."""
    if text.isascii():
        return text
    text = PRIVATE_USE.sub(" ", unicodedata.normalize("NFKC", text))
    return SPACELESS_RUN.sub(lambda run: f" {' '.join(character_pairs(run[0], with_last_character=True))} ", text)


def distinct_words(question: str) -> list[str]:
    """The different words of a question in their order, folded: of a spaceless run its pairs, or its only letter."""
    words: dict[str, None] = {}
    for run in WORD.findall(PRIVATE_USE.sub(" ", unicodedata.normalize("NFKC", question))):
        pieces = (character_pairs(run) or [strip_separator_signs(run)]) if SPACELESS_RUN.match(run) else [run]
        words.update((fold_text(piece), None) for piece in pieces if piece)
    return list(words)


def find_identifiers(text: str) -> list[str]:
    """The identifiers of a text ("zed-tau-417", a path, an address), folded; no ordinals, measures and the like."""
    matches = find_in_windows(IDENTIFIER, text, LONGEST_IDENTIFIER)
    names = (match[0].rstrip(".,;:!?)]}") for match in matches)
    return [fold_text(name) for name in names if not _MEASURE.fullmatch(name)]


def is_spaceless(word: str) -> bool:
    return SPACELESS_RUN.match(word) is not None


def character_pairs(run: str, *, with_last_character: bool = False) -> list[str]:
    """The overlapping pairs of a spaceless run; `with_last_character`: its last character too, so that it is found by
    itself."""
    chars = strip_separator_signs(run)
    pairs = [chars[i : i + 2] for i in range(len(chars) - 1)]
    return [*pairs, chars[-1:]] if with_last_character else pairs


def strip_separator_signs(run: str) -> str:
    """A run without the signs that `unicode61` takes for separators (vowels of Thai, Lao, Khmer, Burmese)."""
    return "".join(char for char in run if char.isalnum())


class _FoldTable(dict[int, str]):
    """Case and accents taken away, one character for one, so that places in a folded text are places in the text."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = unicodedata.normalize("NFKD", char)[0].lower()
        folded = plain if len(plain) == 1 else char
        self[code] = folded
        return folded


_FOLD_TABLE = _FoldTable()


def fold_text(text: str) -> str:
    """`text` without case and accents, as long as before."""
    if text.isascii():
        return text.lower()
    # Some at a time: each keeps the interpreter.
    return "".join(text[at : at + _WINDOW].translate(_FOLD_TABLE) for at in range(0, len(text), _WINDOW))


def shorten(text: str, limit: int) -> str:
    """`text` in at most `limit` characters; "…" stands for what was left out."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def shorten_line(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters."""
    return shorten(" ".join(text.split()), limit)


_UNFINISHED_WORD = lazy_regex(r"(?<=\s)\S{1,40}\Z")


def drop_unfinished_word(text: str) -> str:
    """`text` that is being written, up to its last whole word; scripts without blanks are shown as they come."""
    return _UNFINISHED_WORD.sub("", text).rstrip()


def preview_line(text: str) -> str:
    """On one line, and fit to stand between backticks."""
    return shorten_line(text.replace("`", "'"), 100)


# They hide or turn around what stands beside them.
_BIDI_CONTROLS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def host_of_address(address: str) -> str:
    """The host of a web address, and its port, without the user name and password that may stand before it."""
    return urlsplit(address).netloc.rpartition("@")[2] or address


def strip_control_characters(text: str, *, keep_newlines: bool = False) -> str:
    """`text` without what controls a terminal or turns words around; on one line unless `keep_newlines`."""
    cleaned = "".join(
        " " if unicodedata.category(letter) == "Cc" and not (keep_newlines and letter == "\n") else letter
        for letter in text
        if letter not in _BIDI_CONTROLS
    )
    if not keep_newlines:
        return " ".join(cleaned.split())
    return "\n".join(line.rstrip() for line in cleaned.strip().splitlines())
