"""The notification protocol, with a socket that listens as a service manager does."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path

import pytest

from assistant.service.heartbeat import SystemdNotifier, stopping_message
from assistant.settings.home import NotifyTarget, notify_target_from_environment


def bound(address: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.bind(address)
    listening.setblocking(False)
    return listening


def test_a_manager_at_a_path_hears_each_line(tmp_path: Path) -> None:
    with bound(str(tmp_path / "notify")) as manager:
        assert SystemdNotifier(str(tmp_path / "notify")).notify(READY="1", STATUS="Serves.")
        assert manager.recv(4096) == b"READY=1\nSTATUS=Serves."


def test_a_manager_in_the_abstract_namespace_hears_too() -> None:
    name = f"nocturne-{uuid.uuid4()}"
    with bound(f"\0{name}") as manager:
        assert SystemdNotifier(f"@{name}").notify(WATCHDOG="1")
        assert manager.recv(4096) == b"WATCHDOG=1"


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1234", "/nowhere/at/all"])
def test_nobody_who_hears_is_no_trouble(address: str) -> None:
    assert not SystemdNotifier(address).notify(READY="1")


def test_a_status_cannot_pass_for_another_message(tmp_path: Path) -> None:
    with bound(str(tmp_path / "notify")) as manager:
        assert SystemdNotifier(str(tmp_path / "notify")).notify(STATUS="one\nREADY=1")
        assert manager.recv(4096) == b"STATUS=one READY=1"


def test_a_manager_that_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    with bound(str(tmp_path / "notify")) as manager:
        notifier = SystemdNotifier(str(tmp_path / "notify"))
        while notifier.notify(STATUS="x" * 200):
            pass
        assert manager.recv(4096)


def test_the_end_asks_for_the_time_that_it_takes() -> None:
    said = stopping_message(12.5)
    assert said["STOPPING"] == "1"
    assert said["EXTEND_TIMEOUT_USEC"] == "12500000"


def test_what_the_manager_said_is_taken_from_the_environment_so_that_no_child_speaks_for_the_daemon() -> None:
    environ = {"NOTIFY_SOCKET": "@here", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "7", "PATH": "/bin"}
    assert notify_target_from_environment(environ, pid=7) == NotifyTarget("@here", 3.0)
    assert environ == {"PATH": "/bin"}
    assert notify_target_from_environment(environ) == NotifyTarget()


@pytest.mark.parametrize(
    "environ", [{"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "8"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "-1"}]
)
def test_a_watchdog_that_waits_for_another_process_is_not_ours(environ: dict[str, str]) -> None:
    assert notify_target_from_environment(environ, pid=7).watchdog_seconds == 0


def test_a_watchdog_without_a_process_waits_for_this_one() -> None:
    mine = {"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
    assert notify_target_from_environment(mine).watchdog_seconds == 3.0
    assert notify_target_from_environment({"WATCHDOG_USEC": "3000000"}).watchdog_seconds == 3.0
