"""What a host of a fleet does with its homes, which are processes that only sleep here, in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from assistant.fleet.host import STARTS_AT_ONCE, FleetHost, HostOptions
from assistant.fleet.tables import FleetTables
from assistant.replica.holder import Holder, save_holder
from assistant.replica.postgres import ReplicaDatabase
from assistant.service.idle_note import EXIT_NO_NEWS, IdleNote, IdleOptions, read_idle_note, write_idle_note
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.store.database import Database
from assistant.store.home.inventory import SCRIPT_DB
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.inbox import BridgeStates
from assistant.store.script.outbox import insert_outgoing
from assistant.wire.idle import IdleWatch
from assistant.wire.poll import has_news
from tests.support.command_line import TELEGRAM_SET_UP
from tests.support.fleet_tables import hosts, server, url
from tests.support.inbound import outgoing_message
from tests.support.networks.telegram import TelegramNetwork, open_telegram_network
from tests.support.postgres import Postgres
from tests.support.running_app import run_app
from tests.support.scripted import owner_message
from tests.support.wire import SOCKET, Wire

__all__ = ["hosts", "server", "url"]

_NEVER, _IDLE = IdleOptions(0.0, polled=False), IdleOptions(0.001, polled=True)


async def test_of_many_homes_that_are_due_at_once_a_host_starts_a_few_at_a_time(tmp_path: Path, url: str) -> None:
    """The homes are processes that only sleep; each counts as started when it listens. All are started once, one
    too that PostgreSQL gave to this host while its answer was lost."""
    homes = STARTS_AT_ONCE + 3
    tables, started = FleetTables(url), list[Path]()
    database = ReplicaDatabase(url, "home")
    await database.prepare()
    await database.aclose()
    await tables.prepare()
    for number in range(homes):
        await tables.add(f"home{number}")

    def start(environment: Mapping[str, str], commands: Sequence[Sequence[str]], memory_bytes: int) -> BaseProcess:
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        process.start()
        started.append(Path(environment["folder"]))
        return process

    options = HostOptions(
        *("m1", tmp_path, "127.0.0.1", 20_000, homes, lambda home, folder, port, quota: {"folder": str(folder)}),
        *(_NEVER, 0.0),
    )
    stop = asyncio.Event()
    running = asyncio.create_task(FleetHost(tables, options, partial(ReplicaDatabase, url), start).run(stop))
    listening, most = 0, 0
    while listening < homes:
        await asyncio.sleep(0.02)
        if len(started) == STARTS_AT_ONCE and not listening:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "UPDATE nocturne_fleet_homes h SET process = o.process, host = 'm1', epoch = h.epoch + 1, "
                    "until = o.until FROM nocturne_fleet_homes o WHERE o.home = 'home0' AND h.home = %s",
                    (f"home{homes - 1}",),
                )
                # The owner of one that cannot be read keeps none of the others waiting.
                connection.execute(
                    "INSERT INTO nocturne_homes (home, epoch, holder, machine) VALUES ('home0', 1, 'somebody', 'm1')"
                )
            (started[0] / "run").mkdir(parents=True)
            (started[0] / "run" / "replica.json").write_text("{")
        if len(started) > listening:
            most = max(most, len(started) - listening)
            if len(started) - listening == min(STARTS_AT_ONCE, homes - listening):
                (started[listening] / "run").mkdir(parents=True, exist_ok=True)
                (started[listening] / "run" / "control.sock").touch()
                listening += 1
        assert not running.done()
    names = [f"home{number}" for number in range(homes)]
    assert most == STARTS_AT_ONCE and sorted(folder.name for folder in started) == names
    assert {folder.name for folder in started[:STARTS_AT_ONCE]} == {*names[:STARTS_AT_ONCE]}
    stop.set()
    await running
    await tables.aclose()


async def test_a_home_notes_that_nobody_uses_it_for_some_seconds_and_then_that_this_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assistant.service.idle_note._MOST_SECONDS_BETWEEN_LOOKS", 0.01)
    now, looks = datetime.now(UTC), itertools.count()
    home = tmp_path / "home"

    def clock() -> datetime:
        next(looks)
        return now

    async with run_app(home, "Hello.", now=clock, ASSISTANT_SLEEP__AT="") as running:
        watch = IdleWatch(running.app, IdleOptions(5.0, polled=True))
        watching = asyncio.create_task(watch.run())

        async def wait_for(lasts: bool | None, passes: timedelta = timedelta()) -> None:
            nonlocal now
            first = next(looks)
            while getattr(read_idle_note(home, os.getpid()), "lasts", None) != lasts or next(looks) < first + 100:
                await asyncio.sleep(0.01)
                assert not watching.done()
                now += passes  # or what still ran a moment ago is the last that needed it, for ever

        now += timedelta(seconds=10)
        await wait_for(None)  # what woke it may be slow to come
        await running.say("hello")
        await running.wait_idle()
        await wait_for(None)
        now += timedelta(seconds=10)
        await wait_for(False, timedelta(milliseconds=50))
        # There is too little to sum up for a nap, so it does not wait for one.
        now += timedelta(minutes=5)
        await wait_for(True, timedelta(seconds=1))
        watching.cancel()
        watch.end()
        assert read_idle_note(home, os.getpid()) is not None
        # One more message came just before it was asked to stop, and its turn has not begun.
        running.app.stores.conversation.accept(owner_message("one more", external_id="2"), now)
        watch.end()
        assert read_idle_note(home, os.getpid()) is None


async def test_leases_are_renewed_while_homes_are_measured_on_a_disk_that_does_not_answer(
    hosts: tuple[FleetTables, FleetTables], tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring, answers, stop = threading.Event(), threading.Event(), asyncio.Event()

    def walk(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        measuring.set()
        answers.wait()
        yield from ()

    monkeypatch.setattr("os.walk", walk)

    def start(environment: Mapping[str, str], commands: Sequence[Sequence[str]], memory_bytes: int) -> BaseProcess:
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        process.start()
        return process

    def read_lease() -> tuple[int, datetime] | None:
        with psycopg.connect(url) as connection:
            query = "SELECT epoch, until FROM nocturne_fleet_homes WHERE process <> ''"
            row: tuple[int, datetime] | None = connection.execute(query).fetchone()
        return row

    options = HostOptions("m1", tmp_path, "127.0.0.1", 20_000, 1, lambda *_: {}, _NEVER, 0.0)
    running = asyncio.create_task(FleetHost(hosts[0], options, partial(ReplicaDatabase, url), start).run(stop))
    while not measuring.is_set() or (before := read_lease()) is None:
        await asyncio.sleep(0.01)
        assert not running.done()
    while (lease := read_lease()) == before:
        await asyncio.sleep(0.05)
        assert not running.done()
    assert lease is not None and lease[0] == before[0] and lease[1] > before[1]
    answers.set()
    stop.set()
    await running


def _serve_until_asked(folder: Path, *, lasts: bool, polls: bool = False, leaves_something: bool = False) -> None:
    """A home that nobody has used for some seconds, or for long (`lasts`)."""
    in_a_day = datetime.now(UTC) + timedelta(days=1)

    def stop(*_: object) -> None:
        if leaves_something:
            write_idle_note(folder, os.getpid(), None)
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    (folder / "run").mkdir(parents=True, exist_ok=True)
    write_idle_note(folder, os.getpid(), IdleNote(in_a_day, lasts, polls))
    (folder / "run" / "control.sock").touch()
    time.sleep(600)


async def test_a_home_that_stops_before_it_has_done_all_that_it_accepted_is_started_again(
    hosts: tuple[FleetTables, FleetTables], tmp_path: Path, url: str
) -> None:
    """A message came when its host was about to stop it."""
    stop, started = asyncio.Event(), list[Path]()

    def start(environment: Mapping[str, str], commands: Sequence[Sequence[str]], memory_bytes: int) -> BaseProcess:
        started.append(Path(environment["folder"]))
        serve = partial(_serve_until_asked, started[-1], lasts=True, leaves_something=len(started) == 1)
        process = multiprocessing.get_context("fork").Process(target=serve)
        process.start()
        return process

    options = HostOptions(
        *("m1", tmp_path, "127.0.0.1", 20_000, 1, lambda home, folder, port, quota: {"folder": str(folder)}, _IDLE, 0.0)
    )
    running = asyncio.create_task(FleetHost(hosts[0], options, partial(ReplicaDatabase, url), start).run(stop))
    while len(started) < 2 or (await hosts[1].list_homes())[0].is_held:
        await asyncio.sleep(0.01)
        assert not running.done()
    # Now nothing is left, so it sleeps.
    assert (await hosts[1].list_homes())[0].asleep_until is not None and len(started) == 2
    stop.set()
    await running


async def test_a_home_whose_networks_are_polled_runs_only_when_they_have_something(
    hosts: tuple[FleetTables, FleetTables], tmp_path: Path, url: str
) -> None:
    stop, started, was_awake = asyncio.Event(), list[str](), 0

    def start(environment: Mapping[str, str], commands: Sequence[Sequence[str]], memory_bytes: int) -> BaseProcess:
        started.append(" ".join(commands[-1]))
        serve = partial(_serve_until_asked, Path(environment["folder"]), lasts=True, polls=True)
        # The first two polls find nothing.
        process = multiprocessing.get_context("fork").Process(
            target=partial(sys.exit, EXIT_NO_NEWS) if len(started) in (2, 3) else serve
        )
        process.start()
        return process

    options = HostOptions(
        *("m1", tmp_path, "127.0.0.1", 20_000, 1, lambda home, folder, port, quota: {"folder": str(folder)}, _IDLE, 0.1)
    )
    running = asyncio.create_task(FleetHost(hosts[0], options, partial(ReplicaDatabase, url), start).run(stop))
    while len(started) < 4 or (await hosts[1].list_homes())[0].asleep_until is not None:
        if 2 <= len(started) < 4:
            was_awake += (await hosts[1].list_homes())[0].asleep_until is None and len(started) < 4
        await asyncio.sleep(0.01)
        assert not running.done()
    serve = "run --note-idle 0.001 --polled"
    assert started == [serve, *[f"{serve} --if-news"] * 3] and not was_awake
    stop.set()
    await running


async def test_a_network_that_does_not_answer_starts_a_home_only_if_that_lasts_and_what_waits_to_be_sent_once_it_does(
    tmp_path: Path,
) -> None:
    (tmp_path / "run").mkdir()
    database = Database.open(tmp_path / SCRIPT_DB, script_migrations, datetime.now(UTC))

    async def poll(url: str) -> bool:
        where = {"ASSISTANT_TELEGRAM__BASE_URL": url, "ASSISTANT_TELEGRAM__TOKEN": server.token}
        return await has_news(load_settings(Home(tmp_path), {**TELEGRAM_SET_UP, **where}, ring=None))

    async with open_telegram_network() as network:
        assert isinstance(network, TelegramNetwork)
        server = network.server
        assert [await poll("http://127.0.0.1:9") for _ in range(11)] == [False] * 9 + [True, False]
        assert not await poll(server.url)
        with database.write() as db:
            insert_outgoing(db, [outgoing_message("1", "telegram")], datetime.now(UTC))
        assert not await poll("http://127.0.0.1:9") and await poll(server.url)
        BridgeStates(database).set_paused("telegram", True)
        await network.say("owner", "hello")
        assert not await poll(server.url)
    database.close()


async def test_a_host_that_is_full_stops_a_home_that_nobody_uses_for_one_that_waits(
    hosts: tuple[FleetTables, FleetTables], tmp_path: Path, url: str
) -> None:
    tables, stop, started = hosts[0], asyncio.Event(), list[str]()

    def start(environment: Mapping[str, str], commands: Sequence[Sequence[str]], memory_bytes: int) -> BaseProcess:
        folder = Path(environment["folder"])
        # Nobody has used it for some seconds, which is no reason to stop it.
        process = multiprocessing.get_context("fork").Process(target=partial(_serve_until_asked, folder, lasts=False))
        process.start()
        started.append(folder.name)
        return process

    options = HostOptions(
        *("m1", tmp_path, "127.0.0.1", 20_000, 1, lambda home, folder, port, quota: {"folder": str(folder)}, _IDLE, 0.0)
    )
    await tables.add("bob")
    running = asyncio.create_task(FleetHost(tables, options, partial(ReplicaDatabase, url), start).run(stop))
    while started != ["alice", "bob"]:
        await asyncio.sleep(0.01)
        assert not running.done()
    # It sleeps; nobody waits for it, so the other one stays.
    assert [home.asleep_until is not None for home in await hosts[1].list_homes()] == [True, False]
    stop.set()
    await running


async def test_a_home_that_a_host_cannot_restore_goes_back_to_the_one_that_has_its_folder(
    hosts: tuple[FleetTables, FleetTables], tmp_path: Path, url: str
) -> None:
    """The whole copy was altered, say: as long as the host that was lost comes back, nothing is lost with it."""
    stop, started = asyncio.Event(), list[str]()
    await hosts[0].withdraw("m1")
    save_holder(tmp_path / "m1" / "alice", Holder("its owner"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO nocturne_homes (home, epoch, holder, machine, base) VALUES ('alice', 1, 'its owner', 'm1', 1)"
        )

    def host(name: str, tables: FleetTables) -> FleetHost:
        def start(environment: Mapping[str, str], commands: Sequence[Sequence[str]], memory_bytes: int) -> BaseProcess:
            started.append(f"{name} {commands[0][0]}")
            seconds = 0.0 if commands[0][0] == "replica" else 600.0
            process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(seconds,))
            process.start()
            return process

        options = HostOptions(name, tmp_path / name, "127.0.0.1", 20_000, 10, lambda *_: {}, _NEVER, 0.0)
        return FleetHost(tables, options, partial(ReplicaDatabase, url), start)

    running = [asyncio.create_task(host("m2", hosts[1]).run(stop))]
    while not started:
        await asyncio.sleep(0.01)
        assert not running[0].done()
    running.append(asyncio.create_task(host("m1", hosts[0]).run(stop)))
    while "m1 run" not in started:
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in running)
    assert started == ["m2 replica", "m1 run"]
    stop.set()
    await asyncio.gather(*running)


async def test_a_host_waits_for_a_server_that_does_not_answer_yet_and_again_when_it_stops_answering(
    tmp_path: Path, server: Postgres, url: str
) -> None:
    tables, said = FleetTables(url), list[str]()
    await tables.prepare()
    there, wire = FleetTables(url.replace(str(server.folder), str(tmp_path))), Wire(server.folder / SOCKET)
    waiting = asyncio.create_task(there.wait_until_there(said.append))
    while not said:
        await asyncio.sleep(0.01)
        assert not waiting.done()
    assert "tried again until it answers" in said[0]
    stop = asyncio.Event()
    async with await asyncio.start_unix_server(wire.connect, str(tmp_path / SOCKET)):
        await waiting
        await there.aclose()
    (tmp_path / SOCKET).unlink(missing_ok=True)
    options = HostOptions("m1", tmp_path, "127.0.0.1", 20_000, 1, lambda *_: {}, _NEVER, 0.0)
    host = FleetHost(there, options, partial(ReplicaDatabase, url), lambda *_: pytest.fail("there are no homes"))
    running = asyncio.create_task(host.run(stop))
    with capture_logs() as logs:
        while not logs:
            await asyncio.sleep(0.01)
            assert not running.done()
    assert not await tables.list_hosts()
    async with await asyncio.start_unix_server(wire.connect, str(tmp_path / SOCKET)):
        while not await tables.list_hosts():
            await asyncio.sleep(0.01)
            assert not running.done()
        stop.set()
        await running
        assert not await tables.list_hosts()
        await there.aclose()
    await tables.aclose()
