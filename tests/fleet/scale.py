"""What a fleet of thousands of homes needs: a day of its life by simulation, with parts that were measured.

python -m tests.fleet.scale                          10,000 homes
python -m tests.fleet.scale --homes 50000 --memory_mb 180 --idle_minutes 5
python -m tests.fleet.scale --measure                measures the parts that depend on the machine, on this one

Every number of `Parts` is an input. All homes are in one time zone, which is the worst case for the peak.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from assistant.service.home_lock import lock_holder
from assistant.service.measure import measure_folder, measure_memory
from tests.fleet.machines import run_machines
from tests.fleet.people import Person

_DAY = 24 * 60
_MESSAGES = 20  # to each home, before it is measured
_OWN = ("Private_Clean:", "Private_Dirty:")
# Share of the day's conversations that begin in each hour.
_HOURS = (1, 1, 0, 0, 0, 1, 3, 6, 6, 5, 4, 4, 6, 5, 4, 4, 5, 6, 8, 9, 9, 7, 4, 2)


@dataclasses.dataclass(frozen=True)
class Parts:
    """What one home does and takes; measured where `docs/scale.md` says so."""

    homes: int = 10_000
    conversations: float = 3.0  # of a home a day
    messages: int = 6  # in a conversation
    conversation_minutes: float = 8.0
    reminders: float = 1.0  # that wake a home, a day
    bridge_share: float = 0.0  # of the homes, which always run: they have Discord or Slack
    poll_share: float = 0.0  # of the homes, whose networks are asked while they sleep: Telegram, Matrix, mail
    poll_seconds: float = 60.0
    poll_cpu_seconds: float = 0.1
    idle_minutes: float = 15.0
    night_minutes: float = 2.0  # that a nightly sleep takes
    night_spread_minutes: float = 180.0  # over which the nights of the homes begin
    memory_mb: float = 85.0  # of a home that runs
    startcpu_seconds: float = 1.5
    messagecpu_seconds: float = 0.1  # without the model, which is elsewhere
    nightcpu_seconds: float = 8.0
    barriers: float = 3.0  # for each message
    barriers_a_second: float = 1_200.0  # of one pair of servers
    connections_a_pair: int = 2_000  # of PostgreSQL; a home that runs has one
    change_kb: float = 7.0  # for each message
    replica_mb: float = 8.0  # of a home: its base, and a day of changes
    folder_mb: float = 40.0  # of a home on its host
    most_homes_a_host: int = 300  # that run at once, as `fleet host --most 300`
    host_cores: int = 8
    host_memory_gb: float = 32.0
    host_dollars: float = 60.0  # a month
    pair_dollars: float = 200.0  # a month, of one pair of servers
    busy_share: float = 0.6  # of cores and memory that may be used at the peak: a lost host's homes must fit


@dataclasses.dataclass(frozen=True)
class Peaks:
    """The busiest minute of the day, of each kind."""

    running: int  # homes
    starts: float  # a second
    cores: float
    messages: float  # a second
    polls: float  # a second


def simulate(parts: Parts, seed: int = 1) -> Peaks:
    """Live one day with every home, by the minute."""
    chance = random.Random(seed)
    changes, starts, cpu, messages = ([0.0] * (_DAY + 1) for _ in range(4))
    for _ in range(parts.homes):
        spans = [(0.0, float(_DAY))] if chance.random() < parts.bridge_share else []
        for begin in _draw_times(chance, parts.conversations):
            spans.append((begin, begin + parts.conversation_minutes + parts.idle_minutes))
            for _ in range(parts.messages):
                at = int(begin + chance.random() * parts.conversation_minutes) % _DAY
                messages[at] += 1
                cpu[at] += parts.messagecpu_seconds
        spans += [(begin, begin + parts.idle_minutes) for begin in _draw_times(chance, parts.reminders)]
        night = 3.5 * 60 + chance.random() * parts.night_spread_minutes
        spans.append((night, night + parts.night_minutes + parts.idle_minutes))
        cpu[int(night) % _DAY] += parts.nightcpu_seconds
        for begin, end in _merge(spans):
            first, last = int(begin), min(_DAY, math.ceil(end))
            changes[first] += 1
            changes[last] -= 1
            starts[first] += 1
            cpu[first] += parts.startcpu_seconds
    running, most = 0.0, 0.0
    for change in changes:
        running += change
        most = max(most, running)
    # As if all of them slept.
    polls = parts.homes * parts.poll_share / parts.poll_seconds
    cores = max(cpu[1:]) / 60 + polls * parts.poll_cpu_seconds
    return Peaks(round(most), max(starts[1:]) / 60, cores, max(messages) / 60, polls)


def _draw_times(chance: random.Random, each_day: float) -> list[float]:
    """Minutes of the day; their number is Poisson's."""
    count, product, floor = 0, chance.random(), math.exp(-each_day)
    while product > floor:
        count, product = count + 1, product * chance.random()
    hours = chance.choices(range(24), _HOURS, k=count)
    return [hour * 60 + chance.random() * 60 for hour in hours]


def _merge(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def describe(parts: Parts, peaks: Peaks) -> list[str]:
    """Return what the fleet needs, line by line; the need for most hosts is the first limit."""
    barriers = peaks.messages * parts.barriers
    needs = {
        "memory": peaks.running * parts.memory_mb / 1000 / (parts.host_memory_gb * parts.busy_share),
        "cores": peaks.cores / (parts.host_cores * parts.busy_share),
        "homes that run at once on a host": peaks.running / parts.most_homes_a_host,
    }
    limit = max(needs, key=lambda need: needs[need])
    hosts = max(2, math.ceil(max(needs.values())))
    connections = peaks.running + hosts
    pairs = math.ceil(
        max(barriers / parts.barriers_a_second / parts.busy_share, connections / parts.connections_a_pair)
    )
    dollars = hosts * parts.host_dollars + pairs * parts.pair_dollars
    day_gb = parts.homes * parts.conversations * parts.messages * parts.change_kb / 1e6
    return [
        f"homes                        {parts.homes:,}",
        f"run at once, at most         {peaks.running:,}",
        f"memory of those              {peaks.running * parts.memory_mb / 1000:,.0f} GB",
        f"starts a second, at most     {peaks.starts:.1f}",
        f"cores, at most               {peaks.cores:.1f}",
        f"messages a second, at most   {peaks.messages:.1f}",
        f"polls a second, at most      {peaks.polls:.0f}",
        f"barriers a second, at most   {barriers:.0f} of {parts.barriers_a_second:,.0f} of one pair",
        f"connections, at most         {connections:,} of {parts.connections_a_pair:,} of one pair",
        f"whole copies, at most        {peaks.starts * parts.replica_mb:.0f} MB a second, if each start makes one",
        f"changes a day                {day_gb:.1f} GB",
        f"replicas                     {parts.homes * parts.replica_mb / 1000:,.0f} GB, on each server of a pair",
        f"folders of the hosts         {parts.homes * parts.folder_mb / 1000:,.0f} GB",
        f"hosts                        {hosts}, for {limit}",
        f"pairs of servers             {pairs}",
        f"dollars a month              {dollars:,.0f}, {100 * dollars / parts.homes:.1f} cents a home",
    ]


def measure(homes: int) -> list[str]:
    """Measure what a home takes on this machine: memory, a start, a message, its folder."""
    # None is stopped meanwhile, and there is room for all.
    with run_machines(1, homes, host_options=("--idle", "0", "--most", str(homes))) as machines:
        folders = [machines.folder / "m1" / home for home in machines.homes]
        started = _total(folders, cpu_seconds)
        people = [Person(machines, home) for home in machines.homes]
        for person in people:
            person.start()
        while any(len(person.acknowledged) < _MESSAGES for person in people):
            time.sleep(0.5)
        for person in people:
            person.leave()
        time.sleep(5)
        count = sum(len(person.acknowledged) for person in people)
        answered = _total(folders, cpu_seconds)
        memory = _total(folders, measure_memory)
        own, mapped = (_total(folders, partial(_read_memory, names=names)) for names in (_OWN, ("Rss:",)))
        sizes = sum(map(measure_folder, folders))
    return [
        f"memory of a home that runs   {memory / homes / 1e6:.0f} MB, of what is shared its part ({homes} homes)",
        f"of it its own alone          {own / homes / 1e6:.0f} MB",
        f"all that it has mapped       {mapped / homes / 1e6:.0f} MB",
        f"load                         {os.getloadavg()[0]:.0f}",
        f"CPU of a start               {started / homes:.1f} s",
        f"CPU of a message             {(answered - started) / count:.2f} s",
        f"folder of a new home         {sizes / homes / 1e6:.1f} MB",
    ]


def _total(folders: list[Path], read: Callable[[int], float]) -> float:
    return sum(read(process) for folder in folders if (process := lock_holder(folder)) is not None)


def _read_memory(process: int, names: tuple[str, ...]) -> int:
    """Return the sum of these lines of what the kernel says about the memory of a process and its children, in
    bytes."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    children = map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())
    own = sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(names))
    return own + sum(_read_memory(child, names) for child in children)


def cpu_seconds(process: int) -> float:
    """Of the process and the children that it has waited for."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.scale", description="What a fleet needs.")
    parser.add_argument("--measure", type=int, nargs="?", const=8, help="measure with so many homes")
    for field in dataclasses.fields(Parts):
        parser.add_argument(f"--{field.name}", type=type(field.default), default=field.default)
    given = vars(parser.parse_args())
    measured = given.pop("measure")
    if measured:
        print("\n".join(measure(measured)))
        return
    parts = Parts(**given)
    print("\n".join(describe(parts, simulate(parts))))


if __name__ == "__main__":
    main()
