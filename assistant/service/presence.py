"""Determines whether the assistant will be running later: a daemon serves now, or a service manager starts one.

A service is detected by its file, without asking the manager: an enabled systemd unit, or a launchd agent, that names
the data folder.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from platformdirs import user_config_path

from assistant.service.home_lock import is_home_served, lock_role
from assistant.service.unit_files import quote_unit_word

_BOOTED = Path("/run/systemd/system")


def detect_service_manager(*, booted: Path = _BOOTED, platform: str = sys.platform) -> str:
    """Return "systemd" or "launchd"; "" if neither manages this machine, as in most containers."""
    if platform == "darwin":
        return "launchd" if shutil.which("launchctl") else ""
    return "systemd" if booted.is_dir() and shutil.which("systemctl") else ""


def advise_to_stay(manager: str | None = None) -> str:
    """Return a sentence on how to keep the assistant running; `manager` is that of this machine, "" for none."""
    if detect_service_manager() if manager is None else manager:
        return "`assistant service install` keeps it running."
    return (
        "`assistant run` keeps it running while you leave it open; to keep it running always, let this machine or "
        "container start that command."
    )


def will_stay(home: Path) -> bool:
    """Return whether something will serve the data folder after the person has left: not a chat or a command."""
    return (is_home_served(home) and lock_role(home) == "daemon") or is_service_enabled(home)


def is_service_enabled(home: Path) -> bool:
    """Return whether a systemd unit or launchd agent, of the user or the system, names this data folder."""
    # Both file formats contain the folder in their own quoting.
    names = (quote_unit_word(f"ASSISTANT_HOME={home}").encode(), f"<string>{home}</string>".encode())
    for file in _service_files():
        with contextlib.suppress(OSError):
            content = file.read_bytes()
            if any(name in content for name in names):
                return True
    return False


def _service_files() -> Iterator[Path]:
    yield from Path("/etc/systemd/system").glob("*.wants/*.service")
    # An account without a home directory has no service of its own.
    with contextlib.suppress(RuntimeError):
        yield from (user_config_path("systemd") / "user").glob("*.wants/*.service")
        yield from (Path.home() / "Library" / "LaunchAgents").glob("*.plist")
