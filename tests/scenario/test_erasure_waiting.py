"""Words are forgotten that wait for people on a network that is down, or lie in what was made of them (memories,
notices, exports), while the daemon runs: no byte of its data folder has them, and none is sent once the network is
back.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.scenario.test_erasure_running import Owner, Planting, forget, talking_daemon
from tests.strict.telegram import BotApiError, StrictTelegram
from tests.support.command_line import run_assistant
from tests.support.secrets import HomeBytes, Secret, make_secrets

SEED = 20_261_129
DOWN = BotApiError(500, "Internal Server Error")
REFUSED = BotApiError(400, "Bad Request: chat not found")
EXPORT = "main.md"
WAYS = ("refused", "undelivered", "waiting_approval", "delegated", "remembered", "terminal", "in words", "by command")


async def _plant(way: str, secret: Secret, owner: Owner, planting: Planting, network: StrictTelegram) -> None:
    match way:
        case "refused" | "undelivered":
            # A reply that the network refuses for good leaves a notice; one that cannot be sent now waits.
            network.troubles["send"] = [REFUSED] if way == "refused" else [DOWN] * 10_000
            before = len(network.calls)
            network.say(secret.sentence)
            async with asyncio.timeout(240):
                await network.until(lambda: any(secret.value in str(call) for call in network.calls[before:]))
        case "waiting_approval" | "delegated":
            await getattr(planting, way)(secret)
        case "terminal":
            told = ("chat", "-m", secret.sentence)
            done = await asyncio.to_thread(run_assistant, owner.home, *told, ASSISTANT_LOG__LEVEL="debug")
            assert done.returncode == 0, done.err
        case _:
            await owner.say(secret.sentence)


def mem0_history(home: Path) -> str:
    """Return everything that Mem0's history holds: it is kept in memory.db, and Mem0 keeps no database of its own."""
    with closing(sqlite3.connect(f"file:{home / 'memory.db'}?mode=ro", uri=True)) as db:
        return str(db.execute("SELECT * FROM history").fetchall())


@pytest.mark.timeout(600)
async def test_what_waits_for_a_network_and_what_was_made_of_it_is_in_no_byte_and_never_sent(tmp_path: Path) -> None:
    secrets = dict(zip(WAYS, make_secrets(len(WAYS), SEED), strict=True))
    async with StrictTelegram() as network:
        telegram = {"TOKEN": network.token, "BASE_URL": network.url, "ENABLED": "true"}
        settings = {f"ASSISTANT_TELEGRAM__{name}": value for name, value in telegram.items()}
        async with talking_daemon(tmp_path, **settings) as (owner, planting):
            await owner.shell("people", "link", "telegram", "1001")
            for way, secret in secrets.items():
                await _plant(way, secret, owner, planting, network)
            for event in ("/compact", "/sleep", "/backup create"):
                await owner.type(event)
            (workspace := owner.home / "workspace").mkdir(exist_ok=True)
            await owner.shell("sessions", "export", "main", "-o", str(workspace / EXPORT))
            held = HomeBytes(owner.home)
            places = {way: held.places(secret.value) for way, secret in secrets.items()}
            assert all("script.db" in " ".join(found) for found in places.values()), places
            assert "memory.db" in " ".join(places["remembered"]), places["remembered"]
            assert not any("assistant.log" in found for found in places.values()), places
            assert secrets["remembered"].value in mem0_history(owner.home)
            # A file that the person made is theirs: it stays, and is named.
            reports = {"remembered": await forget(owner, secrets["remembered"], 0, "text")}
            assert EXPORT in reports["remembered"], reports["remembered"]
            (workspace / EXPORT).unlink()
            for way in (way for way in WAYS if way not in reports):
                reports[way] = await forget(owner, secrets[way], 0, "in words" if way == "in words" else "text")
            assert not {way for way, report in reports.items() if "not done" in report or "not searched" in report}
            sent = len(network.calls)
            network.troubles["send"] = []
            network.say("Are you there?")
            async with asyncio.timeout(240):
                await network.until(lambda: any("Are you there?" in message.text for message in network.sent))
            running = HomeBytes(owner.home)
        for held in (running, HomeBytes(tmp_path / "home")):
            left = {way: held.places(secret.value) for way, secret in secrets.items()}
            assert {way: found for way, found in left.items() if found} == {}
        assert not [secret for secret in secrets.values() if secret.value in mem0_history(tmp_path / "home")]
        assert not [path for path in (tmp_path / "home" / "mem0").rglob("*") if path.suffix in (".db", ".sqlite")]
        assert not [call for call in network.calls[sent:] if any(s.value in str(call) for s in secrets.values())]
