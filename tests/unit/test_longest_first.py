"""The workers begin with the longest tests, and nothing is lost for it."""

from __future__ import annotations

import pytest

from tests.support.longest_first import put_longest_first


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [13, 100, 101])
def test_each_run_begins_with_some_and_the_others_stay_in_their_order(count: int, workers: int) -> None:
    tests = [f"test {number}" for number in range(count)]
    *others, one, other, third, fourth = tests
    ordered = put_longest_first(tests, [[one, other], [third], [fourth]], workers)
    assert len(ordered) == count
    assert [test for test in ordered if test in others] == others
    assert ordered[:2] == [one, other]
    left, begins = list(ordered), []
    for number in range(workers):  # as xdist.scheduler.worksteal cuts them
        begins.append(left[0])
        left = left[len(left) // (workers - number) :]
    assert begins[:3] == [one, third, fourth][:workers]


def test_fewer_tests_than_workers_are_all_there() -> None:
    assert put_longest_first(["a", "b"], [["b"]], 4) == ["b", "a"]
    assert put_longest_first(["a", "b", "c"], [], 4) == ["a", "b", "c"]
