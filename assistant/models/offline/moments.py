"""Several moments in one order: which parts of a sentence have their own, and how they are written. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from assistant.core.text import lazy_regex
from assistant.core.time_pieces import FoundTimes, are_joined, find_times
from assistant.core.time_readers import TimePiece
from assistant.models.offline.cues import fold, says, says_any
from assistant.models.offline.lists import order_subject
from assistant.models.offline.targets import content_words

MOST_PARTS = 4
PARTS = lazy_regex(
    r"\s*,?\s+(?:and|und|et|y|puis|then|dann|luego)\s+(?:then |dann |puis |luego |also |auch |aussi |tambien )?",
    re.IGNORECASE,
)
SENTENCE_PARTS = lazy_regex(
    r"\s*[,;.!]\s+|\s+[-–]\s+|\s+(?:so|cos|because|also|weil|denn|donc|car|asi que|porque)\s+", re.IGNORECASE
)
# "Three alarms: 6, 6:10 and 6:20"
_HOUR_AND_MINUTE = lazy_regex(r"\b\d{1,2}:\d\d\b")
_LISTED_HOUR = lazy_regex(r"(?:(?<=[:,] )|(?<=\band )|(?<=\bund ))(\d{1,2})(?=,| and | und |[\s.!]*$)")
_COUNTED = lazy_regex(
    r"\b(?:(?:set|stelle?)(?: me| mir)? )?(?:two|three|four|zwei|drei|vier|[2-4]) (?=(?:alarms|wecker)\b)",
    re.IGNORECASE,
)
_BARE_END = lazy_regex(r"(?<![\d:.h])\d{1,2}$")


def spell_alarms(text: str) -> str:
    """The hours of several alarms as hours, and without how many they are: "three alarms: 6, 6:10 and 6:20"."""
    return _COUNTED.sub("", _LISTED_HOUR.sub(r"\1:00", text)) if _HOUR_AND_MINUTE.search(text) else text


def split_between(times: FoundTimes, pattern: re.Pattern[str]) -> list[str]:
    """The parts of a text, none of which begins or ends within a time: "a las 12 y media"."""
    masked = times.text
    for piece in times.pieces:
        masked = f"{masked[: piece.start]}{'0' * (piece.end - piece.start)}{masked[piece.end :]}"
    ends = [(0, 0), *(match.span() for match in pattern.finditer(masked)), (len(masked), len(masked))]
    return [part for (_, start), (end, _) in pairwise(ends) if (part := times.text[start:end]).strip()]


def phrase_of(times: FoundTimes, pieces: Sequence[TimePiece]) -> str:
    return replace(times, pieces=tuple(sorted(pieces, key=lambda piece: piece.start))).phrase


def without_reason(text: str) -> str:
    """The clause that asks for an alarm, without one that tells why: "wake me at five, the ferry leaves at seven"; ""
    where there is none."""
    parts = split_between(find_times(text), SENTENCE_PARTS)
    asks = [part for part in parts if says("wake", fold(part)) and find_times(part).has_clock]
    tell = [part for part in parts if says_any(("forms", "own_duty"), fold(part)) and not says("wake", fold(part))]
    if len(asks) != 1 or not tell or len(asks) + len(tell) != len(parts):
        return ""
    told = next((times for times in map(find_times, tell) if times.of_kind("day")), None)
    if told is None or find_times(asks[0]).of_kind("day", "repeat"):
        return asks[0]
    return f"{phrase_of(told, told.of_kind('day'))} {asks[0]}"  # "I'm off at seven tomorrow, so wake me at six"


def each_with_moment(times: FoundTimes) -> list[tuple[str, str]]:
    """One for each part of a sentence, where each has an hour or a part of a day and words of its own: "tomorrow
    morning the pass, and in the evening the laundry"; "the bins at 9 and tomorrow at noon the call"."""
    read = [find_times(part) for part in split_between(times, PARTS)]
    subjects = [order_subject(part.words) if content_words(part.text) else "" for part in read]
    if not 1 < len(read) <= MOST_PARTS or not all(subjects) or not all(part.of_kind("part", "clock") for part in read):
        return []
    if times.of_kind("clock") and not all(
        part.of_kind("day", "clock") or not part.pieces[0].start for part in read[1:]
    ):
        return []  # "at 9 pack lunch and juice for the afternoon"
    day = next((phrase_of(read[0], read[0].of_kind("day")) for _ in read[0].of_kind("day")), "")
    whens = [part.phrase if part.of_kind("day") else f"{day} {part.phrase}".strip() for part in read]
    return list(zip(subjects, whens, strict=True))


def of_twenty_four(times: FoundTimes) -> FoundTimes:
    """Where one hour is of a dial of twenty-four, all are: "at 8 and at 20"."""
    clocks = times.of_kind("clock")
    if len(clocks) < 2 or not any(clock.minutes >= 13 * 60 and not clock.half for clock in clocks):
        return times
    text = times.text
    for clock in reversed(clocks):
        own = text[clock.start : clock.end]
        text = f"{text[: clock.start]}{_BARE_END.sub(lambda m: f'{int(m[0]):02}:00', own)}{text[clock.end :]}"
    return find_times(text)


def joined_moments(times: FoundTimes) -> list[list[TimePiece]]:
    """The pieces of each moment, where a text names several days or parts of days that only "and" joins, each part of
    a day with its own day; else nothing."""
    pieces = times.of_kind("day", "part")
    if len(pieces) < 3 and not any(piece.offset == 0 for piece in pieces if piece.kind == "part"):
        return []
    moments: list[list[TimePiece]] = []
    for piece in pieces:
        if moments and not times.text[moments[-1][-1].end : piece.start].strip(" ,"):
            moments[-1].append(piece)
        elif not moments or are_joined(times, (moments[-1][-1], piece)):
            moments.append([piece])
        else:
            return []
    return moments if len(pieces) == len(times.pieces) else []
