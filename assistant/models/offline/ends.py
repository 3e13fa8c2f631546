"""The day on which a reminder that repeats is to end: "the tablets only until Sunday", "stop the walk after Friday".
Pure.

What always holds: "not until Friday" and "pause it until Friday" end nothing; they are about when it comes next.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, find_end, find_times
from assistant.core.time_readers import TimePiece
from assistant.core.time_resolve import end_of_rule
from assistant.models.offline.cues import fold, says, says_any
from assistant.models.offline.matching import ListedItem, count_hits
from assistant.models.offline.plans import MOMENT
from assistant.models.offline.targets import content_words

# That it is wanted for so long, and not only from then on.
_LASTS = lazy_regex(
    r"\b(?:only|just|runs?|ends?|carry on|keep|continue|nur|noch|lauf\w*|weiter\w*|endet|schluss|seulement|juste"
    r"|encore|continue\w*|dure\w*|finit|s'arrete|solo|solamente|nada mas|sigue|seguir|dura\w*|termina|acaba)\b"
)
_NOT_BEFORE = lazy_regex(r"\b(?:not|n't|pause\w*|hold|nicht|erst|kein\w*|pausier\w*|pas|suspend\w*|no|pausa\w*)\b")
_NO_MORE = lazy_regex(
    r"\b(?:no (?:more|longer)|not? any ?more|n't .{0,40}any ?more|stop|nicht mehr|keine?[nrs]? .{0,20}mehr|kein\w* mehr"
    r"|plus (?:de|besoin|rien|du tout|apres)|ya no|no mas|nada mas)\b"
)
_LAST_DAY = lazy_regex(r"\b(?:after|nach|apres|despues del?)\s*(?:the |dem |den |le |la |el )?$")
# "From Monday on"; "the alarm from Monday" and "der Wecker von Montag" are Monday's.
_FIRST_DAY_OFF = lazy_regex(
    r"^(?:as of|starting|ab|a partir d[eu]l?|a compter d[eu]|desde)\b"
    r"|\b(?:as of|starting|ab|a partir d[eu]l?|a compter d[eu]|desde)\s*(?:the |dem |den |le |la |el )?$"
)
_FROM = lazy_regex(r"^(?:from|von)\b|\b(?:from|von)\s*(?:the |dem )?$")
_ON = lazy_regex(r"^ ?(?:on|onwards?|an)\b")


def ended_rule(text: str, item: ListedItem, now: datetime | None) -> dict[str, str] | None:
    """When a reminder comes next and its rule with the day that a sentence lets it end on; None where it names none."""
    ends = find_end(text)
    folded = fold(text)
    if ends is None or _NOT_BEFORE.search(folded) or says_any(("snooze", "skips", "leaves_out"), folded):
        return None
    words = content_words(text)
    bare = count_hits(words, item) == len(words) and not says("move", folded)
    return _with_end(item, ends, now) if bare or _LASTS.search(folded) else None


def stopped_rule(times: FoundTimes, item: ListedItem, now: datetime | None) -> dict[str, str] | None:
    """As `ended_rule`, of a sentence that wants something no more: "after Sunday" the last day is that, "from Monday
    on" it is the day before."""
    folded = fold(times.text)
    for piece in times.of_kind("day"):
        before, own = folded[: piece.start], folded[piece.start : piece.end]
        if _LAST_DAY.search(before):
            return _with_end(item, piece, now)
        on = _ON.match(folded[piece.end :]) is not None and (_FROM.match(own) or _FROM.search(before))
        if on or _FIRST_DAY_OFF.match(own) or _FIRST_DAY_OFF.search(before):
            return _with_end(item, piece, now, days_before=1)
    return None


def says_no_more(text: str) -> bool:
    """Whether a sentence says that something is wanted no longer."""
    return _NO_MORE.search(fold(text)) is not None


def _with_end(
    item: ListedItem, ends: TimePiece, now: datetime | None, *, days_before: int = 0
) -> dict[str, str] | None:
    rule = find_times(item.often).rule
    if now is None or item.due is None or not rule:
        return None
    try:
        end = end_of_rule(replace(ends, kind="until"), now, now)
        last = datetime.fromisoformat(end.removeprefix(";UNTIL=")) - timedelta(days=days_before)
    except (ValueError, OverflowError):
        return None
    return {"when": item.due.strftime(MOMENT), "repeat": f"{rule};UNTIL={last:%Y%m%dT%H%M%S}"}


def end_of(item: ListedItem) -> str:
    """The part of a rule that says on which day a reminder ends; "" if it goes on."""
    match = re.search(r" until (\d{4})-(\d\d)-(\d\d)$", item.often)
    return f";UNTIL={match[1]}{match[2]}{match[3]}T235959" if match else ""
