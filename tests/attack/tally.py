"""What came of one kind of attack: how many cases were tried, and each that did not hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """`failures` has a line for each case that failed: how to try it again, and what was wrong."""

    kind: str
    tried: int
    failures: tuple[str, ...]

    @property
    def held(self) -> int:
        return self.tried - len(self.failures)
