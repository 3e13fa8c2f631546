"""A home whose messages are in PostgreSQL, on two servers, before they are acknowledged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pyrage
import pytest

from assistant.core.errors import CorruptStore, ReplicaLost, ReplicaUnavailable, UsageError
from assistant.replica.postgres import ReplicaDatabase
from assistant.wire.replica import build_replica_reader
from tests.support.postgres import Postgres, PostgresPair, run_postgres_pair
from tests.support.replicated import (
    SECONDS,
    contents,
    replica_database,
    replica_environ,
    replica_settings,
    replicated,
    replicator,
    restore,
)
from tests.support.running_app import LiveApp, run_app


async def test_a_home_is_taken_over_with_all_that_was_acknowledged_and_its_former_owner_says_nothing(
    tmp_path: Path, url: str
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (home / "bridges" / "matrix").mkdir(parents=True)
    (home / "bridges" / "matrix" / "keys").write_text("of a room")
    (home / "workspace").mkdir()
    async with replicated(home, url) as running:
        for number in range(5):
            await running.say(f"message {number}")
        await running.wait_idle()
        (home / "workspace" / "note.txt").write_text("a note")
        await running.say("the last one")
        await restore(elsewhere, url, tmp_path / "download")
        said = contents(elsewhere)
        assert [f"message {number}" in said for number in range(5)] == [True] * 5
        assert "the last one" in said
        assert (elsewhere / "bridges" / "matrix" / "keys").read_text() == "of a room"
        assert (elsewhere / "workspace" / "note.txt").read_text() == "a note"
        with pytest.raises(ReplicaLost, match="took this home over"):
            await running.say("from a zombie")
        sent = len(running.bridge.sent)
        await running.app.runtime.wait_until_idle()
        assert len(running.bridge.sent) == sent
        assert "took this home over" in running.app.problems()[0]
    # As another home it does not start: what it acknowledged then would not be where the next machine looks.
    with pytest.raises(UsageError, match=r"is 'home' in the replica, and replica\.home_name is 'another'"):
        async with replicated(elsewhere, url, ASSISTANT_REPLICA__HOME_NAME="another"):
            pass
    # Where it lives now, it goes on; where it lived, it does not start.
    async with replicated(elsewhere, url) as running:
        await running.say("from the new place")
    with pytest.raises(ReplicaLost):
        async with replicated(home, url):
            pass


async def test_waiting_messages_share_a_shipment(tmp_path: Path, url: str) -> None:
    async with replicated(tmp_path, url) as running:
        await running.say("first")
        await running.wait_idle()
        async with replica_database(replica_settings(tmp_path, url)) as database:
            before = await database.read_state()
            await asyncio.gather(*(running.say(f"message {number}", f"together {number}") for number in range(20)))
            after = await database.read_state()
        assert before is not None and after is not None and after.sequence - before.sequence < 20


async def test_with_a_key_nothing_can_be_read_there_and_secrets_are_shipped(tmp_path: Path, url: str) -> None:
    key = str(pyrage.x25519.Identity.generate())
    home = tmp_path / "home"
    home.mkdir()
    (home / "secrets.toml").touch(0o600)
    with_key = {"ASSISTANT_REPLICA__KEY": key}
    async with replicated(home, url, **with_key) as running:
        await running.say("the boat is called Albatross")
        settings = replica_settings(home, url)
        async with replica_database(settings) as database:
            state = await database.read_state()
            assert state is not None
            everything = [await database.read_base_part(state.base, 0) or b""]
            everything += [change for _, change in await database.read_changes(0, 1 << 30)]
            assert all(data.startswith(b"age-encryption.org") for data in everything)
            # Changes are large where files are: a restore has no more in memory than it says, but one at least.
            assert [change for _, change in await database.read_changes(0, 1)] == everything[1:2]
    with pytest.raises(CorruptStore):
        await restore(tmp_path / "without", url, tmp_path / "a")
    await restore(tmp_path / "with", url, tmp_path / "b", **with_key)
    assert "the boat is called Albatross" in contents(tmp_path / "with")
    assert (tmp_path / "with" / "secrets.toml").exists()


async def test_forgetting_makes_a_new_base_and_deletes_what_was_before(tmp_path: Path, url: str) -> None:
    async with replicated(tmp_path, url) as running:
        await running.say("the code is 4711")
        await running.wait_idle()
        async with replica_database(replica_settings(tmp_path, url)) as database:
            before = await database.read_state()
            assert before is not None and before.base
            _, preview = await _forget(running, "4711")
            assert preview
            async with asyncio.timeout(SECONDS):
                while (state := await database.read_state()) is None or state.base == before.base:
                    await replicator(running).barrier()
            assert await database.read_base_part(before.base, 0) is None
            numbers = [number for number, _ in await database.read_changes(0, 1 << 30)]
            assert all(number > state.base_after for number in numbers)
            assert state.base_after >= before.sequence
    await restore(tmp_path / "restored", url, tmp_path / "download")
    assert not any("4711" in said for said in contents(tmp_path / "restored"))


async def _forget(running: LiveApp, words: str) -> tuple[str, str]:
    from assistant.core.erasure import ErasureRequest

    now = running.app.base.clock()
    preview, code = await running.app.erasure.request_code(ErasureRequest("owner", text=words), now)
    await running.app.erasure.confirm(code, "owner", now)
    return code, str(preview)


async def test_while_the_replica_is_down_the_settings_say_what_happens(tmp_path: Path) -> None:
    nowhere = f"postgresql:///x?host={tmp_path}"
    quick = {"ASSISTANT_REPLICA__TIMEOUT_SECONDS": "1"}
    async with run_app(tmp_path / "a", **replica_environ(nowhere, **quick)) as running:
        with pytest.raises(ReplicaUnavailable):
            await running.say("refused")
        assert "does not answer" in running.app.problems()[0]
    going_on = {**quick, "ASSISTANT_REPLICA__ON_FAILURE": "continue"}
    async with run_app(tmp_path / "b", **replica_environ(nowhere, **going_on)) as running:
        await running.say("at risk")
        await running.say("at risk as well")
        await running.wait_idle()
        assert "On this machine alone: 2 messages since" in running.app.problems()[0]


async def test_a_wait_for_the_standby_that_is_cancelled_counts_as_not_kept(tmp_path: Path) -> None:
    with run_postgres_pair() as own:
        url = own.new_database()
        async with replicated(tmp_path, url) as running:
            await running.say("first")
            await running.wait_idle()
            own.standby.stop()
            waiting = asyncio.create_task(running.say("second"))
            async with asyncio.timeout(SECONDS):
                await _wait_for_standby(own, "pg_cancel_backend(pid)")
                while not any("did not confirm" in problem for problem in running.app.problems()):  # noqa: ASYNC110
                    await asyncio.sleep(0)
                # PostgreSQL reported success for the one that was cancelled; the replica asks again, and waits again.
                await _wait_for_standby(own, "true")
            assert not waiting.done()
            own.standby.start("-c fsync=off")
            await asyncio.wait_for(waiting, SECONDS)
            assert running.app.problems() == []
        await restore(tmp_path / "restored", url, tmp_path / "download")
    assert "second" in contents(tmp_path / "restored")


async def _wait_for_standby(pair: PostgresPair, act: str) -> None:
    """Until a commit of the replica waits for the standby; `act` is done to it."""
    find = f"SELECT {act} FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'nocturne'"
    async with await psycopg.AsyncConnection.connect(Postgres(pair.primary.socket).url(), autocommit=True) as database:
        while await (await database.execute(find)).fetchone() is None:  # type: ignore[arg-type]
            continue


async def test_a_replica_that_is_not_whole_is_not_restored(tmp_path: Path, url: str) -> None:
    async with replicated(tmp_path / "home", url) as running:
        await running.say("hello")
        await running.wait_idle()
    settings = replica_settings(tmp_path / "elsewhere", url)
    async with replica_database(settings) as database:
        with pytest.raises(UsageError, match="no home 'other'"):
            await build_replica_reader(settings, ReplicaDatabase(url, "other")).find_state()
        async with database._session() as connection:
            await connection.execute("UPDATE nocturne_bases SET data = overlay(data placing '\\x00'::bytea from 99)")
    with pytest.raises(CorruptStore):
        await restore(tmp_path / "elsewhere", url, tmp_path / "a")
    assert not (tmp_path / "elsewhere" / "script.db").exists()
