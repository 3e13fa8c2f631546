"""Backups as values: one archive file each, whose name says when and why it was made, and whose manifest lists its
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
"""What may be at the top of a backup; all else of a home is made again or belongs to a running process."""

_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = lazy_regex(r"nocturne-(\d{8}T\d{6}Z)(?:-(\d{1,4}))?-(daily|manual)\.tar\.gz")


@dataclass(frozen=True, slots=True)
class Backup:
    """A file in the folder of backups."""

    name: str
    made_at: datetime  # the moment of the data folder that it has
    kind: BackupKind  # "daily" ones are made and removed automatically
    bytes: int


@dataclass(frozen=True, slots=True)
class BackupEntry:
    """A file in a backup."""

    path: str  # in the data folder
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """What a backup has."""

    program: str
    made_at: datetime
    kind: BackupKind
    files: tuple[BackupEntry, ...]
    schemas: Mapping[str, Sequence[str]]  # by database the names of its migrations
    logs: Mapping[str, int]  # the length of each log, by its path
    left_out: Mapping[str, str]  # what of the data folder is not in it, and why

    @property
    def bytes(self) -> int:
        """Of all its files, unpacked."""
        return sum(entry.bytes for entry in self.files)


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A backup that was made and verified."""

    backup: Backup
    files: int
    unpacked_bytes: int
    left_out: Mapping[str, str]  # as in the manifest
    seconds: float


def backup_name(made_at: datetime, kind: BackupKind, number: int = 1) -> str:
    """The file name of a backup; `number` tells those of the same second apart."""
    again = f"-{number}" if number > 1 else ""
    return f"nocturne-{made_at.astimezone(UTC):{_STAMP}}{again}-{kind}{BACKUP_SUFFIX}"


def parse_backup_name(name: str, size: int) -> Backup | None:
    """The backup that a file is by its name; None for any other file."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        made_at = datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    return Backup(name, made_at, "daily" if match[3] == "daily" else "manual", size)
