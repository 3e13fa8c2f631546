"""What an attack counts: how many cases were tried, how many held, and what the others did.

Every attack of `make attack` returns one `Tally`. It has no failures exactly when all that was tried held.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """`failures` has a line for each case that did not hold: what was done, and what went wrong."""

    kind: str
    tried: int
    held: int
    failures: tuple[str, ...]

    @property
    def failed(self) -> int:
        return self.tried - self.held

    def __str__(self) -> str:
        return f"{self.kind}: {self.tried} tried, {self.held} held, {self.failed} failed"
