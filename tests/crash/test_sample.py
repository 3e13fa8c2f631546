"""A seeded sample of every crash scenario, small enough for `make test`; `make crash` runs all of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.crash.driver import breaking
from tests.crash.points import sample
from tests.crash.scenarios import SCENARIOS

SEED = 20260301
POINTS = 60

_MISSING = "strace is not installed, so no crash was tried: apt install strace"
_HAS_STRACE = shutil.which("strace") is not None
needs_strace = pytest.mark.skipif(not _HAS_STRACE and not os.environ.get("CI"), reason=_MISSING)


def test_on_ci_strace_is_there() -> None:
    assert _HAS_STRACE or not os.environ.get("CI"), _MISSING


@needs_strace
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_sample_of_crashes_leaves_nothing_lost_doubled_or_half_done(name: str, tmp_path: Path) -> None:
    with breaking(SCENARIOS[name], tmp_path, jobs=2) as driver:
        unbroken = driver.unbroken()
        verdicts = list(driver.run(unbroken, sample(unbroken.points, POINTS, SEED)))
    wrong = [f"{verdict.point}: {problem}" for verdict in verdicts for problem in verdict.problems]
    assert not wrong, f"again: python -m tests.crash --scenario {name} --point ...\n" + "\n".join(wrong)
