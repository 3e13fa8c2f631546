"""What the search tool does with questions that several messages answer, and with times told by an event."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.context.event_time import asks_for_kinds, asks_for_order, find_event_reference, last_times
from assistant.core.messages import Message, ToolCall
from assistant.core.ports import ToolContext
from assistant.core.quoting import parse_quotes
from tests.support.imports import import_messages
from tests.support.in_memory import new_todos
from tests.support.search_home import NOW, OWNER, SearchHome
from tools.toolbox import build_toolbox

TODAY = datetime(2026, 6, 20, 12, tzinfo=UTC)
FILLER = "The {} in the cellar makes noise again, I will look at it when the weather is better."


@pytest.fixture
def room(tmp_path: Path) -> Iterator[SearchHome]:
    room = SearchHome(tmp_path)
    yield room
    room.close()


def said(room: SearchHome, text: str, day: date) -> int:
    at = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
    (kept,) = import_messages(room.conversation, "main", OWNER, [Message("user", text, ts=at)], NOW)
    return kept.id or 0


async def ask(room: SearchHome, query: str, **arguments: object) -> tuple[str, list[int]]:
    """The lines above the quotations, and the messages quoted."""
    box = build_toolbox(
        room.history, new_todos(), workspace=Path("workspace"), zone=ZoneInfo("UTC"), result_bytes=16_000
    )
    context = ToolContext("main", OWNER, "now", "now:c1", TODAY)
    text, _ = await box.run(ToolCall("c1", "search_history", {"query": query, **arguments}), context, "owner")
    quotes = parse_quotes(text)
    return "\n".join(text.split("\n")[: -len(quotes)]), [quote.message_id for quote in quotes]


async def test_a_question_that_many_messages_answer_shows_more_and_counts_the_others(room: SearchHome) -> None:
    swims = [said(room, f"Swam {n} lengths before work.", date(2026, 1, 1) + timedelta(n)) for n in range(40)]
    head, found = await ask(room, "How many times have I swum lengths?")
    assert len(found) == 36 and set(found) <= set(swims)
    assert "36 found" in head and "4 more have words of it" in head
    head, found = await ask(room, "Which lengths have I swum?")
    assert len(found) == 24 and "16 more" in head
    head, found = await ask(room, "Where have I swum lengths?")
    assert len(found) == 12 and "more" not in head


async def test_what_several_messages_answer_is_shown_from_days_that_the_best_hits_are_not_of(room: SearchHome) -> None:
    for n in range(40):
        said(room, f"Swam lengths in the city pool, {n} of them.", date(2026, 1, 1))
    elsewhere = [said(room, "I swam in the lake with Torvald.", date(2026, month, 9)) for month in (2, 3)]
    head, found = await ask(room, "How many times have I swum lengths in the city pool?")
    assert len(found) == 32 and found[30:] == elsewhere[::-1]
    assert "in the lake" not in head and "10 more have words of it" in head


async def test_an_order_is_shown_in_the_order_of_time(room: SearchHome) -> None:
    read = [
        said(room, f"Finished the novel {title}, a good novel.", date(2026, month, 3))
        for month, title in enumerate(("Salt Roads", "The Glass Orchard", "Ninth Harbour"), 1)
    ]
    for n in range(9):
        said(room, FILLER.format(n), date(2026, 4, 1 + n))
    head, found = await ask(room, "In which order did I read the novels?")
    assert found[:3] == read and "in the order of time" in head


async def test_the_last_times_are_the_newest_of_them(room: SearchHome) -> None:
    sauna = [said(room, "Went to the sauna with Torvald.", date(2026, month, 7)) for month in range(1, 6)]
    for n in range(9):
        said(room, FILLER.format(n), date(2026, 6, 1 + n))
    head, found = await ask(room, "When were the last three times in the sauna?", limit=3)
    assert found == sauna[:1:-1] and "newest first" in head and "2 more" in head


async def test_a_time_before_an_event_is_looked_for_before_the_day_on_which_it_was_told(room: SearchHome) -> None:
    earlier = said(room, "The bicycles stand in the stairwell, the neighbours complain.", date(2026, 2, 3))
    moved = said(room, "The move to Bergen is done, I am tired.", date(2026, 4, 10))
    after = said(room, "The bicycles stand in the garage, locked twice.", date(2026, 5, 2))
    head, found = await ask(room, "Where did the bicycles stand before the move?")
    assert found[0] == earlier and after in found
    assert f"Event: 2026-04-10 (#{moved}); what was said before 2026-04-10 comes first." in head
    head, found = await ask(room, "Since the move, where do the bicycles stand?")
    assert found[0] == after and "from 2026-04-10" in head


async def test_weeks_after_a_feast_are_counted_by_the_calendar(room: SearchHome) -> None:
    said(room, "We hiked to the old mill.", date(2026, 1, 19))
    hiked = said(room, "We hiked to the waterfall.", date(2026, 4, 19))
    said(room, "We hiked to the lake.", date(2026, 6, 1))
    head, found = await ask(room, "Where did we hike two weeks after Easter?")
    assert found[0] == hiked and "from 2026-04-15 before 2026-04-24" in head


async def test_an_event_that_nobody_told_narrows_nothing(room: SearchHome) -> None:
    lives = said(room, "My sister lives in Ghent.", date(2026, 2, 3))
    head, found = await ask(room, "Where did my sister live before the divorce?")
    assert found == [lives] and "Event" not in head


@pytest.mark.parametrize(
    ("question", "event"),
    [
        ("What did we eat before the move?", "the move"),
        ("Before I moved to Bergen, where did I keep the bikes?", "I moved to Bergen"),
        ("What happened two weeks after Easter?", "Easter"),
        ("What have I bought since Monday?", ""),
        ("What did I say before 5 pm?", ""),
        ("Did I mention it before?", ""),
        ("What did we do since then?", ""),
        ("What was there before March 2024?", ""),
        ("Wo standen die Räder vor dem Umzug?", "dem Umzug"),
        ("Was geschah zwei Wochen nach Ostern?", "easter"),
        ("Was habe ich vor drei Wochen gekauft?", ""),
        ("Was habe ich nach der Arbeit gemacht?", ""),
        ("Où étaient les vélos avant le déménagement ?", "le déménagement"),
        ("¿Dónde estaban las bicis antes de la mudanza?", "la mudanza"),
    ],
)
def test_an_event_is_what_stands_behind_before_after_or_since(question: str, event: str) -> None:
    reference = find_event_reference(question)
    assert (reference.event if reference else "") == event


@pytest.mark.parametrize(
    ("question", "times"),
    [
        ("When were the last three times in the sauna?", 3),
        ("Wann waren die letzten drei Male in der Sauna?", 3),
        ("Wann war ich das letzte Mal in der Sauna?", 1),
        ("Quand étaient les deux dernières fois au sauna ?", 2),
        ("¿Cuándo fueron las últimas 4 veces?", 4),
        ("What is the last time slot?", 0),
    ],
)
def test_the_last_times_are_counted_in_four_languages(question: str, times: int) -> None:
    assert last_times(question) == times


@pytest.mark.parametrize(
    ("question", "is_plural"),
    [
        ("Which sports have I tried since summer?", True),
        ("What outdoor activities has John done with his colleagues?", True),
        ("What people has Maria met?", True),
        ("What are the names of my dogs?", True),
        ("Who else came to the party?", True),
        ("Welche Sprachen habe ich gelernt?", True),
        ("Quelles villes ai-je visitées ?", True),
        ("¿Qué libros he leído?", True),
        ("What makes Jon a good mentor?", False),
        ("What is my address?", False),
        ("What was this about?", False),
        ("Which bus does Anna take?", False),
        ("Welche Farbe hat mein Auto?", False),
    ],
)
def test_things_in_the_plural_are_told_from_one(question: str, is_plural: bool) -> None:
    assert asks_for_kinds(question) is is_plural


@pytest.mark.parametrize("question", ["Give me a timeline of the band", "What was the sequence of doctors I went to?"])
def test_a_timeline_is_an_order(question: str) -> None:
    assert asks_for_order(question)
