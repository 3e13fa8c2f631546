"""Text utilities: lazy regular expressions, tokenisation for any script, counts and durations, shortening and cleaning
of lines. Pure; imports nothing of the project.

Regular expressions are compiled on first use: a start needs few of the hundreds in the project, and compiling all would
take a third of the start time. Scripts without spaces (Chinese, Japanese, Thai, ...; also Korean, because of its
particles) are tokenised as overlapping character pairs, so that any part of a run matches.
"""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence, Sized
from typing import Any, ParamSpec, TypeVar, cast
from urllib.parse import urlsplit


class _LazyPattern:
    """A proxy for `re.Pattern` that caches the attributes it has resolved."""

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
    """Like `re.compile`, but compiled on first use. Use its methods: the functions of `re` do not accept it. A syntax
    error only surfaces on first use."""
    return cast(re.Pattern[str], _LazyPattern(pattern, flags))


_MAX_JSON_DEPTH = 64


def parse_json(text: str) -> Any:
    """Parse JSON that somebody else wrote. Raises `ValueError`, also for NaN and infinity, which are no JSON, and for
    values within more than 64 others, at which code that follows them down may fail later."""
    try:
        parsed = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level: list[Any] = [parsed]
    for _ in range(_MAX_JSON_DEPTH):
        inner = [value.values() if isinstance(value, dict) else value for value in level if _has_parts(value)]
        level = [value for values in inner for value in values]
        if not level:
            return parsed
    raise ValueError("it is nested too deeply")


def _has_parts(value: object) -> bool:
    return isinstance(value, dict | list)


def _refuse_constant(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


P = ParamSpec("P")
T = TypeVar("T")
_SHORT = 2_000


def is_long(length: int) -> bool:
    """Return whether work on a text of this length is done beside the event loop (`beside_loop`)."""
    return length > _SHORT


async def beside_loop(length: int, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call `work`, in a worker thread if the text of this length is long, so that the event loop is not blocked."""
    if is_long(length):
        return await asyncio.to_thread(work, *arguments, **named)
    return work(*arguments, **named)


# Their request is made in some milliseconds; a thread has to be waited for twice, which takes one where others work.
_MANY_MESSAGES = 1_000


async def beside_loop_if_many(messages: Sized, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call `work`, which looks at all of these messages, as `beside_loop` does: in a worker thread if they are many."""
    if len(messages) > _MANY_MESSAGES:
        return await asyncio.to_thread(work, *arguments, **named)
    return work(*arguments, **named)


# Characters searched at once; takes some milliseconds for the slowest expression.
_WINDOW = 16_384
_LOOKED_BACK = 32


def find_in_windows(
    pattern: re.Pattern[str], text: str, longest: int, needed: Sequence[str] = ()
) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern` as `finditer` does; matches longer than `longest` characters may be missed. `re`
    holds the GIL until it finds something, and so blocks the event loop from any thread: searching in windows lets
    other threads run every few milliseconds.

    If every match contains one of the casefolded strings `needed`, windows without any are skipped.
    """
    if len(text) <= _WINDOW:
        return pattern.finditer(text)
    return _find_in_windows(pattern, text, longest, needed)


def _find_in_windows(
    pattern: re.Pattern[str], text: str, longest: int, needed: Sequence[str]
) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        stop = at + _WINDOW
        window_end = min(stop + longest, len(text))
        if needed:
            # Include what a lookbehind may need.
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
    """Return the first match of `find_in_windows`, or None."""
    return pattern.search(text) if len(text) <= _WINDOW else next(find_in_windows(pattern, text, longest), None)


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """Return `1 memory`, `2,000 memories`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def format_bytes(count: int) -> str:
    """Return `1.2 kB`, `3.4 MB`."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def format_duration(seconds: float) -> str:
    """Return `12 s`, `4 min 5 s`, `3 h 20 min`, `12 d 3 h`."""
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

# Letters of scripts with spaces between words; other scripts may directly adjoin an identifier.
IDENTIFIER_CHARS = "A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u0590-\u05ff\u0620-\u064a\\d"
_IDENTIFIER_LETTER = IDENTIFIER_CHARS.removesuffix(r"\d")
# The lookahead is bounded: otherwise it takes quadratic time on text without spaces.
IDENTIFIER = lazy_regex(
    r"https?://[^\s<>\"']+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]+|(?<![\w/.])[~.]{0,2}(?:/[\w.@+-]+){2,}"
    rf"|(?<![{IDENTIFIER_CHARS}_])(?=[{IDENTIFIER_CHARS}_-]{{0,64}}\d)"
    rf"(?=[\d_-]{{0,64}}[{_IDENTIFIER_LETTER}]|[{_IDENTIFIER_LETTER}])"
    rf"[{IDENTIFIER_CHARS}]+(?:[-_][{IDENTIFIER_CHARS}]+)*(?![{IDENTIFIER_CHARS}_])"
)
LONGEST_IDENTIFIER = 2_000
"""Longer ones, in characters, are split."""
_MEASURE = lazy_regex(r"\d+[^\W\d_]{1,3}|[^\W\d_]{1,2}\d{1,2}")

_STOP_WORDS = """
a about again all also am an and any are as at be been being but by can could d did do does doing don for from had
has have he her here him his how i if in into is isn it its just ll m may me might more most my no not now of on
or our out please re s shall she should so some t than that the their them then there these they this those to too
up us ve very was we were what when where which who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def split_spaceless_runs(text: str) -> str:
    """Replace runs of spaceless scripts by overlapping pairs, followed by the last character alone."""
    if text.isascii():
        return text
    text = PRIVATE_USE.sub(" ", unicodedata.normalize("NFKC", text))
    return SPACELESS_RUN.sub(lambda run: f" {' '.join(character_pairs(run[0], with_last_character=True))} ", text)


def distinct_words(question: str) -> list[str]:
    """Return the distinct folded words of a question in order; for a spaceless run its pairs, or its only letter."""
    words: dict[str, None] = {}
    for run in WORD.findall(PRIVATE_USE.sub(" ", unicodedata.normalize("NFKC", question))):
        pieces = (character_pairs(run) or [strip_separator_signs(run)]) if SPACELESS_RUN.match(run) else [run]
        words.update((fold_text(piece), None) for piece in pieces if piece)
    return list(words)


def find_identifiers(text: str) -> list[str]:
    """Return the folded identifiers of a text ("zed-tau-417", a path, an address), without ordinals, measures and the
    like."""
    matches = find_in_windows(IDENTIFIER, text, LONGEST_IDENTIFIER)
    names = (match[0].rstrip(".,;:!?)]}") for match in matches)
    return [fold_text(name) for name in names if not _MEASURE.fullmatch(name)]


def is_spaceless(word: str) -> bool:
    return SPACELESS_RUN.match(word) is not None


def character_pairs(run: str, *, with_last_character: bool = False) -> list[str]:
    """Return the overlapping pairs of a spaceless run; `with_last_character` adds the last character, so that it is
    found alone."""
    chars = strip_separator_signs(run)
    pairs = [chars[i : i + 2] for i in range(len(chars) - 1)]
    return [*pairs, chars[-1:]] if with_last_character else pairs


def strip_separator_signs(run: str) -> str:
    """Remove signs that `unicode61` treats as separators (vowels of Thai, Lao, Khmer, Burmese)."""
    return "".join(char for char in run if char.isalnum())


class _FoldTable(dict[int, str]):
    """Removes case and accents character by character, so that offsets in the folded text are valid in the original."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = unicodedata.normalize("NFKD", char)[0].lower()
        folded = plain if len(plain) == 1 else char
        self[code] = folded
        return folded


_FOLD_TABLE = _FoldTable()


def fold_text(text: str) -> str:
    """Remove case and accents, preserving the length."""
    if text.isascii():
        return text.lower()
    # In slices, since each call holds the GIL.
    return "".join(text[at : at + _WINDOW].translate(_FOLD_TABLE) for at in range(0, len(text), _WINDOW))


def replace_folded(pattern: re.Pattern[str], text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    """Replace the matches that a pattern has in the folded text; the rest keeps its original form."""
    for match in reversed(list(pattern.finditer(fold_text(text)))):
        text = f"{text[: match.start()]}{replacement(match)}{text[match.end() :]}"
    return text


def shorten(text: str, limit: int) -> str:
    """Truncate to at most `limit` characters, ending in "…"."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def shorten_line(text: str, limit: int) -> str:
    """Join `text` to one line of at most `limit` characters."""
    return shorten(" ".join(text.split()), limit)


_LONG_WORD = lazy_regex(r"\S{200,}")
_MOST_LINES, _MOST_CHARACTERS = 40, 4_000


def quote_briefly(text: str) -> str:
    """Return what is said about something wrong without the middle of huge words, lines and texts quoted in it: what to
    do about it stands at the end."""
    if len(text) <= 200:
        return text
    if len(text) > 5 * _MOST_CHARACTERS:
        text = f"{text[: 4 * _MOST_CHARACTERS]}…{text[-_MOST_CHARACTERS:]}"
    lines = _LONG_WORD.sub(lambda word: f"{word[0][:120]}…{word[0][-40:]}", text).split("\n")
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES // 2], "…", *lines[-_MOST_LINES // 2 + 1 :]]
    brief = "\n".join(lines)
    return brief if len(brief) <= _MOST_CHARACTERS else f"{brief[: _MOST_CHARACTERS // 2]}…{brief[-1_000:]}"


_UNFINISHED_WORD = lazy_regex(r"(?<=\s)\S{1,40}\Z")


def drop_unfinished_word(text: str) -> str:
    """Remove the unfinished last word of text that is being streamed; scripts without spaces are kept."""
    return _UNFINISHED_WORD.sub("", text).rstrip()


def preview_line(text: str) -> str:
    """Return a one-line preview that is safe inside backticks."""
    return shorten_line(text.replace("`", "'"), 100)


# They hide or reorder adjacent text.
_BIDI_CONTROLS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def host_of_address(address: str) -> str:
    """Return the host and port of a URL, without user name and password."""
    return urlsplit(address).netloc.rpartition("@")[2] or address


def strip_control_characters(text: str, *, keep_newlines: bool = False) -> str:
    """Remove control characters and direction marks; on one line unless `keep_newlines`."""
    cleaned = "".join(
        " " if unicodedata.category(letter) == "Cc" and not (keep_newlines and letter == "\n") else letter
        for letter in text
        if letter not in _BIDI_CONTROLS
    )
    if not keep_newlines:
        return " ".join(cleaned.split())
    return "\n".join(line.rstrip() for line in cleaned.strip().splitlines())


def limit_lines(lines: Sequence[str], limit: int) -> list[str]:
    """Return at most `limit` lines, and a last one that says how many more there are."""
    more = len(lines) - limit
    return [*lines[:limit], f"… and {more:,} more."] if more > 0 else list(lines)
