"""What is lost while people write: each loss happens, the fleet recovers, and everything acknowledged is counted."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

import psycopg

from tests.attack.tally import Tally
from tests.fleet.clock import has_compiler
from tests.fleet.disks import can_mount, full_disk
from tests.fleet.machines import ROUTERS, SECONDS, Machines, run_machines
from tests.fleet.people import Person, find_losses

# A lease and some seconds: another host has what a frozen one had.
_FROZEN_SECONDS = 18.0
_LONG_SECONDS = 60.0
_SHORT_SECONDS = 2.0


def lose_host(machines: Machines, chance: random.Random) -> None:
    name = _draw_host(machines, chance)
    machines.lose(name)
    # When it comes back, it finds its homes elsewhere.
    machines.wait_until_held(without=name)
    machines.start(name)


def lose_primary(machines: Machines, chance: random.Random) -> None:
    machines.pair.fail_over()
    machines.wait_until_held()
    machines.pair.replace_standby()


def lose_host_and_primary(machines: Machines, chance: random.Random) -> None:
    name = _draw_host(machines, chance)
    machines.lose(name)
    machines.pair.fail_over()
    machines.wait_until_held(without=name)
    machines.pair.replace_standby()
    machines.start(name)


def lose_standby(machines: Machines, chance: random.Random) -> None:
    """Nothing is acknowledged until it is back."""
    machines.pair.standby.stop()
    time.sleep(_SHORT_SECONDS)
    machines.pair.standby.start("-c fsync=off")


def cancel_waits(machines: Machines, chance: random.Random) -> None:
    """Waits for a standby that is gone are cancelled, so PostgreSQL reports success; then the primary is lost, too."""
    machines.pair.standby.stop()
    until = time.monotonic() + _SHORT_SECONDS
    while time.monotonic() < until:
        machines.pair.cancel_waits()
        time.sleep(0.05)
    machines.pair.primary.stop()
    machines.pair.standby.start("-c fsync=off")
    machines.pair.fail_over()
    machines.wait_until_held()
    machines.pair.replace_standby()


def shift_clock(machines: Machines, chance: random.Random) -> None:
    """A host comes back with a clock that is wrong by an hour, and then takes over what the other had."""
    name = _draw_host(machines, chance)
    machines.lose(name)
    machines.wait_until_held(without=name)
    machines.start(name, clock=chance.choice((-3600, 3600)))
    machines.wait_until_alive(name)
    lost = machines.find_other_host(name)
    machines.lose(lost)
    machines.wait_until_held(without=lost)
    machines.start(lost)


def cut_off_host(machines: Machines, chance: random.Random) -> None:
    """What it sends to PostgreSQL, or what that answers, does not arrive for a while; nothing breaks."""
    wire = machines.wires[_draw_host(machines, chance)]
    wire.cut(chance.choice(("both", "there", "back")))
    time.sleep(chance.choice((_SHORT_SECONDS, _FROZEN_SECONDS)))
    wire.mend()


def lose_router(machines: Machines, chance: random.Random) -> None:
    router = chance.choice(ROUTERS)
    machines.lose(router)
    time.sleep(chance.uniform(0.0, _SHORT_SECONDS))
    machines.start(router)


def freeze_host(machines: Machines, chance: random.Random) -> None:
    """It goes on where it was, when another host has its homes, or before."""
    host = machines.running[_draw_host(machines, chance)]
    host.send(signal.SIGSTOP)
    time.sleep(chance.choice((_SHORT_SECONDS, _FROZEN_SECONDS, _LONG_SECONDS)))
    host.send(signal.SIGCONT)


def fill_host(machines: Machines, chance: random.Random) -> None:
    """Nothing more fits on the disk of a host for a while."""
    with full_disk(machines.folder / _draw_host(machines, chance)):
        time.sleep(chance.choice((_SHORT_SECONDS, _FROZEN_SECONDS)))


def fill_server(machines: Machines, chance: random.Random) -> None:
    """Nothing more fits on the disk of the primary, or of the standby, which may end by itself then. Once there is room
    it is started again."""
    server = chance.choice((machines.pair.primary, machines.pair.standby))
    with full_disk(server.socket):
        time.sleep(chance.choice((_SHORT_SECONDS, _FROZEN_SECONDS)))
    server.start_again("-c fsync=off")


def damage_base(machines: Machines, chance: random.Random) -> None:
    """The whole copy of a home is cut or altered, then its host is lost. Nobody else can restore the home; it goes on
    in its folder as soon as that host is back."""
    home = chance.choice(machines.homes)
    name = machines.places()[home]
    with psycopg.connect(machines.settings["ASSISTANT_REPLICA__URL"], autocommit=True) as connection:
        cut = "DELETE FROM nocturne_bases WHERE home = %s AND part = 0"
        alter = "UPDATE nocturne_bases SET data = set_byte(data, 99, 255 - get_byte(data, 99)) WHERE home = %s"
        connection.execute(chance.choice((cut, f"{alter} AND part = 0")), (home,))
    machines.lose(name)
    # Another host has it only for as long as it tries.
    _wait_until_moved(machines, home, name)
    time.sleep(_SHORT_SECONDS)
    machines.start(name)


def split_routers(machines: Machines, chance: random.Random) -> None:
    """A home moves; one router learns where it was before only afterwards, the other at once where it is."""
    home, router = chance.choice(machines.homes), chance.choice(ROUTERS)
    there = machines.find_other_host(machines.places()[home])
    machines.wires[router].cut(chance.choice(("both", "there", "back")))
    time.sleep(chance.uniform(0.0, _SHORT_SECONDS))
    machines.run("move", home, there)
    _wait_until_moved(machines, home, machines.find_other_host(there))
    time.sleep(_SHORT_SECONDS)
    machines.wires[router].mend()


LOSSES: dict[str, Callable[[Machines, random.Random], None]] = {
    "host": lose_host,
    "primary": lose_primary,
    "host and primary": lose_host_and_primary,
    "standby": lose_standby,
    "router": lose_router,
    "frozen host": freeze_host,
    "cancelled wait": cancel_waits,
    "cut-off host": cut_off_host,
    "damaged base": damage_base,
    "split routers": split_routers,
    **({"full host": fill_host, "full server": fill_server} if can_mount() else {}),
    **({"wrong clock": shift_clock} if has_compiler() else {}),
}


def run(
    seed: int,
    cases: int,
    until: float = float("inf"),
    *,
    kinds: tuple[str, ...] = (),
    homes: int = 2,
    tell: bool = False,
) -> Tally:
    """Lose `cases` things in one fleet of two hosts, drawn from the seed, or `kinds` in turn; each time everything that
    was acknowledged so far is counted and every home verified."""
    chance, failures, tried = random.Random(seed), list[str](), 0
    with run_machines(2, homes, small_disks=True) as machines:
        people = [Person(machines, home) for home in machines.homes]
        for person in people:
            person.start()
        for case in range(cases):
            if time.monotonic() > until:
                break
            kind = kinds[case % len(kinds)] if kinds else chance.choice(sorted(LOSSES))
            time.sleep(chance.uniform(0.5, 2.0))
            begun = time.monotonic()
            try:
                found = lose_and_count(machines, people, kind, chance)
            except AssertionError as error:
                found = [f"it did not recover: {error}"]
            tried += 1
            if found:
                failures.append(f"seed {seed}, run {case + 1}, {kind}: {'; '.join(found)}")
            if tell:
                seconds, counts = time.monotonic() - begun, sum(len(person.acknowledged) for person in people)
                print(f"  {kind}: {seconds:.0f} s, {counts} acknowledged so far, {len(found)} failures", flush=True)
                print("\n".join(f"    {line}" for line in found[:5]), end="\n" if found else "", flush=True)
            if any(line.startswith("it did not recover") for line in found):
                break
        for person in people:
            person.leave()
    return Tally("fleet", tried, tuple(failures))


def lose_and_count(machines: Machines, people: list[Person], kind: str, chance: random.Random) -> list[str]:
    """Return what does not hold after a loss."""
    LOSSES[kind](machines, chance)
    _wait_for_more(people)
    machines.wait_until_held()
    found = [loss for person in people for loss in find_losses(machines, person)]
    return [*found, *filter(None, map(machines.verify, machines.homes))]


def _wait_until_moved(machines: Machines, home: str, host: str) -> None:
    deadline = time.monotonic() + SECONDS
    while machines.places()[home] == host:
        assert time.monotonic() < deadline, f"{host} still has {home}"
        time.sleep(0.1)


def _draw_host(machines: Machines, chance: random.Random) -> str:
    """A host that has a home, if there is one."""
    held = sorted({host for host in machines.places().values() if host in machines.running})
    return chance.choice(held or sorted(machines.running.keys() - {*ROUTERS}))


def _wait_for_more(people: list[Person]) -> None:
    """Until each had something acknowledged after what was lost."""
    before = {person.home: len(person.acknowledged) for person in people}
    deadline = time.monotonic() + SECONDS
    while any(len(person.acknowledged) <= before[person.home] for person in people):
        assert time.monotonic() < deadline, [person.describe() for person in people]
        time.sleep(0.1)
