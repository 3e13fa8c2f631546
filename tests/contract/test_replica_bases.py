"""Whole copies of a replica in a folder outside PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.archive.object_store import FsspecFolder, LocalDurability
from assistant.core.calendar import utc_now
from assistant.core.errors import CorruptStore, ReplicaLost
from assistant.settings.settings import load_settings
from assistant.store.files import make_directory, sync_file
from assistant.wire.replica import build_replica_reader, is_base_due_by
from tests.support.command_line import run_in_process
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
from tests.support.running_app import LiveApp


def _files(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


class _Clock:
    """The time of this machine, and the hours that were waited."""

    def __init__(self) -> None:
        self._waited = timedelta()

    def __call__(self) -> datetime:
        return utc_now() + self._waited

    def wait_an_hour(self) -> None:
        self._waited += timedelta(hours=1)


async def _new_base(running: LiveApp, place: Path, cause: Callable[[], None] | None = None) -> list[str]:
    """Have a new base made, and return its files once those before it are gone."""
    before = set(_files(place))
    (cause or replicator(running).request_base)()
    async with asyncio.timeout(SECONDS):
        while not (now := set(_files(place))) or now & before:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return sorted(now)


async def test_bases_are_kept_in_a_folder_and_one_that_was_cut_or_altered_is_refused(tmp_path: Path, url: str) -> None:
    home, place, elsewhere = tmp_path / "home", tmp_path / "place", tmp_path / "elsewhere"
    there = {"ASSISTANT_REPLICA__BASES": str(place)}
    clock = _Clock()
    async with replicated(home, url, now=clock, **there) as running:
        await running.say("before")
        await running.wait_idle()
        (first,) = _files(place)
        (second,) = await _new_base(running, place)
        assert first != second and second.startswith("home/0000000001-")
        await running.say("after")
        whole = (place / second).read_bytes()
        for damaged in (whole[:-1], whole[:99] + b"\0" + whole[100:], None):
            (place / second).unlink()
            if damaged is not None:
                (place / second).write_bytes(damaged)
            with pytest.raises(CorruptStore, match=r"restart the assistant there.*otherwise restore a backup"):
                await restore(elsewhere, url, tmp_path / f"download {damaged and len(damaged)}", **there)
        # It still has its owner, who acknowledges.
        await running.say("last")
        # The owner finds out that it was found damaged, or is gone, says so, and makes another.
        (third,) = await _new_base(running, place, clock.wait_an_hour)
        await running.say("with a third")
        (place / third).unlink()
        status = await asyncio.to_thread(run_in_process, home, "replica", "status", **replica_environ(url, **there))
        assert status.returncode == 1 and "The whole copy is GONE" in status.out
        (place / "home").rename(place / "away")
        (place / "home").touch()
        clock.wait_an_hour()
        async with asyncio.timeout(SECONDS):
            while not any("is tried again" in problem for problem in running.app.problems()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        (place / "home").unlink()
        await _new_base(running, place, clock.wait_an_hour)
        await running.say("with another")
        assert not running.app.problems()
    # Where the folder has no setting, the server's list says where it is.
    await restore(elsewhere, url, tmp_path / "whole")
    assert {"before", "after", "last", "with another"} <= {*contents(elsewhere)}
    with pytest.raises(ReplicaLost):
        async with replicated(home, url, **there):
            pass


async def test_bases_are_kept_in_an_s3_bucket_and_a_home_is_restored_from_there(
    tmp_path: Path, url: str, s3: str
) -> None:
    there = {"ASSISTANT_REPLICA__BASES": f"{s3}/bases"}
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    async with replicated(home, url, **there) as running:
        await running.say("kept in a bucket")
    folder = FsspecFolder(there["ASSISTANT_REPLICA__BASES"], SECONDS, LocalDurability(make_directory, sync_file))
    (name,) = folder.list_names("home")
    await restore(elsewhere, url, tmp_path / "download", **there)
    assert "kept in a bucket" in contents(elsewhere)
    async with replicated(elsewhere, url, **there) as running:
        folder.remove(f"home/{name}")
        found = await asyncio.to_thread(run_in_process, elsewhere, "replica", "status", **replica_environ(url, **there))
        assert found.returncode == 1 and "The whole copy is GONE" in found.out
        replicator(running).request_base()
        async with asyncio.timeout(SECONDS):
            while not await asyncio.to_thread(folder.list_names, "home"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    detached = await asyncio.to_thread(run_in_process, elsewhere, "replica", "detach", **replica_environ(url), **there)
    assert "is deleted" in detached.out and folder.list_names("home") == []


def test_a_new_one_is_due_once_a_night(tmp_path: Path) -> None:
    settings = load_settings(None, {"ASSISTANT_HOME": str(tmp_path), "ASSISTANT_SLEEP__AT": ""})
    is_due = is_base_due_by(settings)
    evening, morning = datetime(2026, 11, 20, 22, tzinfo=UTC), datetime(2026, 11, 21, 4, tzinfo=UTC)
    assert is_due(evening, morning)
    assert not is_due(evening, evening + timedelta(hours=1))
    assert not is_due(morning, morning + timedelta(hours=20))


async def test_an_owner_that_was_replaced_deletes_no_later_base(tmp_path: Path, url: str) -> None:
    home, place, elsewhere = tmp_path / "home", tmp_path / "place", tmp_path / "elsewhere"
    there = {"ASSISTANT_REPLICA__BASES": str(place)}
    async with replicated(home, url, **there) as running:
        await running.say("hello")
        await restore(elsewhere, url, tmp_path / "download", **there)
        async with replicated(elsewhere, url, **there) as other:
            await other.say("from the new place")
            # It continues from the base that it was restored from, until the night.
            assert all(name.startswith("home/0000000001-") for name in _files(place))
            replicator(other).request_base()
            async with asyncio.timeout(SECONDS):
                while not all(name.startswith("home/0000000003-") for name in _files(place)):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            settings = replica_settings(home, url, **there)
            async with replica_database(settings) as database:
                reader = build_replica_reader(settings, database)
                await reader._bases.remove_others(1, 0)
                (tmp_path / "proof").mkdir()
                await reader.verify(tmp_path / "proof", other.clock())
            assert all(name.startswith("home/0000000003-") for name in _files(place))


def test_a_folder_that_cannot_be_written_is_told_and_detaching_deletes_the_copy(tmp_path: Path, url: str) -> None:
    home, place = tmp_path / "home", tmp_path / "place"
    there = {"ASSISTANT_REPLICA__BASES": str(place)}

    async def run() -> None:
        place.write_text("a file where the folder should be")
        async with replicated(home, url, **there) as running:
            waiting = asyncio.create_task(running.say("not yet"))
            async with asyncio.timeout(SECONDS):
                while not any(str(place) in problem for problem in running.app.problems()):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert not waiting.done()
            place.unlink()
            replicator(running).request_base()
            await asyncio.wait_for(waiting, SECONDS)
            await running.wait_idle()
            # With one base there, a second that cannot be made holds nobody up.
            (place / "home").rename(place / "away")
            (place / "home").touch()
            replicator(running).request_base()
            async with asyncio.timeout(SECONDS):
                while not any("got no new whole copy" in problem for problem in running.app.problems()):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            await running.say("acknowledged")
            (place / "home").unlink()
            (place / "away").rename(place / "home")

    asyncio.run(run())
    assert _files(place)
    status = run_in_process(home, "replica", "status", **replica_environ(url), **there)
    assert status.returncode == 0 and "Whole copy of" in status.out
    assert "is deleted" in run_in_process(home, "replica", "detach", **replica_environ(url), **there).out
    assert _files(place) == []
