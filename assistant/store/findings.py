"""What a check found, gathered: every kind of problem is told with its first cases and a count of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from assistant.core.errors import StoreError
from assistant.core.records import IntegrityProblem

_TOLD_OF_A_KIND = 20


class Findings:
    def __init__(self) -> None:
        self._told: list[IntegrityProblem] = []
        self._found: Counter[tuple[str, str, bool]] = Counter()

    def add(self, kind: str, where: str, text: str, *, repairable: bool = False) -> None:
        self._found[kind, where, repairable] += 1
        if self._found[kind, where, repairable] <= _TOLD_OF_A_KIND:
            self._told.append(IntegrityProblem(kind, where, text, repairable))

    @contextmanager
    def broken(self, where: str) -> Iterator[None]:
        """A part of the check that the damage itself ends is a finding, and the other parts go on."""
        try:
            yield
        except StoreError as error:
            self.add("database", where, str(error))

    def problems(self) -> tuple[IntegrityProblem, ...]:
        rest = [
            IntegrityProblem(kind, where, f"... and {found - _TOLD_OF_A_KIND} more like these", repairable)
            for (kind, where, repairable), found in self._found.items()
            if found > _TOLD_OF_A_KIND
        ]
        return (*self._told, *rest)
