"""The daemon's own process under a service manager: ready, alive, wedged, ended."""

from __future__ import annotations

import asyncio
import fcntl
import json
import signal
import socket
from pathlib import Path

from assistant.cli.daemon_link import open_daemon_link
from assistant.core.shutdown import service_manager_timeout
from assistant.settings.home import Home
from tests.support.command_line import run_in_process
from tests.support.service_manager import run_supervised_daemon

# Where SQLite's readers and writers lock the memory that they share: eight bytes of script.db-shm.
_LOCKS = (120, 8)


def say(home: Path, text: str) -> None:
    """Accepted when this returns; nobody waits for the answer."""

    async def over_the_socket() -> None:
        async with open_daemon_link(Home(home)) as link:
            await link.send_message(text, "once", "main")

    asyncio.run(over_the_socket())


def said(home: Path, text: str) -> list[dict[str, object]]:
    lines = run_in_process(home, "log", "--json", "--grep", text).out.splitlines()
    return [json.loads(line) for line in lines]


def test_f38_a_service_says_that_it_is_ready_that_it_lives_and_that_it_ends_and_ends_in_time(tmp_path: Path) -> None:
    with run_supervised_daemon(tmp_path / "home") as daemon:
        heard = daemon.wait_for_line("WATCHDOG=1") + daemon.wait_for_line("WATCHDOG=1")
        assert f"STATUS=Serves {tmp_path / 'home'}." in heard
        daemon.process.send_signal(signal.SIGTERM)
        assert any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in daemon.wait_for_line("STOPPING=1"))
        assert daemon.process.wait(service_manager_timeout(20)) == 0


def test_f40_a_daemon_whose_store_is_held_by_another_is_silent_is_killed_and_loses_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as never_answers:
        address = f"http://127.0.0.1:{never_answers.getsockname()[1]}/v1"
        with run_supervised_daemon(home, OPENAI_BASE_URL=address, ASSISTANT_MODEL__NAME="slow") as daemon:
            say(home, "remember that the lamp is green")
            daemon.wait_for_line("WATCHDOG=1")
            with (home / "script.db-shm").open("r+b") as shared:
                fcntl.lockf(shared, fcntl.LOCK_EX, _LOCKS[1], _LOCKS[0])
                daemon.wait_until_silent()
                log = daemon.kill_like_watchdog()
            assert daemon.process.returncode == -signal.SIGABRT
            assert "database.py" in log
    # The next start, in this process: what was accepted is answered before anything else.
    asked = run_in_process(home, "chat", "-m", "what colour is the lamp?")
    assert asked.returncode == 0
    assert "green" in asked.out
    assert next(line["role"] for line in said(home, "lamp is green")) == "user"
    # Neither lost nor taken up twice: what was accepted before the end has one place in the log.
    everything = [json.loads(line) for line in run_in_process(home, "log", "--json").out.splitlines()]
    asked_for = [line["content"] for line in everything if line["role"] == "user"]
    assert asked_for == ["remember that the lamp is green", "what colour is the lamp?"]
    assert json.loads(run_in_process(home, "status", "--json").out)["waiting"] == 0
