"""What reaches somebody who asks one thing beside the answer: reminders, what schedules said."""

from __future__ import annotations

import json
from pathlib import Path

from assistant.commands.catalog import command_root, max_seconds_of
from assistant.commands.table import leaf_commands
from tests.support.command_line import FinishedCommand, run_assistant
from tests.support.running_app import BridgePeople, run_app


def test_a_reminder_that_came_due_stands_beside_the_answer_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    added = run_assistant(home, "remind", "add", "take out the trash", "--at", "in 1 second")
    assert added.returncode == 0, added.err
    asked: list[FinishedCommand] = []
    while not any("take out the trash" in done.err for done in asked[:-1]):  # asked until it is due, and once more
        asked.append(run_assistant(home, "chat", "-m", "remember that the door is blue", "--json"))
    shown = [done.err.count("take out the trash") for done in asked]
    assert sum(shown) == 1 and sum("take out the trash" in done.out for done in asked) == 1
    (notices,) = (notices for done in asked if (notices := json.loads(done.out)["notices"]))
    assert len(notices) == 1 and notices[0].startswith("Reminder: take out the trash")


def test_a_typed_command_is_waited_for_as_long_as_the_table_says() -> None:
    for path, leaf in leaf_commands(command_root()):
        assert max_seconds_of(f"/{' '.join(path)}") >= leaf.max_seconds
    assert max_seconds_of("/compact the trip") > 3600 and max_seconds_of("/help") <= 60


async def test_what_a_schedule_asked_for_begins_with_its_name_and_answers_nobody(tmp_path: Path) -> None:
    async with run_app(tmp_path, "It will rain.") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.command('/schedule add forecast "What is the weather?" --every hour')
        await them.command("/schedule run forecast")
        await it.wait_idle()
        (item,) = (item for item in it.app.stores.outbox.list_open("terminal", "main", limit=9))
        assert item.outgoing.body == "Scheduled: forecast\n\nIt will rain." and item.outgoing.inbox_id is None
        # The conversation has the answer alone.
        assert it.view_contents()[-1] == ("assistant", "It will rain.")
