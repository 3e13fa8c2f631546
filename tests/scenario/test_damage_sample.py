"""A sample of the damage attack: any file of a lived-in data folder, damaged in any way (`make attack` tries more)."""

from __future__ import annotations

import pytest

from tests.attack.damage import run


@pytest.mark.timeout(600)
def test_damaged_folders_lose_nothing_silently() -> None:
    tally = run(seed=7, cases=8)
    assert (tally.tried, tally.failures) == (8, ())
