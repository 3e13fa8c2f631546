"""The data folder of the assistant, the places in it, and the stamps by which a changed file is noticed; and the
service manager that started this process. Only this class and `store/` know paths.
"""

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
    """The data directory and the places in it. Only this class and `store/` know paths."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def last_valid_config(self) -> Path:
        """config.toml as the running daemon last understood it."""
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
        """What the program says of itself where people talk or type commands."""
        return self.run / "assistant.log"

    @property
    def socket(self) -> Path:
        return self.run / "control.sock"

    @property
    def browser_sessions(self) -> Path:
        """Which browsers are logged in; no backup has it."""
        return self.run / "browsers.json"

    @property
    def vocabularies(self) -> Path:
        """Vocabularies that were downloaded to count tokens; no backup has them."""
        return self.path / "vocabularies"

    @property
    def folder_list(self) -> Path:
        """Which data folders there have been on this machine, a line each: it is outside of them, so that one that is
        missing is told from one that is new."""
        return user_state_path("assistant", appauthor=False) / "data-folders"


@dataclass(frozen=True, slots=True)
class NotifyTarget:
    """The service manager that started this process, if one did."""

    address: str = ""  # where it listens; "" for nowhere
    watchdog_seconds: float = 0.0  # within which it expects a sign of progress; 0 for never


def home_from_environment(environ: Mapping[str, str] | None = None) -> Home:
    """The data folder that ASSISTANT_HOME names, else the platform's. Raises `SettingsError` for an unknown `~name`."""
    environ = os.environ if environ is None else environ
    chosen = environ.get("ASSISTANT_HOME")
    if not chosen:
        return Home(user_data_path("assistant", appauthor=False))
    try:
        return Home(Path(chosen).expanduser().absolute())
    except RuntimeError:
        raise SettingsError(f"ASSISTANT_HOME: {chosen} is no directory. Nothing was started; correct it.") from None


def environment_for(home: Path) -> dict[str, str]:
    """The environment of a command that this process starts for a data folder."""
    return {**os.environ, "ASSISTANT_HOME": str(home), "PYTHONIOENCODING": "utf-8"}


def notify_target_from_environment(environ: MutableMapping[str, str] | None = None, pid: int = 0) -> NotifyTarget:
    """The manager of this process (or of `pid`), removed from the environment, so that no child sends to it."""
    environ = os.environ if environ is None else environ
    address = environ.pop("NOTIFY_SOCKET", "")
    microseconds, meant = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
    watches = microseconds.isdecimal() and meant in ("", str(pid or os.getpid()))
    return NotifyTarget(address, int(microseconds) / 1e6 if watches else 0.0)


def file_stamp(path: Path) -> FileStamp:
    """Differs when the file was changed; None where there is none to read."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def settings_stamps(home: Home) -> FileStamps:
    return file_stamp(home.config), file_stamp(home.secrets)
