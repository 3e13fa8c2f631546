"""The service managers that can run the daemon: systemd (of a user or of the system) and launchd.

Each is spoken to by its own program; `Run` carries a command out, so that what is said can be looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assistant.core.errors import AssistantError

_BOOTED = Path("/run/systemd/system")
_SHOWN = ("LoadState", "ActiveState", "SubState", "MainPID", "NRestarts", "Result", "StatusText", "UnitFileState")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended."""

    returncode: int
    out: str = ""
    err: str = ""


CommandRunner = Callable[[Sequence[str]], ProcessResult]


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """How a service is, as its manager tells: `pid` is 0 where nothing runs; `detail` is in the manager's words."""

    running: bool
    pid: int
    detail: str
    restarts: int = 0


class ServiceManager(Protocol):
    """`hint` is what a person may want to know after an install, or ""."""

    @property
    def name(self) -> str: ...

    def enable(self, file: Path) -> None:
        """Take in a file that was written, and start it with the machine (or the user) from now on."""
        ...

    def disable(self, file: Path) -> None:
        """End it, remove the file, and forget it."""
        ...

    def start(self, file: Path) -> None: ...
    def stop(self) -> None: ...
    def restart(self, file: Path) -> None: ...
    def read_status(self) -> ServiceStatus: ...
    def logs(self, lines: int, follow: bool) -> list[str]:
        """The command that shows what the service said."""
        ...

    def hint(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Systemd:
    """`unit` is a name without ".service"."""

    unit: str
    system: bool
    run: CommandRunner

    @property
    def name(self) -> str:
        return "systemd" if self.system else "systemd, user"

    def enable(self, file: Path) -> None:
        self._ask("daemon-reload")
        self._ask("enable", self.unit)

    def disable(self, file: Path) -> None:
        self._ask("disable", "--now", self.unit)
        file.unlink(missing_ok=True)
        self._ask("daemon-reload")

    def start(self, file: Path) -> None:
        self._ask("start", self.unit)

    def stop(self) -> None:
        self._ask("stop", self.unit)

    def restart(self, file: Path) -> None:
        self._ask("restart", self.unit)

    def read_status(self) -> ServiceStatus:
        shown = _pairs(self._ask("show", f"--property={','.join(_SHOWN)}", self.unit).out)
        state = shown.get("ActiveState", "unknown")
        words = [f"{state} ({shown.get('SubState', '')})"]
        if shown.get("MainPID", "0") != "0":
            words.append(shown.get("StatusText", ""))
        if shown.get("Result", "success") != "success":
            words.append(f"last result: {shown['Result']}")
        return ServiceStatus(
            state in ("active", "reloading"),
            int(shown.get("MainPID") or 0),
            "; ".join(word for word in words if word),
            int(shown.get("NRestarts") or 0),
        )

    def logs(self, lines: int, follow: bool) -> list[str]:
        whose = "--unit" if self.system else "--user-unit"
        return ["journalctl", whose, self.unit, "--lines", str(lines), *(["--follow"] if follow else ["--no-pager"])]

    def hint(self) -> str:
        if self.system:
            return ""
        shown = self.run(["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"])
        if shown.returncode == 0 and shown.out.strip() == "yes":
            return ""
        return "It runs while you are logged in. `loginctl enable-linger` lets it start with the machine."

    def _ask(self, *words: str) -> ProcessResult:
        return _asked(self.run, ["systemctl", *([] if self.system else ["--user"]), *words])


@dataclass(frozen=True, slots=True)
class Launchd:
    """`label` names the agent; `log` is the file where launchd puts what it says."""

    label: str
    log: Path
    run: CommandRunner

    @property
    def name(self) -> str:
        return "launchd"

    def enable(self, file: Path) -> None:
        """It begins with the next login, or by `start`."""
        self._ask("enable", self._target)

    def disable(self, file: Path) -> None:
        self._let_go()
        file.unlink(missing_ok=True)

    def start(self, file: Path) -> None:
        if not self._is_loaded():
            self._ask("bootstrap", self._domain, str(file))
        self._ask("kickstart", self._target)

    def stop(self) -> None:
        if self.read_status().running:
            self._ask("kill", "SIGTERM", self._target)

    def restart(self, file: Path) -> None:
        """launchd reads an agent's file only when it takes it in."""
        self._let_go()
        self.start(file)

    def read_status(self) -> ServiceStatus:
        printed = self.run(["launchctl", "print", self._target])
        if printed.returncode:
            return ServiceStatus(False, 0, "not loaded")
        shown = _pairs(printed.out, " = ")
        return ServiceStatus(shown.get("state") == "running", int(shown.get("pid") or 0), shown.get("state", "unknown"))

    def logs(self, lines: int, follow: bool) -> list[str]:
        return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(self.log)]

    def hint(self) -> str:
        return ""

    def _let_go(self) -> None:
        if self._is_loaded():
            self._ask("bootout", self._target)

    def _is_loaded(self) -> bool:
        return self.run(["launchctl", "print", self._target]).returncode == 0

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    @property
    def _target(self) -> str:
        return f"{self._domain}/{self.label}"

    def _ask(self, *words: str) -> ProcessResult:
        return _asked(self.run, ["launchctl", *words])


def detect_service_manager(*, booted: Path = _BOOTED, platform: str = sys.platform) -> str:
    """ "systemd" or "launchd", whichever runs this machine; "" where neither does, as in most containers."""
    if platform == "darwin":
        return "launchd" if shutil.which("launchctl") else ""
    return "systemd" if booted.is_dir() and shutil.which("systemctl") else ""


def run_subprocess(words: Sequence[str]) -> ProcessResult:
    """Carry a command out and keep what it said."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    return ProcessResult(done.returncode, done.stdout, done.stderr)


def _asked(run: CommandRunner, words: Sequence[str]) -> ProcessResult:
    done = run(words)
    if done.returncode:
        why = (done.err or done.out).strip().splitlines() or [f"exit code {done.returncode}"]
        raise AssistantError(f"`{' '.join(words)}` failed: {why[0]}. `assistant service logs` may say more.")
    return done


def _pairs(text: str, between: str = "=") -> Mapping[str, str]:
    pairs = (line.strip().partition(between) for line in text.splitlines())
    first: dict[str, str] = {}
    for name, sign, value in pairs:
        if sign:
            # What comes first is the service's own; launchd describes its surroundings after.
            first.setdefault(name, value)
    return first
