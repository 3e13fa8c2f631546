"""A home that lived with version 0.1 opens in this one, with everything in it.

The code of that version wrote it over five days of March 2026: messages of the owner, two guests and a room, turns with
tools, compactions of which two were undone, nights, a corrected memory, a forgotten one, a reset with its archive,
reminders and schedules, an ambiguous delivery and one that waits. `expected.json` is what that version read out of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils

from assistant.settings.settings import load_settings
from assistant.store.schema.migrations import (
    character_migrations,
    memory_migrations,
    script_migrations,
    search_migrations,
)
from assistant.wire.app import build_app
from assistant.wire.stores import Stores
from tests.support.home_0_1 import unpack_home_0_1
from tests.support.scripted import RecordingBridge, ScriptedModel, SteppingClock, owner_message

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
SCOPES = ("owner", "peer:kept:7")
MIGRATIONS = {
    "script": script_migrations,
    "character": character_migrations,
    "memory": memory_migrations,
    "search": search_migrations,
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return unpack_home_0_1(tmp_path)


def expected(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home.parent / "expected.json").read_text())
    return found


def environment(home: Path) -> dict[str, str]:
    return {"ASSISTANT_HOME": str(home), "TIKTOKEN_CACHE_DIR": ""}


@contextmanager
def opened(home: Path) -> Iterator[Stores]:
    stores = Stores(load_settings(None, environment(home)), NOW)
    try:
        yield stores
    finally:
        stores.close()


def read_everything(stores: Stores) -> dict[str, Any]:
    """What `expected.json` has, read by the code of today."""
    sessions = sorted(session.key for session in stores.conversation.list_sessions())
    archived = stores.archive.find_entry("main", 1)
    assert archived is not None
    march = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    return {
        "views": {
            key: [
                [message.id, message.role, message.content] for message in stores.conversation.load_view(key).messages
            ]
            for key in sessions
        },
        "log": {
            scope: [[record.id, record.content] for record in stores.history.recent(scope, limit=1000)]
            for scope in SCOPES
        },
        "checkpoints": {
            key: [[made.id, made.tier, made.state, made.summary] for made in stores.conversation.checkpoints(key)]
            for key in sessions
        },
        "pins": {key: [pin.text for pin in stores.pins.list_pins(key)] for key in sessions},
        "requests": {
            key: [[request.message_id, request.state, request.text] for request in stores.requests.list_open(key)]
            for key in sessions
        },
        "todos": [[todo.id, todo.text] for todo in stores.todos.list_todos("owner")],
        "agenda": [
            [job.id, job.kind, job.name, job.text, job.state]
            for scope in SCOPES
            for kind in ("reminder", "schedule")
            for job in stores.jobs.list_waiting(scope, kind)
        ],
        "slots": [[slot.state, slot.note] for slot in stores.jobs.ended_slots("owner")],
        "people": [
            [person.name, person.role, person.state, [identity.sender for identity in person.identities]]
            for person in stores.people.list_people()
        ],
        "pending": [[item.id, item.state, item.outgoing.body] for item in stores.outbox.pending_items("kept")],
        "ambiguous": [[item.id, item.state, item.body] for item in stores.deliveries.list_stuck()],
        "journal": [entry.content for entry in stores.journal.entries("owner")],
        "memories": [
            [memory.id, memory.text, memory.superseded_by] for memory in asyncio.run(stores.memories.all("owner"))
        ],
        "curated": stores.files.read_memory_file(),
        "profiles": [
            [profile.kind, profile.name, profile.summary] for profile in stores.profiles.list_profiles("owner")
        ],
        "archives": [[archived.session, archived.generation, archived.records]],
        "spent": round(sum(spent.usd for _, spent in stores.ledger.spent_by("day", march[0])), 6),
    }


def applied_migrations(home: Path) -> dict[str, set[str]]:
    names = {}
    for name, migrations in MIGRATIONS.items():
        with sqlite_utils.Database(home / f"{name}.db") as database:
            names[name] = {migration.name for migration in migrations.applied(database)}
    return names


def test_a_home_of_the_version_before_opens_migrates_with_a_backup_and_verify_passes(home: Path) -> None:
    before = applied_migrations(home)
    with opened(home) as stores:
        report = stores.verifier.verify()
        assert report.ok, report
        assert stores.archive.verify("main", 1) == []
        read = read_everything(stores)
        for part, value in expected(home).items():
            assert read[part] == value, part
    migrated = [name for name, names in applied_migrations(home).items() if names != before[name]]
    backups = [path.name.partition("-")[0] for path in home.glob("backups/*")]
    assert sorted(backups) == sorted(migrated)


def test_what_was_forgotten_in_it_stays_forgotten(home: Path) -> None:
    with opened(home) as stores:
        assert stores.verifier.verify().ok
    assert [path.name for path in home.rglob("*") if path.is_file() and b"4711" in path.read_bytes()] == []


async def test_a_conversation_of_the_version_before_goes_on(home: Path) -> None:
    before = expected(home)["views"]["main"]
    model, bridge = ScriptedModel("Yes, you do."), RecordingBridge()
    app = build_app(load_settings(None, environment(home)), SteppingClock(NOW), bridges={"kept": bridge}, model=model)
    try:
        await app.start()
        await app.runtime.accept(owner_message("Do I still live in Bergen?", external_id="new"))
        await app.runtime.wait_until_idle()
        await app.dispatcher.flush()
        shown = [[message.role, message.content] for message in app.stores.conversation.load_view("main").messages]
        assert shown[: len(before)] == [[role, content] for _, role, content in before]
        assert shown[-1] == ["assistant", "Yes, you do."]
        assert "I moved from Oslo to Bergen." in str(model.requests[-1])
        # What waited is sent now; what may have arrived is not repeated.
        assert "I see: This answer waits." in bridge.bodies
        assert "I see: Was that sent?" not in bridge.bodies
        assert app.stores.verifier.verify().ok
    finally:
        await app.stop(5)
        app.close()
