"""Recognises expressions of time in English, German, French and Spanish text.

`find_times` splits a text into times and other words; `time_resolve.resolve_times` computes the moment they mean
relative to a local time, and the recurrence. Only what is named counts, moments are in the future, and texts of more
than 2,000 characters are not searched. Pure; the vocabulary is in `time_language`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text
from assistant.core.time_ends import read_as_end, tell_end_apart
from assistant.core.time_language import AND, CORRECTED, NEGATION, NEW, OLD, SOURCES
from assistant.core.time_readers import READERS, TimePiece
from assistant.core.time_spelling import spell_times

LONGEST_TEXT = 2000
_AND = re.compile(AND)
# What one language has before a time is a name where another language's words follow: "ring Uncle Des on Sunday".
_NAME_BEFORE = re.compile(
    r"(?:des|al|el|este|del|la|le|les|los)\s+(?=(?:on|at|by|until|till|before|am|um|bis|gegen)\s)"
)
_NAMES = r"(?:Des|Al|Este|Til)\b"
_NAME_FIRST = re.compile(_NAMES)
_NAME = re.compile(rf"(?:\w+\s+){{0,3}}?{_NAMES}\s+(?!\d)")


@dataclass(frozen=True, slots=True)
class FoundTimes:
    """The times in a text, and the remaining words."""

    text: str
    pieces: tuple[TimePiece, ...] = ()
    words: str = ""
    dropped: tuple[TimePiece, ...] = ()  # negated or corrected by the speaker

    def of_kind(self, *kinds: str) -> list[TimePiece]:
        return [piece for piece in self.pieces if piece.kind in kinds]

    @property
    def names_moment(self) -> bool:
        return any(piece.kind != "span" for piece in self.pieces)

    @property
    def has_clock(self) -> bool:
        """Whether a time of day follows from it."""
        return any(
            piece.kind in ("clock", "part") or (piece.kind == "delta" and piece.minutes) for piece in self.pieces
        )

    @property
    def has_day(self) -> bool:
        """Whether a day follows from it."""
        return bool(self.of_kind("day", "delta"))

    @property
    def joined_days(self) -> list[TimePiece]:
        """Days joined only by "and": "3. und 10. Mai"; empty if there is just one, as in "Sonntag, den 22."."""
        days = self.of_kind("day")
        is_one = any(
            one.weekday is not None and two.on is not None and not self.text[one.end : two.start].strip(" ,")
            for one, two in pairwise(days)
        )
        return days if len(days) > 1 and not is_one and are_joined(self, days) else []

    @property
    def rule(self) -> str:
        """The RRULE parts; "every two weeks" and "on Saturdays" are combined to one rule."""
        rules = [piece.rule for piece in self.of_kind("repeat")]
        step = next((rule for rule in rules if rule.startswith("FREQ=WEEKLY") and "BYDAY" not in rule), "")
        days = next((rule for rule in rules if rule.startswith("FREQ=WEEKLY;BYDAY=")), "")
        return f"{step};{days.removeprefix('FREQ=WEEKLY;')}" if step and days else next(iter(rules), "")

    @property
    def phrase(self) -> str:
        """The times alone, as written."""
        return " ".join(self.text[piece.start : piece.end].strip(" ,") for piece in self.pieces)


def are_joined(times: FoundTimes, pieces: Sequence[TimePiece]) -> bool:
    """Return whether the pieces are joined only by "and"."""
    gaps = (times.text[one.end : two.start] for one, two in pairwise(pieces))
    return all(_AND.fullmatch(fold_text(gap)) for gap in gaps)


@lru_cache(maxsize=256)
def find_times(text: str) -> FoundTimes:
    """Return every time that `text` names; for a corrected one ("at 3, no, at 4"; "Monday, not Friday") only the
    correction."""
    text = " ".join(text.split())
    return FoundTimes(text, (), text) if len(text) > LONGEST_TEXT else _find_times(text)


@lru_cache(maxsize=64)  # a sentence is parsed a dozen times while it is answered
def _find_times(text: str) -> FoundTimes:
    text = spell_times(text)
    left = fold_text(text).replace("’", "'")
    pieces: list[TimePiece] = []
    for kind, pattern in SOURCES:
        for match in list(pattern.finditer(left)):
            piece = READERS[kind](match)
            if piece is not None and match[0].strip():
                name = _length_of_name(text, left, *match.span())
                pieces.append(replace(piece, start=piece.start + name))
                start = match.start() + name
                left = f"{left[:start]}{chr(0) * (match.end() - start)}{left[match.end() :]}"
    folded = fold_text(text)
    pieces = _days_of_weeks(left, sorted(pieces, key=lambda piece: piece.start))
    pieces = tell_end_apart(left, folded.replace("’", "'"), pieces)
    kept = _morning_of_days(text, _without_old(folded, pieces))
    return _without_times(text, _words_between(text, folded, pieces), kept, pieces)


def begins_with_name(words: str, text: str) -> bool:
    """Whether words of a text begin with a name that looks like an article: not where the text itself begins."""
    return _NAME_FIRST.match(words) is not None and not text.lstrip().startswith(words)


def _length_of_name(text: str, folded: str, start: int, end: int) -> int:
    """How many characters at the start of a time are of a name: one is written with a capital within a sentence."""
    if not text[:start].strip() or text[:start].rstrip()[-1] in ".!?:":
        return 0
    match = _NAME.match(text, start, end) or _NAME_BEFORE.match(folded, start, end)
    return len(match[0]) if match and not text.isupper() else 0


def _days_of_weeks(left: str, pieces: Sequence[TimePiece]) -> list[TimePiece]:
    """Join "next week on Friday" to one day, like "Friday next week"."""
    joined: list[TimePiece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.kind, last.part) == ("span", "nextweek")
            and piece.weekday is not None
            and not left[last.end : piece.start].strip(" ,")
        ):
            joined[-1] = replace(piece, start=last.start, part="nextweek")
        else:
            joined.append(piece)
    return joined


def find_end(text: str) -> TimePiece | None:
    """Return the day of a text behind "until", whether the text says how often something is or not."""
    times = find_times(text)
    folded = fold_text(times.text).replace("’", "'")
    ends = next(iter(times.of_kind("until")), None)
    days = times.of_kind("day", "span")
    return ends or next((end for piece in days if (end := read_as_end(folded, piece))), None)


def _without_times(
    text: str, gaps: Sequence[str], kept: Sequence[TimePiece], pieces: Sequence[TimePiece]
) -> FoundTimes:
    dropped = tuple(piece for piece in pieces if all(piece.start != other.start for other in kept))
    return FoundTimes(text, tuple(kept), " ".join(" ".join(gaps).split()), dropped)


def _words_between(text: str, folded: str, pieces: Sequence[TimePiece]) -> list[str]:
    """The words before, between and behind the times, without those that put a time right: "at 3, no, sorry, at 4"."""
    between = []
    for old, new in pairwise((None, *pieces, None)):
        start, end = old.end if old else 0, new.start if new else len(text)
        corrected = old is not None and new is not None and _is_corrected(folded[start:end], old, new)
        between.append("" if corrected else text[start:end])
    return between


def _is_corrected(between: str, old: TimePiece, new: TimePiece) -> bool:
    return _is_alike(old, new) and CORRECTED.match(between) is not None and bool(between.strip(" ,.-"))


def _without_old(folded: str, pieces: Sequence[TimePiece]) -> list[TimePiece]:
    """Drop times that the text negates or replaces by another one."""
    dropped: set[int] = set()
    for number, piece in enumerate(pieces):
        before = folded[pieces[number - 1].end if number else 0 : piece.start]
        alike = [n for n, other in enumerate(pieces) if n != number and _is_alike(piece, other)]
        if not alike:
            continue
        own = folded[piece.start : piece.end]
        if NEGATION.search(before) or re.match(r"(?:not|no|pas|nicht) ", own):
            dropped.add(number)
        elif number and number - 1 in alike and CORRECTED.match(before) and before.strip(" ,.-"):
            dropped.add(number - 1)
        elif number + 1 in alike and (OLD.search(before) or re.match(r"(?:from|von|vom|de|del|du) ", own)):
            between = folded[piece.end : pieces[number + 1].start]
            # "From Monday every weekday" begins on Monday.
            begins = pieces[number + 1].kind == "repeat" != piece.kind and not between.strip()
            if NEW.match(between) and not begins:
                dropped.add(number)
    return [piece for number, piece in enumerate(pieces) if number not in dropped]


def _is_alike(one: TimePiece, other: TimePiece) -> bool:
    days = {"day", "repeat"}
    return one.kind == other.kind or {one.kind, other.kind} <= days


def _morning_of_days(text: str, pieces: Sequence[TimePiece]) -> list[TimePiece]:
    """Read "morgen" after a day as "morning" ("heute morgen"); alone it means tomorrow."""
    kept: list[TimePiece] = []
    for piece in pieces:
        own = fold_text(text[piece.start : piece.end])
        if own == "morgen" and kept and kept[-1].kind in ("day", "repeat") and piece.start - kept[-1].end <= 1:
            kept.append(replace(piece, kind="part", part="morning", offset=None))
        else:
            kept.append(piece)
    return kept
