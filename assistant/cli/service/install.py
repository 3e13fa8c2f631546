"""The service of this machine: its file (its program, its home, its user), writing it, taking it away; and the service
managers that can run it, systemd (of a user or of the system) and launchd, each asked by its own program.

Nothing that a person wrote is overwritten without being asked for. A file that was written by an earlier install is
brought up to date, and the difference shown. One that a person changed since is left alone unless forced, and then
kept beside the new one.
"""

from __future__ import annotations

import difflib
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import ClassVar

from platformdirs import user_config_path

from assistant.cli.output import print_remark
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, UsageError
from assistant.core.shutdown import service_manager_timeout
from assistant.service.unit_files import ServiceSpec, render_launchd_plist, render_systemd_unit, was_edited_by_hand
from assistant.settings.home import Home
from assistant.settings.layers import environment_variable
from assistant.settings.secrets import SECRET_NAMES
from assistant.settings.settings import ENVIRONMENT_VARIABLES, Settings, load_settings, shipped_config_dir

# --------------------------------------------------------------------------------------------------------- its manager

_SHOWN = "ActiveState,SubState,MainPID,NRestarts,Result,StatusText"

CommandRunner = Callable[[Sequence[str]], CompletedProcess[str]]


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """How a service is, as its manager tells: `pid` is 0 where nothing runs; `detail` is in the manager's words."""

    running: bool
    pid: int
    detail: str
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class Systemd:
    """A unit of systemd."""

    unit: str  # without ".service"
    system: bool
    run: CommandRunner

    @property
    def name(self) -> str:
        return "systemd" if self.system else "systemd, user"

    def enable(self, file: Path) -> None:
        """Take in a file that was written, and start it with the machine (or the user) from now on."""
        self._ask("daemon-reload")
        self._ask("enable", self.unit)

    def disable(self, file: Path) -> None:
        """End it, remove the file, and forget it."""
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
        shown = _pairs(self._ask("show", f"--property={_SHOWN}", self.unit).stdout)
        state, pid = shown.get("ActiveState", "unknown"), int(shown.get("MainPID") or 0)
        result = shown.get("Result", "success")
        details = [
            f"{state} ({shown.get('SubState', '')})",
            shown.get("StatusText", "") if pid else "",
            f"last result: {result}" if result != "success" else "",
        ]
        is_running = state in ("active", "reloading")
        return ServiceStatus(is_running, pid, "; ".join(filter(None, details)), int(shown.get("NRestarts") or 0))

    def logs_command(self, lines: int, follow: bool) -> list[str]:
        """The command that shows what the service said."""
        whose = "--unit" if self.system else "--user-unit"
        return ["journalctl", whose, self.unit, "--lines", str(lines), *(["--follow"] if follow else ["--no-pager"])]

    def hint(self) -> str:
        """What a person may want to know after an install, or ""."""
        if self.system:
            return ""
        shown = self.run(["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"])
        if shown.returncode == 0 and shown.stdout.strip() == "yes":
            return ""
        return "It runs while you are logged in. `loginctl enable-linger` lets it start with the machine."

    def _ask(self, *words: str) -> CompletedProcess[str]:
        return _run_checked(self.run, ["systemctl", *([] if self.system else ["--user"]), *words])


@dataclass(frozen=True, slots=True)
class Launchd:
    """An agent of launchd; the methods do what those of `Systemd` do."""

    label: str
    log: Path  # where launchd writes its output
    run: CommandRunner
    name: ClassVar[str] = "launchd"

    def enable(self, file: Path) -> None:
        """It begins with the next login, or by `start`."""
        self._ask("enable", self._target)

    def disable(self, file: Path) -> None:
        self._unload()
        file.unlink(missing_ok=True)

    def start(self, file: Path) -> None:
        if not self._is_loaded():
            self._ask("bootstrap", f"gui/{os.getuid()}", str(file))
        self._ask("kickstart", self._target)

    def stop(self) -> None:
        if self.read_status().running:
            self._ask("kill", "SIGTERM", self._target)

    def restart(self, file: Path) -> None:
        """launchd reads an agent's file only when it takes it in."""
        self._unload()
        self.start(file)

    def read_status(self) -> ServiceStatus:
        printed = self.run(["launchctl", "print", self._target])
        if printed.returncode:
            return ServiceStatus(False, 0, "not loaded")
        shown = _pairs(printed.stdout, " = ")
        return ServiceStatus(shown.get("state") == "running", int(shown.get("pid") or 0), shown.get("state", "unknown"))

    def logs_command(self, lines: int, follow: bool) -> list[str]:
        return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(self.log)]

    def _unload(self) -> None:
        if self._is_loaded():
            self._ask("bootout", self._target)

    def _is_loaded(self) -> bool:
        return self.run(["launchctl", "print", self._target]).returncode == 0

    @property
    def _target(self) -> str:
        return f"gui/{os.getuid()}/{self.label}"

    def _ask(self, *words: str) -> CompletedProcess[str]:
        return _run_checked(self.run, ["launchctl", *words])


ServiceManager = Systemd | Launchd


def run_subprocess(words: Sequence[str]) -> CompletedProcess[str]:
    """Carry a command out and keep what it said."""
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )


def _run_checked(run: CommandRunner, words: Sequence[str]) -> CompletedProcess[str]:
    result = run(words)
    if result.returncode:
        why = (result.stderr or result.stdout).strip().splitlines() or [f"exit code {result.returncode}"]
        raise AssistantError(f"`{' '.join(words)}` failed: {why[0]}. `assistant service logs` may say more.")
    return result


def _pairs(text: str, between: str = "=") -> Mapping[str, str]:
    pairs = [line.strip().partition(between) for line in text.splitlines()]
    # What comes first is the service's own; launchd describes its surroundings after.
    return {name: value for name, sign, value in reversed(pairs) if sign}


# ------------------------------------------------------------------------------------------------------------ its file

DEFAULT_SERVICE_NAME = "nocturne-assistant"
SYSTEM_USER = "nocturne"
_SYSTEM_HOME = Path("/var/lib") / DEFAULT_SERVICE_NAME
_SYSTEM_UNITS = Path("/etc/systemd/system")
# Where people's own directories lie, which a system unit is kept out of.
_PEOPLE = (Path("/home"), Path("/", "root"), Path("/run/user"))


@dataclass(frozen=True, slots=True)
class ServiceDefinition:
    """A service as it should be: `file` holds `text`."""

    name: str
    file: Path
    text: str
    home: Home
    user: str = ""  # who runs a system unit


def define_service(kind: str, name: str, settings: Settings, *, system: bool = False) -> ServiceDefinition:
    """An agent for "launchd"; for "systemd" a unit, of the user or of the system. Raises `AssistantError`."""
    program, home = find_program(), settings.home
    lives_with_people = any(path.is_relative_to(people) for path in (program, home.path) for people in _PEOPLE)
    user = _owner(home.path) if system else ""
    spec = ServiceSpec(
        program=program,
        home=home.path,
        label=name,
        stop_seconds=service_manager_timeout(settings.values.daemon.drain_seconds),
        watchdog_seconds=settings.values.daemon.watchdog_seconds,
        user=user,
        log=launchd_log_path(name) if kind == "launchd" else Path(),
        protect_home="read-only" if lives_with_people else "yes",
    )
    if kind == "launchd":
        agent = Path.home() / "Library" / "LaunchAgents" / f"{name}.plist"
        return ServiceDefinition(name, agent, render_launchd_plist(_template("launchd.plist"), spec), home)
    folder = _SYSTEM_UNITS if system else user_config_path("systemd") / "user"
    template = _template("systemd-system.service" if system else "systemd-user.service")
    return ServiceDefinition(name, folder / f"{name}.service", render_systemd_unit(template, spec), home, user)


def load_system_settings() -> Settings:
    """Of the home that ASSISTANT_HOME names, else of the one that a system unit has by itself."""
    settings = load_settings()
    return settings if "ASSISTANT_HOME" in settings.origins else load_settings(Home(_SYSTEM_HOME))


def find_program() -> Path:
    """This interpreter's own `assistant`. Raises `AssistantError` where it was started from something else."""
    user_scheme = sysconfig.get_preferred_scheme("user")
    scripts = (sysconfig.get_path("scripts"), sysconfig.get_path("scripts", user_scheme))
    for folder in (Path(sys.executable).parent, *map(Path, scripts)):
        program = folder / "assistant"
        if program.is_file() and os.access(program, os.X_OK):
            return program
    raise AssistantError(
        f"No program `assistant` belongs to {sys.executable}. Nothing was done; install the package (pipx or uv), then "
        "try again."
    )


def check_reachable(paths: Iterable[Path], user: str) -> None:
    """Raises `UsageError` where others than their owner cannot reach the program's files."""
    for path in paths:
        for folder in (*path.parents, *path.resolve().parents):
            if not folder.stat().st_mode & 0o001:
                raise UsageError(
                    f"{path} is in {folder}, which the user {user} cannot enter. Nothing was done; install it for "
                    "everybody (`sudo pipx install --global ./` in the folder of the checkout), then use that program."
                )


def launchd_log_path(name: str) -> Path:
    return Path.home() / "Library" / "Logs" / f"{name}.log"


def variables_hidden_from_service(settings: Settings) -> list[str]:
    """Variables of this shell that settings came from; a service sees none of them but ASSISTANT_HOME."""
    providers = {name for name in ENVIRONMENT_VARIABLES if name.startswith(("ANTHROPIC_", "OPENAI_"))}
    origins = set(settings.origins.values())
    return sorted({it for it in origins if it in providers or it.startswith("ASSISTANT_")} - {"ASSISTANT_HOME"})


def describe_where_to_keep(name: str, placed: ServiceDefinition) -> str:
    """What keeps the value of a variable where the service finds it: a secret with the secrets, by a command."""
    secret = next((it for it in SECRET_NAMES if name in (it, environment_variable(it))), "")
    if not secret:
        return f"write it into {placed.home.config}"
    command = f"assistant config secret set {secret}"
    if placed.user:
        command = f"sudo -u {placed.user} env ASSISTANT_HOME={placed.home.path} {command} --file"
    return f"`{command}` keeps it where the service finds it"


def _owner(home: Path) -> str:
    """Whose a home is that exists; a user of the service's own for one that does not, or that root made."""
    try:
        owner = home.stat().st_uid
        return pwd.getpwuid(owner).pw_name if owner else SYSTEM_USER
    except (OSError, KeyError):
        return SYSTEM_USER


def _template(name: str) -> str:
    return (shipped_config_dir() / "service" / name).read_text(encoding="utf-8")


def install_service(placed: ServiceDefinition, manager: ServiceManager, *, force: bool) -> bool:
    """Write the file and enable the service; whether the file is another one than before. Safe to repeat.

    Raises `UsageError` where a person changed the file."""
    file, current = placed.file, read_service_file(placed.file)
    if current == placed.text:
        print_remark(f"{file} is up to date.")
    else:
        if current is not None:
            texts = current.splitlines(), placed.text.splitlines()
            print_remark("\n".join(difflib.unified_diff(*texts, f"{file}", f"{file} (new)", lineterm="")))
            _keep_edited(file, current, force, "overwritten")
        _replace(file, placed.text)
        print_remark(f"Wrote {file}.")
    manager.enable(file)
    return current != placed.text


def remove_service(placed: ServiceDefinition, manager: ServiceManager, *, force: bool) -> None:
    """End the service and remove its file; what was said stays in the home."""
    current = read_service_file(placed.file)
    if current is None:
        print_remark(f"There is no {placed.file}; the service is not installed.")
        return
    _keep_edited(placed.file, current, force, "removed")
    manager.disable(placed.file)
    print_remark(f"Removed {placed.file}. Your data in {placed.home.path} is unchanged.")


def read_service_file(file: Path) -> str | None:
    """What a file holds; None where there is none."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def create_system_home(placed: ServiceDefinition) -> None:
    """The user that a system unit runs as, and its home, where they are missing. Needs root."""
    home = placed.home.path
    try:
        user = pwd.getpwnam(placed.user)
    except KeyError:
        words = ["useradd", "--system", "--no-create-home", "--home-dir", str(home), "--shell", "/usr/sbin/nologin"]
        result = subprocess.run([*words, placed.user], capture_output=True, text=True, check=False)
        if result.returncode:
            raise AssistantError(f"The user {placed.user} could not be created: {result.stderr.strip()}") from None
        user = pwd.getpwnam(placed.user)
        print_remark(f"Created the user {placed.user}.")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_uid != user.pw_uid:
        if any(home.iterdir()):
            raise UsageError(f"{home} does not belong to the user {placed.user}. Nothing was done; change its owner.")
        os.chown(home, user.pw_uid, user.pw_gid)
        print_remark(f"Its data folder is {home}.")


def _keep_edited(file: Path, current: str, force: bool, done: str) -> None:
    """Copy a file that a person changed. Raises `UsageError` without `force`."""
    if not was_edited_by_hand(current):
        return
    if not force:
        raise UsageError(
            f"{file} was changed manually, and was not {done}. Move your changes to a drop-in (`assistant docs "
            "service`), or use --force, which keeps a copy."
        )
    copy = file.with_name(f"{file.name}.edited")
    shutil.copy2(file, copy)
    print_remark(f"Kept a copy of your file as {copy}.")


def _replace(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(file)
