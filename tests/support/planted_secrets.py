"""A home in which everybody has a secret of their own, in everything that keeps words, and a look at whether one of
them came out or anything of the others' changed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assistant.core.memories import JournalEntry
from assistant.core.profiles import Profile
from assistant.core.sessions import MAIN_SESSION, peer_session_key, room_session_key, session_scope
from tests.support.running_app import ANN, IVO, OWNER, ROOM, BridgePeople, LiveApp, run_app

CLUB = "-300"
ANN_SESSION, IVO_SESSION = peer_session_key("kept", ANN), peer_session_key("kept", IVO)
ROOM_SESSION, CLUB_SESSION = room_session_key("kept", ROOM), room_session_key("kept", CLUB)
BOAT_THREAD = "thread:boat"
SECRETS: Mapping[str, str] = {
    MAIN_SESSION: "marzipan4711",
    BOAT_THREAD: "quokka5150",
    ANN_SESSION: "saffron9933",
    IVO_SESSION: "walnut8822",
    ROOM_SESSION: "cardamom7744",
    CLUB_SESSION: "juniper6655",
}
_TABLES_OF_PEOPLE = ("people", "identities", "rooms", "pairings", "places")


def foreign_secrets(session: str) -> list[str]:
    """The secrets of everybody else."""
    return [secret for owner, secret in SECRETS.items() if session_scope(owner) != session_scope(session)]


async def plant_secrets(home: Path) -> None:
    """Everybody says and keeps their secret, and the app sleeps over it."""
    async with run_app(home, lambda request: f"Noted: {request.messages[-1].content[:200]}") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.command(f"/people allow room kept {CLUB}")
        for session, sender, room in (
            (MAIN_SESSION, OWNER, None),
            (ANN_SESSION, ANN, None),
            (IVO_SESSION, IVO, None),
            (ROOM_SESSION, ANN, ROOM),
            (CLUB_SESSION, OWNER, CLUB),
        ):
            await them.write(_told(SECRETS[session]), sender, room=room, sender_name=f"name {sender}")
            _keep(it, session)
            remind = f"/remind The code word is {SECRETS[session]} --at 2026-03-02 09:00"
            await it.app.commands.run(remind, session, bridge="kept", target=room or sender)
        it.app.stores.places.choose_session("kept", OWNER, BOAT_THREAD, it.clock.now)
        await them.write(_told(SECRETS[BOAT_THREAD]), OWNER)
        stores, now = it.app.stores, it.clock.now
        stores.files.replace_memory_file(
            f"# Codes\n\n- {SECRETS[MAIN_SESSION]}\n", stores.files.read_memory_file(), "user", now
        )
        await it.app.sleep.scheduler.run_now("manual")
        await them.command("/reset boat")
        await it.app.maintenance.index_new_messages()
        (home / "workspace").mkdir(exist_ok=True)
        (home / "workspace" / "codes.txt").write_text(SECRETS[MAIN_SESSION], encoding="utf-8")


def _told(secret: str) -> str:
    return (
        f"My secret code word is {secret}, please remember that my code word is {secret}. Please book a table for two."
    )


def _keep(it: LiveApp, session: str) -> None:
    """In every store that a session has its own things in."""
    stores, now, scope, secret = it.app.stores, it.clock.now, session_scope(session), SECRETS[session]
    text = f"The secret code word is {secret}."
    message = stores.history.recent(scope, session=session)[0].id
    stores.journal.add(
        [JournalEntry(f"planted:{session}", scope, session, 1, text, now, "extraction", 0.9, ("fact",), (message,))],
        now,
    )
    stores.profiles.save(Profile(scope, "person", f"Code {secret}", summary=text), "user", now)
    stores.files.append_daily_note(scope, now.date(), "12:00", [text], f"planted:{session}")
    stores.todos.add(scope, [text], f"planted:{session}", now)
    stores.pins.add(session, scope, text, "user", message, now)
    begun = stores.delegations.begin(f"planted:{session}", f"t{message}", session, scope, [text], now)
    stores.delegations.end(begun[0].id, "done", text, 0.0, now)


def make_home_with_secrets(home: Path) -> Path:
    asyncio.run(plant_secrets(home))
    return home


@asynccontextmanager
async def open_with_grants(home: Path) -> AsyncIterator[LiveApp]:
    """The home, with everything granted to guests and rooms that they can be granted at all."""
    async with run_app(home, "fine") as it:
        tools = [name for name, roles in it.app.toolbox.allowed_roles.items() if "guest" in roles]
        commands = [name for name, roles in it.app.commands.grantable_roles().items() if "guest" in roles]
    granted = {
        f"ASSISTANT_{role}__{key}": json.dumps(names)
        for role in ("GUEST", "ROOM")
        for key, names in (("TOOLS", tools), ("COMMANDS", commands))
    }
    async with run_app(home, "fine", **granted) as it:
        yield it


# -------------------------------------------------------------------------------------------------------------- looking


@dataclass(frozen=True)
class ForeignIds:
    """What there is to ask for: the numbers and names under which other people's things stand."""

    messages: list[int]
    entries: list[int]
    memories: list[str]
    todos: list[int]
    edits: list[int]
    profiles: list[int]
    jobs: list[int]
    sessions: list[str]
    deliveries: list[str]


def foreign_ids(home: Path, session: str) -> ForeignIds:
    scope = session_scope(session)
    script, character = _opened(home / "script.db"), _opened(home / "character.db")

    def column(db: sqlite3.Connection, sql: str) -> list[Any]:
        return [row[0] for row in db.execute(f"{sql} WHERE scope IS NOT ?", (scope,))]

    try:
        return ForeignIds(
            column(script, "SELECT id FROM messages"),
            column(character, "SELECT id FROM journal"),
            column(character, "SELECT DISTINCT memory_id FROM consolidated_entry_ids JOIN journal ON id = entry_id"),
            column(character, "SELECT id FROM todos"),
            column(character, "SELECT id FROM edits"),
            column(character, "SELECT id FROM entity_profiles"),
            column(script, "SELECT id FROM jobs"),
            column(script, "SELECT DISTINCT key FROM sessions"),
            column(script, "SELECT key FROM outbox"),
        )
    finally:
        script.close()
        character.close()


def foreign_snapshot(home: Path, session: str) -> dict[str, Any]:
    """Everything that is not of this session's scope, as it is stored."""
    scope = session_scope(session)
    found: dict[str, Any] = {}
    for name in ("script.db", "character.db"):
        db = _opened(home / name)
        try:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%STRICT%'"):
                columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
                if "scope" in columns:
                    rows = db.execute(f"SELECT * FROM {table} WHERE scope IS NOT ?", (scope,))
                    found[f"{name} {table}"] = sorted(map(repr, rows))
                elif table in _TABLES_OF_PEOPLE:
                    found[f"{name} {table}"] = sorted(map(repr, db.execute(f"SELECT * FROM {table}")))
        finally:
            db.close()
    files = [path for folder in ("log", "memory", "workspace") for path in (home / folder).rglob("*") if path.is_file()]
    mine = SECRETS[session].encode()
    for path in [*files, home / "MEMORY.md"]:
        content = path.read_bytes()
        if mine not in content:
            found[str(path)] = content
    return found


def result_text(result: object) -> str:
    """Everything that a result says."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return repr(dataclasses.asdict(result))
    return repr(result)


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)
