"""A demonstration: people talk to the homes of a fleet, while a host and then the primary are lost; what each saw."""

from __future__ import annotations

import time

from tests.fleet.machines import Machines, run_machines
from tests.fleet.people import Person, find_losses

_HOSTS = 3
_TALK_SECONDS = 5.0


def demonstrate(homes: int) -> int:
    """Return 0 if nothing was lost."""
    begun = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {text}", flush=True)

    tell(f"Starting two PostgreSQL servers, a router, {_HOSTS} hosts and {homes} homes ...")
    with run_machines(_HOSTS, homes) as machines:
        tell(_describe_places(machines))
        people = [Person(machines, home) for home in machines.homes]
        for person in people:
            person.start()
        time.sleep(_TALK_SECONDS)
        lost = max(machines.places().values(), key=list(machines.places().values()).count)
        machines.lose(lost)
        tell(f"Killed the host {lost} with all its homes.")
        machines.wait_until_held(without=lost)
        tell(f"The others have them. {_describe_places(machines)}")
        time.sleep(_TALK_SECONDS)
        machines.pair.fail_over()
        tell("Killed the primary server, and promoted its standby.")
        _wait_for_more(people)
        tell("Every home acknowledges again.")
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
    return 1 if failures else 0


def _describe_places(machines: Machines) -> str:
    places = list(machines.places().values())
    return "Homes: " + ", ".join(f"{places.count(name)} on {name}" for name in sorted(set(places))) + "."


def _wait_for_more(people: list[Person]) -> None:
    before = [len(person.acknowledged) for person in people]
    while any(len(person.acknowledged) <= count for person, count in zip(people, before, strict=True)):
        time.sleep(0.1)
