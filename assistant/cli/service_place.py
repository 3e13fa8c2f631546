"""Where a service of this machine stands: its file, its program, its home, its user."""

from __future__ import annotations

import os
import pwd
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path

from assistant.core.errors import AssistantError, UsageError
from assistant.core.shutdown import service_manager_timeout
from assistant.service.unit_files import ServiceSpec, render_launchd_plist, render_systemd_unit
from assistant.settings.home import Home
from assistant.settings.layers import environment_variable
from assistant.settings.secrets import SECRET_NAMES
from assistant.settings.settings import ENVIRONMENT_VARIABLES, Settings, load_settings, shipped_config_dir

NAME = "nocturne-assistant"
SYSTEM_USER = "nocturne"
_SYSTEM_HOME = Path("/var/lib") / NAME
_SYSTEM_UNITS = Path("/etc/systemd/system")
# Where people's own directories lie, which a system unit is kept out of.
_PEOPLE = (Path("/home"), Path(pwd.getpwuid(0).pw_dir), Path("/run/user"))


@dataclass(frozen=True, slots=True)
class Placed:
    """A service as it should be: `file` holds `text`. `home` is where what is said is kept; `user` is "" but for a
    system unit."""

    name: str
    file: Path
    text: str
    home: Home
    user: str = ""


def systemd_user(name: str, settings: Settings) -> Placed:
    unit = render_systemd_unit(_template("systemd-user.service"), _service(name, settings))
    return Placed(name, user_config_path("systemd") / "user" / f"{name}.service", unit, settings.home)


def systemd_system(name: str, settings: Settings) -> Placed:
    user = _owner(settings.home.path)
    service = _service(name, settings, user=user)
    unit = render_systemd_unit(_template("systemd-system.service"), service)
    return Placed(name, _SYSTEM_UNITS / f"{name}.service", unit, settings.home, user)


def launchd_agent(name: str, settings: Settings) -> Placed:
    service = _service(name, settings, log=launchd_log(name))
    plist = render_launchd_plist(_template("launchd.plist"), service)
    return Placed(name, Path.home() / "Library" / "LaunchAgents" / f"{name}.plist", plist, settings.home)


def system_settings() -> Settings:
    """Of the home that ASSISTANT_HOME names, else of the one that a system unit has by itself."""
    named = load_settings()
    return named if "ASSISTANT_HOME" in named.origins else load_settings(Home(_SYSTEM_HOME))


def program() -> Path:
    """This interpreter's own `assistant`. Raises `AssistantError` where it was started from something else."""
    for path in _programs():
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise AssistantError(
        f"No program `assistant` belongs to {sys.executable}. Nothing was done; install the package (pipx or uv), then "
        "say it again."
    )


def needed_files() -> list[Path]:
    """What a user has to reach to run the program: itself, and the interpreter that it names."""
    return [program(), Path(sys.executable)]


def must_be_reachable(paths: Iterable[Path], user: str) -> None:
    """Raises `UsageError` where others than their owner cannot reach the program's files."""
    for path in paths:
        for folder in (*path.parents, *path.resolve().parents):
            if not folder.stat().st_mode & 0o001:
                raise UsageError(
                    f"{path} lies in {folder}, which the user {user} cannot enter. Nothing was done; install it for "
                    "everybody (`sudo pipx install --global ./` in the folder of the checkout), then use that program."
                )


def launchd_log(name: str) -> Path:
    return Path.home() / "Library" / "Logs" / f"{name}.log"


def unseen_variables(settings: Settings) -> list[str]:
    """Variables of this shell that settings came from; a service sees none of them but ASSISTANT_HOME."""
    ours = {name for name in ENVIRONMENT_VARIABLES if name.startswith(("ANTHROPIC_", "OPENAI_"))}
    found = {origin for origin in settings.origins.values() if origin in ours or origin.startswith("ASSISTANT_")}
    return sorted(found - {"ASSISTANT_HOME"})


def kept_by(name: str, placed: Placed) -> str:
    """What keeps the value of a variable where the service finds it: a secret with the secrets, by a command."""
    secret = next((one for one in SECRET_NAMES if name in (one, environment_variable(one))), "")
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
    ours, home = program(), settings.home.path
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
