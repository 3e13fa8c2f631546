"""The order in which several workers run the tests: each begins with some of the longest.

pytest-xdist hands every worker an equal run of them (`--dist worksteal`), and those that are done take over the end of
others' runs: a test of a minute that stands there is begun when nothing else is left, and all wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def put_longest_first(tests: Sequence[T], groups: Iterable[Sequence[T]], workers: int) -> list[T]:
    """The tests, with those of `groups` (of tests that stay together) at the beginnings of the workers' runs; all
    others stay in their order."""
    begins: list[list[T]] = [[] for _ in range(workers)]
    for number, group in enumerate(groups):
        begins[number % workers] += group
    moved = {id(test) for begin in begins for test in begin}
    others = [test for test in tests if id(test) not in moved]
    ordered: list[T] = []
    for number, begin in enumerate(begins):
        # As the workers' runs are cut.
        end = len(ordered) + (len(tests) - len(ordered)) // (workers - number)
        ordered += begin
        taken = max(0, end - len(ordered))
        ordered += others[:taken]
        others = others[taken:]
    return ordered
