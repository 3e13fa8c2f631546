"""A scenario of imports: an export is read into the store; killed anywhere, the same export again does the rest."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from assistant.core.import_records import ImportedBatch, ImportedMessage
from assistant.wire.stores import Stores
from tests.crash.comparison import DIFFER, look
from tests.crash.pictures import rows
from tests.crash.scenario import Scenario, Snapshot
from tests.crash.turn_scenarios import LIVED
from tests.crash.world import BEGUN, live, settings_of

_NOW = BEGUN + timedelta(days=30)


def _batch(conversation: str, first: int, last: int) -> ImportedBatch:
    messages = tuple(
        ImportedMessage(
            f"m{n}", "assistant" if n % 2 else "user", f"{conversation} says {n}", BEGUN - timedelta(days=900 - n)
        )
        for n in range(first, last)
    )
    return ImportedBatch("chatgpt", conversation, f"About {conversation}", messages)


_EXPORT = (_batch("boats", 0, 3), _batch("boats", 3, 5), _batch("trains", 0, 4))


def _import(home: Path) -> None:
    """As a restarted service and a command given again would: settle, then read the export from its beginning."""
    stores = Stores(settings_of(home), _NOW)
    try:
        stores.conversation.recover_after_crash(_NOW)
        if any(run.state == "done" for run in stores.imports.list_runs()):
            return
        number = stores.imports.begin("chatgpt", "export.zip", _NOW)
        stores.imports.open_conversations(_EXPORT, _NOW)
        for batch in _EXPORT:
            stores.imports.add(number, batch, _NOW)
        stores.imports.finish(number, 0, _NOW)
    finally:
        stores.close()


def _look(home: Path) -> Snapshot:
    conversations = "SELECT id, source, external_id, title FROM imported_conversations ORDER BY id"
    of_imports = "FROM messages WHERE session GLOB 'import:*' ORDER BY session, seq"
    said = f"SELECT session, seq, role, ts, external_id {of_imports}"
    ended = "SELECT key, started_at, ended_at, end_reason FROM sessions WHERE key GLOB 'import:*' ORDER BY key"
    script = home / "script.db"
    return {
        **look(home),
        "imports": rows(script, "SELECT id, source, name, state, rejected FROM imports ORDER BY id"),
        "imported conversations": rows(script, conversations),
        "imported messages": rows(script, said),
        "imported sessions": rows(script, ended),
    }


IMPORTED = Scenario(
    "imported",
    "an export of another program is read into the store",
    lambda home: live(home, LIVED),
    _import,
    _look,
    DIFFER,
)
