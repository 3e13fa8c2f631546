"""A month of a simulated life holds; the same seed is the same life; and what breaks an invariant is found, and led
back to the few events that it takes."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.store.script.outbox import StoredOutbox
from tests.simulate.clock import VirtualLoop
from tests.simulate.journal import LifeJournal
from tests.simulate.life import Life
from tests.simulate.plan import Event, plan_life
from tests.simulate.run import find_shortest, run_life

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
    loop.run_until_complete(asyncio.sleep(1.0))
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

    def forget_once(self: StoredOutbox, item_id: int, state: str, now: object, *, error: str = "") -> None:
        item = self.find_open(item_id)
        again = state == "sent" and item is not None and "in mind" in item.outgoing.body and item.attempts <= 1
        set_state(self, item_id, "pending" if again else state, now, error=error)  # type: ignore[arg-type]

    monkeypatch.setattr(StoredOutbox, "set_state", forget_once)
    place = {"scope": "owner", "bridge": "beta"}
    events = [
        Event(n, 1000.0 * n, kind, {**place, "text": text})
        for n, (kind, text) in enumerate((("command", "/help"), ("remark", "It rains."), ("command", "/agenda")), 1)
    ]
    failure = run_life(1, 1, events)
    assert failure is not None and failure.kinds == {"I8"}
    assert [event.number for event in find_shortest(1, events, failure)] == [2]
