"""Messages to the service manager that started the daemon (systemd's notification protocol).

Each message is one datagram to the socket that the manager named: a path, or "@" and a name in the abstract namespace.
Sending never waits for long and never fails: a manager that does not listen is ignored.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

READY = "READY"
STOPPING = "STOPPING"
STATUS = "STATUS"
WATCHDOG = "WATCHDOG"
EXTEND_TIMEOUT = "EXTEND_TIMEOUT_USEC"

# Longest that the manager's queue may be full.
_SECONDS = 0.5
_LONGEST_STATUS = 300


class SystemdNotifier:
    """Sends to one manager; with "" as address, nothing. May be used from any thread."""

    def __init__(self, address: str = "") -> None:
        self._address = _address(address)

    def notify(self, **values: str) -> bool:
        """Send one message, such as `READY="1"`; whether the manager has it."""
        if not self._address:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
                client.settimeout(_SECONDS)
                client.sendto(encode_message(values), self._address)
        except OSError:
            return False
        return True


def stopping_message(seconds: float) -> dict[str, str]:
    """Stopping takes `seconds` at most, also where the setting grew after the unit was written."""
    return {
        STOPPING: "1",
        STATUS: "Stopping: running turns are finished.",
        EXTEND_TIMEOUT: format_microseconds(seconds),
    }


def encode_message(values: Mapping[str, str]) -> bytes:
    """One datagram: a line a name."""
    return "\n".join(f"{name}={_on_a_line(value)}" for name, value in values.items()).encode("utf-8", "replace")


def format_microseconds(seconds: float) -> str:
    return str(round(seconds * 1_000_000))


def _on_a_line(value: str) -> str:
    return " ".join(value.split())[:_LONGEST_STATUS]


def _address(address: str) -> str:
    """As the kernel wants it; "" for one that is neither a path nor an abstract name."""
    if address.startswith("@"):
        return "\0" + address[1:]
    return address if address.startswith("/") else ""
