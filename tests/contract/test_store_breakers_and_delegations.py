"""Fuses and delegations: what a restart has to know of failures in a row, and of helpers that were at work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.checkpoints import CircuitBreaker
from assistant.core.errors import StoreError
from assistant.store.script.turns import Delegations
from assistant.store.script.usage import CircuitBreakers
from tests.support.store_home import NOW, StoreHome

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    home.chat(1)
    yield home
    assert home.verify().problems == ()
    home.close()


def test_f07_a_fuse_opens_after_failures_in_a_row_and_survives_a_restart(home: StoreHome) -> None:
    breakers = CircuitBreakers(home.db)
    assert breakers.get("summary") == CircuitBreaker("summary", 0, None)
    assert breakers.record_failure("summary", "timed out", 3, NOW) == CircuitBreaker("summary", 1, None, "timed out")
    assert breakers.record_failure("summary", "refused", 3, NOW).opened_at is None
    assert breakers.record_failure("summary", "empty", 3, NOW) == CircuitBreaker("summary", 3, NOW, "empty")
    home.restart()
    assert CircuitBreakers(home.db).get("summary") == CircuitBreaker("summary", 3, NOW, "empty")
    assert CircuitBreakers(home.db).get("other").failures == 0


def test_f07_a_try_that_fails_after_the_cool_down_opens_it_anew(home: StoreHome) -> None:
    breakers = CircuitBreakers(home.db)
    breakers.record_failure("summary", "x", 2, NOW)
    breakers.record_failure("summary", "x", 2, NOW)
    assert breakers.record_failure("summary", "again", 2, LATER) == CircuitBreaker("summary", 3, LATER, "again")


def test_f07_a_success_closes_it(home: StoreHome) -> None:
    breakers = CircuitBreakers(home.db)
    breakers.record_failure("summary", "x", 1, NOW)
    assert breakers.get("summary").opened_at == NOW
    breakers.record_success("summary")
    breakers.record_success("never failed")
    assert breakers.get("summary") == CircuitBreaker("summary", 0, None)
    assert breakers.record_failure("summary", "x", 2, NOW).failures == 1


def test_f22_tasks_are_written_before_they_run_and_end_once(home: StoreHome) -> None:
    delegations = Delegations(home.db)
    first, second = delegations.begin("k1", "t1", "main", "owner", ["look here", "look there"], NOW)
    assert (first.task, first.state, first.result, first.key, first.turn) == ("look here", "running", "", "k1", "t1")
    delegations.end(first.id, "done", "a fence", 0.01, LATER)
    delegations.end(first.id, "failed", "late", None, LATER)
    assert [one.id for one in delegations.list_for_session("main", state="running")] == [second.id]
    assert [one.id for one in delegations.list_for_session("main")] == [second.id, first.id]
    assert [one.id for one in delegations.list_for_session("main", limit=1)] == [second.id]
    assert delegations.list_for_session("peer:x") == []
    (ended,) = delegations.list_for_session("main", state="done")
    assert (ended.result, ended.cost_usd, ended.ended_at) == ("a fence", 0.01, LATER)


def test_f22_what_an_earlier_process_left_running_is_interrupted_and_told(home: StoreHome) -> None:
    first, second = Delegations(home.db).begin("k1", "t1", "main", "owner", ["one", "two"], NOW)
    Delegations(home.db).end(first.id, "done", "ok", 0.0, NOW)
    home.restart()
    (left,) = Delegations(home.db).interrupt_running(LATER)
    assert (left.id, left.state, left.ended_at) == (second.id, "interrupted", LATER)
    assert Delegations(home.db).interrupt_running(LATER) == []
    assert {one.state for one in Delegations(home.db).list_for_session("main")} == {"done", "interrupted"}


def test_f22_a_call_made_again_under_its_key_finds_its_tasks(home: StoreHome) -> None:
    delegations = Delegations(home.db)
    first, second = delegations.begin("k1", "t1", "main", "owner", ["one", "two"], NOW)
    delegations.end(first.id, "done", "ok", 0.0, NOW)
    delegations.interrupt_running(NOW)
    again = delegations.begin("k1", "t1", "main", "owner", ["one", "two"], LATER)
    assert [(one.id, one.state, one.result) for one in again] == [(first.id, "done", "ok"), (second.id, "running", "")]
    assert (again[1].started_at, again[1].ended_at) == (LATER, None)


def test_a_helper_works_for_a_session_that_is_there(home: StoreHome) -> None:
    with pytest.raises(StoreError, match="no session"):
        Delegations(home.db).begin("k", "t", "nowhere", "owner", ["x"], NOW)
