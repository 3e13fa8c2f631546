"""When something that repeats ends: "every day until Friday", "jeden Tag bis zum 20.", "pendant dix jours". Pure.

A day behind "until" is an end only where the text says how often: "bis Freitag" alone is when something is due.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from assistant.core.text import lazy_regex
from assistant.core.time_language import UNITS, N
from assistant.core.time_readers import TimePiece, read_so_long

# What stands before the day on which something that repeats ends: "until Friday", "bis zum 20.", "jusqu'à la fin".
UNTIL = lazy_regex(
    r"\b(?:(?:only|just|up|nur|noch|seulement|juste|solo|solamente|and|und|et|y) )*"
    r"(?:until|till|til|to(?= the end)|through|bis|jusqu'?(?: ?(?:a|au|aux|en))?|hasta)(?![\w-])"
    r"(?:\s+(?:einschliesslich|einschl\.|and including|the|zum|den|dem|der|le|la|el|los|al|a|au|including))*\s*"
)
# How long something repeats: "for two weeks", "zwei Wochen lang", "pendant 10 jours", "los próximos 5 días".
_LONG_UNIT = "|".join(UNITS[name] for name in ("days", "weeks", "months"))
_COMING = r"(?:next|nachsten|kommenden|prochain(?:e?s)?|proximos|proximas)"
FOR_SO_LONG = lazy_regex(
    rf"\b(?:for|over|pendant|durant|durante|por|fur)(?: (?:the|die|les|los|las))?(?: {_COMING})?"
    rf" (?P<long>{N})(?: {_COMING})? (?P<longunit>{_LONG_UNIT})\b"
    rf"|\b(?:the|die|in den|les|los|las) {_COMING} (?P<long2>{N}) (?P<longunit2>{_LONG_UNIT})\b"
    rf"|\bles (?P<long3>{N}) {_COMING} (?P<longunit3>{_LONG_UNIT})\b"
    rf"|\b(?P<long4>{N}) (?P<longunit4>{_LONG_UNIT}) (?:lang|long)\b"
)


_DAILY_FOR = lazy_regex(
    rf"\b(?:for|die|in den|les|los|las|pendant les|durante los)(?: (?:the|die))? {_COMING} {N} (?:{_LONG_UNIT})\b"
    rf"|\bles {N} {_COMING} (?:{_LONG_UNIT})\b|\b(?:pendant|durant|durante) {N} (?:{_LONG_UNIT})\b"
    rf"|\b{N} (?:{_LONG_UNIT}) lang\b|\bfor {N} (?:days|weeks)(?=$|,| (?:at|remind)\b)"
)


def tell_end_apart(left: str, folded: str, pieces: Sequence[TimePiece]) -> list[TimePiece]:
    """Where something repeats, tell the day on which it ends from one on which it is: "every day until Friday"."""
    if not any(piece.rule for piece in pieces):
        daily = _DAILY_FOR.search(left)
        clocks = any(piece.kind == "clock" for piece in pieces)
        if not daily or not clocks or any(piece.kind in ("day", "delta", "span") for piece in pieces):
            return list(pieces)
        # "At eight for the next three days" is every day.
        pieces = [TimePiece("repeat", daily.start(), daily.start(), rule="FREQ=DAILY"), *pieces]
    within_day = any(re.search("HOURLY|MINUTELY", piece.rule) for piece in pieces)
    dated = [piece for piece in pieces if within_day or piece.kind != "clock"]
    ends = next((end for piece in dated if (end := read_as_end(folded, piece))), None)
    if ends is not None:
        behind = next(
            (p for p in pieces if p.on and p.start > ends.end and not left[ends.end : p.start].strip(" ,")), None
        )
        if behind and ends.weekday is not None:  # "until Sunday the 22nd": the date is more precise
            ends = replace(behind, kind="until", start=ends.start)
        return [*(p for p in pieces if p.end < ends.start), ends, *(p for p in pieces if p.start > ends.end)]
    length = FOR_SO_LONG.search(left)
    return sorted([*pieces, *([read_so_long(length)] if length else [])], key=lambda piece: piece.start)


def read_as_end(folded: str, piece: TimePiece) -> TimePiece | None:
    """Return a day that stands behind "until" as what ends there, with that word; None for any other time."""
    if piece.kind not in ("day", "span", "clock"):
        return None
    own = UNTIL.match(folded, piece.start)
    if own is not None and own.start() == piece.start and own.end() <= piece.end:
        return replace(piece, kind="until")
    before = next((m for m in UNTIL.finditer(folded, 0, piece.start) if m.end() == piece.start), None)
    return replace(piece, kind="until", start=before.start()) if before else None
