"""Scenarios of archives besides those of a reset: a log that lost its end and has it brought back."""

from __future__ import annotations

from pathlib import Path

from assistant.core.errors import CorruptStore
from assistant.wire.stores import Stores, open_archive, restore_archived_session
from tests.crash.comparison import DIFFER, look
from tests.crash.scenario import Scenario
from tests.crash.turn_scenarios import LIVED
from tests.crash.world import BEGUN, live, settings_of


def _lose(home: Path) -> None:
    """Archive what was said, then cut the log off in the middle of a record."""
    live(home, LIVED)
    open_archive(settings_of(home)).store("main", 1, BEGUN, handover="", summary="", reason="manual")
    log = home / "log" / "main" / "conversation.jsonl"
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])


def _bring_back(home: Path) -> None:
    restore_archived_session(settings_of(home), "main", 1)
    stores = Stores(settings_of(home), BEGUN)
    try:
        stores.conversation.recover_after_crash(BEGUN)
    except CorruptStore:
        # Told by what is looked at.
        return
    finally:
        stores.close()


BROUGHT_BACK = Scenario(
    "archive-restore", "a log that lost its end has it brought back from the archive", _lose, _bring_back, look, DIFFER
)
