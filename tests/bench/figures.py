"""What a benchmark reports: rows of one plain table. One module a figure; `__main__.py` lists them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement. `messages` is the size of the home (None where it does not matter); `good` tells whether the
    target is met, None where there is none."""

    figure: str
    messages: int | None
    measure: str
    result: str
    target: str = ""
    good: bool | None = None


def percentile(samples: Sequence[float], share: float) -> float:
    """The value below which `share` of the samples lie (nearest rank)."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def spread(samples: Sequence[float]) -> str:
    """Seconds as "p50 / p95 / p99" in milliseconds."""
    return " / ".join(f"{1000 * percentile(samples, share):.1f}" for share in (0.50, 0.95, 0.99)) + " ms"


def table(rows: Iterable[Row]) -> str:
    head = ("figure", "messages", "measure", "result", "target", "")
    marks = {None: "", True: "ok", False: "MISSED"}
    lines = [
        head,
        *(
            (r.figure, f"{r.messages:,}" if r.messages else "", r.measure, r.result, r.target, marks[r.good])
            for r in rows
        ),
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
