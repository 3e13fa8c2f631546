"""The service of this machine, as a file: where it belongs (its program, its home, its user), writing it, taking it
away.

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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path

from assistant.cli.service.managers import ServiceManager
from assistant.core.errors import AssistantError, UsageError
from assistant.core.shutdown import service_manager_timeout
from assistant.service.unit_files import ServiceSpec, render_launchd_plist, render_systemd_unit, was_edited_by_hand
from assistant.settings.home import Home
from assistant.settings.layers import environment_variable
from assistant.settings.secrets import SECRET_NAMES
from assistant.settings.settings import ENVIRONMENT_VARIABLES, Settings, load_settings, shipped_config_dir

DEFAULT_SERVICE_NAME = "nocturne-assistant"
SYSTEM_USER = "nocturne"
_SYSTEM_HOME = Path("/var/lib") / DEFAULT_SERVICE_NAME
_SYSTEM_UNITS = Path("/etc/systemd/system")
# Where people's own directories lie, which a system unit is kept out of.
_PEOPLE = (Path("/home"), Path(pwd.getpwuid(0).pw_dir), Path("/run/user"))


@dataclass(frozen=True, slots=True)
class ServiceDefinition:
    """A service as it should be: `file` holds `text`. `home` is where what is said is kept; `user` is "" but for a
    system unit."""

    name: str
    file: Path
    text: str
    home: Home
    user: str = ""


def define_systemd_user_unit(name: str, settings: Settings) -> ServiceDefinition:
    unit = render_systemd_unit(_template("systemd-user.service"), _service(name, settings))
    return ServiceDefinition(name, user_config_path("systemd") / "user" / f"{name}.service", unit, settings.home)


def define_systemd_system_unit(name: str, settings: Settings) -> ServiceDefinition:
    user = _owner(settings.home.path)
    service = _service(name, settings, user=user)
    unit = render_systemd_unit(_template("systemd-system.service"), service)
    return ServiceDefinition(name, _SYSTEM_UNITS / f"{name}.service", unit, settings.home, user)


def define_launchd_agent(name: str, settings: Settings) -> ServiceDefinition:
    service = _service(name, settings, log=launchd_log_path(name))
    plist = render_launchd_plist(_template("launchd.plist"), service)
    return ServiceDefinition(name, Path.home() / "Library" / "LaunchAgents" / f"{name}.plist", plist, settings.home)


def load_system_settings() -> Settings:
    """Of the home that ASSISTANT_HOME names, else of the one that a system unit has by itself."""
    named = load_settings()
    return named if "ASSISTANT_HOME" in named.origins else load_settings(Home(_SYSTEM_HOME))


def find_program() -> Path:
    """This interpreter's own `assistant`. Raises `AssistantError` where it was started from something else."""
    for path in _programs():
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise AssistantError(
        f"No program `assistant` belongs to {sys.executable}. Nothing was done; install the package (pipx or uv), then "
        "try again."
    )


def required_files() -> list[Path]:
    """What a user has to reach to run the program: itself, and the interpreter that it names."""
    return [find_program(), Path(sys.executable)]


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
    ours = {name for name in ENVIRONMENT_VARIABLES if name.startswith(("ANTHROPIC_", "OPENAI_"))}
    found = {origin for origin in settings.origins.values() if origin in ours or origin.startswith("ASSISTANT_")}
    return sorted(found - {"ASSISTANT_HOME"})


def describe_where_to_keep(name: str, placed: ServiceDefinition) -> str:
    """What keeps the value of a variable where the service finds it: a secret with the secrets, by a command."""
    secret = next((it for it in SECRET_NAMES if name in (it, environment_variable(it))), "")
    if not secret:
        return f"write it into {placed.home.config}"
    if not placed.user:
        return f"`assistant config secret set {secret}` keeps it where the service finds it"
    return (
        f"`sudo -u {placed.user} env ASSISTANT_HOME={placed.home.path} assistant config secret set {secret} --file` "
        "keeps it where the service finds it"
    )


def _service(name: str, settings: Settings, *, user: str = "", log: Path = Path()) -> ServiceSpec:
    daemon = settings.values.daemon
    ours, home = find_program(), settings.home.path
    lives_with_people = any(path.is_relative_to(people) for path in (ours, home) for people in _PEOPLE)
    return ServiceSpec(
        program=ours,
        home=home,
        label=name,
        stop_seconds=service_manager_timeout(daemon.drain_seconds),
        watchdog_seconds=daemon.watchdog_seconds,
        user=user,
        log=log,
        protect_home="read-only" if lives_with_people else "yes",
    )


def _programs() -> Iterator[Path]:
    yield Path(sys.executable).parent / "assistant"
    yield Path(sysconfig.get_path("scripts")) / "assistant"
    yield Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))) / "assistant"


def _owner(home: Path) -> str:
    """Whose a home is that exists; a user of the service's own for one that does not, or that root made."""
    try:
        owner = home.stat().st_uid
        return pwd.getpwuid(owner).pw_name if owner else SYSTEM_USER
    except (OSError, KeyError):
        return SYSTEM_USER


def _template(name: str) -> str:
    return (shipped_config_dir() / "service" / name).read_text(encoding="utf-8")


ReportLine = Callable[[str], None]
_EDITED = ".edited"


def install_service(placed: ServiceDefinition, manager: ServiceManager, *, force: bool, tell: ReportLine) -> bool:
    """Write the file and enable the service; whether the file is another one than before. Safe to repeat.

    Raises `UsageError` where a person changed the file."""
    changed = write_service_file(placed, force=force, tell=tell)
    manager.enable(placed.file)
    return changed


def write_service_file(placed: ServiceDefinition, *, force: bool, tell: ReportLine) -> bool:
    file, known = placed.file, read_service_file(placed.file)
    if known == placed.text:
        tell(f"{file} is up to date.")
        return False
    if known is not None:
        tell(diff_service_file(known, placed.text, file))
        if was_edited_by_hand(known):
            _refuse_or_keep(file, force, "overwritten", tell)
    _replace(file, placed.text)
    tell(f"Wrote {file}.")
    return True


def remove_service(placed: ServiceDefinition, manager: ServiceManager, *, force: bool, tell: ReportLine) -> None:
    """End the service and remove its file; what was said stays in the home."""
    known = read_service_file(placed.file)
    if known is None:
        tell(f"There is no {placed.file}; the service is not installed.")
        return
    if was_edited_by_hand(known):
        _refuse_or_keep(placed.file, force, "removed", tell)
    manager.disable(placed.file)
    tell(f"Removed {placed.file}. Your data in {placed.home.path} is unchanged.")


def read_service_file(file: Path) -> str | None:
    """What a file holds; None where there is none."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def diff_service_file(current: str, new: str, file: Path) -> str:
    """From what is there to what would be written, line by line."""
    lines = difflib.unified_diff(current.splitlines(), new.splitlines(), f"{file}", f"{file} (new)", "", "")
    return "\n".join(line.rstrip("\n") for line in lines)


def create_system_home(placed: ServiceDefinition, tell: ReportLine) -> None:
    """The user that a system unit runs as, and its home, where they are missing. Needs root."""
    home = placed.home.path
    try:
        user = pwd.getpwnam(placed.user)
    except KeyError:
        words = ["useradd", "--system", "--no-create-home", "--home-dir", str(home), "--shell", "/usr/sbin/nologin"]
        done = subprocess.run([*words, placed.user], capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssistantError(f"The user {placed.user} could not be created: {done.stderr.strip()}") from None
        user = pwd.getpwnam(placed.user)
        tell(f"Created the user {placed.user}.")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_uid != user.pw_uid:
        if any(home.iterdir()):
            raise UsageError(f"{home} does not belong to the user {placed.user}. Nothing was done; change its owner.")
        os.chown(home, user.pw_uid, user.pw_gid)
        tell(f"Its data folder is {home}.")


def _refuse_or_keep(file: Path, force: bool, done: str, tell: ReportLine) -> None:
    if not force:
        raise UsageError(
            f"{file} was changed manually, and was not {done}. Move your changes to a drop-in (docs/service.md), or "
            "use --force, which keeps a copy."
        )
    copy = file.with_name(file.name + _EDITED)
    shutil.copy2(file, copy)
    tell(f"Kept a copy of your file as {copy}.")


def _replace(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(file)
