"""A home that does not sleep well says so, in a line a problem, until it does again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from assistant.core.checkpoints import CircuitBreaker
from assistant.core.errors import ModelError
from assistant.core.memories import SleepReport
from assistant.wire.stores import stored_status
from tests.support.compaction_app import LONG_MESSAGE, SUMMARY_ANSWER, app_with_long_messages, summary_writer
from tests.support.running_app import LiveApp

DOWN = ModelError("the network is down\nand so is the line", kind="network")


def stored(it: LiveApp) -> dict[str, Any]:
    """What the home says of itself without a daemon."""
    return stored_status(it.app.settings, it.app.stores, it.clock())


def problems(it: LiveApp) -> list[str]:
    """With the daemon and without it the same."""
    found = it.app.status()
    assert found["problems"] == stored(it)["problems"] and found["ok"] == (found["problems"] == [])
    assert all(len(line.splitlines()) == 1 for line in found["problems"])
    return list(found["problems"])


async def compacted(it: LiveApp, walks: int = 1) -> None:
    for number in range(walks):
        await it.say(f"another walk {number}: {LONG_MESSAGE}")
        await it.wait_idle()
    await it.app.commands.run("/compact", "main")


async def test_an_open_fuse_is_told_in_one_line_until_a_summary_works(tmp_path: Path) -> None:
    by = summary_writer(DOWN)
    async with app_with_long_messages(tmp_path, 28, by=by) as it:
        fuses = it.app.stores.breakers
        await compacted(it)
        assert fuses.get("summary").failures == 1 and problems(it) == []
        await compacted(it, 15)
        await compacted(it, 15)
        assert fuses.get("summary").opened_at is not None
        (line,) = problems(it)
        assert line.startswith("Summaries are made without a model since 2026-03-01 ") and "network is down" in line
        assert line.endswith("It is retried automatically.")
        assert f"! {line}" in await it.app.commands.run("/status", "main")

        by.script = [SUMMARY_ANSWER]
        it.clock.now += timedelta(hours=1)
        await compacted(it, 15)
        assert fuses.get("summary") == CircuitBreaker("summary", 0, None) and problems(it) == []
        assert "Green" in await it.app.commands.run("/status", "main")


async def test_a_last_sleep_that_failed_is_told_in_one_line_until_one_goes_well(tmp_path: Path) -> None:
    by = summary_writer(DOWN)
    async with app_with_long_messages(tmp_path, 3, by=by) as it:
        report = await it.app.sleep.scheduler.run_now("sleep")
        assert report is not None and report.state == "failed"
        (line,) = problems(it)
        assert line.startswith("The last sleep: reading: main is read at the next sleep: ")
        assert line.endswith(" `/sleep` tries again.")
        by.script = ["<memories>\n</memories>"]
        again = await it.app.sleep.scheduler.run_now("manual")
        assert again is not None and again.state == "done"
        assert [one for one in problems(it) if "failed" in one or "is read at" in one] == []


async def test_only_the_last_sleep_counts_and_what_it_warns_of_is_told(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 1) as it:
        journal, now = it.app.stores.journal, it.clock()
        for phases in ({"compact": {"error": "x"}}, {"extract": {"warning": "9 messages were read, none saved"}}):
            number = journal.begin_cycle("sleep", now)
            journal.save_cycle(SleepReport(number, "sleep", now, now, "done", phases))
        (line,) = problems(it)
        assert "9 messages were read, none saved." in line and "compact" not in line
        number = journal.begin_cycle("sleep", now)
        journal.save_cycle(SleepReport(number, "sleep", now, now, "done", {"extract": {"error": ""}}))
        assert problems(it) == []


async def test_a_long_error_stays_a_line(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 1) as it:
        it.app.stores.breakers.record_failure("extraction", "no answer\n" * 500, 1, it.clock())
        (line,) = problems(it)
        assert line.startswith("The journal is written without a model since ") and len(line) < 300
