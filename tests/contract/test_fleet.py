"""The leases of a fleet, in a real PostgreSQL: who may start a home, by the clock of the server alone."""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx
import psycopg
import pytest
from structlog.testing import capture_logs

from assistant.core.errors import UsageError
from assistant.fleet.host import STARTS_AT_ONCE, FleetHost, HostOptions
from assistant.fleet.router import FleetRouter
from assistant.fleet.tables import FleetTables, HomePlace, Quota
from assistant.replica.holder import Holder, save_holder
from assistant.replica.postgres import ReplicaDatabase
from assistant.service.idle_note import IdleNote, read_idle_note, write_idle_note
from assistant.wire.idle import IdleWatch
from tests.support.command_line import FinishedCommand, run_in_process
from tests.support.postgres import Postgres, run_postgres
from tests.support.running_app import run_app
from tests.support.scripted import owner_message
from tests.support.wire import SOCKET, Wire


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    with run_postgres() as running:
        yield running


@pytest.fixture
def url(server: Postgres) -> str:
    return server.new_database()


@pytest.fixture
async def hosts(url: str) -> AsyncIterator[tuple[FleetTables, FleetTables]]:
    """Two connections, as of two hosts: m1 and m2. The fleet has the home alice."""
    first, second = FleetTables(url), FleetTables(url)
    database = ReplicaDatabase(url, "alice")
    await database.prepare()
    await database.aclose()
    await first.prepare()
    await first.announce("m1", "10.0.0.1")
    await first.announce("m2", "10.0.0.2")
    assert await first.add("alice") and not await first.add("alice")
    yield first, second
    await first.aclose()
    await second.aclose()


async def _take(tables: FleetTables, home: str, host: str, process: str, address: str) -> int | None:
    """Return the epoch, None if the home is not free."""
    held = (await tables.take({home: address}, host, process)).get(home)
    return held.epoch if held is not None else None


def _let_lapse(url: str, table: str = "homes", column: str = "until", seconds: int = 20) -> None:
    """As if the lease, or more than it, had passed since."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"UPDATE nocturne_fleet_{table} SET {column} = {column} - interval '{seconds} seconds'")  # type: ignore[arg-type]


async def test_of_two_hosts_one_takes_a_home_and_a_lapsed_lease_is_taken(
    hosts: tuple[FleetTables, FleetTables], url: str
) -> None:
    first, second = hosts
    for number in range(10):
        name = f"home{number}"
        await first.add(name)
        taken = await asyncio.gather(_take(first, name, "m1", "p1", "a"), _take(second, name, "m2", "p2", "b"))
        assert sorted(taken, key=str) == [1, None]
    assert await _take(first, "alice", "m1", "p1", "10.0.0.1:1") == 1
    assert await _take(second, "alice", "m2", "p2", "10.0.0.2:1") is None
    assert "alice" not in await second.find_free("m2")
    assert (await first.renew("m1", "p1"))["alice"].epoch == 1
    # A second process of the same host is another one.
    assert await first.renew("m1", "p3") == {} and await _take(first, "alice", "m1", "p3", "a") is None
    _let_lapse(url)
    # An own lease that lapsed is taken again, not renewed: somebody else may have had it meanwhile.
    assert await first.renew("m1", "p1") == {}
    assert "alice" in await second.find_free("m2")
    await first.announce("m2", "10.0.0.2")
    assert await _take(second, "alice", "m2", "p2", "10.0.0.2:1") == 2
    assert "alice" not in await first.renew("m1", "p1")
    assert not await first.release({"alice": 1}, "p1")
    assert (await second.renew("m2", "p2"))["alice"].epoch == 2
    assert await second.release({"alice": 2}, "p2")
    assert await _take(first, "alice", "m1", "p1", "10.0.0.1:1") == 3


async def test_the_clock_of_a_host_decides_nothing(
    hosts: tuple[FleetTables, FleetTables], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = hosts
    assert await _take(first, "alice", "m1", "p1", "a") == 1
    # Nothing of a client is read for it: not its time, and not the zone of its session.
    monkeypatch.setattr("time.time", lambda: 4e9)
    monkeypatch.setenv("PGTZ", "Pacific/Kiritimati")
    ahead = FleetTables(url)
    assert await _take(ahead, "alice", "m2", "p2", "b") is None and await ahead.find_free("m2") == []
    assert set(await ahead.renew("m1", "p1")) == {"alice"}
    await ahead.aclose()
    assert await _take(second, "alice", "m2", "p2", "b") is None


async def test_a_home_moves_to_a_host_that_is_alive_and_to_any_other_if_that_is_not(
    hosts: tuple[FleetTables, FleetTables], url: str
) -> None:
    first, second = hosts
    assert await _take(first, "alice", "m1", "p1", "a") == 1
    await first.want("alice", "m1")
    assert not (await first.renew("m1", "p1"))["alice"].moves
    await first.want("alice", "m2")
    assert (await first.renew("m1", "p1"))["alice"].moves
    assert await first.release({"alice": 1}, "p1")
    assert await first.find_free("m1") == [] and await _take(first, "alice", "m1", "p1", "a") is None
    assert await _take(second, "alice", "m2", "p2", "b") == 2
    await first.want("alice", "m1")
    _let_lapse(url, "hosts", "seen_at")
    await second.renew("m2", "p2")
    assert not (await second.renew("m2", "p2"))["alice"].moves
    with pytest.raises(UsageError, match="No other host"):
        await second.drain("m2")
    await first.renew("m1", "p1")
    assert await second.drain("m2") == ["alice"]
    assert (await second.renew("m2", "p2"))["alice"].moves and await second.release({"alice": 2}, "p2")
    assert await _take(second, "alice", "m2", "p2", "b") is None
    await second.withdraw("m1")
    assert await second.find_free("m2") == []
    # A host that was lost is shown, and forgotten a week later.
    _let_lapse(url, "hosts", "seen_at", 86_400)
    await second.announce("m3", "10.0.0.3")
    assert [(host.host, host.is_alive) for host in await second.list_hosts()] == [("m2", False), ("m3", True)]
    _let_lapse(url, "hosts", "seen_at", 7 * 86_400)
    await second.announce("m2", "10.0.0.2")
    assert [host.host for host in await second.list_hosts()] == ["m2"]
    assert await _take(second, "alice", "m2", "p2", "b") == 3
    with pytest.raises(UsageError, match="no host 'm1'"):
        await second.want("alice", "m1")
    with pytest.raises(UsageError, match="no home 'bob'"):
        await second.want("bob", "m2")


async def test_a_home_that_sleeps_is_taken_when_it_is_due_or_woken_first_by_the_host_that_has_its_folder(
    hosts: tuple[FleetTables, FleetTables], url: str
) -> None:
    first, second = hosts
    assert await _take(first, "alice", "m1", "p1", "a") == 1
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    await first.mark_asleep({"alice": (1, in_an_hour)}, "p1")
    # Routers send it nothing from now on; its host stops it and then gives it up.
    place = (await second.find_places(["alice", "bob"]))["alice"]
    assert (place.address, place.is_asleep) == ("", True)
    assert (await first.renew("m1", "p1"))["alice"].is_asleep and await first.release({"alice": 1}, "p1")
    assert await first.find_free("m1") == [] and await second.find_free("m2") == []
    assert [home.asleep_until for home in await first.list_homes()] == [in_an_hour]
    await second.wake(["alice"])
    assert await first.find_free("m1") == ["alice"] and await _take(second, "alice", "m2", "p2", "b") is None
    # Another host takes it where that one does not come.
    _let_lapse(url, "homes", "next_due")
    assert await _take(second, "alice", "m2", "p2", "b") == 2
    held = (await second.renew("m2", "p2"))["alice"]
    assert not held.is_asleep and held.quota == Quota()
    # One that is woken before it has stopped stays.
    await second.mark_asleep({"alice": (2, in_an_hour)}, "p2")
    await first.wake(["alice"])
    assert not (await second.renew("m2", "p2"))["alice"].is_asleep
    # A folder beyond its quota: it stops, and no host takes it until it may use more.
    await first.set_quota("alice", Quota(disk_mb=1))
    await second.note_sizes({"alice": (5, 2_000_000)}, "p2")
    held, places = (await second.renew("m2", "p2"))["alice"], await first.find_places(["alice"])
    assert held.is_full and held.quota.disk_mb == 1 and places["alice"].is_full
    assert await second.release({"alice": 2}, "p2") and await second.find_free("m2") == []
    await first.set_quota("alice", Quota(disk_mb=2))
    assert await second.find_free("m2") == ["alice"] and await first.find_free("m1") == []


async def test_of_homes_that_wait_the_longest_is_first_and_those_of_a_lost_host_do_not_wait_for_ever(
    hosts: tuple[FleetTables, FleetTables], url: str
) -> None:
    first, second = hosts
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    assert await first.add("bob") and await first.add("carol") and not await first.add("Carol")
    await first.withdraw("m2")
    await second.announce("m2", "10.0.0.2")
    for tables, home, host in ((second, "alice", "m2"), (first, "bob", "m1"), (first, "carol", "m1")):
        assert await _take(tables, home, host, f"{home}'s", "a") == 1
        await tables.mark_asleep({home: (1, in_an_hour)}, f"{home}'s")
        assert await tables.release({home: 1}, f"{home}'s")
    await second.withdraw("m2")
    # Whoever was used last but is woken first comes first; the folder of alice is elsewhere.
    for home in ("alice", "carol", "bob"):
        await first.wake([home])
    assert await first.find_free("m1") == ["carol", "bob", "alice"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE nocturne_fleet_homes SET until = until - interval '40 seconds', "
            "next_due = next_due - interval '40 seconds' WHERE home = 'alice'"
        )
    assert await first.find_free("m1") == ["alice", "carol", "bob"]
    # Of homes that are new, too, the first that was added is first.
    assert await first.add("a new one") and await first.find_free("m1") == ["alice", "carol", "bob", "a new one"]


class CountingTables(FleetTables):
    """Counts how often PostgreSQL is asked where homes are."""

    questions = 0

    async def find_places(self, homes: Iterable[str]) -> dict[str, HomePlace]:
        self.questions += 1
        return await super().find_places(homes)


async def test_requests_for_a_thousand_homes_that_sleep_wake_them_with_few_questions(
    hosts: tuple[FleetTables, FleetTables], url: str
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO nocturne_fleet_homes (home, next_due) "
            "SELECT 'home' || n, now() + interval '1 hour' FROM generate_series(1, 1000) AS n"
        )
    tables = CountingTables(url)
    transport = httpx.ASGITransport(FleetRouter(tables, 0.0, None))
    async with httpx.AsyncClient(transport=transport, base_url="http://router") as client:
        homes = [f"home{number}" for number in range(1, 1001)]
        answers = await asyncio.gather(*(client.get("/", headers={"Host": f"{home}.org"}) for home in homes))
    assert {answer.status_code for answer in answers} == {503}
    assert tables.questions <= 20  # of 2,000 that are asked one by one
    assert not [home.home for home in await tables.list_homes() if home.asleep_until]
    await tables.aclose()


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
        *("m1", tmp_path, "127.0.0.1", 20_000, homes, lambda home, folder, port, quota: {"folder": str(folder)}, 0.0)
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
    monkeypatch.setattr("assistant.wire.idle._MOST_SECONDS_BETWEEN_LOOKS", 0.01)
    now, looks = datetime.now(UTC), itertools.count()
    home = tmp_path / "home"

    def clock() -> datetime:
        next(looks)
        return now

    async with run_app(home, "Hello.", now=clock, ASSISTANT_SLEEP__AT="") as running:
        watch = IdleWatch(running.app, 5.0)
        watching = asyncio.create_task(watch.run())

        async def wait_for(lasts: bool | None) -> None:
            first = next(looks)
            while getattr(read_idle_note(home, os.getpid()), "lasts", None) != lasts or next(looks) < first + 100:
                await asyncio.sleep(0.01)
                assert not watching.done()

        now += timedelta(seconds=10)
        await wait_for(None)  # what woke it may be slow to come
        await running.say("hello")
        await running.wait_idle()
        await wait_for(None)
        now += timedelta(seconds=10)
        await wait_for(False)
        # There is too little to sum up for a nap, so it does not wait for one.
        now += timedelta(minutes=5)
        await wait_for(True)
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

    options = HostOptions("m1", tmp_path, "127.0.0.1", 20_000, 1, lambda *_: {}, 0.0)
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


def _serve_until_asked(folder: Path, *, lasts: bool, leaves_something: bool = False) -> None:
    """A home that nobody has used for some seconds, or for long (`lasts`)."""
    in_a_day = datetime.now(UTC) + timedelta(days=1)

    def stop(*_: object) -> None:
        if leaves_something:
            write_idle_note(folder, os.getpid(), None)
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    (folder / "run").mkdir(parents=True, exist_ok=True)
    write_idle_note(folder, os.getpid(), IdleNote(in_a_day, lasts))
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
        *("m1", tmp_path, "127.0.0.1", 20_000, 1, lambda home, folder, port, quota: {"folder": str(folder)}, 15.0)
    )
    running = asyncio.create_task(FleetHost(hosts[0], options, partial(ReplicaDatabase, url), start).run(stop))
    while len(started) < 2 or (await hosts[1].list_homes())[0].is_held:
        await asyncio.sleep(0.01)
        assert not running.done()
    # Now nothing is left, so it sleeps.
    assert (await hosts[1].list_homes())[0].asleep_until is not None and len(started) == 2
    stop.set()
    await running


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
        *("m1", tmp_path, "127.0.0.1", 20_000, 1, lambda home, folder, port, quota: {"folder": str(folder)}, 15.0)
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

        options = HostOptions(name, tmp_path / name, "127.0.0.1", 20_000, 10, lambda *_: {}, 0.0)
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
    options = HostOptions("m1", tmp_path, "127.0.0.1", 20_000, 1, lambda *_: {}, 0.0)
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


def test_the_commands_say_what_there_is(tmp_path: Path, url: str) -> None:
    def fleet(*words: str, **settings: str) -> FinishedCommand:
        return run_in_process(tmp_path / "home", "fleet", *words, **{"ASSISTANT_REPLICA__URL": url, **settings})

    assert "begin with `assistant fleet init`" in fleet("status").err
    assert "The fleet is ready" in fleet("init").out and fleet("init").returncode == 0
    assert fleet().out == "0 homes, of which 0 run, on 0 hosts.\n"
    assert fleet("add", "alice").out == "Added alice.\n"
    assert "Nothing was changed" in fleet("add", "alice").out and "no name of a home" in fleet("add", "../alice").err
    status = fleet("status", "--json")
    report = json.loads(status.out)
    assert (status.returncode, report["ok"], report["hosts"]) == (1, False, [])
    assert report["homes"][0]["home"] == "alice" and not report["homes"][0]["is_held"]
    assert "alice: NO HOST has it." in fleet("status").out
    assert (
        "600 MB of memory for each process, $2.50 a month"
        in fleet("set", "alice", "--memory", "600", "--spending", "2.5").out
    )
    assert "may use as much as there is" in fleet("set", "alice", "--memory", "0", "--spending", "0").out
    assert fleet("set", "bob", "--disk", "1").returncode == 2
    metrics = fleet("status", "--metrics").out
    assert 'nocturne_fleet_homes{state="lost"} 1.0' in metrics
    assert fleet("add", "carol", "--disk", "1000").out == "Added carol.\n" and fleet("remove", "carol").returncode == 0
    assert "where ASSISTANT_REPLICA__HOME_NAME is alice" in fleet("remove", "alice").out
    assert fleet("remove", "alice").returncode == 2
    assert "There is no replica" in fleet("add", "bob", ASSISTANT_REPLICA__URL="").err
    # What would stop each home stops the host, before it takes any.
    host = ("host", "--folder", str(tmp_path / "homes"), "--listen")
    exposed = fleet(*host, "192.0.2.1:8500")
    assert exposed.returncode == 2 and "beyond this machine without encryption" in exposed.err
    assert "is no age identity" in fleet(*host, "127.0.0.1:8500", ASSISTANT_REPLICA__KEY="a passphrase").err
    assert not (tmp_path / "homes").exists()
    assert fleet("status", ASSISTANT_REPLICA__URL="").out.startswith("There is no fleet: replica.url is not set.")
    assert not (tmp_path / "home").exists()
