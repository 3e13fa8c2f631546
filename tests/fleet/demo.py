"""A demonstration: people talk to the homes of a fleet, while one moves and a host and the primary are lost; what each
saw.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.fleet.machines import Machines, run_machines
from tests.fleet.people import Person, find_losses
from tests.fleet.pictures import draw_lines

_HOSTS = 3
_TALK_SECONDS = 5.0
_DRAWN = 4  # homes in the picture


def demonstrate(homes: int, picture: Path | None = None) -> int:
    """Return 0 if nothing was lost. `picture`: where to draw what was acknowledged meanwhile."""
    begun = time.monotonic()
    marks: dict[str, float] = {}

    def tell(text: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {text}", flush=True)

    tell(f"Starting two PostgreSQL servers, a router, {_HOSTS} hosts and {homes} homes ...")
    with run_machines(_HOSTS, homes) as machines:
        tell(_describe_places(machines))
        people = [Person(machines, home) for home in machines.homes]
        for person in people:
            person.start()
        time.sleep(_TALK_SECONDS)
        marks["moved"] = time.monotonic()
        _move(machines, people[0], tell)
        time.sleep(_TALK_SECONDS)
        lost = max(machines.places().values(), key=list(machines.places().values()).count)
        machines.lose(lost)
        marks["host lost"] = time.monotonic()
        tell(f"Killed the host {lost} with all its homes.")
        machines.wait_until_held(without=lost)
        tell(f"The others have them. {_describe_places(machines)}")
        time.sleep(_TALK_SECONDS)
        marks["primary lost"] = time.monotonic()
        machines.pair.fail_over()
        tell("Killed the primary server, and promoted its standby.")
        _wait_for_more(people)
        tell("Every home acknowledges again.")
        time.sleep(_TALK_SECONDS)
        for person in people:
            person.leave()
        failures = [loss for person in people for loss in find_losses(machines, person)]
        for person in people:
            tell(person.describe())
        for home in machines.homes:
            failures.append(machines.verify(home))
            tell(failures[-1] or f"{home}: verified")
        failures = [failure for failure in failures if failure]
        count = sum(len(person.acknowledged) for person in people)
        tell(f"{count} messages were acknowledged; {len(failures)} faults.")
        for failure in failures:
            tell(failure)
    if picture is not None:
        _draw(picture, people, marks)
    return 1 if failures else 0


def _draw(picture: Path, people: list[Person], marks: dict[str, float]) -> None:
    """The sum of what each home had acknowledged, over time: a home that waits is a flat line."""
    begun = min(*marks.values(), *(person.acknowledged_at[0] for person in people))
    lines = {
        person.home: [(at - begun, float(count)) for count, at in enumerate(person.acknowledged_at, 1)]
        for person in people[:_DRAWN]
    }
    moments = {name: at - begun for name, at in marks.items()}
    draw_lines(picture, "Messages that homes acknowledge", "seconds", "messages so far", lines, moments)


def _move(machines: Machines, person: Person, tell: Callable[[str], None]) -> None:
    """Move a home to another host while its person talks."""
    here = machines.places()[person.home]
    there = next(name for name in machines.running if name.startswith("m") and name != here)
    person.longest_wait = 0.0
    machines.run("move", person.home, there)
    while machines.places()[person.home] != there:
        time.sleep(0.1)
    _wait_for_more([person])
    tell(f"Moved {person.home} from {here} to {there}: a message waited {person.longest_wait:.1f} s at most.")


def _describe_places(machines: Machines) -> str:
    places = list(machines.places().values())
    return "Homes: " + ", ".join(f"{places.count(name)} on {name}" for name in sorted(set(places))) + "."


def _wait_for_more(people: list[Person]) -> None:
    before = [len(person.acknowledged) for person in people]
    while any(len(person.acknowledged) <= count for person, count in zip(people, before, strict=True)):
        time.sleep(0.1)
