"""Faults around a replica: a machine lost within a tool, a network that passes nothing, a disk of the server that is
full."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psycopg
import pytest
from nio.crypto import OlmAccount
from nio.store import SqliteStore

from assistant.core.errors import ReplicaLost, ReplicaUnavailable
from assistant.core.messages import ToolCall
from assistant.core.permissions import ALL_ROLES
from assistant.core.ports import ToolContext
from assistant.replica.capture import FileLimits, HomeCapture
from tests.support.command_line import run_daemon, run_in_process
from tests.support.postgres import Postgres, PostgresPair
from tests.support.replicated import (
    SECONDS,
    contents,
    replica_environ,
    replica_settings,
    replicated,
    replicator,
    restore,
)
from tests.support.running_app import LiveApp
from tests.support.wire import SOCKET, Wire
from tools.declaration import FunctionTool, tool


def _bell(rung: list[str], url: str, elsewhere: Path) -> FunctionTool:
    @tool(effects="once", roles=ALL_ROLES, touches={"reads"}, timeout_seconds=SECONDS)
    async def ring_bell(context: ToolContext) -> str:
        """Ring the bell."""
        rung.append("rung")
        if len(rung) == 1:
            # Before its result can be recorded, the machine is lost.
            await restore(elsewhere, url, elsewhere.with_name("download"))
        return "It rang."

    return ring_bell


async def test_an_effect_whose_machine_was_lost_before_its_record_is_not_repeated(tmp_path: Path, url: str) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    rung: list[str] = []
    call = ToolCall("c1", "ring_bell", {})
    async with replicated(home, url, call, "Done.") as running:
        running.app.toolbox.add(_bell(rung, url, elsewhere))
        await running.say("ring the bell")
        await running.app.runtime.wait_until_idle()
        assert rung == ["rung"] and running.bridge.sent == []
    async with replicated(elsewhere, url, "I do not know whether it rang.") as running:
        running.app.toolbox.add(_bell(rung, url, elsewhere))
        await running.wait_idle()
        assert rung == ["rung"]
        results = [message.content for message in running.model.requests[-1].messages if message.role == "tool"]
        assert len(results) == 1 and "interrupted" in results[0]
        assert [content for role, content in running.view_contents() if role == "assistant"][-1].startswith("I do not")


def test_an_owner_that_was_frozen_while_another_took_over_acknowledges_nothing(tmp_path: Path, url: str) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    settings = replica_environ(url)
    with run_daemon(home, **settings) as running:
        transport = httpx.HTTPTransport(uds=str(home / "run" / "control.sock"))
        with httpx.Client(transport=transport, base_url="http://home", timeout=SECONDS) as client:
            kept = client.post("/v1/messages", json={"text": "kept", "external_id": "x1"})
            assert kept.status_code == 202
            running.process.send_signal(signal.SIGSTOP)
            restored = run_in_process(elsewhere, "replica", "restore", **settings)
            assert restored.returncode == 0, restored.err
            running.process.send_signal(signal.SIGCONT)
            refused = client.post("/v1/messages", json={"text": "of a zombie", "external_id": "x2"})
            assert refused.status_code >= 500 and "took this home over" in refused.text
    said = run_in_process(elsewhere, "log", "--json", **settings).out
    assert "kept" in said and "of a zombie" not in said


@asynccontextmanager
async def _wire(pair: PostgresPair, url: str) -> AsyncIterator[tuple[Wire, str]]:
    """The address of the same database behind a wire."""
    with TemporaryDirectory(prefix="wire") as folder:
        wire = Wire(pair.primary.socket / SOCKET)
        async with await asyncio.start_unix_server(wire.connect, f"{folder}/{SOCKET}"):
            database = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
            yield wire, Postgres(Path(folder)).url(str(database))
            wire.mend()


async def test_cut_off_from_the_server_it_refuses_or_goes_on_in_red_and_catches_up(
    tmp_path: Path, pair: PostgresPair
) -> None:
    quick = {"ASSISTANT_REPLICA__TIMEOUT_SECONDS": "1"}
    url = pair.new_database()
    async with _wire(pair, url) as (wire, through):
        async with replicated(tmp_path / "a", through, **quick, ASSISTANT_REPLICA__ON_FAILURE="continue") as running:
            await _say_until_kept(running, "before")
            wire.cut()
            await running.say("at risk")
            await running.wait_idle()
            assert "On this machine alone: 1 message" in running.app.problems()[0]
            wire.mend()
            await _say_until_kept(running, "after")
        await restore(tmp_path / "b", url, tmp_path / "download")
        assert {"before", "at risk", "after"} <= {*contents(tmp_path / "b")}
    url = pair.new_database()
    async with _wire(pair, url) as (wire, through), replicated(tmp_path / "c", through, **quick) as running:
        await _say_until_kept(running, "before")
        wire.cut()
        with pytest.raises(ReplicaUnavailable):
            await running.say("refused")
        sent = len(running.bridge.sent)
        # Meanwhile another machine takes over; the first hears of it when bytes pass again.
        await restore(tmp_path / "d", url, tmp_path / "download2")
        wire.mend()
        with pytest.raises(ReplicaLost):
            await _say_until_kept(running, "from a zombie")
        assert len(running.bridge.sent) == sent


async def _say_until_kept(running: LiveApp, text: str) -> None:
    """Say it, and wait until the replica has everything. Raises `ReplicaLost`."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await running.say(text, text)
                await replicator(running).barrier()
            except ReplicaLost:
                raise
            except ReplicaUnavailable:
                continue
            if not replicator(running).find_problems():
                return
            await asyncio.sleep(0.02)


@contextmanager
def _full_disk(pair: PostgresPair) -> Iterator[None]:
    """No file of the server's tables grows beyond that of its log: what a full disk does to an insert."""
    postmaster = int((pair.primary.data / "postmaster.pid").read_text().split()[0])
    with psycopg.connect(Postgres(pair.primary.socket).url(), autocommit=True) as connection:
        found = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'nocturne'").fetchall()

    def limit(size: str, *pids: int) -> None:
        for pid in pids:
            command = ["prlimit", f"--pid={pid}", f"--fsize={size}:unlimited"]
            subprocess.run(command, check=True, timeout=SECONDS, **pair.primary.someone)

    limit(str(16 << 20), postmaster, *(pid for (pid,) in found))
    try:
        yield
    finally:
        limit("unlimited", postmaster)


async def test_a_full_disk_of_the_server_refuses_until_there_is_room(
    tmp_path: Path, pair: PostgresPair, url: str
) -> None:
    home = tmp_path / "home"
    (home / "workspace").mkdir(parents=True)
    async with replicated(home, url, ASSISTANT_REPLICA__TIMEOUT_SECONDS="1") as running:
        await _say_until_kept(running, "before")
        with _full_disk(pair):
            for number in range(3):
                (home / "workspace" / str(number)).write_bytes(os.urandom(8 << 20))
            with pytest.raises(ReplicaUnavailable):
                await running.say("refused")
            async with asyncio.timeout(SECONDS):
                while not any("could not extend file" in problem for problem in running.app.problems()):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        await _say_until_kept(running, "after")
    await restore(tmp_path / "restored", url, tmp_path / "download")
    assert {"before", "after"} <= {*contents(tmp_path / "restored")}
    assert (tmp_path / "restored" / "workspace" / "2").stat().st_size == 8 << 20


async def test_the_keys_of_a_matrix_device_are_restored_as_they_were(tmp_path: Path, url: str) -> None:
    home, restored = tmp_path / "home", tmp_path / "restored"
    device = ("@a:example.org", "DEVICE")
    async with replicated(home, url) as running:
        await running.say("hello")
        folder = home / "bridges" / "matrix" / "store"
        folder.mkdir(parents=True)
        store, account = SqliteStore(*device, str(folder), "key"), OlmAccount()
        store.save_account(account)
        await replicator(running).barrier()
        assert replica_settings(home, url).values.replica.bases == ""
    store.database.close()
    await restore(restored, url, tmp_path / "download")
    again = SqliteStore(*device, str(restored / "bridges" / "matrix" / "store"), "key")
    loaded = again.load_account()
    assert loaded is not None and loaded.identity_keys == account.identity_keys
    again.database.close()


def test_many_files_are_shipped_in_parts_that_fit_in_memory(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    for name, size in (("a", 60), ("b", 60), ("c", 10), ("d", 500)):
        (tmp_path / "workspace" / name).write_bytes(b"x" * size)
    capture = HomeCapture(tmp_path, FileLimits(secrets=False, max_bytes=1000, at_once=100))
    capture.begin()
    parts = [capture.read().files]
    while capture.has_more:
        parts.append(capture.read().files)
    assert [[*map(len, part.values())] for part in parts] == [[60, 10], [60], [500]]
    (tmp_path / "workspace" / "a").unlink()
    shipment = capture.read()
    assert (shipment.files, shipment.removed) == ({}, ("workspace/a",))
    capture.close()
