"""A data folder that was lived in, and what is in it: prepared once, copied for each case of damage."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.store.log.reader import LogFiles
from assistant.wire.app import App, build_app
from assistant.wire.stores import Stores
from tests.support.scripted import RecordingBridge, owner_message

# A small window, so that there are compactions.
_ENVIRONMENT = {
    "TIKTOKEN_CACHE_DIR": "",
    "ASSISTANT_HOME__TIMEZONE": "UTC",
    "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "6000",
}
BEGUN = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
# A small window, so that there are compactions.
ENVIRONMENT = {
    "TIKTOKEN_CACHE_DIR": "",
    "ASSISTANT_HOME__TIMEZONE": "UTC",
    "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "6000",
}


@dataclass
class SetClock:
    now: datetime = BEGUN

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=10)
        return self.now


def settings_of(home: Path) -> Settings:
    return load_settings(Home(home), _ENVIRONMENT, ring=None)


@dataclass
class Living:
    app: App
    bridge: RecordingBridge
    clock: SetClock
    said: int = 0

    async def say(self, text: str, session: str = "main") -> None:
        self.said += 1
        name = f"{self.clock.now.timestamp()}-{self.said}"
        await self.app.runtime.accept(owner_message(text, external_id=name, session=session))
        await self.idle()

    async def command(self, text: str, session: str = "main") -> str:
        return await self.app.commands.run(text, session)

    async def idle(self) -> None:
        await self.app.runtime.wait_until_idle()
        await self.app.dispatcher.flush()


@asynccontextmanager
async def living(home: Path, clock: SetClock) -> AsyncIterator[Living]:
    bridge = RecordingBridge()
    app = build_app(settings_of(home), clock, bridges={"kept": bridge})
    try:
        await app.start()
        yield Living(app, bridge, clock)
    finally:
        await app.stop(5)
        app.close()


async def _talk(it: Living, topic: str, count: int) -> None:
    for number in range(count):
        await it.say(f"Remember that the {topic} number {number} is in drawer {number * 7 + len(topic)}.")
    await it.say(f"Where is the {topic} number 1?", "thread:work")
    await it.command(f"/todo add oil the {topic}")
    await it.command(f"/remind look at the {topic} --at 'in 40 days'")
    await it.command(f"/pins add The {topic} is blue.")
    for number in range(6):
        await it.say(f"The {topic} story, part {number}. " + f"It went on and on about the {topic}. " * 30)
    await it.command("/compact")
    assert await it.app.sleep.scheduler.run_now("sleep")
    await it.app.maintenance.index_new_messages()


async def _first_life(home: Path, clock: SetClock) -> None:
    async with living(home, clock) as it:
        await it.say("My name is Ada and I live in Oslo.")
        await _talk(it, "lamp", 6)
        await it.command("/people link kept 100")
        await it.command("/people allow kept 7")
        await it.command("/reset")
        await _talk(it, "boat", 6)
        (home / "workspace").mkdir(exist_ok=True)
        (home / "workspace" / "plan.txt").write_text("Paint the gate.\n" * 40, encoding="utf-8")
        (home / "PERSONA.md").write_text("Be brief.\n", encoding="utf-8")
        (home / "config.toml").write_text('[log]\nlevel = "error"\n', encoding="utf-8")


async def _second_life(home: Path, clock: SetClock, killed: Path) -> None:
    clock.now += timedelta(hours=3)
    async with living(home, clock) as it:
        await it.app.backup_scheduler.create()
        await _talk(it, "kettle", 5)
        await it.say("My sister is called Ines.")
        it.app.stores.record(clock())
        await it.say("The kettle was sold.")
        await it.command("/todo add sell the kettle")
        shutil.copytree(home, killed, ignore=shutil.ignore_patterns("run"))


@dataclass(frozen=True)
class LivedHome:
    """The folder as a stop left it, as a kill did, as it was before the backup, and what was in it."""

    stopped: Path
    killed: Path
    earlier: Path
    clock: SetClock
    facts: Mapping[str, Facts]


Facts = Mapping[str, Mapping[str, str]]
"""By kind, what there is: by a name that people read, what it says."""


def live_once(root: Path) -> LivedHome:
    home, killed, earlier, clock = root / "stopped", root / "killed", root / "earlier", SetClock()
    asyncio.run(_first_life(home, clock))
    shutil.copytree(home, earlier, ignore=shutil.ignore_patterns("run"))
    asyncio.run(_second_life(home, clock, killed))
    shutil.rmtree(home / "run", ignore_errors=True)
    clock.now += timedelta(hours=1)
    facts = {}
    for variant in (home, killed):
        copy = root / "looked-at"
        shutil.copytree(variant, copy)
        facts[variant.name] = facts_of(copy, clock.now)
        shutil.rmtree(copy)
    return LivedHome(home, killed, earlier, clock, facts)


def facts_of(home: Path, now: datetime) -> Facts:
    with closing(Stores(settings_of(home), now)) as stores:
        script, character = stores.verifier._db, stores.journal._db

        def rows(db: Any, sql: str) -> dict[str, str]:
            return {str(row[0]): str(row[1]) for row in db.rows(sql)}

        messages = {}
        for session in stores.conversation.list_sessions():
            for record in _readable(home, session.key):
                messages[f"message {record['id']}"] = f"{record['role']}: {record['content']}"
        return {
            "message": messages,
            "reminder": rows(script, "SELECT id, text FROM jobs WHERE state = 'active'"),
            "compaction": rows(script, "SELECT id, summary_content FROM checkpoints WHERE state = 'live'"),
            "received message": rows(script, "SELECT message_id, body FROM inbox_messages"),
            "person": rows(script, "SELECT name, role FROM people"),
            "delivery": rows(script, "SELECT key, body FROM outbox WHERE key LIKE 'reply:%'"),
            "journal entry": rows(character, "SELECT key, content FROM journal"),
            "to-do": rows(character, "SELECT id, text FROM todos"),
            "pinned text": rows(character, "SELECT id, text FROM pins"),
            "profile": rows(character, "SELECT name, summary FROM entity_profiles"),
            # What was running at a stop is interrupted from the next start on.
            "sleep": rows(character, "SELECT id, replace(state, 'running', 'interrupted') FROM sleep_cycles"),
            "MEMORY.md": {"MEMORY.md": _text(home / "MEMORY.md")},
            "memory": {memory.text: "" for memory in asyncio.run(_memories(stores))},
        }


async def _memories(stores: Stores) -> list[Any]:
    return list(await stores.memories.all("owner"))


def _readable(home: Path, session: str) -> Iterator[dict[str, Any]]:
    with closing(LogFiles(home)) as log:
        for _, line in log.iterate_lines(session):
            with contextlib.suppress(ValueError):
                yield json.loads(line)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
