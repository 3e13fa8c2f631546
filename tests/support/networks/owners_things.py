"""The owner's own things, each with a word that nobody else may read, and a look at whether one of them changed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from assistant.commands.catalog import command_root
from assistant.commands.registry import grantable_roles
from assistant.core.approvals import ProposedEffect
from assistant.core.memories import JournalEntry
from assistant.core.profiles import Profile
from tests.support.networks.conformance_app import ConformanceApp
from tools.toolbox import tool_roles

# In all that the owner has, next to a word that everybody may look for.
MARK, WORD = "kestrel", "boat"


def grants(role: str) -> dict[str, str]:
    """Settings that give a role all that it may ever have."""
    tools = [name for name, roles in tool_roles().items() if role in roles]
    commands = [name for name, roles in grantable_roles(command_root()).items() if role in roles]
    prefix = f"ASSISTANT_{role.upper()}__"
    return {f"{prefix}TOOLS": json.dumps(tools), f"{prefix}COMMANDS": json.dumps(commands)}


async def live_as_owner(it: ConformanceApp) -> None:
    """The owner has something of everything."""
    stores, now = it.app.stores, it.clock()
    await it.network.say("owner", f"Please book the {MARK} {WORD}.")
    await it.wait_for_answer(f"{MARK} {WORD}")
    stores.todos.add("owner", [f"paint the {MARK} {WORD}"], "t0", now)
    await it.app.commands.run(f'/remind add {MARK} {WORD} --at "next monday at 9"', "main")
    await it.app.commands.run(f'/schedule add news "{MARK} {WORD}?" --every "day at 10"', "main")
    entry = JournalEntry("k0", "owner", "main", 1, f"The {WORD} is called {MARK}.", now, "tool", 0.9, ("fact",))
    stores.journal.add([entry], now)
    stores.profiles.save(Profile("owner", "thing", WORD, summary=f"A {MARK}."), "model", now, key="p1")
    stores.pins.add("main", "owner", f"{MARK} {WORD}", "user", None, now)
    (it.home / "MEMORY.md").write_text(f"The {WORD} is a {MARK}.\n")
    stores.files.append_daily_note("owner", now.date(), "08:00", [f"{MARK} {WORD}"], "n1")
    (it.home / "workspace").mkdir(exist_ok=True)
    (it.home / "workspace" / "boat.txt").write_text(f"{MARK} {WORD}")
    turn = stores.conversation.list_sessions()[0]
    effect = ProposedEffect(
        *("a0", turn.key, turn.generation, "owner", "t00000001", "c", "set_reminder", {"text": MARK, "when": "at 9"}),
        *(f"set a reminder {MARK} {WORD}", it.network.name, "", now, now.replace(year=now.year + 1), "", ""),
    )
    stores.approvals.propose(effect, "pending")


def owners_things(home: Path) -> dict[str, Any]:
    """Every row of the owner's, and the files."""
    found: dict[str, Any] = {}
    for name in ("script.db", "character.db"):
        with closing(sqlite3.connect(f"file:{home / name}?mode=ro", uri=True)) as db:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%STRICT%'"):
                if "scope" in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]:
                    found[table] = sorted(map(repr, db.execute(f"SELECT * FROM {table} WHERE scope = 'owner'")))
            if name == "script.db":
                found["people"] = [sorted(map(repr, db.execute(f"SELECT * FROM {t}"))) for t in ("people", "rooms")]
    paths = [home / "MEMORY.md", *(home / "memory").glob("*.md"), *(home / "workspace").rglob("*")]
    found["files"] = {path.name: path.read_bytes() for path in paths if path.is_file()}
    return found
