"""The leases of a fleet, in a real PostgreSQL: who may start a home, by the clock of the server alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest

from assistant.core.errors import UsageError
from assistant.fleet.router import FleetRouter
from assistant.fleet.tables import FleetTables, HomePlace, Quota
from assistant.service.idle_note import IdleNote
from tests.support.command_line import FinishedCommand, run_in_process
from tests.support.fleet_tables import hosts, server, url

__all__ = ["hosts", "server", "url"]


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
    await first.mark_asleep({"alice": (1, IdleNote(in_an_hour, lasts=True, polls=False))}, "p1", 60.0)
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
    await second.mark_asleep({"alice": (2, IdleNote(in_an_hour, lasts=True, polls=False))}, "p2", 60.0)
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


async def test_the_networks_of_a_home_that_sleeps_are_asked_by_one_host_at_a_time_while_it_sleeps_on(
    hosts: tuple[FleetTables, FleetTables], url: str
) -> None:
    first, second = hosts
    assert await _take(first, "alice", "m1", "p1", "a") == 1
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    await first.mark_asleep({"alice": (1, IdleNote(in_an_hour, lasts=True, polls=True))}, "p1", 60.0)
    assert await first.release({"alice": 1}, "p1", 60.0) and await first.find_free("m1") == []
    for epoch in (2, 3):
        _let_lapse(url, "homes", "poll_at", 61)
        assert await first.find_free("m1") == ["alice"] and await second.find_free("m2") == []
        held = (await first.take({"alice": "a"}, "m1", "p1"))["alice"]
        assert (held.epoch, held.is_asleep) == (epoch, True)
        assert (await second.find_places(["alice"]))["alice"].is_asleep
        if epoch == 2:
            assert await first.release({"alice": 2}, "p1", 60.0) and await first.find_free("m1") == []
    assert [home.asleep_until for home in await first.list_homes()] == [in_an_hour]
    # The host is lost while it asks: another one does.
    _let_lapse(url)
    await first.withdraw("m1")
    assert (await second.take({"alice": "b"}, "m2", "p2"))["alice"].is_asleep
    # Whoever wakes it meanwhile waits until that is over.
    await first.wake(["alice"])
    assert not (await second.renew("m2", "p2"))["alice"].is_asleep
    assert await second.release({"alice": 4}, "p2", 60.0) and await second.find_free("m2") == ["alice"]


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
        await tables.mark_asleep({home: (1, IdleNote(in_an_hour, lasts=True, polls=False))}, f"{home}'s", 60.0)
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
