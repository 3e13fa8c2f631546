"""The table of crash scenarios. Add one here and `python -m tests.crash`, and the sample in `make test`, run it."""

from __future__ import annotations

from tests.crash.scenario import Scenario
from tests.crash.toy import TOYS

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in ()}


def find(name: str) -> Scenario:
    """The scenario of this name; toys have names too. Raises `KeyError`."""
    return {**SCENARIOS, **TOYS}[name]
