"""Splits a line into what it is about and when that is: "call mum tomorrow at 9" into "call mum" and "tomorrow at 9".

The time stands at the end or at the beginning. One in the middle is part of what it is about, and so is one that the
words before it need: "read the paper about Monday".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text, lazy_regex
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import TimePiece

_REQUEST = lazy_regex(r"^(?:please )?(?:remind me|me)\b[\s,:]*", re.IGNORECASE)
_TO = lazy_regex(r"^(?:to|that|about|of)\s+", re.IGNORECASE)
# What ends with one of these goes on.
_NEEDS_MORE = lazy_regex(
    r"(?:^|\s)(?:about|of|from|since|than|the|uber|von|seit|als|der|die|das|du|des|sur|depuis|del|sobre|desde|que)$"
)
# "Book a table for Saturday" is no deadline.
_FOR = lazy_regex(r"^(?:for|fur|pour|para)\b")
_GAP = " ,:-"


@dataclass(frozen=True, slots=True)
class SplitLine:
    """`when` is "" where no time was found; `pieces` are those it was made of."""

    what: str
    when: str = ""
    pieces: tuple[TimePiece, ...] = ()


def split_reminder(text: str) -> tuple[str, str]:
    """Split a request for a reminder into what and when; when is "" if no time is given."""
    request = " ".join(_REQUEST.sub("", text.strip(), count=1).rstrip(" .!?").split())
    split = _split(request)
    return (split.what or _TO.sub("", request)), split.when


def split_due(text: str) -> tuple[str, str]:
    """Split a to-do into what is to be done and by which day; the day is "" where none is given, or where it is a part
    of what is to be done."""
    split = _split(" ".join(text.split()))
    is_day = any(piece.kind == "day" or (piece.kind == "delta" and piece.days) for piece in split.pieces)
    is_once = all(piece.kind in ("day", "delta", "clock", "part") for piece in split.pieces)
    if split.what and is_day and is_once and not _FOR.match(fold_text(split.when)):
        return split.what, split.when
    return text, ""


def _split(line: str) -> SplitLine:
    times = find_times(line)
    text, pieces = times.text, times.pieces
    if not any(piece.kind != "span" for piece in pieces):
        return SplitLine("")
    first, last = _run(times, from_end=False), _run(times, from_end=True)
    leads = not text[: first[0].start].strip(_GAP)
    after = text[first[-1].end :].lstrip(_GAP)
    leading = SplitLine(_TO.sub("", after), _words(text, first), first)
    if leads and _TO.match(after):
        return leading
    before = text[: last[0].start].rstrip(_GAP)
    if before and not text[last[-1].end :].strip(_GAP) and not _NEEDS_MORE.search(fold_text(before)):
        return SplitLine(_TO.sub("", before), _words(text, last), last)
    return leading if leads and after else SplitLine("")


def _run(times: FoundTimes, *, from_end: bool) -> tuple[TimePiece, ...]:
    """The pieces at one end that follow one another: "tomorrow", "at 9"."""
    pieces = times.pieces
    apart = [n for n, (one, two) in enumerate(pairwise(pieces), start=1) if times.text[one.end : two.start].strip(" ,")]
    return tuple(pieces[apart[-1] if apart else 0 :] if from_end else pieces[: apart[0] if apart else None])


def _words(text: str, run: Sequence[TimePiece]) -> str:
    return text[run[0].start : run[-1].end].strip(" ,")
