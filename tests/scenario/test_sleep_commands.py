"""`/sleep` and its options through the whole app, and what a sleep by hand may spend on summaries."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from assistant.models.offline.model import OfflineModel
from sleep.cycle.cycle import PHASES
from tests.support.compaction_app import SUMMARY_ANSWER, app_with_long_messages, checkpoints_in, summary_writer
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel
from tests.support.sleep_home import learn_every_line

OSLO = "I live in Oslo."


async def sleep(it: LiveApp, *options: str) -> str:
    return await it.app.commands.run(" ".join(["/sleep", *options]), "main")


async def test_a_sleep_by_hand_tells_what_it_did_and_last_tells_it_again(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        assert await sleep(it, "--last") == "No sleep yet."
        told = await sleep(it)
        assert told.startswith("Sleep 1 (manual), 2026-03-01 ") and "There was nothing to do." in told
        assert await sleep(it, "--last") == told
        kept = json.loads(await sleep(it, "--last", "--json"))
        assert (kept["id"], kept["trigger"], kept["state"]) == (1, "manual", "done")


async def test_a_dry_run_tells_what_waits_and_changes_nothing(tmp_path: Path) -> None:
    by = ScriptedModel(learn_every_line, name="claude-haiku-5-5")
    by.provider = "anthropic"
    async with run_app(tmp_path, "Nice.", writer=by) as it:
        assert "nothing to do now" in await sleep(it, "--dry-run")
        for text in (OSLO, "My cat is called Mio."):
            await it.say(text)
            await it.wait_idle()
        told = await sleep(it, "--dry-run")
        assert "main: 4 messages to read, about 1 call and" in told
        assert "About 2 calls of claude-haiku-5-5" in told and "about $0.00" in told
        found = json.loads(await sleep(it, "--json", "--dry-run"))
        assert (found["unread"][0]["messages"], found["pending"], found["calls"]) == (4, 0, 2)
        assert (by.requests, it.app.stores.journal.list_cycles(), it.app.stores.journal.entries("owner")) == (
            [],
            [],
            [],
        )
        await sleep(it, "--phase", "extract")
        again = json.loads(await sleep(it, "--json", "--dry-run"))
        assert (again["unread"], again["pending"]) == ([], 2)


async def test_a_dry_run_without_a_model_foresees_the_entries_of_the_sleep(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=OfflineModel()) as it:  # type: ignore[arg-type]
        for text in (OSLO, "My cat is called Mio.", "What is the time?", OSLO, "My sister Anna is a nurse."):
            await it.say(text)
            await it.wait_idle()
        told = json.loads(await sleep(it, "--json", "--dry-run"))
        done = json.loads(await sleep(it, "--json"))["phases"]
        (unread,) = told["unread"]
        assert (unread["messages"], unread["entries"]) == (done["extract"]["read"], done["extract"]["written"])
        assert unread["entries"] == 3 and told["pending"] == done["consolidate"]["read"]
        assert told["calls"] == sum(phase["calls"] for phase in done.values()) == 0
        assert "nothing to do now" in await sleep(it, "--dry-run")


async def test_a_dry_run_foresees_the_calls_of_the_sleep(tmp_path: Path) -> None:
    by = ScriptedModel(learn_every_line, name="claude-haiku-5-5")
    by.provider = "anthropic"
    async with run_app(tmp_path, "Nice.", writer=by) as it:
        await it.say(OSLO)
        await it.wait_idle()
        told = json.loads(await sleep(it, "--json", "--dry-run"))
        done = json.loads(await sleep(it, "--json"))["phases"]
        assert told["calls"] == sum(phase["calls"] for phase in done.values()) == len(by.requests)


async def test_a_report_counts_the_calls_of_summaries_and_those_that_failed(tmp_path: Path) -> None:
    by = summary_writer("no summary at all", SUMMARY_ANSWER)
    async with app_with_long_messages(tmp_path, 28, by=by) as it:
        phases = json.loads(await sleep(it, "--json", "--phase", "compact"))["phases"]
        assert phases["compact"]["calls"] == len(by.requests) >= 2
        assert f"in {len(by.requests)} calls" in await sleep(it, "--last")


async def test_a_dry_run_foresees_the_compaction_that_the_sleep_makes(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 28) as it:
        told = json.loads(await sleep(it, "--json", "--dry-run"))
        (full,) = told["full"]
        assert (full["session"], full["ratio"] >= 0.5) == ("main", True) and checkpoints_in(it) == []
        report = json.loads(await sleep(it, "--json", "--phase", "compact"))
        done = report["phases"]["compact"]["compacted"]["main"]
        assert abs(done["tokens_before"] - full["tokens_before"]) <= 100
        assert done["checkpoints"] == [one.id for one in checkpoints_in(it)]


@pytest.mark.parametrize("options", ["--phase", "--phase dream", "--phase extract score", "--never", "now", "--last 3"])
async def test_what_it_does_not_know_it_tells_and_does_not_sleep(tmp_path: Path, options: str) -> None:
    async with run_app(tmp_path, "ok") as it:
        with pytest.raises(UsageError) as told:
            await sleep(it, options)
        expected = ", ".join(PHASES) if "--phase" in options else "--dry-run"
        assert expected in str(told.value) or "/sleep [" in str(told.value)
        assert it.app.stores.journal.list_cycles() == []


async def test_a_whole_night_of_a_home_is_taken_back_and_does_not_come_again(tmp_path: Path) -> None:
    """With Mem0 and all that an app has."""
    async with run_app(tmp_path, "Nice.") as it:
        await it.say(OSLO)
        await it.wait_idle()
        with pytest.raises(UsageError, match="no sleep to undo"):
            await sleep(it, "--undo")
        assert "1 new memory" in await sleep(it)
        assert OSLO in it.app.stores.files.read_memory_file() and await it.app.stores.memories.all("owner")
        told = json.loads(await sleep(it, "--json", "--undo"))
        assert (told["memories"], told["entries"], told["left"]) == (1, 1, [])
        assert await it.app.stores.memories.all("owner") == [] and it.app.stores.files.read_memory_file() == ""
        assert it.app.stores.memories.child.pid is None
        assert "There was nothing to do." in await sleep(it)
        assert await it.app.stores.memories.all("owner") == []


async def test_the_compactions_of_a_night_are_taken_back_with_it(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 28) as it:
        before = it.app.stores.conversation.load_view("main").messages
        await sleep(it, "--phase", "compact")
        assert "summary" in {tag for one in it.app.stores.journal.entries("owner") for tag in one.tags}
        told = await sleep(it, "--undo")
        assert "Compaction of main undone." in told and "set aside" in told
        assert it.app.stores.conversation.load_view("main").messages == before
        assert it.app.stores.journal.entries("owner") == []


async def test_f32_no_summary_is_paid_for_that_a_sleep_may_not_pay(tmp_path: Path) -> None:
    by = summary_writer()
    by.provider, by.name = "anthropic", "claude-haiku-5-5"
    async with app_with_long_messages(tmp_path, 28, by=by, ASSISTANT_SLEEP__MAX_USD="0.001") as it:
        report = json.loads(await sleep(it, "--json", "--phase", "compact"))
        assert by.requests == [] and [one.tier for one in checkpoints_in(it)] == ["extractive"]
        assert "sleep.max_usd" in report["phases"]["compact"]["budget"]
        assert it.app.stores.breakers.get("summary").failures == 0
        await it.app.commands.run("/compact --undo", "main")
        await it.app.commands.run("/compact", "main")
        assert by.requests != []


async def test_a_sleep_that_is_asked_for_goes_on_when_whoever_asked_goes_away(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        asked = asyncio.create_task(sleep(it))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert it.app.sleep.scheduler.is_asleep()
        asked.cancel()
        await asyncio.wait([asked])
        report = await it.app.sleep.scheduler.start("manual")
        assert report is not None and (report.id, report.state) == (1, "done")


async def test_late_is_told_as_late(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        await it.say("hello")
        await it.wait_idle()
        it.clock.now += timedelta(days=2)
        it.app.sleep.scheduler.check_due()
        await it.app.sleep.scheduler.run_now("sleep")
        assert "(night, late)" in await sleep(it, "--last")
