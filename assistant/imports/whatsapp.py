"""Reads WhatsApp's "Export chat": a text file with one line per message, in the date format of the phone.

The file has no ids: a message is identified by its time and its position among messages of the same time. The order of
day and month is inferred from all dates of the file. In a chat of two that is named after one of them, the other is the
owner; otherwise nobody is, unless the person who imports it gives their name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from datetime import datetime
from typing import BinaryIO

from assistant.core.dataclass import dataclass
from assistant.core.import_records import ImportedMessage
from assistant.core.text import lazy_regex
from assistant.imports.agents import iterate_lines
from assistant.imports.records import (
    MAX_TEXT,
    BadRecord,
    Read,
    ReadOptions,
    RejectedRecord,
    clean_words,
    in_batches,
    read_time,
)

_MARKS = dict.fromkeys(map(ord, "\u200e\u200f\u202a\u202c\ufeff"), None)
_HEAD = lazy_regex(
    r"\[?(\d{1,4})([./-])(\d{1,2})\2(\d{2,4}),? (\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?"
    r"(?:[ \u202f\u00a0]?([AaPp])\.?[ \u202f]?[Mm]\.?)?(?:\] | - )(.*)",
)
_LONGEST_NAME = 100


@dataclass(slots=True)
class _Survey:
    """The format inferred from the whole file."""

    speakers: Counter[str] = field(default_factory=Counter)
    first_is_day: int = 0
    second_is_day: int = 0

    def day_first(self) -> bool:
        if bool(self.first_is_day) != bool(self.second_is_day):
            return bool(self.first_is_day)
        # Ambiguous: dates with dots are European; with slashes, only phones in the United States put the month first.
        return True


@dataclass(frozen=True, slots=True)
class _Line:
    fields: tuple[str, ...]  # as written: three parts of the date, hour, minute, second, "a" or "p"
    rest: str


def is_whatsapp(start: str) -> bool:
    """Return whether a text begins like such a file."""
    lines = [line for line in start.translate(_MARKS).splitlines() if line.strip()]
    return bool(lines) and _parse(lines[0]) is not None


def read_whatsapp(stream: BinaryIO, again: BinaryIO, name: str, options: ReadOptions) -> Iterator[Read]:
    """`stream` and `again` are the same file, both at its beginning; `name` is the chat's."""
    survey = _survey(stream)
    owner = options.owner or _other_speaker(survey, name)
    messages = _messages(again, survey.day_first(), owner, options)
    yield from in_batches("whatsapp", name, name, messages)


def _survey(stream: BinaryIO) -> _Survey:
    survey = _Survey()
    for text in _lines(stream):
        line = _parse(text)
        if line is None:
            continue
        first, second = int(line.fields[0]), int(line.fields[1])
        survey.first_is_day += 12 < first <= 31
        survey.second_is_day += second > 12
        speaker = _speaker(line.rest)
        if speaker and len(survey.speakers) < 1000:
            survey.speakers[speaker] += 1
    return survey


def _other_speaker(survey: _Survey, chat: str) -> str:
    if len(survey.speakers) == 2 and chat in survey.speakers:
        return next(speaker for speaker in survey.speakers if speaker != chat)
    return ""


def _messages(
    stream: BinaryIO, day_first: bool, owner: str, options: ReadOptions
) -> Iterator[ImportedMessage | RejectedRecord]:
    number = 0
    pending: _Line | None = None
    words: list[str] = []
    size = 0
    same_time: Counter[str] = Counter()
    last_time = ""
    for text in _with_end(stream):
        line = _parse(text) if text is not None else None
        if text is not None and line is None:
            # Lines before the first message do not belong to one.
            if pending is not None and size <= MAX_TEXT:
                words.append(text)
                size += len(text)
            continue
        if pending is not None:
            number += 1
            try:
                at = _time(pending, day_first, options)
                stamp = at.isoformat()
                if stamp != last_time:
                    same_time.clear()
                    last_time = stamp
                same_time[stamp] += 1
                speaker = _speaker(pending.rest)
                body = pending.rest[len(speaker) + 2 :] if speaker else ""
                said = clean_words("\n".join([body, *words]))
                if speaker and said:
                    shown = "" if speaker == owner else speaker
                    yield ImportedMessage(f"{stamp}#{same_time[stamp]}", "user", said, at, shown)
            except BadRecord as error:
                yield RejectedRecord(f"message {number}", str(error))
        pending, words, size = line, [], 0


def _with_end(stream: BinaryIO) -> Iterator[str | None]:
    yield from _lines(stream)
    yield None


def _lines(stream: BinaryIO) -> Iterator[str]:
    for line in iterate_lines(stream):
        yield (line or "").rstrip("\r").translate(_MARKS)


def _parse(text: str) -> _Line | None:
    if not text[:1].isdigit() and not text.startswith("["):
        return None
    match = _HEAD.match(text)
    if match is None:
        return None
    first, _, second, third, hour, minute, seconds, half, rest = match.groups()
    return _Line((first, second, third, hour, minute, seconds or "", (half or "").lower()), rest)


def _speaker(rest: str) -> str:
    """Return the speaker, "" for messages of the program itself."""
    speaker, colon, _ = rest.partition(": ")
    return speaker if colon and 0 < len(speaker) <= _LONGEST_NAME else ""


def _time(line: _Line, day_first: bool, options: ReadOptions) -> datetime:
    """Raises `BadRecord`."""
    first, second, third, hour, minute = map(int, line.fields[:5])
    seconds, half = line.fields[5:]
    if len(line.fields[0]) == 4:
        year, month, day = first, second, third
    else:
        year = third if len(line.fields[2]) == 4 else 2000 + third
        day, month = (first, second) if day_first else (second, first)
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    try:
        at = datetime(year, month, day, hour, minute, int(seconds or 0), tzinfo=options.zone)
    except ValueError:
        raise BadRecord("has no date") from None
    return read_time(at.isoformat(), options)
