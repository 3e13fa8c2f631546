"""Two hosts of a fleet, in processes of their own, and what becomes of a home when one of them is lost, or drained."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from socket import create_server
from typing import Any

import httpx
import pytest

from assistant.service.home_lock import lock_holder
from tests.strict.telegram_people import OWNER
from tests.support.command_line import (
    TIMEOUT_SECONDS,
    FinishedCommand,
    command_environment,
    run_assistant,
    run_in_process,
)
from tests.support.postgres import PostgresPair, run_postgres_pair
from tests.support.telegram_bridge import ThreadedTelegram
from tests.support.web_api import make_certificate
from tests.support.writer import Writer

TOKEN = "a token of the fleet in this test"


@pytest.fixture(scope="module")
def pair() -> Iterator[PostgresPair]:
    with run_postgres_pair() as servers:
        yield servers


@pytest.fixture
def telegram() -> Iterator[ThreadedTelegram]:
    with ThreadedTelegram() as server:
        yield server


class HostProcess:
    """`assistant fleet host`, with a process group of its own."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process, self.folder = process, folder

    def wait_for(self, words: str) -> None:
        """Until it, or one of its homes, says something on standard error."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if words in line:
                return
        pytest.fail(f"{self.folder.name} ended without saying {words!r}")

    def lose(self) -> None:
        """The machine loses its power."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(TIMEOUT_SECONDS)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(TIMEOUT_SECONDS)


class Fleet:
    """The machines of a test, below one folder, and the commands of somebody who operates them."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = {
            "ASSISTANT_REPLICA__URL": url,
            "ASSISTANT_REPLICA__TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
            "ASSISTANT_WEB__TOKEN": TOKEN,
        }
        self.run("init")
        self.run("add", "alice")

    def run(self, *words: str) -> FinishedCommand:
        return run_in_process(self.folder / "operator", "fleet", *words, **self.settings)

    def state_of(self, home: str) -> dict[str, Any]:
        homes = json.loads(self.run("status", "--json").out)["homes"]
        return next(found for found in homes if found["home"] == home)

    def said(self, host: str, *words: str) -> FinishedCommand:
        """A command in the data folder of alice on a host."""
        return run_in_process(self.folder / host / "alice", *words, **self.settings)

    def read_log(self, host: str) -> str:
        """What was said to alice, once all of it was answered."""
        asked = run_assistant(
            self.folder / host / "alice", "chat", "-m", "how many parcels are there?", **self.settings
        )
        assert asked.returncode == 0, asked.err
        return self.said(host, "log", "--json", "--limit", "100000").out

    def host(self, name: str, *more: str) -> AbstractContextManager[HostProcess]:
        words = ("--name", name, "--folder", str(self.folder / name), "--domain", "example.org", *more)
        return self._start("host", *words, "--listen", f"127.0.0.1:{_free_port()}", ready="runs homes of the fleet")

    @contextmanager
    def router(self, *more: str) -> Iterator[Callable[[str], httpx.Client]]:
        """Makes clients of homes."""
        address = f"127.0.0.1:{_free_port()}"
        words = ("--listen", address, "--wait", str(TIMEOUT_SECONDS), *more)
        with self._start("route", *words, ready="listens") as router:
            yield lambda home: httpx.Client(
                base_url=f"http://{address}",
                headers={"Host": f"{home}.example.org", "Authorization": f"Bearer {TOKEN}"},
                timeout=TIMEOUT_SECONDS,
            )
            assert router.stop() == 0

    @contextmanager
    def _start(self, *words: str, ready: str) -> Iterator[HostProcess]:
        with subprocess.Popen(
            [sys.executable, "-m", "assistant.cli.main", "fleet", *words],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=command_environment(self.folder / "operator", **self.settings),
            start_new_session=True,
        ) as process:
            running = HostProcess(process, self.folder / words[2])
            try:
                running.wait_for(ready)
                yield running
            finally:
                if process.poll() is None:
                    running.lose()


def _free_port() -> int:
    with create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.timeout(300)
def test_a_machine_is_lost_and_another_host_has_all_that_was_acknowledged(tmp_path: Path, pair: PostgresPair) -> None:
    fleet = Fleet(tmp_path, pair.new_database())
    with fleet.host("m1") as first:
        first.wait_for("assistant chat")
        with fleet.host("m2") as second:
            writer = Writer(first.folder / "alice", limit=25, repeats=True)
            writer.start()
            while not writer.has_enough:
                writer.join(0.01)
                assert writer.is_alive()
            assert fleet.state_of("alice")["host"] == "m1"
            first.lose()
            writer.join(TIMEOUT_SECONDS)
            second.wait_for("took a home")
            second.wait_for("assistant chat")
            state = fleet.state_of("alice")
            assert (state["host"], state["is_held"], state["epoch"]) == ("m2", True, 2)
            page = httpx.get(f"http://{state['address']}/healthz", timeout=TIMEOUT_SECONDS)
            assert page.status_code == 200
            log = fleet.read_log("m2")
            assert [text for text in writer.acknowledged if text not in log] == []
            assert second.stop() == 0
            # It released what it had: nobody waits for the lease.
            status = fleet.run("status").out
            assert "NO HOST has it; m2 had it last" in status and "Host m2" not in status
            assert fleet.said("m2", "verify").returncode == 0
            # The lost machine comes back with an old folder, which is replaced.
            with fleet.host("m1") as again:
                again.wait_for("restores a home")
                again.wait_for("assistant chat")
                assert fleet.state_of("alice")["epoch"] == 3
                assert (again.folder / ".before" / "alice" / "script.db").exists()
                _check_quotas(fleet, again)


@pytest.mark.timeout(300)
def test_a_home_moves_and_a_host_that_was_frozen_acknowledges_nothing_any_more(
    tmp_path: Path, pair: PostgresPair
) -> None:
    fleet = Fleet(tmp_path, pair.new_database())
    with fleet.host("m1") as first:
        first.wait_for("assistant chat")
        _check_that_it_sees_its_own_folder_only(first)
        _keys(first).parent.mkdir(parents=True)
        _keys(first).write_text("old")
        assert _say(first, "said on m1") == 202
        with fleet.host("m2") as second, fleet.router() as client_of:
            with client_of("bob") as client:
                assert client.get("/healthz").status_code == 404
            with client_of("alice") as client:
                assert len(client.get("/healthz").headers.get_list("date")) == 1
            with client_of("alice") as client, client.stream("GET", "/v1/events") as events:
                # What the home sends as it happens is passed on as it comes.
                assert _say(first, "said beside the router") == 202
                assert next(line for line in events.iter_lines() if line.startswith("data:"))
            writer = Writer(first.folder / "alice", 3, client_of("Alice"))
            writer.start()
            assert fleet.run("move", "alice", "m2").out == "alice moves to m2.\n"
            first.wait_for("released a home")
            second.wait_for("assistant chat")
            assert _keys(second).read_text() == "old"
            _keys(second).write_text("new")
            assert _say(second, "said on m2") == 202
            assert fleet.state_of("alice")["epoch"] == 2
            assert fleet.run("drain", "m2").out == "1 home of m2 moves to the others.\n"
            first.wait_for("assistant chat")
            assert _keys(first).read_text() == "new"
            assert _say(first, "said on m1 again") == 202
            assert "Host m2 (127.0.0.1): 0 homes; takes no more." in fleet.run("status").out
            assert fleet.run("drain", "m1").returncode == 2
            # Whoever wrote meanwhile saw no error.
            assert writer.is_alive()
            acknowledged = writer.leave()
            assert second.stop() == 0
        with fleet.host("m2") as second:
            os.killpg(first.process.pid, signal.SIGSTOP)
            second.wait_for("assistant chat")
            os.killpg(first.process.pid, signal.SIGCONT)
            assert _say(first, "said to a zombie") != 202
            first.wait_for("the lease of a home was lost")
            assert _say(second, "said on m2 again") == 202
            log = fleet.read_log("m2")
            said = [*acknowledged, "said on m1", "said on m2", "said on m1 again", "said on m2 again"]
            assert [text for text in said if text not in log] == []
            assert "zombie" not in log and fleet.said("m2", "verify").returncode == 0
            assert fleet.run("remove", "alice").returncode == 0
            second.wait_for("the lease of a home was lost")
            assert second.stop() == 0


@pytest.mark.timeout(300)
def test_a_home_that_nobody_needs_is_stopped_and_woken_for_a_reminder_and_for_a_message(
    tmp_path: Path, pair: PostgresPair, telegram: ThreadedTelegram
) -> None:
    fleet = Fleet(tmp_path, pair.new_database())
    of_telegram = {"ASSISTANT_TELEGRAM__TOKEN": telegram.token, "ASSISTANT_TELEGRAM__BASE_URL": telegram.url}
    of_telegram["ASSISTANT_TELEGRAM__ENABLED"] = "true"
    linked = run_in_process(tmp_path / "m1" / "alice", "people", "link", "telegram", str(OWNER), **of_telegram)
    assert linked.returncode == 0, linked.err
    fleet.settings |= of_telegram
    made, key = map(str, make_certificate(tmp_path, "m1"))
    fleet.settings |= {"ASSISTANT_SLEEP__NAP_MINUTES": "0", "ASSISTANT_SLEEP__AT": ""}
    fleet.settings |= {"ASSISTANT_WEB__CERTIFICATE": made, "ASSISTANT_WEB__CERTIFICATE_KEY": key}
    with (
        fleet.host("m1", "--idle", "0.02", "--poll", "3") as host,
        fleet.router("--ca", made) as client_of,
        client_of("alice") as client,
    ):
        # Nobody has said anything: it is stopped, and the first request starts it again.
        host.wait_for("released a home")
        assert fleet.state_of("alice")["asleep_until"] and fleet.run("status").returncode == 0
        assert "alice: sleeps until" in fleet.run("status").out
        text = "remind me in 1 minute to water the fern"
        assert client.post("/v1/messages", json={"text": text, "external_id": "1"}).status_code == 202
        host.wait_for("took a home")
        host.wait_for("released a home")
        asleep = fleet.state_of("alice")["asleep_until"]
        # It wakes by itself, in time.
        host.wait_for("took a home")
        assert asleep is None or datetime.fromisoformat(asleep) < datetime.now(UTC)
        host.wait_for("released a home")
        assert fleet.said("m1", "verify").returncode == 0
        history = client.get("/v1/messages?session=main").text
        assert "Reminder: water the fern" in history and "late" not in history
        host.wait_for("released a home")
        # What somebody writes to it on Telegram waits there until its host asks, and is answered once.
        before = len(telegram.texts())
        telegram.say("what time is it?")
        assert len(telegram.wait_until(lambda texts: len(texts) > before)) == before + 1
        host.wait_for("released a home")
        history = fleet.said("m1", "log", "--json", "--limit", "1000").out
        assert history.count("what time is it?") == 1 and len(telegram.texts()) == before + 1
        assert host.stop() == 0


def _check_quotas(fleet: Fleet, host: HostProcess) -> None:
    """They hold as soon as they are set; a home whose folder is too large is stopped until it may be larger."""
    assert fleet.run("set", "alice", "--memory", "3000", "--spending", "3").returncode == 0
    host.wait_for("assistant chat")
    process = lock_holder(host.folder / "alice")
    assert process is not None
    assert resource.prlimit(process, resource.RLIMIT_DATA) == (3_000_000_000, 3_000_000_000)
    numbers = httpx.get(
        f"http://{fleet.state_of('alice')['address']}/metrics",
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=TIMEOUT_SECONDS,
    )
    assert 'nocturne_budget_usd{period="month"} 3.0' in numbers.text
    assert fleet.run("set", "alice", "--disk", "1").returncode == 0
    host.wait_for("released a home")
    assert "alice: STOPPED, since its folder has" in fleet.run("status").out
    assert fleet.run("set", "alice", "--disk", "500").returncode == 0
    host.wait_for("assistant chat")
    metrics = fleet.run("status", "--metrics").out
    assert 'nocturne_fleet_home_disk_limit_bytes{home="alice"} 5e+08' in metrics
    assert 'nocturne_fleet_homes{state="runs"} 1.0' in metrics


def _check_that_it_sees_its_own_folder_only(host: HostProcess) -> None:
    """And nothing of the host's memory and environment, which has what all homes share and more."""
    (host.folder / "bob").mkdir()
    (host.folder / "bob" / "diary").write_text("secret")

    def tried_within(*command: str | Path) -> subprocess.CompletedProcess[str]:
        inside = ("nsenter", "--user", "--mount", "--preserve-credentials", "--target")
        home = str(lock_holder(host.folder / "alice"))
        return subprocess.run([*inside, home, *command], capture_output=True, text=True, check=False, timeout=60)

    assert tried_within("ls", host.folder).stdout == "alice\n"
    assert tried_within("ls", host.folder / "alice" / "script.db").returncode == 0
    environment = Path("/proc", str(host.process.pid), "environ")
    assert environment.read_bytes()
    for path in (host.folder / "bob" / "diary", environment, environment.with_name("root") / "etc"):
        refused = tried_within("ls" if path.name == "etc" else "cat", path)
        assert refused.returncode and not refused.stdout


def _keys(host: HostProcess) -> Path:
    """A file of a bridge, which is restored beside the data folder's own."""
    return host.folder / "alice" / "bridges" / "matrix" / "keys"


def _say(host: HostProcess, text: str) -> int:
    """Say something to alice on this machine; return the status of the answer, 0 if there was none."""
    transport = httpx.HTTPTransport(uds=str(host.folder / "alice" / "run" / "control.sock"))
    with httpx.Client(transport=transport, base_url="http://home", timeout=TIMEOUT_SECONDS) as client:
        try:
            return client.post("/v1/messages", json={"text": text, "external_id": text}).status_code
        except httpx.TransportError:
            return 0
