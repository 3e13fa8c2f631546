"""A thousand homes of one host that are woken at the same moment, each by somebody who writes to it through a router.

python -m tests.fleet.wake                        1,000 homes, of which 60 may run at once
python -m tests.fleet.wake --homes 100 --most 20

Every home is real. One is made by a host and talked to; the others are copies of it, on the disk and in PostgreSQL, as
if each had been used and stopped before. Everything is served when each message is acknowledged and answered, and each
home sleeps again; then every home is read, and verified.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psycopg

from tests.fleet.machines import TOKEN, Machines
from tests.support.command_line import run_in_process
from tests.support.postgres import run_postgres_pair

_IDLE_MINUTES = "0.3"
_WAIT_SECONDS = "600"
_EARLIER = 20
_TELL_EVERY = 50
_TEXT = "remember that the parcel is in the hall"


def wake(homes: int, most: int) -> list[str]:
    """Return what was measured, line by line."""
    with TemporaryDirectory(prefix="fleet") as folder, run_postgres_pair(connections=2 * most + 50) as pair:
        machines = Machines(Path(folder), pair, 1, wired=False)
        machines.start("router", "--wait", _WAIT_SECONDS)
        machines.start("m1", "--idle", _IDLE_MINUTES, "--most", str(most))
        try:
            machines.wait_until_answered()
            _talk(machines)
            _wait_until_asleep(machines)
            print(f"Copying a home {homes} times ...", flush=True)
            names = _copy(machines, homes)
            print("Waking all ...", flush=True)
            begun = time.monotonic()
            waits = sorted(asyncio.run(_say_to_all(machines, names)))
            acknowledged = time.monotonic() - begun
            print(f"All were acknowledged after {acknowledged:.0f} s.", flush=True)
            machines.homes = names
            _wait_until_asleep(machines)
            slept = time.monotonic() - begun
            copies = _count_new_copies(machines)
            again = (machines.folder / "m1.log").read_text().count("it left something")
        finally:
            machines.stop()
        print("Reading and verifying all ...", flush=True)
        faults = [fault for name in names for fault in _find_faults(machines, name)]
    return [
        f"homes                    {homes}, at most {most} at once",
        f"acknowledged after       {waits[0]:.1f} to {waits[-1]:.0f} s, median {waits[len(waits) // 2]:.0f} s",
        f"homes a second           {homes / acknowledged:.2f}",
        f"all sleep again after    {slept:.0f} s",
        f"new whole copies         {copies}",
        f"started again at once    {again}",
        f"processor, all processes {_processor_seconds():.0f} s",
        f"faults                   {len(faults)}",
        f"load                     {os.getloadavg()[2]:.0f}",
        *faults[:20],
    ]


def _talk(machines: Machines) -> None:
    with machines.client(machines.homes[0]) as client:
        for number in range(_EARLIER):
            while client.post("/v1/messages", json=_message(f"earlier {number}")).status_code != 202:
                time.sleep(1)


def _message(text: str) -> dict[str, str]:
    return {"text": text, "external_id": text}


def _copy(machines: Machines, homes: int) -> list[str]:
    """Copy the first home until there are so many; return their names."""
    first, *others = (f"home{number}" for number in range(1, homes + 1))
    for name in others:
        _copy_folder(machines.folder / "m1" / first, machines.folder / "m1" / name)
    with psycopg.connect(machines.settings["ASSISTANT_REPLICA__URL"], autocommit=True) as connection:
        for table in ("nocturne_homes", "nocturne_changes", "nocturne_bases", "nocturne_fleet_homes"):
            found = connection.execute(
                "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute "
                "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'home'",
                (table,),
            ).fetchone()
            assert found is not None
            columns = str(found[0])
            copy = f"INSERT INTO {table} (home, {columns}) SELECT name, {columns} FROM {table}, unnest(%s::text[]) name"
            connection.execute(f"{copy} WHERE home = %s", (others, first))  # type: ignore[arg-type]
        connection.execute("UPDATE nocturne_fleet_homes SET next_due = now() + interval '1 hour'")
    return [first, *others]


def _copy_folder(source: Path, target: Path) -> None:
    """With the times of its files, and the note of a clean stop as if it had been made for the copy."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.sock"))
    note = target / "run" / "replica-resume.json"
    remembered: dict[str, Any] = json.loads(note.read_text())
    for kind in ("databases", "files"):
        for name, stamp in remembered[kind].items():
            time_and_size = stamp.rpartition(" ")[0]
            remembered[kind][name] = f"{time_and_size} {(target / name).stat().st_ino}"
    note.write_text(json.dumps(remembered))
    owner = target / "run" / "replica.json"
    owner.write_text(json.dumps({**json.loads(owner.read_text()), "home": target.name}))


async def _say_to_all(machines: Machines, names: list[str]) -> list[float]:
    """Return after how many seconds each was acknowledged."""
    address = f"http://{machines.router_addresses['router']}"
    async with httpx.AsyncClient(base_url=address, timeout=None, limits=httpx.Limits()) as client:
        saying = [asyncio.create_task(_say(client, name)) for name in names]
        for count, waiting in enumerate(asyncio.as_completed(saying), 1):
            seconds = await waiting
            if count % _TELL_EVERY == 0:
                print(f"  {count} after {seconds:.0f} s", flush=True)
        return [await task for task in saying]


async def _say(client: httpx.AsyncClient, home: str) -> float:
    begun = time.monotonic()
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": f"{home}.example.org"}
    while True:
        try:
            answer = await client.post("/v1/messages", json=_message(_TEXT), headers=headers)
            if answer.status_code == 202:
                return time.monotonic() - begun
            print(home, answer.status_code, answer.text, flush=True)
        except httpx.TransportError as error:
            print(home, type(error).__name__, flush=True)
        await asyncio.sleep(1)


def _wait_until_asleep(machines: Machines) -> None:
    """Until all homes sleep, and no host has them."""
    while True:
        time.sleep(1)
        homes = json.loads(machines.run("status", "--json").out)["homes"]
        if all(home["asleep_until"] is not None and not home["is_held"] for home in homes):
            return


def _count_new_copies(machines: Machines) -> int:
    """Return how many homes did not continue from the copy that they had."""
    with psycopg.connect(machines.settings["ASSISTANT_REPLICA__URL"]) as connection:
        found = connection.execute(
            "SELECT count(*) FROM nocturne_homes WHERE base > (SELECT min(base) FROM nocturne_homes)"
        ).fetchone()
    assert found is not None
    return int(found[0])


def _processor_seconds() -> float:
    """Of this process and all that it has started and that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _find_faults(machines: Machines, home: str) -> list[str]:
    """Return what a home lacks, or has twice."""
    folder = machines.folder / "m1" / home
    log = run_in_process(folder, "log", "--json", "--limit", "1000", **machines.settings).out
    records = [json.loads(line) for line in log.splitlines()]
    said = Counter(record["content"] for record in records if record["role"] == "user")
    turns = {record["turn"] for record in records if record["content"] == _TEXT and record["role"] == "user"}
    answers = Counter(r["turn"] for r in records if r["role"] == "assistant" and not r["tool_calls"])
    expected = {_TEXT: 1} | {f"earlier {number}": 1 for number in range(_EARLIER)}
    faults = [f"{home}: {text!r} {said[text]} times" for text, count in expected.items() if said[text] != count]
    faults += [f"{home}: answered {answers[turn]} times" for turn in turns if answers[turn] != 1]
    verified = run_in_process(folder, "verify", **machines.settings)
    return faults + ([f"{home}: verify: {verified.out}{verified.err}"] if verified.returncode else [])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.wake", description="Wake many homes at once.")
    parser.add_argument("--homes", type=int, default=1000)
    parser.add_argument("--most", type=int, default=60)
    options = parser.parse_args()
    print("\n".join(wake(options.homes, options.most)))


if __name__ == "__main__":
    main()
