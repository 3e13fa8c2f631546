"""How much of a collection a search looks at. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of the first stage, in units: a collection up to `whole` is scored as a whole; else the `seeds` best by a cheap
    score lead to the `exact` that are scored exactly. A stem that more than the share `common` has leads nowhere."""

    whole: int = 1_500
    seeds: int = 2_000
    exact: int = 1_000
    common: float = 0.3
