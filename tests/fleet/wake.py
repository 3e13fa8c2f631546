"""A thousand homes of one host that are woken at the same moment: what the host does with them.

python -m tests.fleet.wake                        1,000 homes, 40 of them real
python -m tests.fleet.wake --homes 200 --real 8

Real homes are what a fleet starts; each has somebody who waits for an answer through a router. The others are processes
that listen at once and have nothing to do, so that the host only decides about them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psycopg

from assistant.cli.fleet_home import prepare_forking, start_home
from assistant.fleet.host import STARTS_AT_ONCE, FleetHost, HostOptions
from assistant.fleet.router import FleetRouter
from assistant.fleet.tables import FleetTables, Quota
from assistant.replica.postgres import ReplicaDatabase
from assistant.service.idle_note import IdleNote, write_idle_note
from tests.support.command_line import command_environment
from tests.support.postgres import run_postgres_pair

_IDLE_MINUTES = 0.2
_SECONDS = 1800.0
_TOKEN = "a token of this fleet"


class Herd:
    """The homes of one host, and when each was started."""

    def __init__(self, folder: Path, url: str, names: Sequence[str], real: frozenset[str]) -> None:
        self.folder, self.url, self.names, self.real = folder, url, names, real
        self.started: dict[str, float] = {}
        self.all_started = asyncio.Event()
        self.twice: list[str] = []
        self.most = 0  # that loaded at once

    def environment(self, home: str, folder: Path, port: int, quota: Quota) -> Mapping[str, str]:
        settings = {
            "REPLICA__URL": self.url,
            "REPLICA__HOME_NAME": home,
            "REPLICA__ON_FAILURE": "refuse",
            "REPLICA__TIMEOUT_SECONDS": "60",
            "WEB__PORT": str(port),
            "WEB__TOKEN": _TOKEN,
            "WEB__HOSTS": json.dumps([f"{home}.example.org"]),
            "WEB__BEHIND_PROXY": "true",
            "LOG__LEVEL": "error",
            "SLEEP__AT": "",
            "SLEEP__NAP_MINUTES": "0",
            "BACKUP__AT": "",
        }
        return command_environment(folder, **{f"ASSISTANT_{name}": value for name, value in settings.items()})

    def start(
        self, environment: Mapping[str, str], commands: Sequence[Sequence[str]], memory_bytes: int
    ) -> BaseProcess:
        folder = Path(environment["ASSISTANT_HOME"])
        if folder.name in self.started:
            self.twice.append(folder.name)
        self.started[folder.name] = time.monotonic()
        if len(self.started) == len(self.names):
            self.all_started.set()
        self.most = max(self.most, sum(not (self.folder / name / "run/control.sock").exists() for name in self.started))
        if folder.name in self.real:
            return start_home(environment, commands, memory_bytes, hides=False)
        process = multiprocessing.get_context("fork").Process(target=_listen, args=(folder,))
        process.start()
        return process


def _listen(folder: Path) -> None:
    """A home that nobody needs, as the host sees it."""
    (folder / "run").mkdir(parents=True, exist_ok=True)
    write_idle_note(folder, os.getpid(), IdleNote(datetime.now(UTC) + timedelta(hours=1), lasts=True))
    (folder / "run" / "control.sock").touch()
    time.sleep(_SECONDS)


async def wake_all(homes: int, real: int) -> list[str]:
    """Return what was measured, line by line."""
    prepare_forking()
    names = [f"home{number:04}" for number in range(homes)]
    every = homes // real
    with TemporaryDirectory(prefix="fleet") as folder, run_postgres_pair() as pair:
        herd = Herd(Path(folder), pair.new_database(), names, frozenset(names[::every][:real]))
        tables, asking = FleetTables(herd.url), FleetTables(herd.url)
        database = ReplicaDatabase(herd.url, "home")
        await database.prepare()
        await database.aclose()
        await tables.prepare()
        options = HostOptions("m1", Path(folder), "127.0.0.1", 30_000, homes, herd.environment, _IDLE_MINUTES)
        host_tables = FleetTables(herd.url)
        host = FleetHost(host_tables, options, partial(ReplicaDatabase, herd.url), herd.start)
        stop = asyncio.Event()
        running = asyncio.create_task(host.run(stop))
        try:
            return await _measure(herd, tables, FleetRouter(asking, _SECONDS, None))
        finally:
            stop.set()
            await running
            for each in (tables, asking, host_tables):
                await each.aclose()


async def _measure(herd: Herd, tables: FleetTables, router: FleetRouter) -> list[str]:
    print("Making the real homes ...", flush=True)
    for home in sorted(herd.real):
        await tables.add(home)
    await asyncio.gather(*(_say(router, home, "hello") for home in herd.real))
    await _wait_until_asleep(tables, len(herd.real))
    with psycopg.connect(herd.url, autocommit=True) as connection:
        for home in herd.names:
            connection.execute(
                "INSERT INTO nocturne_fleet_homes (home, host, next_due) VALUES (%s, 'm1', now() + interval '1 hour') "
                "ON CONFLICT DO NOTHING",
                (home,),
            )
        herd.started.clear()
        for home in herd.real:
            (herd.folder / home / "run" / "control.sock").unlink(missing_ok=True)
        before = _read_costs(connection)
        print(f"Waking {len(herd.names)} homes ...", flush=True)
        woken = time.monotonic()
        await tables.wake(herd.names)
        waits = sorted(await asyncio.gather(*(_say(router, home, "hello again") for home in herd.real)))
        await herd.all_started.wait()
        taken = time.monotonic() - woken
        processor, transactions = (after - was for after, was in zip(_read_costs(connection), before, strict=True))
    order = sorted(herd.started, key=lambda home: herd.started[home])
    late = max(abs(order.index(home) - herd.names.index(home)) for home in herd.names)
    return [
        f"{len(herd.names)} homes, {len(herd.real)} of them real, at most {STARTS_AT_ONCE} loading at once",
        f"all were started in        {taken:.1f} s, {len(herd.names) / taken:.1f} a second",
        f"loaded at once, at most    {herd.most}",
        f"started twice              {len(herd.twice)}",
        f"farthest from its turn     {late} places",
        f"answer to a message after  {waits[0]:.1f} to {waits[-1]:.1f} s, median {waits[len(waits) // 2]:.1f} s",
        f"host and router            {processor:.1f} s of one processor",
        f"transactions               {transactions:.0f}, {transactions / taken:.0f} a second",
        f"load                       {os.getloadavg()[0]:.1f}",
    ]


def _read_costs(connection: psycopg.Connection[tuple[int, ...]]) -> tuple[float, float]:
    """Processor seconds of this process, and transactions of the database."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    row = connection.execute(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    ).fetchone()
    assert row is not None
    return used.ru_utime + used.ru_stime, float(row[0])


async def _say(router: FleetRouter, home: str, text: str) -> float:
    """Return after how many seconds it was acknowledged."""
    begun = time.monotonic()
    headers = {"Authorization": f"Bearer {_TOKEN}", "Host": f"{home}.example.org"}
    transport = httpx.ASGITransport(router)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{home}.example.org", timeout=None) as client:
        while True:
            answer = await client.post("/v1/messages", json={"text": text, "external_id": text}, headers=headers)
            if answer.status_code == 202:
                return time.monotonic() - begun
            print(home, answer.status_code, answer.text, flush=True)
            await asyncio.sleep(1)


async def _wait_until_asleep(tables: FleetTables, homes: int) -> None:
    """Until so many homes sleep, and no host has them."""
    asleep = 0
    while asleep < homes:
        await asyncio.sleep(0.5)
        asleep = sum(home.asleep_until is not None and not home.is_held for home in await tables.list_homes())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.wake", description="Wake many homes at once.")
    parser.add_argument("--homes", type=int, default=1000)
    parser.add_argument("--real", type=int, default=40)
    options = parser.parse_args()
    print("\n".join(asyncio.run(wake_all(options.homes, options.real))))


if __name__ == "__main__":
    main()
