"""A month of a simulated life holds; the same seed is the same life; and what breaks an invariant is found, and led
back to the few events that it takes."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.agenda.scheduler import AgendaScheduler
from assistant.core.jobs import FiringBatch, Job, NewJob, ReminderMessage
from assistant.store.script.jobs import Jobs
from assistant.store.script.outbox import StoredOutbox
from tests.simulate.checks import is_of_todays_calls
from tests.simulate.clock import VirtualLoop
from tests.simulate.journal import LifeJournal
from tests.simulate.life import Life
from tests.simulate.plan import Event, plan_life
from tests.simulate.reminders import moments_of_phrase
from tests.simulate.run import find_shortest, run_life
from tests.simulate.world import World

SEED = 2
_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _surroundings_as_before() -> Iterator[None]:
    before = dict(os.environ)
    modules = {name: sys.modules.get(name) for name in ("spacy", "fastembed")}
    yield
    logging.disable(logging.NOTSET)
    os.environ.clear()
    os.environ.update(before)
    for name, module in modules.items():
        if module is None:
            sys.modules.pop(name, None)


@pytest.mark.timeout(600)
def test_a_month_of_a_life_with_faults_keeps_every_invariant() -> None:
    command = [sys.executable, "-m", "tests.simulate", "--seed", str(SEED), "--days", "30", "--no-shrink"]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_life_that_held_is_not_lived_again_and_one_that_failed_is(tmp_path: Path) -> None:
    path = tmp_path / "lives.jsonl"
    journal = LifeJournal(path)
    journal.add(1, 30, True, "", 20)
    journal.add(2, 30, False, "I1: it was lost", 20)
    with path.open("a", encoding="utf-8") as file:
        file.write('\n{"seed": 3, "days": 30, "he')
    again = LifeJournal(path)
    assert [again.has_held(seed, 30) for seed in (1, 2, 3)] == [True, False, False]
    assert not again.has_held(1, 365) and "seed 2, 30 days: I1: it was lost" in again.report()


def test_a_longer_life_of_a_seed_begins_like_a_shorter_one() -> None:
    short, long = plan_life(7, 20), plan_life(7, 60)
    last = short[-1].at - 86_400
    assert [event for event in short if event.at < last] == [event for event in long if event.at < last]


def test_a_timer_ends_however_long_a_life_has_lasted() -> None:
    """Of a time of many seconds, small differences are lost."""
    loop = VirtualLoop()
    loop.skip(100 * 365 * 86_400.0)
    begun = loop.time()
    loop.run_until_complete(asyncio.sleep(1.0))
    assert loop.time() >= begun + 1.0
    loop.close()


def test_a_life_that_goes_round_without_end_is_a_failure_that_names_where(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go_round(life: Life) -> None:
        while life.event is not None:  # noqa: ASYNC110 -- this is what is wrong with it
            await asyncio.sleep(0)

    monkeypatch.setattr(Life, "_backup", go_round)
    failure = run_life(1, 1, [Event(1, 1000.0, "backup")])
    assert failure is not None and failure.kinds >= {"stands still"}
    assert any(text.strip().startswith("life:") and "go_round < " in text for text in failure.texts)


def test_the_same_events_are_the_same_life() -> None:
    def shown() -> list[tuple[str, str, str]]:
        seen: list[tuple[str, str, str]] = []

        def report(life: object) -> None:
            for network in life.world.networks.values():  # type: ignore[attr-defined]
                seen.extend((part.key, part.text, part.item.outgoing.target) for part in network.shown)

        assert run_life(SEED, 3, plan_life(SEED, 3), report) is None
        return seen

    first = shown()
    assert len(first) > 10 and first == shown()


def test_an_answer_that_is_sent_twice_is_found_with_the_event_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that forgets what it has sent."""
    set_state = StoredOutbox.set_state

    def forget_once(self: StoredOutbox, item_id: int, state: str, now: object, **about: object) -> None:
        item = self.find_open(item_id)
        again = state == "sent" and item is not None and "in mind" in item.outgoing.body and item.attempts <= 1
        set_state(self, item_id, "pending" if again else state, now, **about)  # type: ignore[arg-type]

    monkeypatch.setattr(StoredOutbox, "set_state", forget_once)
    place = {"scope": "owner", "bridge": "beta"}
    events = [
        Event(n, 1000.0 * n, kind, {**place, "text": text})
        for n, (kind, text) in enumerate((("command", "/help"), ("remark", "It rains."), ("command", "/agenda")), 1)
    ]
    failure = run_life(1, 1, events)
    assert failure is not None and failure.kinds == {"I8"}
    assert [event.number for event in find_shortest(1, events, failure)] == [2]


# ---------------------------------------------------------------------------------------------------------- reminders

_ORDER = Event(
    1, 30_000.0, "remind", {"scope": "owner", "bridge": "beta", "text": "bake bread 7", "when": "in 3 hours"}
)


def _complaints(*events: Event, days: int = 2) -> list[str]:
    failure = run_life(1, days, events)
    return [] if failure is None else failure.texts


def test_a_reminder_that_comes_is_no_failure() -> None:
    assert _complaints(_ORDER) == []


def test_a_reminder_that_is_lost_on_its_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    apply_firing = Jobs.apply_firing

    def lose_messages(self: Jobs, firing: FiringBatch, now: datetime) -> None:
        apply_firing(self, replace(firing, messages=()), now)

    monkeypatch.setattr(Jobs, "apply_firing", lose_messages)
    found = _complaints(_ORDER)
    assert any("'bake bread 7' was due" in text and "never came" in text for text in found), found


def test_a_reminder_that_is_lost_from_the_store_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Promised to the model, and rolled back."""

    def pretend(self: Jobs, new: NewJob, limit: int, now: datetime) -> Job:
        return Job(1, new.kind, new.name, new.place, new.text, new.spec, new.zone, new.catch_up, "active", new.due, now)

    monkeypatch.setattr(Jobs, "add", pretend)
    assert _complaints(_ORDER) == ["I11: 'bake bread 7' was set as reminder 1, and the store has []"]


def test_a_reminder_that_waits_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Jobs, "list_due", lambda *_, **__: [])
    monkeypatch.setattr(AgendaScheduler, "_seconds_to_wait", lambda _: 600.0)
    assert any("was due at" in text for text in _complaints(_ORDER))


def test_a_reminder_in_another_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Jobs._send

    def mistake(self: Jobs, message: ReminderMessage, now: datetime) -> None:
        send(self, replace(message, place=replace(message.place, bridge="alpha")), now)

    monkeypatch.setattr(Jobs, "_send", mistake)
    assert any("and came on ('alpha', '100')" in text for text in _complaints(_ORDER))


def test_a_reminder_that_is_late_without_a_reason_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fire_due = AgendaScheduler.fire_due

    async def oversleep(self: AgendaScheduler) -> int:
        return await fire_due(self) if self._clock() > datetime(2026, 3, 5, 13, tzinfo=UTC) else 0

    monkeypatch.setattr(AgendaScheduler, "fire_due", oversleep)
    monkeypatch.setattr(AgendaScheduler, "_seconds_to_wait", lambda _: 600.0)
    assert any("nothing was in its way" in text for text in _complaints(_ORDER))


def test_a_reminder_that_is_planned_for_another_time_than_was_asked_for_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add = Jobs.add

    def mistake(self: Jobs, new: NewJob, limit: int, now: datetime) -> Job:
        return add(self, replace(new, due=replace(new.due, at=new.due.at + timedelta(hours=1))), limit, now)

    monkeypatch.setattr(Jobs, "add", mistake)
    assert any("and is planned for" in text for text in _complaints(_ORDER))


def test_a_reminder_comes_late_and_says_so_after_a_day_off() -> None:
    off = Event(2, 32_000.0, "off", {"seconds": 20 * 3600.0, "wait": 0.0})
    shown: list[str] = []

    def report(life: Life) -> None:
        shown.extend(part.text for network in life.world.networks.values() for part in network.shown)

    assert run_life(1, 3, [_ORDER, off], report) is None
    assert any("bake bread 7" in text and "It was due" in text for text in shown)


def test_a_phrase_of_the_plan_means_the_same_moment_for_whoever_checks_it() -> None:
    friday = datetime(2026, 3, 27, 12, tzinfo=UTC)
    assert moments_of_phrase("in 20 minutes", friday) == [friday + timedelta(minutes=20)]
    assert [moment.isoformat() for moment in moments_of_phrase("on friday at 18:30", friday)] == [
        "2026-03-27T18:30:00+01:00",
        "2026-04-03T18:30:00+02:00",
    ]
    # The clocks pass this time over two days later.
    assert [moment.isoformat() for moment in moments_of_phrase("in two days at 2:30", friday)] == [
        "2026-03-29T03:00:00+02:00"
    ]


# ------------------------------------------------------------------------------------------------------------ others


def test_a_conversation_may_be_full_on_the_day_on_which_its_window_was_made_smaller() -> None:
    window, long = (
        "CONTEXT__MAX_CONTEXT_TOKENS",
        {"scope": "room", "bridge": "alpha", "text": "It rained all day. " * 500},
    )
    events = [
        Event(1, 30_000.0, "settings", {"name": window, "value": "40000"}),
        *(Event(number, 40_000.0 + 60 * number, "long", long) for number in range(2, 14)),
        Event(14, 80_000.0, "settings", {"name": window, "value": "12000"}),
    ]
    assert _complaints(*events) == []


def test_an_entry_that_is_lost_from_the_journal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([5, 4])
    monkeypatch.setattr(World, "read_value", lambda *_: next(counts))
    assert _complaints(days=2) == ["I4: the journal had 5 entries and has 4"]


def test_a_daily_budget_may_be_nearly_used_by_the_calls_of_its_own_day() -> None:
    """That was taken for a status that is not green again (seed 5, a cap of half a dollar)."""
    problem = "The daily budget has too little left for a call: $0.40 of $0.50 is used."
    assert is_of_todays_calls(problem, 0.40, {0.5})
    # Of the day before, of a day without a call, and of something else.
    assert not is_of_todays_calls(problem, 0.02, {0.5})
    assert not is_of_todays_calls(problem, 0.0, set())
    assert not is_of_todays_calls("A bridge is away.", 0.40, {0.5})
