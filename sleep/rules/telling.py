"""What a conversation tells of its person: message by message, in answer to a question, or as a correction. Pure.

What always holds: every text names the messages that it is made of, and can be understood by itself: an answer stands
behind its question, a correction that only says "it" behind what it corrects, a day that was near has its date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo

from assistant.core.records import LogRecord
from assistant.core.text import lazy_regex
from sleep.rules.answers import joined, offer_of, question_of
from sleep.rules.dating import dated
from sleep.rules.importance import importance
from sleep.rules.lexicon import classes, words_of
from sleep.rules.rules import Found, facts
from sleep.rules.sentences import sentences
from sleep.rules.voice import ends_play, opens_play, own_voice

_LONGEST = 400
_PLAY_LASTS = timedelta(minutes=20)
_ANSWERED_WITHIN = timedelta(hours=12)
_OF_LIFE = frozenset({"kin", "person", "pet", "home", "vehicle", "work", "health", "pastime", "admin"})
_FIRST = 300
_TOOK_NOTE = lazy_regex(
    r"\b(?:noted|i'?ll (?:remember|note|bear|keep (?:that|it|this|your|an eye)|put (?:it|that|them)|add (?:it|that)"
    r"|block"
    r"|remind you)|(?:made|make) a note|understood|got it,|saved|filed|remembered|congratulations|congrats"
    r"|i'm (?:so |very )?sorry,)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """`found` with its text as it is to be kept, and the messages that it is from, the person's own first."""

    found: Found
    record: LogRecord
    sources: tuple[int, ...]


@dataclass(slots=True)
class _Heard:
    """What a message is understood by: the assistant's last, the person's last, and a game that goes on;
    `told`: the person's last told something, `noted`: the assistant took note of what is heard."""

    assistant: LogRecord | None = None
    user: LogRecord | None = None
    play_until: datetime | None = None
    noted: bool = False
    told: bool = False


def told(records: Sequence[LogRecord], zone: tzinfo = UTC) -> list[Told]:
    """What the users' messages tell, in their order; `zone` is where the days of the person begin."""
    heard = _Heard()
    found: list[Told] = []
    for number, record in enumerate(records, 1):
        if record.role == "user":
            if not _plays(heard, record):
                heard.noted = any(map(took_note, records[number : number + 1]))
                new = [_dated(one, zone) for one in _of_message(record, heard)]
                heard.told = bool(new)
                found += new
            heard.user, heard.assistant = record, None
        elif record.role == "assistant":
            heard.assistant = record
    return found


def took_note(record: LogRecord) -> bool:
    """Whether the assistant says that it will keep what it was told."""
    return record.role == "assistant" and bool(_TOOK_NOTE.search(record.content[:_FIRST]))


def _plays(heard: _Heard, record: LogRecord) -> bool:
    """Whether the message is part of a game in which people say what is true of nobody."""
    if opens_play(record.content):
        heard.play_until = record.ts + _PLAY_LASTS
        return True
    if heard.play_until is None:
        return False
    if ends_play(record.content) or record.ts > heard.play_until:
        heard.play_until = None
        return False
    return True


def _of_message(record: LogRecord, heard: _Heard) -> Iterator[Told]:
    answered = _answer(record, heard)
    if answered is not None:
        yield answered
    said = record.content
    for one in facts(said, noted=heard.noted):
        if answered is not None and one.content in answered.found.content:
            continue
        if one.hangs and one.corrects:
            yield from _with_what_it_corrects(one, record, heard)
        elif not one.hangs or _names_something(one.content):
            yield Told(one, record, (record.id,))


def _answer(record: LogRecord, heard: _Heard) -> Told | None:
    asked = heard.assistant
    if asked is None or record.ts - asked.ts > _ANSWERED_WITHIN:
        return None
    question = question_of(asked.content, after_telling=heard.told)
    first = next(iter(sentences(own_voice(record.content[:_FIRST]))), None)
    if first is None:
        return None
    offer = "" if question else offer_of(asked.content, first)
    content = joined(question, first) if question else f"{offer} {first.words}" if offer else ""
    if not content:
        return None
    content = content[:_LONGEST]
    return Told(Found("fact", content, importance("fact", content)), record, (record.id, asked.id))


def _with_what_it_corrects(one: Found, record: LogRecord, heard: _Heard) -> Iterator[Told]:
    """Before the last words that name what "it" is; nothing where nobody can tell."""
    if _names_something(one.content):
        yield Told(one, record, (record.id,))
        return
    for before in (heard.assistant, heard.user):
        if before is None:
            continue
        named = [said.words for said in sentences(own_voice(before.content)) if _names_something(said.own)]
        if named:
            content = f'{one.content} (of: "{named[-1]}")'[:_LONGEST]
            yield Told(replace(one, content=content, hangs=False), record, (record.id, before.id))
            return


def _names_something(text: str) -> bool:
    return any(classes(word) & _OF_LIFE for word in words_of(text.lower())) or bool(
        re.search(r"(?<=\w )[A-Z][a-z]", text)
    )


def _dated(one: Told, zone: tzinfo) -> Told:
    content = dated(one.found.content, one.record.ts.astimezone(zone).date())
    return replace(one, found=replace(one.found, content=content))
