"""A seeded sample of every crash scenario, small enough for `make test-all`; `make crash` runs all of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.crash.available import HAS_STRACE, MISSING, needs_strace
from tests.crash.driver import breaking
from tests.crash.points import sample
from tests.crash.scenarios import SCENARIOS
from tests.crash.warm import WarmProcess, warm_processes

SEED = 20260301
# One of each way of breaking: killed, killed again while it recovers, a torn write, a power cut, calls that fail. Each
# scenario takes every third of them, and the next one begins with the next.
POINTS, EVERY = 5, 3


def test_on_ci_strace_is_there() -> None:
    assert HAS_STRACE or not os.environ.get("CI"), MISSING


@pytest.fixture(scope="module")
def warm() -> Iterator[list[WarmProcess]]:
    with warm_processes(1) as processes:
        yield processes


@needs_strace
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_sample_of_crashes_leaves_nothing_lost_doubled_or_half_done(name: str, warm: list[WarmProcess]) -> None:
    with breaking(SCENARIOS[name], warm) as driver:
        unbroken = driver.unbroken()
        points = sample(unbroken.points, POINTS, SEED)[list(SCENARIOS).index(name) % EVERY :: EVERY]
        verdicts = list(driver.run(unbroken, points))
    wrong = [f"{verdict.point}: {problem}" for verdict in verdicts for problem in verdict.problems]
    assert not unbroken.outside, f"written outside of the home: {unbroken.outside}"
    assert not wrong, f"again: python -m tests.crash --scenario {name} --point ...\n" + "\n".join(wrong)
