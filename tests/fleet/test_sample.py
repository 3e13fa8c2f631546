"""Two losses in a small fleet; `make fleet-crash` has hundreds of each kind."""

from __future__ import annotations

import pytest

from tests.fleet.losses import LOSSES, run


@pytest.mark.timeout(400)
def test_a_router_a_host_and_the_primary_are_lost_and_nothing_that_was_acknowledged() -> None:
    kinds = ("router", "host and primary")
    assert set(kinds) <= set(LOSSES)
    tally = run(20261129, 2, kinds=kinds, homes=1)
    assert (tally.tried, tally.failures) == (2, ())
