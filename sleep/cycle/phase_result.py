"""What one phase of a sleep did, gathered while it runs and told in the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_MOST_REASONS = 10


def _nobody(_: PhaseResult) -> None:
    """Nobody follows what goes on."""


@dataclass(slots=True)
class PhaseResult:
    """What one phase did."""

    read_count: int = 0  # messages, checkpoints, sessions or entries, as the phase reads them
    written_count: int = 0  # entries, sessions compacted, weights or memories
    repeated_count: int = 0  # entries that the journal had already
    waiting_count: int = 0  # what was not read to its end
    calls: int = 0
    cost_usd: float | None = 0.0  # None once a price is not known
    rejected: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)  # a phase's own counts
    unlearned_count: int = 0  # statements in what nothing was saved from (extract)
    had_learnable: bool = False  # there was something to learn in it for sure (extract)
    # called with each step that is done
    on_progress: Callable[[PhaseResult], None] = field(default=_nobody, repr=False, compare=False)

    def report_progress(self) -> None:
        """A step of the phase is done, and more may follow."""
        self.on_progress(self)

    def add_cost(self, usd: float | None) -> None:
        self.cost_usd = None if self.cost_usd is None or usd is None else self.cost_usd + usd

    def add_count(self, name: str, by: int) -> None:
        """Add to one of the phase's own counts."""
        self.details[name] = self.details.get(name, 0) + by

    def as_json(self) -> dict[str, Any]:
        """As JSON for the report."""
        return {
            "state": "failed" if self.errors else "done",
            "read": self.read_count,
            "written": self.written_count,
            "repeated": self.repeated_count,
            "waiting": self.waiting_count,
            "calls": self.calls,
            "cost_usd": self.cost_usd,
            "rejected": list(dict.fromkeys(self.rejected))[:_MOST_REASONS],
            "error": "; ".join(dict.fromkeys(self.errors)),
            **self.details,
        }
