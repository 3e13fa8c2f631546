"""Tables of sentences: one test tries all cases of a table, and its failure lists every case that is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

SENTENCES = Path(__file__).parents[1] / "data" / "sentences"

Check = Callable[..., Any]


def read_sentences(name: str) -> list[str]:
    """The lines of `tests/data/sentences/<name>.txt`, without empty ones and comments."""
    lines = (SENTENCES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def every_case(cases: Iterable[Any]) -> Callable[[Check], Check]:
    """Makes a test of one case, as a function or coroutine function, a test of all: a case that is a tuple is its
    arguments, any other its only one."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]

    def decorate(check: Check) -> Check:
        def check_all() -> None:
            wrong = []
            for row in rows:
                try:
                    check(*row)
                except (AssertionError, LookupError, TypeError, ValueError) as error:
                    wrong.append((row, error))
            _fail(wrong, len(rows))

        async def check_all_async() -> None:
            wrong = []
            for row in rows:
                try:
                    await check(*row)
                except (AssertionError, LookupError, TypeError, ValueError) as error:
                    wrong.append((row, error))
            _fail(wrong, len(rows))

        test = check_all_async if inspect.iscoroutinefunction(check) else check_all
        test.__name__, test.__qualname__ = check.__name__, check.__qualname__
        test.__doc__, test.__module__ = check.__doc__, check.__module__
        return test

    return decorate


def _fail(wrong: list[tuple[tuple[Any, ...], Exception]], count: int) -> None:
    assert count, "the table is empty"
    listed = "\n".join(f"  {_shown(row)}\n    {type(error).__name__}: {_first_line(error)}" for row, error in wrong)
    assert not wrong, f"{len(wrong)} of {count} cases are wrong:\n{listed}"


def _shown(row: tuple[Any, ...]) -> str:
    return ", ".join(repr(value)[:200] for value in row)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:300]
