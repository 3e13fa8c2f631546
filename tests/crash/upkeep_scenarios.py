"""Scenarios of what a person does to a home besides talking: taking back an exchange, having the index repaired."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from assistant.wire.checks import build_repairer
from tests.crash.comparison import DIFFER, look
from tests.crash.scenario import Scenario
from tests.crash.turn_scenarios import LIVED
from tests.crash.world import BEGUN, AppRun, CrashEnvironment, live, settings_of


async def _undo(life: AppRun) -> None:
    """The person takes back the last exchange, unless the home says that this was done before the crash."""
    said = life.app.stores.history.recent("owner", limit=50)
    if not any(record.kind == "undo" for record in said):
        await life.app.commands.run("/undo", "main", bridge="network")


UNDO = Scenario(
    "undo",
    "the last exchange is taken back",
    lambda home: live(home, LIVED),
    lambda home: live(home, CrashEnvironment(LIVED.messages, LIVED.answer, meanwhile=_undo)),
    look,
    DIFFER,
)


def _damage(home: Path) -> None:
    """Lose a part of the index, and have it point to the wrong bytes for another."""
    live(home, LIVED)
    with closing(sqlite3.connect(home / "script.db", isolation_level=None)) as script:
        script.execute("DELETE FROM conversation_history WHERE message_id > 2")
        script.execute("DELETE FROM messages WHERE seq = 4")
        script.execute("UPDATE messages SET byte_start = byte_start + 9 WHERE seq = 2")


def _repair(home: Path) -> None:
    build_repairer(settings_of(home)).repair(BEGUN)


REPAIR = Scenario("repair", "a damaged index is made again from the logs", _damage, _repair, look, DIFFER)
