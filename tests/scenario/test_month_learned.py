"""What a home learns of a month of talk, from the messages to the journal: by the rules alone, and with a model that is
neither clever nor honest."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from assistant.core.memories import JournalEntry
from assistant.core.messages import Message, ToolCall
from assistant.core.model_api import ModelRequest
from sleep.rules.supersede import MemoryCandidate, ParsedStatement, decide_entry, parse_entry
from tests.month.conversation import MONTH, SECOND, MonthConversation, MonthMessage, read_month
from tests.month.judge import Judgement, LearnedText, judge
from tests.support.imports import import_messages
from tests.support.sleep_home import JournalHome, memories_answer
from tests.support.store_home import memory_backed_directory

ENOUGH_FACTS = 0.9
MOST_JUNK = 0.05
MOST_LEFT_STANDING, FEWEST_ENDED = 1, 9
_SHOWN = re.compile(r"^#(\d+) \S+ \S+ (user|assistant): ", re.MULTILINE)
_KNOWN = re.compile(r"^- (.+)$", re.MULTILINE)


@pytest.fixture(scope="module", params=[MONTH, SECOND], ids=["month", "second"])
def month(request: pytest.FixtureRequest) -> MonthConversation:
    return read_month(request.param)


@contextmanager
def opened() -> Iterator[JournalHome]:
    with memory_backed_directory() as path:
        home = JournalHome(Path(path)).open()
        yield home
        assert home.verify().problems == ()
        home.close()


@pytest.fixture(scope="module")
def by_rules(month: MonthConversation) -> Iterator[tuple[JournalHome, Judgement]]:
    """A home in which the month was lived without a model, and what it learned."""
    with opened() as home:
        home.model.provider = "offline"
        yield home, _judged(home, month, asyncio.run(lived(home, month)))


async def lived(home: JournalHome, month: MonthConversation) -> dict[int, int]:
    """The month said to the home, with a sleep after every day: the number of each message by its id."""
    numbers: dict[int, int] = {}
    for _, day in groupby(month.said, key=lambda said: said.at.date()):
        told = list(day)
        for said in told:
            shown = import_messages(home.conversation, "main", "owner", _messages(said), said.at)
            numbers[shown[-1].id or 0] = said.number
        await home.sleep(told[-1].at)
    return numbers


def _messages(said: MonthMessage) -> list[Message]:
    if said.role != "tool":
        return [Message(said.role, said.text, ts=said.at)]
    call = f"c{said.number}"
    asked = Message("assistant", "", ts=said.at, tool_calls=(ToolCall(call, said.name or "look", {}),))
    return [asked, Message("tool", said.text, ts=said.at, tool_call_id=call, name=said.name or "look")]


def _judged(home: JournalHome, month: MonthConversation, numbers: dict[int, int]) -> Judgement:
    entries = [entry for entry in home.entries() if entry.source_type == "extraction"]
    return judge(month, [LearnedText(entry.content, tuple(numbers[one] for one in entry.sources)) for entry in entries])


def _correcting(home: JournalHome, month: MonthConversation) -> dict[str, JournalEntry]:
    found = {}
    for each in month.corrections:
        entries = [one for one in home.entries() if each.new.held_by(one.content) and "correction" in one.tags]
        if entries:
            found[each.id] = entries[0]
    return found


# ---------------------------------------------------------------------------------------------------------- by rules


def test_f29_a_month_is_learned_by_rules_without_its_junk(by_rules: tuple[JournalHome, Judgement]) -> None:
    home, judged = by_rules
    assert judged.recall >= ENOUGH_FACTS, judged.missed
    assert 1 - judged.precision <= MOST_JUNK, judged.texts("junk")
    assert home.model.requests == []


def test_every_correction_of_a_month_is_learned_as_one(
    by_rules: tuple[JournalHome, Judgement], month: MonthConversation
) -> None:
    home, judged = by_rules
    assert judged.uncorrected == ()
    assert set(_correcting(home, month)) == {each.id for each in month.corrections}


def test_a_correction_puts_an_end_to_what_it_corrects(
    by_rules: tuple[JournalHome, Judgement], month: MonthConversation
) -> None:
    held = compared(by_rules[0])
    stale = [
        (each.id, one.text)
        for each in month.corrections
        for one in held
        if one.until is None and each.old.held_by(one.text) and not each.new.held_by(one.text)
    ]
    # What is only meant ("the mower", for a robot that was not called one) no rule finds.
    assert len(stale) <= MOST_LEFT_STANDING, stale
    assert sum(one.until is not None for one in held) >= FEWEST_ENDED


@dataclass(slots=True)
class Compared:
    text: str
    reading: ParsedStatement
    said_at: datetime
    until: datetime | None = None


def compared(home: JournalHome) -> list[Compared]:
    """What was learned, each compared with all that was learned before it, as at night."""
    held: list[Compared] = []
    for entry in home.entries():
        reading = parse_entry(entry.content)
        known = [MemoryCandidate(str(n), one.reading, one.said_at, one.until) for n, one in enumerate(held)]
        decision = decide_entry(reading, entry.timestamp, known)
        for number in decision.superseded_ids:
            held[int(number)].until = entry.timestamp
        if not decision.same_as:
            held.append(Compared(entry.content, reading, entry.timestamp))
    return held


# -------------------------------------------------------------------------------------------------------- with a model


def middling(month: MonthConversation) -> Callable[[ModelRequest], str]:
    """A model that finds what is told in the messages before it, and adds what no good model would."""
    by_words = {_plain(said.text): said.number for said in month.said}

    def answer(request: ModelRequest) -> str:
        words = request.messages[0].content
        shown = {by_words[text]: (number, role) for number, role, text in _shown(words) if text in by_words}
        people = [number for number, role in shown.values() if role == "user"]
        assistants = [number for number, role in shown.values() if role == "assistant"]
        rows: list[dict[str, Any]] = [
            {"content": says, "sources": [shown[one][0] for one in numbers if one in shown], "importance": 0.6}
            for says, numbers in _true(month)
            if any(one in shown for one in numbers)
        ]
        if people:
            rows += [{"content": text, "sources": people[:1], "importance": 0.7} for text in _KNOWN.findall(words)[:2]]
            rows += [
                {"content": "The user said good morning to the assistant.", "sources": people[:1], "importance": 0.5},
                {"content": "The user owns a yacht in Monaco.", "sources": [987_654], "importance": 0.9},
                {"content": "The user probably has a degree.", "sources": people[-1:], "importance": 0.6},
                {"content": "The user has a cousin named Zebulon.", "sources": people[-1:], "importance": 0.6},
                {"content": "Was told to drink more water.", "sources": assistants[:1], "importance": 0.6},
                {"content": "The user is tired.", "sources": people[-1:], "importance": 0.6},
            ]
        return memories_answer(*rows)

    return answer


def _true(month: MonthConversation) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What is true, as a model puts it: in its own words, or a sentence of the person's."""
    for fact in month.facts:
        yield fact.says, fact.messages
    for each in month.corrections:
        said = month.message(each.message).text
        parts = [*re.split(r"(?<=[.!?])\s+|\n+", said), said]
        yield next(part for part in parts if each.new.held_by(part)), (each.message,)


def _shown(words: str) -> Iterator[tuple[int, str, str]]:
    heads = list(_SHOWN.finditer(words))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        text = words[head.end() : following.start() if following else len(words)]
        yield int(head[1]), head[2], _plain(text.removesuffix("</record>\n"))


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))[:200]


async def test_f29_what_a_middling_model_adds_does_not_get_into_the_journal(month: MonthConversation) -> None:
    with opened() as home:
        home.model.script = [middling(month)]
        judged = _judged(home, month, await lived(home, month))
    assert len(home.model.requests) > 20
    assert judged.recall >= ENOUGH_FACTS, judged.missed
    assert judged.uncorrected == ()
    assert 1 - judged.precision <= MOST_JUNK, judged.texts("junk")
