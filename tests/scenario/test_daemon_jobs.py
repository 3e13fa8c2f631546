"""What the daemon does by the clock."""

from __future__ import annotations

import logging
from pathlib import Path

from assistant.daemon import _schedule
from tests.support.running_app import run_app


async def test_a_long_indexing_holds_up_no_upkeep_and_is_not_warned_of_in_words_of_a_library(tmp_path: Path) -> None:
    async with run_app(tmp_path) as live:
        scheduler = _schedule(live.app, live.app.settings)
        try:
            assert {"watch", "upkeep", "index"} <= {job.id for job in scheduler.get_jobs()}
            assert not logging.getLogger("apscheduler.scheduler").isEnabledFor(logging.WARNING)
        finally:
            scheduler.shutdown(wait=False)
