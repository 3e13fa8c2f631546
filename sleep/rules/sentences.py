"""Splits a person's text into sentences, and blanks out what is not their own words. Pure.

- A sentence's `text` is verbatim except for white space; in `own_text`, quotations and code are replaced by spaces of
  the same length, so that no rule treats them as the person's words. Quoted lines and lines of code are not sentences.
- Pasted mail, articles, lyrics, logs, code and instructions to a machine are recognized by their form, not their
  content, and blanked in place, so that positions stay the same. In doubt a pasted block is not the person's; the
  message log has it.
- Abbreviations ("im", "u", "w/") are expanded for analysis only, if they are unambiguous; stored text is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import cast

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex, search_in_windows
from sleep.rules.pattern_files import load_pattern, read_words
from sleep.rules.sentence_cache import WITHIN_A_SENTENCE, cached_by_sentence
from sleep.rules.word_index import indexed

_ITS = load_pattern("sentences", "its")
_ASKS_TO_KEEP = load_pattern("sentences", "asks_to_keep")
_TITLE_POINT = lazy_regex(r"\b(Dra?|Mrs?|Ms|Sra?|Mme|Prof)\. +(?=\w)", re.IGNORECASE)
_WERE = lazy_regex(r"^were(?= (?:\w+ing|not|all|both|at|in|on|with|from|off|moving)\b)", re.IGNORECASE)


@cached_by_sentence(WITHIN_A_SENTENCE)
def expand_shorthand(text: str) -> str:
    """Return the text with abbreviations expanded."""
    plain = _substitute_shorthand()(_expanded, text.replace("’", "'"))
    return _WERE.sub("we're", _ITS.sub("it's", plain))


def _expanded(match: re.Match[str]) -> str:
    return read_words("shorthand")[match[0].lower()]


def strip_request_to_keep(text: str) -> str:
    """Return the statement without the words that ask to remember it ("Remember that", "Merk dir, dass"), and without
    the periods of titles, which end no sentence."""
    request = _ASKS_TO_KEEP.match(text)
    return _TITLE_POINT.sub(r"\1 ", text[request.end() :] if request else text)


def asks_to_keep(text: str) -> bool:
    """Return whether it begins by asking that something be remembered."""
    return _ASKS_TO_KEEP.match(text) is not None


@cache
def _shorthand() -> re.Pattern[str]:
    words = sorted(read_words("shorthand"), key=lambda word: (-len(word), word))
    return re.compile(
        rf"(?<![\w'’/&+.-])(?:{'|'.join(map(re.escape, words))})(?![\w’/&+-]|'(?!s\b)\w|\.\w)", re.IGNORECASE
    )


@cache
def _substitute_shorthand() -> Callable[..., str]:
    """Return its method `sub`, which passes over a text without any of it."""
    return cast(Callable[..., str], indexed(_shorthand())["sub"])


BLANKED_CHARACTER = "·"
_ASIDE = lazy_regex(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^(?: {4}|\t)[^\n]*$|^[ \t]*>[^\n]*$", re.DOTALL | re.MULTILINE)
_WITHIN = load_pattern("sentences", "within", indexed=False)
_BREAK = lazy_regex(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])[」』”]*|\n\s*")
_ABBREVIATION = load_pattern("sentences", "abbreviation", indexed=False)
_NUMBER = lazy_regex(r"(?:\bn[or]|\b\d{1,2})\.$", re.IGNORECASE)
_GOES_ON = lazy_regex(
    r"\d|(?-i:bis|und|ode)|(?:jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[kc]t|nov|de[csz])", re.IGNORECASE
)
_LOOKED_BACK = 12
_LISTED = lazy_regex(r"(?:[-*•+]|\d{1,2}[.)]|\[[ x]?\])\s+")
_ASKS = load_pattern("sentences", "asks")
_ASKS_CJK = load_pattern("sentences", "asks_cjk")
_MARK = lazy_regex(r"[?？؟][^\w?？؟]*$")


_DAY_AT_END = lazy_regex(r"(?:\b(?:am|den|dem|der|zum|bis)|\.) ?\d{1,2}\.$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence."""

    text: str  # as written
    own_text: str  # same length as `text`, with quotations blanked

    @property
    def is_question(self) -> bool:
        """Return whether it is a question, by question mark or word order."""
        return _is_question(self.own_text)

    @property
    def has_question_mark(self) -> bool:
        return bool(_MARK.search(self.own_text))


@cached_by_sentence(WITHIN_A_SENTENCE)
def _is_question(own_text: str) -> bool:
    bare = own_text.rstrip(".!。！… ")
    return bool(_MARK.search(own_text) or _ASKS.match(own_text) or _ASKS_CJK.search(bare))


def split_sentences(text: str) -> list[Sentence]:
    """Return the sentences in order; those without a letter of the person's own are omitted."""
    own = blank_quotations(text)
    sentences: list[Sentence] = []
    for start, end in _spans(own):
        listed = _LISTED.match(own, start, end)
        start = listed.end() if listed else start
        words = Sentence(" ".join(text[start:end].split()), " ".join(own[start:end].replace("’", "'").split()))
        if any(map(str.isalpha, words.own_text)):
            sentences.append(words)
    return sentences


def join_days(sentences: list[Sentence]) -> list[Sentence]:
    """Join what a German day of a month splits: "am 15. Zählerstand ablesen" is one sentence."""
    joined: list[Sentence] = []
    for sentence in sentences:
        last = joined[-1] if joined else None
        if last is not None and _DAY_AT_END.search(last.own_text):
            joined[-1] = Sentence(f"{last.text} {sentence.text}", f"{last.own_text} {sentence.own_text}")
        else:
            joined.append(sentence)
    return joined


def blank_quotations(text: str) -> str:
    """Return the text with quotations blanked."""
    return _WITHIN.sub(_blanked, _ASIDE.sub(_blank_out, text))


def _blank_out(match: re.Match[str]) -> str:
    """Replace by spaces of the same length."""
    return "".join("\n" if char == "\n" else " " for char in match[0])


def _blanked(match: re.Match[str]) -> str:
    """Blank a quotation but keep its marks, and its sentence end."""
    text, after = match[0], match.string[match.end() : match.end() + 2]
    ends = text[-2] in ".!?" and after[:1].isspace() and after[1:].isupper()
    return f"{text[0]}{BLANKED_CHARACTER * (len(text) - 2 - ends)}{text[-2:] if ends else text[-1]}"


def _spans(own: str) -> Iterator[tuple[int, int]]:
    start = _skipped(own, 0)
    for match in _BREAK.finditer(own):
        preceding = own[max(start, match.start() - _LOOKED_BACK) : match.start()]
        if "\n" not in match[0] and is_within_sentence(preceding, own[match.end() : match.end() + 3]):
            continue
        # Closing quotation marks belong to the sentence they close.
        end = match.end() - (len(match[0]) - len(match[0].rstrip()))
        if end > start:
            yield start, end
            start = _skipped(own, match.end())
    if start < len(own):
        yield start, len(own)


def is_within_sentence(preceding: str, following: str) -> bool:
    """Whether a full stop at the end of `preceding` ends no sentence, as in "Dr. Lund" or "am 4. Mai". The last dozen
    characters before it are enough, and the first few after the blank."""
    if _ABBREVIATION.search(preceding):
        return True
    return bool(_NUMBER.search(preceding) and _GOES_ON.match(following))


def _skipped(own: str, start: int) -> int:
    while start < len(own) and own[start].isspace():
        start += 1
    return start


_FENCED = lazy_regex(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_HEADER = load_pattern("sentences", "header")
_LETTER = lazy_regex(
    r"^[ \t]*(?:dear|hi|hello|hey|good (?:morning|afternoon))[ ,]+[^\n.!?]{1,40},[ \t]*\n", re.I | re.M
)
_INTRODUCED = load_pattern("sentences", "introduced")
_ORDERED = load_pattern("sentences", "ordered")
_SPEAKS_AGAIN = load_pattern("sentences", "speaks_again")
_MACHINE_LINE = load_pattern("sentences", "machine_line")
_INJECTED = load_pattern("sentences", "injected")
_VERSE_LINE = lazy_regex(r"^[ \t]*(?![-*•\d])[^\n\d:@=]{8,70}[^\n\d.:;?@=]$")
_PLAY = load_pattern("sentences", "play")
_PLAY_ENDS = load_pattern("sentences", "play_ends")
_ACTION = lazy_regex(r"(?<![\w*])\*[^*\n]{3,80}\*(?![\w*])")
_FEW_LINES = 4
# Number of characters searched for the beginning of foreign text.
_LONGEST = 8_000


def blank_foreign_text(text: str) -> str:
    """Return the text with everything that is not the person's own blanked; same length and line breaks."""
    if any(search_in_windows(form, text, _LONGEST) for form in (_INJECTED, _PLAY, _ACTION)):
        return _blank(text)
    own = _FENCED.sub(lambda match: _blank(match[0]), text)
    for form in (_HEADER, _INTRODUCED, _ORDERED, _LETTER):
        match = search_in_windows(form, own, _LONGEST)
        if match is not None:
            start = match.start() if form in (_HEADER, _LETTER) else match.end()
            own = _without_block(own, start, whole=form is _INTRODUCED and not match[0].endswith("\n"))
    own = _without_verse(own)
    return _MACHINE_LINE.sub(lambda match: _blank(match[0]), own) if "\n" in own or _is_log(own) else own


def starts_role_play(text: str) -> bool:
    """Return whether a game begins in which people make up statements."""
    return any(
        search_in_windows(form, own, _LONGEST) for form, own in ((_PLAY, expand_shorthand(text)), (_ACTION, text))
    )


def ends_role_play(text: str) -> bool:
    return bool(_PLAY_ENDS.search(text))


def _is_log(text: str) -> bool:
    return bool(_MACHINE_LINE.match(text))


def _without_block(text: str, start: int, *, whole: bool) -> str:
    """Blank a block starting at `start`, until the person's own words continue; `whole`: it began with that line only,
    so the next line may be the person's."""
    again = _SPEAKS_AGAIN.search(text, start)
    end = again.end() if again else len(text)
    if whole and not again:
        line = text.find("\n", start)
        end = line if line > 0 else len(text)
    return text[:start] + _blank(text[start:end]) + text[end:]


def _without_verse(text: str) -> str:
    """Blank the lines of a song or poem: many in a row that do not end like sentences or begin like one."""
    if text.count("\n") < _FEW_LINES - 1:
        return text
    lines = text.split("\n")
    shown: list[str] = []
    run: list[str] = []
    for line in [*lines, ""]:
        if _VERSE_LINE.match(line):
            run.append(line)
            continue
        verse = len(run) >= _FEW_LINES and sum(verse_line.strip()[:1].isupper() for verse_line in run) > len(run) / 2
        shown += [_blank(verse_line) if verse else verse_line for verse_line in run]
        run = []
        shown.append(line)
    return "\n".join(shown[: len(lines)])


def _blank(text: str) -> str:
    return "".join("\n" if char == "\n" else " " for char in text)
