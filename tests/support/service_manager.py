"""A service manager to the daemon, as systemd is one: it listens, it waits for the watchdog, it ends what is silent."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.command_line import TIMEOUT_SECONDS, command_environment
from tests.support.forked_command import ForkedCommand

# The daemon beats four times within it: slow machines still make it, and a test of silence is soon over.
WATCHDOG_SECONDS = 1.5

_DEAD = "DEAD=1"


@dataclass
class SupervisedDaemon:
    """`assistant run` as a service."""

    process: subprocess.Popen[bytes]
    listening: socket.socket

    def wait_for_line(self, word: str, seconds: float = TIMEOUT_SECONDS) -> list[str]:
        """What it says until a message has this line, in the order it came. Raises `TimeoutError`."""
        heard: list[str] = []
        self.listening.settimeout(seconds)
        while word not in heard:
            heard += self.listening.recv(4096).decode().splitlines()
            assert _DEAD not in heard, self.exit_log()
        return heard

    def wait_until_silent(self) -> None:
        """Wait until the watchdog is not fed for its whole time."""
        with contextlib.suppress(TimeoutError):
            while True:
                self.wait_for_line("WATCHDOG=1", WATCHDOG_SECONDS)

    def kill_like_watchdog(self) -> str:
        """End it, and return what it said to its log."""
        self.process.send_signal(signal.SIGABRT)
        return self.exit_log()

    def exit_log(self) -> str:
        return self.process.communicate(timeout=TIMEOUT_SECONDS)[1].decode()


@contextmanager
def run_supervised_daemon(home: Path, **settings: str) -> Iterator[SupervisedDaemon]:
    """Started, and ready as it told itself; killed at the end if it still runs."""
    address = home.parent / "notify"
    address.unlink(missing_ok=True)
    told = {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1e6))}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(address))
        with ForkedCommand(
            ["run"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=command_environment(home, **told, **settings),
        ) as process:
            running = SupervisedDaemon(process, listening)
            threading.Thread(target=_mourn, args=(process, str(address)), daemon=True).start()
            try:
                running.wait_for_line("READY=1")
                yield running
            finally:
                if process.poll() is None:
                    process.kill()


def _mourn(process: subprocess.Popen[bytes], address: str) -> None:
    """Tell the listener of a death, so that nobody waits for what the dead have to say."""
    process.wait()
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaking:
        speaking.sendto(_DEAD.encode(), address)
