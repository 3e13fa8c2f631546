"""A fleet on this machine: two PostgreSQL servers, hosts and a router in processes of their own, and what may become of
each.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from socket import create_server
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tests.fleet.clock import shifted_clock
from tests.fleet.disks import can_mount, small_disk
from tests.support.command_line import FinishedCommand, command_environment, run_in_process
from tests.support.postgres import PostgresPair, run_postgres_pair
from tests.support.wire import WireThread

ROUTERS = ("router", "router2")
TOKEN = "a token of this fleet"
SECONDS = 180.0  # for anything that must happen; a lease lasts 15
_LOOK_EVERY = 0.2


class Machine:
    """A process group: a host with its homes, or a router."""

    def __init__(self, words: tuple[str, ...], environment: dict[str, str], log: Path) -> None:
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "assistant.cli.main", "fleet", *words],
                stdin=subprocess.DEVNULL,
                stderr=said,
                env=environment,
                start_new_session=True,
            )

    def send(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)

    def lose(self) -> None:
        """The machine loses its power."""
        self.send(signal.SIGKILL)
        self.process.wait(SECONDS)

    def stop(self) -> None:
        """Homes are stopped and given up."""
        self.process.terminate()
        try:
            self.process.wait(SECONDS)
        finally:
            if self.process.poll() is None:
                self.lose()


class Machines:
    """The machines, by their names, and the commands of who operates them."""

    def __init__(self, folder: Path, pair: PostgresPair, homes: int, *, wired: bool = True) -> None:
        """`wired`: what reaches PostgreSQL goes through wires that can be cut."""
        self.folder, self.pair, self._wired = folder, pair, wired
        self.homes = [f"home{number}" for number in range(1, homes + 1)]
        self._seconds = SECONDS + 5 * homes
        self.settings: dict[str, Any] = {
            "ASSISTANT_REPLICA__URL": pair.new_database(),
            "ASSISTANT_REPLICA__TIMEOUT_SECONDS": "10",
            "ASSISTANT_WEB__TOKEN": TOKEN,
            "ASSISTANT_LOG__LEVEL": "warning",
            # Nothing but what people say: the nights of all homes would begin at once.
            "ASSISTANT_SLEEP__AT": "",
            "ASSISTANT_SLEEP__NAP_MINUTES": "0",
            "ASSISTANT_BACKUP__AT": "",
        }
        self.running: dict[str, Machine] = {}
        self.wires: dict[str, WireThread] = {}  # between a host and the servers
        self.router_addresses = {name: f"127.0.0.1:{_free_port()}" for name in ROUTERS}
        self.run("init")
        for home in self.homes:
            self.run("add", home)

    def run(self, *words: str) -> FinishedCommand:
        return run_in_process(self.folder / "operator", "fleet", *words, **self.settings)

    def start(self, name: str, *options: str, clock: int = 0) -> None:
        """Start a host, or a router. `clock`: by how many seconds its clock is wrong."""
        words: tuple[str, ...] = ("route", "--listen", self.router_addresses.get(name, ""))
        if name not in ROUTERS:
            port = 20_000 + 1_000 * int(name.removeprefix("m")) + os.getpid() % 1_000
            words = ("host", "--name", name, "--folder", str(self.folder / name), "--domain", "example.org")
            words += ("--listen", f"127.0.0.1:{port}")
        more = shifted_clock(self.folder, clock) if clock else {}
        if self._wired:
            more["ASSISTANT_REPLICA__URL"] = self._url_through_wires(name)
        environment = command_environment(self.folder / "operator", **{**self.settings, **more})
        self.running[name] = Machine((*words, *options), environment, self.folder / f"{name}.log")

    def _url_through_wires(self, name: str) -> str:
        servers = [self.pair.primary.socket, self.pair.standby.socket]
        if name not in self.wires:
            self.wires[name] = WireThread(self.folder / f"wires-{name}", sorted(servers))
        url: str = self.settings["ASSISTANT_REPLICA__URL"]
        for server, socket in zip(sorted(servers), self.wires[name].sockets, strict=True):
            url = url.replace(str(server), str(socket))
        return url

    def lose(self, name: str) -> None:
        self.running.pop(name).lose()

    def stop(self) -> None:
        for name in sorted(self.running, reverse=True):
            self.running[name].process.terminate()
        for name in sorted(self.running, reverse=True):
            self.running.pop(name).stop()

    def client(self, home: str, router: str = "router") -> httpx.Client:
        """Somebody who comes through a router."""
        headers = {"Host": f"{home}.example.org", "Authorization": f"Bearer {TOKEN}"}
        return httpx.Client(base_url=f"http://{self.router_addresses[router]}", headers=headers, timeout=45.0)

    def places(self) -> dict[str, str]:
        """The host that had each home last, by home."""
        report = json.loads(self.run("status", "--json").out)
        return {home["home"]: home["host"] for home in report["homes"]}

    def find_other_host(self, name: str) -> str:
        return next(other for other in sorted(self.running) if other not in {*ROUTERS, name})

    def wait_until_held(self, without: str = "") -> None:
        """Until hosts have all homes, and the lost host `without` none."""
        deadline = time.monotonic() + self._seconds
        while self.run("status").returncode or without in self.places().values():
            assert time.monotonic() < deadline, self.run("status").out
            time.sleep(_LOOK_EVERY)

    def wait_until_alive(self, name: str) -> None:
        """Until a host takes homes."""
        deadline = time.monotonic() + SECONDS
        while name not in (
            host["host"] for host in json.loads(self.run("status", "--json").out)["hosts"] if host["is_alive"]
        ):
            assert time.monotonic() < deadline, self.run("status").out
            time.sleep(_LOOK_EVERY)

    def wait_until_answered(self) -> None:
        """Until each home answers through the router."""
        for home in self.homes:
            with self.client(home) as client:
                deadline = time.monotonic() + SECONDS
                while True:
                    with contextlib.suppress(httpx.TransportError):
                        if client.get("/healthz").status_code == 200:
                            break
                    assert time.monotonic() < deadline, f"{home} does not answer"
                    time.sleep(_LOOK_EVERY)

    def verify(self, home: str) -> str:
        """Return what `assistant verify` has against a home where it was last, "" for nothing."""
        done = run_in_process(self.folder / self.places()[home] / home, "verify", **self.settings)
        return "" if done.returncode == 0 else f"{home}: verify: {done.out}{done.err}"


@contextmanager
def run_machines(
    hosts: int, homes: int, *, small_disks: bool = False, host_options: tuple[str, ...] = ()
) -> Iterator[Machines]:
    """The fleet, with homes that answer. `small_disks`: of hosts and servers, to be filled, where that is possible."""
    disk = small_disk if small_disks and can_mount() else lambda folder: nullcontext()
    with (
        TemporaryDirectory(prefix="fleet") as folder,
        run_postgres_pair(disk=disk, connections=100 + homes) as pair,
        ExitStack() as disks,
    ):
        machines = Machines(Path(folder), pair, homes)
        for number in range(1, hosts + 1):
            (Path(folder) / f"m{number}").mkdir()
            disks.enter_context(disk(Path(folder) / f"m{number}"))
        try:
            for name in ROUTERS:
                machines.start(name)
            for number in range(1, hosts + 1):
                machines.start(f"m{number}", *host_options)
            machines.wait_until_held()
            machines.wait_until_answered()
            yield machines
        finally:
            for machine in machines.running.values():
                machine.send(signal.SIGCONT)
                machine.lose()


def _free_port() -> int:
    with create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
