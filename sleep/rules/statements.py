"""Parses a statement by its form: who it is about, which numbers, days and names it has, whether it ends, changes or
adds something, and which words of an earlier statement it replaces. Pure.

For changes only the main clause counts ("because ..." explains them); numbers, days and months are compared as values
in any spelling, days and months in five languages; scripts without spaces are read as pairs of characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from assistant.core.dataclass import dataclass
from assistant.core.text import SPACELESS_RUN, STOP_WORDS, WORD, character_pairs, fold_text, lazy_regex
from sleep.rules.pattern_files import load_pattern, read_word_set, read_words
from sleep.rules.sentences import expand_shorthand, strip_request_to_keep

_LONGEST = 1_500
# The dates appended by `sleep.rules.resolve_dates`.
_DATED = lazy_regex(r" \([^()]*\b(?:19|20)\d\d[^()]*\)$")
_ALIKE = 0.75


@cache
def _by_word(table: str) -> dict[str, str]:
    """Return the value of each word of a table of `words.toml`."""
    return {word: value for value, words in read_words(table).items() for word in words.split()}


_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_COMPOUND = lazy_regex(rf"\b({_TENS.replace(' ', '|')})[- ](one|two|three|four|five|six|seven|eight|nine)\b")

_NUMBER = load_pattern("statements", "number")
_ENDS = load_pattern("statements", "ends")
_DENIES = load_pattern("statements", "denies")
_CHANGES = load_pattern("statements", "changes")
_CORRECTS = load_pattern("statements", "corrects")
_ADDS = load_pattern("statements", "adds")
_HAPPENED = load_pattern("statements", "happened")
_INDEFINITE = load_pattern("statements", "indefinite")
_REASON = load_pattern("statements", "reason")
_CLAUSES = lazy_regex(r"[,;:.!] | - | and (?=(?:the|my|our|i|we|it|he|she|they)\b)| but | so (?!that)")
_NOT = load_pattern("statements", "not")
_BUT = load_pattern("statements", "but")
_FROM_TO = load_pattern("statements", "from_to")
_WAS = load_pattern("statements", "was")
_CJK_NOT = load_pattern("statements", "cjk_not")

_LIKES = load_pattern("statements", "likes")
_HATES = load_pattern("statements", "hates")

_WHO_WORDS = "i me my we our us the a an user users is are am s m re im ve d ll that this it so just"
_WHO = frozenset(_WHO_WORDS.split())
_CAPITAL = lazy_regex(r"(?<![.!?…:\n] )(?<=[^\W\d_]|[,;\-'’\"“(]|\d)(?<=\S)[\s\"“(]{1,20}(?P<name>[A-ZÀ-ÖØ-Þ][\w’'-]*)")
_POSSESSIVE = lazy_regex(r"['’]s\b|s['’](?=\s)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A parsed statement."""

    text: str
    words: tuple[str, ...]  # all words in order
    content_stems: frozenset[str]  # words without stop words, numbers, days and words of change
    main_stems: frozenset[str]  # words of the clauses with a change, or of the main clause
    names: frozenset[str]  # capitalised as names
    values: frozenset[tuple[str, str]]  # ("number", "900"), ("day", "day3"), ...
    main_values: frozenset[tuple[str, str]]
    replaced: tuple[Statement, ...]  # what it says is no longer true
    sentiment: int  # 1 likes, -1 dislikes, 0 neither
    says_ended: bool
    is_negated: bool
    says_changed: bool
    says_additional: bool
    is_past_event: bool
    is_indefinite: bool

    def values_of_kind(self, kind: str, *, main: bool = False) -> frozenset[str]:
        """Return its values of a kind; `main`: prefer those in the clauses with a change."""
        values = self.main_values if main else self.values
        return frozenset(value for value_kind, value in values if value_kind == kind)

    def is_named_in(self, other: Statement) -> bool:
        """Return whether everything it names, if anything, is in the other one."""
        names_something = self.content_stems & other.content_stems or self.values & other.values
        return bool(names_something) and self.content_stems <= other.content_stems and self.values <= other.values


def parse_statement(text: str) -> Statement:
    """Parse the first 1,500 characters."""
    plain = expand_shorthand(" ".join(strip_request_to_keep(text[:_LONGEST]).split()))
    corrects = _CORRECTS.match(plain)
    return _statement(plain[corrects.end() :] if corrects else plain, with_old=True, corrects=corrects is not None)


def _statement(text: str, *, with_old: bool, corrects: bool = False) -> Statement:
    """`corrects`: it began with words that retract something, which negate nothing in it."""
    folded = fold_text(text)
    bare = _DATED.sub("", folded)
    clause = _REASON.split(bare, maxsplit=1)[0]
    old = tuple(_statement(part, with_old=False) for part in _corrected(bare)) if with_old else ()
    replaced_stems = frozenset[str]().union(*(replaced.content_stems for replaced in old))
    content, main = frozenset(_stems(folded)), frozenset(_stems(_changed(clause)))
    values = frozenset(_values(bare)) or frozenset(_values(folded))
    for replaced in old:
        values -= replaced.values
    return Statement(
        text=text,
        words=tuple(word for word in WORD.findall(_POSSESSIVE.sub("", folded)) if word not in _WHO),
        content_stems=content - replaced_stems,
        main_stems=(main - replaced_stems) or (content - replaced_stems),
        names=frozenset(stem_word(fold_text(match["name"])) for match in _CAPITAL.finditer(f". {text}"))
        & (content - replaced_stems),
        values=values,
        main_values=values & frozenset(_values(_changed(clause))) or values,
        replaced=old,
        sentiment=-1 if _HATES.search(folded) else 1 if _LIKES.search(folded) else 0,
        says_ended=not old and bool(_ENDS.search(folded)),
        is_negated=not old and bool(_DENIES.search(folded) or _ENDS.search(folded)),
        says_changed=corrects or bool(_CHANGES.search(folded)) or bool(old),
        says_additional=bool(_ADDS.search(folded)),
        is_past_event=bool(_HAPPENED.search(folded)),
        is_indefinite=bool(_INDEFINITE.search(folded)),
    )


def _corrected(folded: str) -> Iterator[str]:
    """Return the words of what a statement says is no longer true."""
    auxiliary = read_word_set("auxiliary")
    for match in _NOT.finditer(folded):
        english = match["how"] in ("not", "instead of", "rather than")
        if match["comma"] or (match["how"] != "not" and english) or (english and match["before"] not in auxiliary):
            yield match["old"]
    for form in (_BUT, _FROM_TO, _WAS, _CJK_NOT):
        for match in form.finditer(folded):
            yield next(group for group in match.groups() if group is not None)


def _changed(clause: str) -> str:
    """Return the clauses with a word of change if they have a topic and a value; else the whole text."""
    marked = ", ".join(part for part in _CLAUSES.split(clause) if _CHANGES.search(part))
    says_both = any(True for _ in _stems(marked)) and any(True for _ in _values(marked))
    return marked if says_both else clause


@cache
def _small_words() -> frozenset[str]:
    return (STOP_WORDS | read_word_set("small")) - {"may"}


def _stems(folded: str) -> Iterator[str]:
    plain = _POSSESSIVE.sub("", _NUMBER.sub(" ", folded))
    for word in WORD.findall(plain):
        if SPACELESS_RUN.fullmatch(word):
            yield from character_pairs(word) or [word]
        elif not (word in _small_words() or word in _by_word("numbers") or _of_calendar(word) or word.isdigit()):
            yield stem_word(word)


def stem_word(word: str) -> str:
    """Return a word without the commonest English endings; other languages are mostly unchanged."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word


def is_same_stem(word: str, other: str) -> bool:
    """Return whether they are the same word or forms of it ("allergic", "allergy")."""
    if word == other:
        return True
    longest = max(len(word), len(other))
    common = next((n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    return common >= max(4, _ALIKE * longest)


def _of_calendar(word: str) -> tuple[str, str] | None:
    """Yield ("day", "day0") to ("month", "month11")."""
    for kind, table in (("day", _by_word("days")), ("month", _by_word("months"))):
        value = table.get(word) or table.get(word.removesuffix("s"))
        if value is not None:
            return kind, value
    return None


def _values(folded: str) -> Iterator[tuple[str, str]]:
    numbers = _by_word("numbers")
    folded = _COMPOUND.sub(lambda match: str(int(numbers[match[1]]) + int(numbers.get(match[2], "1"))), folded)
    for match in _NUMBER.finditer(folded):
        hour, minute, half, bare_hour, bare_half, number, times = match.groups()
        if bare_hour or half:
            yield ("time", _time(hour or bare_hour, minute or "00", half or bare_half))
        elif minute is not None and (":" in match[0] or (int(minute) < 60 and int(hour) < 24)):
            yield ("time", _time(hour, minute, None))
        elif number:
            yield ("number", _number(number, times))
    for word in WORD.findall(folded):
        calendar = _of_calendar(word)
        if calendar is not None and not (word in ("may", "mars", "sun", "sat", "wed") and not _is_date(word, folded)):
            yield calendar
        elif word in numbers:
            yield ("number", numbers[word])


def _is_date(word: str, folded: str) -> bool:
    """Return whether an ambiguous word is a date: next to a number or after a word of time."""
    return bool(
        re.search(
            rf"\d(?:st|nd|rd|th)?(?: of)? {word}\b|\b(?:in|on|by|until|since|next|last|early|late) {word}\b"
            rf"|\b{word} \d",
            folded,
        )
    )


def _time(hour: str, minute: str, half: str | None) -> str:
    hours = int(hour) % 12 + 12 if half == "pm" else int(hour)
    return f"{hours}:{minute}"


def _number(digits: str, times: str | None) -> str:
    plain = re.sub(r"[., ](?=\d{3}(?:\D|$))", "", digits).replace(",", ".")
    value = float(plain) * {None: 1, "k": 1_000, "thousand": 1_000}.get(times, 1_000_000)
    return f"{value:g}" if value < 1e15 else plain
