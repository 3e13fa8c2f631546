"""How long somebody waits for a home: one that is woken, that moves, and whose host is lost. On a machine that does
nothing else, these are the figures of `docs/fleet.md`.

python -m tests.fleet.times                             10,000 messages, each three times
python -m tests.fleet.times --messages 1000 --times 1

Two hosts, a router and two PostgreSQL servers run here. A wait lasts from a message until it was acknowledged. What the
messages of the large home say counts as learnt, as it would be in a home that was lived in.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.service.home_lock import lock_holder
from tests.bench.homes import START, YEARS, opened
from tests.bench.homes import home as generated_home
from tests.fleet.machines import ROUTERS, Machines
from tests.fleet.people import Person
from tests.fleet.scale import cpu_seconds
from tests.support.postgres import run_postgres_pair

_IDLE_MINUTES = "0.05"
_LARGE, _SMALL = "home1", "home2"
_HOSTS = ("m1", "m2")
# The main one is so long that it would be compacted and learnt from, for minutes.
_SESSION = "thread:errands"


class Trial:
    """A fleet whose first home has so many messages; the other one is new."""

    def __init__(self, machines: Machines) -> None:
        self.machines = machines

    def say(self, home: str, text: str) -> float:
        """Return after how many seconds it was acknowledged."""
        begun = time.monotonic()
        with self.machines.client(home) as client:
            # A large home that is new to the fleet acknowledges nothing before its first whole copy is there.
            message = {"text": text, "external_id": text, "session": _SESSION}
            while (reply := client.post("/v1/messages", json=message)).status_code != 202:
                if reply.is_client_error:
                    raise RuntimeError(reply.text)
                time.sleep(0.1)
        return time.monotonic() - begun

    def wait_until_asleep(self) -> None:
        while not all(
            home["asleep_until"] and not home["is_held"]
            for home in json.loads(self.machines.run("status", "--json").out)["homes"]
        ):
            time.sleep(0.2)

    def wake(self, number: int) -> tuple[float, float]:
        """Wake the large home; return how long that took, and the processor time of its process until then."""
        seconds = self.say(_LARGE, f"woken {number}")
        process = lock_holder(self.machines.folder / self.machines.places()[_LARGE] / _LARGE)
        cpu = cpu_seconds(process) if process is not None else 0.0
        self.wait_until_asleep()
        return seconds, cpu

    def wake_elsewhere(self, number: int) -> tuple[float, float]:
        """As `wake`, on a host that has nothing of the home."""
        here = self.machines.places()[_LARGE]
        there = next(host for host in _HOSTS if host != here)
        self.machines.running.pop(here).stop()
        shutil.rmtree(self.machines.folder / there, ignore_errors=True)
        self.start(there)
        return self.wake(number)

    def start(self, host: str, *options: str) -> None:
        self.machines.start(host, "--idle", _IDLE_MINUTES, *options)
        self.machines.wait_until_alive(host)

    @contextmanager
    def person(self, home: str) -> Iterator[Person]:
        """Somebody who talks to a home, which both hosts may have."""
        for host in _HOSTS:
            if host not in self.machines.running:
                self.start(host)
        person = Person(self.machines, home, _SESSION)
        person.start()
        self.wait_for_more(person)
        yield person
        person.leave()

    def wait_for_more(self, person: Person) -> None:
        count = len(person.acknowledged)
        while len(person.acknowledged) < count + 3:
            time.sleep(0.05)

    def move(self, person: Person) -> float:
        here = self.machines.places()[person.home]
        person.longest_wait = 0.0
        there = self.machines.find_other_host(here)
        self.machines.run("move", person.home, there)
        while self.machines.places()[person.home] != there:
            time.sleep(0.05)
        self.wait_for_more(person)
        return person.longest_wait

    def lose_host(self, person: Person) -> float:
        host = self.machines.places()[person.home]
        person.longest_wait = 0.0
        self.machines.lose(host)
        self.wait_for_more(person)
        self.start(host)
        return person.longest_wait


def _copy_as_learnt(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    stores = opened(target, START + YEARS)
    for info in stores.conversation.list_sessions():
        stores.conversation.mark_extracted(info.key, info.generation, info.messages)
    stores.close()


def measure(messages: int, times: int) -> Iterator[str]:
    """Yield what was measured, line by line."""
    source = generated_home(messages).path
    with TemporaryDirectory(prefix="fleet") as folder, run_postgres_pair() as pair:
        machines = Machines(Path(folder), pair, 2, wired=False)
        trial = Trial(machines)
        _copy_as_learnt(source, machines.folder / "m1" / _LARGE)
        try:
            for router in ROUTERS:
                machines.start(router, "--wait", "120")
            trial.start("m1")
            for home in (_LARGE, _SMALL):
                trial.say(home, "the first")
            trial.wait_until_asleep()
            about = f"a home of {messages:,} messages"
            yield _describe(f"woken, where its folder is: {about}", [trial.wake(n) for n in range(times)])
            cold = [trial.wake_elsewhere(times + n) for n in range(times)]
            yield _describe(f"woken, from the replica: {about}", cold)
            for home, what in ((_SMALL, "a new home"), (_LARGE, about)):
                with trial.person(home) as person:
                    yield _describe_waits(f"moved: {what}", trial.move, person, times)
                    yield f"  {person.describe()}"
                    yield _describe_waits(f"its host was lost: {what}", trial.lose_host, person, times)
        finally:
            machines.stop()


def _describe(what: str, found: list[tuple[float, float]]) -> str:
    waits, cpus = (sorted(values) for values in zip(*found, strict=True))
    return f"{what}: {_list(waits)}; processor of the home {_list(cpus)}"


def _describe_waits(what: str, act: Callable[[Person], float], person: Person, times: int) -> str:
    return f"{what}: longest wait {_list(sorted(act(person) for _ in range(times)))}"


def _list(seconds: list[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in seconds) + " s"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.times", description="How long homes take.")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    for line in measure(options.messages, options.times):
        print(line, flush=True)
    print(f"load: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
