"""What is on in some days is what will come on them: each occurrence once, on its own day, when clocks change too, and
nothing of anybody else."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from assistant.agenda.day import AgendaDays, AgendaItem
from assistant.agenda.day_phrases import DayRange
from assistant.agenda.mentioned_dates import MentionedDates
from assistant.core.calendar import utc_to_local
from assistant.core.errors import UsageError
from assistant.store.character.journal import StoredJournal
from assistant.store.character.todos import StoredTodos
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.store.script.dated_texts import StoredDatedTexts
from assistant.wire.search import open_history
from tests.support.agenda_home import BERLIN, GUEST, AgendaHome, open_agenda_home

# Clocks go back on 25 October 2026 at three, and forward on 28 March 2027 at two.
STARTS = (datetime(2026, 10, 22, 22, 30, tzinfo=UTC), datetime(2027, 3, 25, 23, 10, tzinfo=UTC))
TIMES = (
    ("", "every day at 02:30"),
    ("", "every day at 23:45"),
    ("", "every weekday at 9"),
    ("", "every sunday at 2:15"),
    ("", "0 2,3,14 * * *"),
    ("", "every 12 hours"),
    ("sunday at 02:30", ""),
    ("tomorrow at 9", ""),
    ("in 90 minutes", ""),
    ("", "every month on the 28th"),
)
JOBS = st.lists(st.sampled_from(TIMES), max_size=5)
DUE_IN = st.lists(st.integers(-3, 9), max_size=5)
DAYS = 8


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(0, list(TIMES), [0, 0, 5], [0, 3, 7])
@example(1, list(TIMES), [-2, 4], [1])
@given(st.integers(0, 1), JOBS, DUE_IN, st.lists(st.integers(0, DAYS - 1), max_size=3))
def test_what_is_on_is_what_will_come_each_once_and_on_its_day(
    season: int, jobs: Sequence[tuple[str, str]], due_in: Sequence[int], cuts: Sequence[int]
) -> None:
    with open_agenda_home() as home:
        home.now = STARTS[season]
        db = Database.open(home.home.path / "todos.db", character_migrations, home.now)
        history, _ = open_history(home.home.path, BERLIN)
        try:
            told = MentionedDates(history, StoredJournal(db), StoredDatedTexts(home.home.db), BERLIN)
            asyncio.run(check_days(home, StoredTodos(db), told, jobs, due_in, cuts))
        finally:
            history.close()
            db.close()


async def check_days(
    home: AgendaHome,
    todos: StoredTodos,
    told: MentionedDates,
    jobs: Sequence[tuple[str, str]],
    due_in: Sequence[int],
    cuts: Sequence[int],
) -> None:
    today = utc_to_local(home.now, BERLIN).date()
    for number, (when, repeat) in enumerate(jobs):
        # Every other one is a scheduled prompt.
        if number % 2:
            await home.schedule(f"mine {number}", f"mine {number}", when, repeat=repeat)
        else:
            await home.remind(f"mine {number}", when, repeat=repeat)
        try:
            await home.remind(f"theirs {number}", when, repeat=repeat, place=GUEST)
        except UsageError:
            pass
    for number, by in enumerate(due_in):
        due = (today + timedelta(days=by)).isoformat()
        todos.add("owner", [f"to-do {number}"], f"t{number}", home.now, due=due)
        todos.add(GUEST.scope, ["theirs"], f"t{number}", home.now, due=due)
    week = DayRange(today, today + timedelta(days=DAYS - 1))
    days = AgendaDays(home.jobs, todos, told, BERLIN)
    items = (await days.read("owner", week, home.now)).items

    ends = sorted({0, *cuts, DAYS})
    parts = [
        (await days.read("owner", DayRange(today + timedelta(days=a), today + timedelta(days=b - 1)), home.now)).items
        for a, b in pairwise(ends)
    ]
    assert [item for part in parts for item in part] == list(items), "a range is its parts"
    assert len(set(items)) == len(items)
    assert all(item.text.startswith(("mine", "to-do")) for item in items)

    wanted_todos = Counter(max(today, today + timedelta(days=by)) for by in due_in if by < DAYS)
    assert Counter(item.day for item in items if item.kind == "todo") == wanted_todos
    assert [item for item in items if item.late] == [item for item in items if item.since]
    assert _listed(items) == await _comes(home, week)


def _listed(items: Sequence[AgendaItem]) -> Counter[tuple[str, date, str]]:
    return Counter((item.text, item.day, item.time) for item in items if item.kind != "todo")


async def _comes(home: AgendaHome, week: DayRange) -> Counter[tuple[str, date, str]]:
    """The same, of what in fact goes off when the clock is looked at all the time."""
    _, end = week.bounds(ZoneInfo("Europe/Berlin"))
    while (at := home.jobs.next_due_at()) is not None and at < end:
        await home.fire_at(at)
    slots = home.jobs.ended_slots("owner", limit=10_000)
    local = [(slot.text, utc_to_local(slot.due_at, BERLIN)) for slot in slots]
    return Counter((text, at.date(), f"{at:%H:%M}") for text, at in local)
