"""The data folder and the paths in it, and the stamps by which changed files are detected; and the service manager that
started this process. Only this class and `store/` know paths."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from platformdirs import user_data_path, user_state_path

from assistant.core.dataclass import dataclass
from assistant.core.errors import SettingsError

FileStamp = tuple[int, int, int] | None


# Of config.toml and of the secrets.
FileStamps = tuple[FileStamp, FileStamp]


@dataclass(frozen=True, slots=True)
class Home:
    """The data folder and the paths in it. Only this class and `store/` know paths."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def last_valid_config(self) -> Path:
        """Return the last valid config.toml of the running daemon."""
        return self.run / "config.toml"

    @property
    def secrets(self) -> Path:
        return self.path / "secrets.toml"

    @property
    def persona(self) -> Path:
        return self.path / "PERSONA.md"

    @property
    def workspace(self) -> Path:
        return self.path / "workspace"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def program_log(self) -> Path:
        """Return the program's own log, where people talk or type commands."""
        return self.run / "assistant.log"

    @property
    def socket(self) -> Path:
        return self.run / "control.sock"

    @property
    def browser_sessions(self) -> Path:
        """Return the file of logged-in browsers; excluded from backups."""
        return self.run / "browsers.json"

    @property
    def push_key(self) -> Path:
        """Return the key that signs notifications to browsers; excluded from backups, as their logins are."""
        return self.run / "push-key.pem"

    @property
    def vocabularies(self) -> Path:
        """Return the folder of vocabularies downloaded for counting tokens; excluded from backups."""
        return self.path / "vocabularies"

    @property
    def folder_list(self) -> Path | None:
        """Return the list of data folders on this machine, one per line. It is outside of them, so that a missing one
        can be distinguished from a new one. None for an account without a home directory, as in a container."""
        try:
            return user_state_path("assistant", appauthor=False) / "data-folders"
        except RuntimeError:
            return None


@dataclass(frozen=True, slots=True)
class NotifyTarget:
    """The service manager that started this process, if any."""

    address: str = ""  # where it listens; "" for nowhere
    watchdog_seconds: float = 0.0  # watchdog interval; 0 for none


def home_from_environment(environ: Mapping[str, str] | None = None) -> Home:
    """Return the data folder in ASSISTANT_HOME, or the platform's default. Raises `SettingsError` for an unknown
    `~name`, and where a file is in the way."""
    environ = os.environ if environ is None else environ
    chosen = environ.get("ASSISTANT_HOME")
    try:
        path = Path(chosen).expanduser().absolute() if chosen else user_data_path("assistant", appauthor=False)
    except RuntimeError:
        if not chosen:
            raise SettingsError(
                "There is no place for your data folder: HOME is not set, and this account has no home directory. "
                "Nothing was started; have HOME, or ASSISTANT_HOME, name a folder."
            ) from None
        raise SettingsError(f"ASSISTANT_HOME: {chosen} is no directory. Nothing was started; correct it.") from None
    for place in (path, *path.parents):
        if place.is_file():
            raise SettingsError(
                f"The data folder cannot be {path}: {place} is a file. Nothing was started; have ASSISTANT_HOME name a "
                "folder."
            )
    return Home(path)


def environment_for(home: Path) -> dict[str, str]:
    """Return the environment for a command that this process starts for a data folder."""
    return {**os.environ, "ASSISTANT_HOME": str(home), "PYTHONIOENCODING": "utf-8"}


def replace_environment(environment: Mapping[str, str]) -> None:
    """Give this process, which was forked, another environment."""
    os.environ.clear()
    os.environ.update(environment)


def notify_target_from_environment(environ: MutableMapping[str, str] | None = None, pid: int = 0) -> NotifyTarget:
    """Return the manager of this process (or of `pid`), and remove it from the environment, so that no child notifies
    it."""
    environ = os.environ if environ is None else environ
    address = environ.pop("NOTIFY_SOCKET", "")
    microseconds, meant = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
    watches = microseconds.isdecimal() and meant in ("", str(pid or os.getpid()))
    return NotifyTarget(address, int(microseconds) / 1e6 if watches else 0.0)


def file_stamp(path: Path) -> FileStamp:
    """Return a value that changes with the file; None if it cannot be read."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def settings_stamps(home: Home) -> FileStamps:
    """Return what changes when config.toml or secrets.toml is written."""
    return file_stamp(home.config), file_stamp(home.secrets)
