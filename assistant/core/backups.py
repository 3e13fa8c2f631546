"""Value types for backups: one archive file each, whose name contains time and kind, and whose manifest lists the
files. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex

BackupKind = Literal["daily", "manual"]

BACKUP_SUFFIX = ".tar.gz"
MANIFEST_NAME = "MANIFEST.json"
BACKUP_DATABASES = ("script.db", "character.db", "memory.db")
BACKUP_FILES = ("config.toml", "PERSONA.md", "MEMORY.md", "chat_history")
BACKUP_FOLDERS = ("prompts", "memory", "log", "archive", "workspace")
BACKUP_PARTS = frozenset((*BACKUP_DATABASES, *BACKUP_FILES, *BACKUP_FOLDERS))
"""Top-level names that a backup may contain; the rest of a home is rebuilt or belongs to a running process."""

_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = lazy_regex(r"nocturne-(\d{8}T\d{6}Z)(?:-(\d{1,4}))?-(daily|manual)\.tar\.gz")


@dataclass(frozen=True, slots=True)
class Backup:
    """A file in the backup folder."""

    name: str
    made_at: datetime  # the time of the snapshot
    kind: BackupKind  # "daily" ones are made and removed automatically
    bytes: int


@dataclass(frozen=True, slots=True)
class BackupEntry:
    """A file inside a backup."""

    path: str  # relative to the data folder
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """The manifest of a backup."""

    program: str
    made_at: datetime
    kind: BackupKind
    files: tuple[BackupEntry, ...]
    schemas: Mapping[str, Sequence[str]]  # migration names by database
    logs: Mapping[str, int]  # log lengths in bytes by path
    left_out: Mapping[str, str]  # excluded files, and why

    @property
    def bytes(self) -> int:
        """Total unpacked size of the files."""
        return sum(entry.bytes for entry in self.files)


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A backup that was created and verified."""

    backup: Backup
    files: int
    unpacked_bytes: int
    left_out: Mapping[str, str]  # as in the manifest
    seconds: float


def backup_name(made_at: datetime, kind: BackupKind, number: int = 1) -> str:
    """Return the file name of a backup; `number` distinguishes backups of the same second."""
    again = f"-{number}" if number > 1 else ""
    return f"nocturne-{made_at.astimezone(UTC):{_STAMP}}{again}-{kind}{BACKUP_SUFFIX}"


def parse_backup_name(name: str, size: int) -> Backup | None:
    """Return the backup that a file name describes, or None for any other file."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        made_at = datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    return Backup(name, made_at, "daily" if match[3] == "daily" else "manual", size)
