"""Homes whose messages are in PostgreSQL before they are acknowledged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import datetime
from pathlib import Path

from assistant.backup.restore import RestoredHome
from assistant.core.calendar import utc_now
from assistant.replica.postgres import ReplicaDatabase
from assistant.replica.service import Replicator
from assistant.settings.settings import Settings, load_settings
from assistant.wire.replica import build_replica_reader, open_replica
from assistant.wire.stores import Stores
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import SteppingClock

SECONDS = 60.0


def replica_environ(url: str, **more: str) -> dict[str, str]:
    return {
        "ASSISTANT_REPLICA__URL": url,
        "ASSISTANT_REPLICA__TIMEOUT_SECONDS": str(SECONDS),
        "ASSISTANT_REPLICA__ON_FAILURE": "refuse",
        **more,
    }


def replica_settings(home: Path, url: str, **more: str) -> Settings:
    return load_settings(None, {"ASSISTANT_HOME": str(home), **replica_environ(url, **more)})


@asynccontextmanager
async def replicated(
    home: Path, url: str, *script: object, now: Callable[[], datetime] = utc_now, **more: str
) -> AsyncIterator[LiveApp]:
    async with run_app(home, *script, now=now, **replica_environ(url, **more)) as running:
        assert running.app.replica is not None
        yield running


def replicator(running: LiveApp) -> Replicator:
    assert running.app.replica is not None
    return running.app.replica


@asynccontextmanager
async def replica_database(settings: Settings) -> AsyncIterator[ReplicaDatabase]:
    database = open_replica(settings)
    try:
        yield database
    finally:
        await database.aclose()


async def restore(home: Path, url: str, folder: Path, *, force: bool = False, **more: str) -> RestoredHome:
    settings = replica_settings(home, url, **more)
    folder.mkdir()  # noqa: ASYNC240
    async with replica_database(settings) as database:
        reader = build_replica_reader(settings, database)
        return (await reader.take_over(home, folder, "another", SteppingClock()(), force=force))[1]


def contents(home: Path) -> list[str]:
    """What was said, and what waits for an answer, in an intact home."""
    settings = load_settings(None, {"ASSISTANT_HOME": str(home)})
    with closing(Stores(settings, SteppingClock()())) as stores:
        assert stores.verifier.verify().ok
        view = stores.conversation.load_view("main").messages
        waiting = stores.conversation.list_accepted("main")
        return [message.content for message in view] + [item.incoming.content for item in waiting]
