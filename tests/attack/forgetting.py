"""Forgetting: secrets that are told in every way there is, half of them forgotten in every way there is. The tests tell
fewer (`tests/scenario/test_erasure_secrets.py`, which says what must hold).
"""

from __future__ import annotations

import asyncio
import math
import time
import traceback

from tests.attack.tally import Tally
from tests.scenario.test_erasure_secrets import tell_and_forget_half

SECRETS = 200


def run(seed: int, cases: int = 1, until: float = math.inf, only: int | None = None) -> Tally:
    """A case is a home with `SECRETS` secrets."""
    tried, failures = 0, []
    for case in range(cases):
        if only not in (None, case) or time.monotonic() >= until:
            continue
        tried += 1
        try:
            asyncio.run(tell_and_forget_half(SECRETS, seed + case))
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is a failure of this case
            failed = traceback.extract_tb(error.__traceback__)[-1]
            failures.append(f"case {case}, {failed.name}: {failed.line} {error}")
    return Tally("forgetting", tried, tuple(failures))
