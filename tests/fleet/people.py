"""People who talk to the homes of a fleet by a script, through the router, and what each saw."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from threading import Event, Thread

import httpx

from tests.fleet.machines import ROUTERS, SECONDS, Machines

_PAUSE_SECONDS = 0.3
_PAGE = 1000


class Person(Thread):
    """Says one thing after the other to a home; one that was not accepted is said again, with the same id."""

    def __init__(self, machines: Machines, home: str, session: str = "main") -> None:
        super().__init__(name=home, daemon=True)
        self.home, self._session = home, session
        self.acknowledged: list[str] = []
        self.acknowledged_at: list[float] = []  # by the monotonic clock
        self.refusals: Counter[str] = Counter()  # answers other than 202, and broken connections
        self.longest_wait = 0.0  # seconds until a message was acknowledged
        self._machines, self._leaving = machines, Event()

    def run(self) -> None:
        number = 0
        with ExitStack() as stack:
            # Now through one router, now through the other, whatever each of them believes.
            clients = cycle([stack.enter_context(self._machines.client(self.home, router)) for router in ROUTERS])
            while not self._leaving.is_set():
                number += 1
                self._say(clients, number)
                self._leaving.wait(_PAUSE_SECONDS)

    def leave(self) -> None:
        self._leaving.set()
        self.join(SECONDS)
        assert not self.is_alive(), f"{self.home}: nobody answered"

    def _say(self, clients: Iterator[httpx.Client], number: int) -> None:
        text = f"remember that parcel {number} of {self.home} is in the hall"
        message = {"text": text, "external_id": f"{self.home}-{number}", "session": self._session}
        begun = time.monotonic()
        while True:
            try:
                answer = next(clients).post("/v1/messages", json=message)
                if answer.status_code == 202:
                    break
                self.refusals[str(answer.status_code)] += 1
            except httpx.TransportError as error:
                self.refusals[type(error).__name__] += 1
            if time.monotonic() - begun > SECONDS:
                return
            time.sleep(_PAUSE_SECONDS)
        self.acknowledged.append(text)
        self.acknowledged_at.append(time.monotonic())
        self.longest_wait = max(self.longest_wait, time.monotonic() - begun)

    def describe(self) -> str:
        """Return what this person saw, in a line."""
        refused = ", ".join(f"{count} x {what}" for what, count in self.refusals.items()) or "nothing refused"
        return f"{self.home}: {len(self.acknowledged)} accepted, {refused}, longest wait {self.longest_wait:.1f} s"


def find_losses(machines: Machines, person: Person) -> list[str]:
    """Return what a home lacks of what it has acknowledged so far, or has twice, once all of that is answered."""
    # The person may go on talking.
    acknowledged, deadline = set(person.acknowledged), time.monotonic() + SECONDS
    while True:
        try:
            records = _read_all(machines, person.home)
            turns = {record["turn"] for record in records if record["text"] in acknowledged}
            answers = Counter(r["turn"] for r in records if r["role"] == "assistant" and not r["tool_calls"])
            # What was accepted while a disk was full may wait for its place in the log.
            is_whole = acknowledged <= {record["text"] for record in records} and turns <= answers.keys()
            if is_whole or time.monotonic() > deadline:
                break
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                return [f"{person.home} did not answer"]
        time.sleep(1.0)
    said = Counter(str(record["text"]) for record in records if record["role"] == "user")
    lost = [f"{person.home} lost: {text}" for text in sorted(acknowledged - said.keys())]
    lost += [f"{person.home} has twice: {text}" for text, count in said.items() if count > 1]
    lost += [f"{person.home} did not answer in turn {turn}" for turn in turns - answers.keys()]
    return lost + [f"{person.home} answered twice in turn {turn}" for turn, count in answers.items() if count > 1]


def _read_all(machines: Machines, home: str) -> list[dict[str, object]]:
    records: list[dict[str, object]] = []
    with machines.client(home) as client:
        while True:
            given = {"limit": str(_PAGE)} | ({"before": str(records[0]["id"])} if records else {})
            page = client.get("/v1/messages", params=given).raise_for_status().json()["messages"]
            if not page:
                return records
            records = page + records
