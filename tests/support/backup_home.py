"""A home with a file of every kind, its backups, and how to look into one."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from assistant.backup.scheduler import MakeBackup
from assistant.core.backups import BackupKind, BackupManifest, BackupResult
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.make import BackupRequest, make_backup
from assistant.store.backup.tarball import unpack_backup_file
from assistant.store.database import Database
from assistant.store.files import WriteThrottle, always_wanted
from assistant.store.schema.migrations import character_migrations, memory_migrations
from tests.support.store_home import NOW, StoreHome

BACKED_UP_FILES = {
    "config.toml": '[log]\nlevel = "error"\n',
    "PERSONA.md": "Be brief.\n",
    "MEMORY.md": "- The boat is Albatross.\n",
    "chat_history": "\n# 2026\n+hello\n",
    "memory/2026-11-20.md": "# 2026-11-20\n",
    "prompts/summary.md": "<summary>",
    "archive/main/1.jsonl.gz": "archived",
    "workspace/plans/gate.txt": "Paint it.\n",
    "workspace/empty/.keep": "",
    "log/main/conversation.jsonl.torn-1": "torn",
}
EXCLUDED_FILES = (
    "secrets.toml",
    "run/lock",
    "backups/script-before.db",
    "models/big.bin",
    "bridges/matrix/keys",
    "search.db",
    "odd.txt",
)


def make_backup_in_process(folder: BackupFolder) -> MakeBackup:
    """Makes one in this process, so that every step of it can be seen."""

    async def make(kind: BackupKind, now: datetime) -> BackupResult:
        return make_backup(folder, BackupRequest(kind, now), WriteThrottle(throttled=False))

    return make


@dataclass
class BackupHome(StoreHome):
    """Open on return of `open`; `folder` is where its backups are."""

    backup_path: str = ""

    def open(self) -> BackupHome:
        super().open()
        self.character_db = Database.open(self.path / "character.db", character_migrations, NOW)
        self.memory_db = Database.open(self.path / "memory.db", memory_migrations, NOW)
        self.folder = BackupFolder(self.path, self.backup_path)
        return self

    def close(self) -> None:
        self.character_db.close()
        self.memory_db.close()
        super().close()

    def write_files(self) -> BackupHome:
        self.say("What is my boat called?", "Albatross.")
        for name in (*BACKED_UP_FILES, *EXCLUDED_FILES):
            path = self.path / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(BACKED_UP_FILES.get(name, ""), encoding="utf-8")
        return self

    def back_up(
        self,
        kind: BackupKind = "manual",
        hours: float = 0,
        *,
        workspace: bool = True,
        alive: Callable[[], bool] = always_wanted,
    ) -> BackupResult:
        return make_backup(self.folder, BackupRequest(kind, NOW + timedelta(hours=hours), workspace), fast_pace(alive))

    def unpack(self, made: BackupResult, target: Path) -> BackupManifest:
        return unpack_backup_file(self.folder.path / made.backup.name, target, fast_pace())

    def backup_files(self) -> list[str]:
        return sorted(path.name for path in self.folder.path.iterdir() if path.name != "script-before.db")


def fast_pace(alive: Callable[[], bool] = always_wanted) -> WriteThrottle:
    return WriteThrottle(alive, throttled=False)


def file_contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def pack_tar(path: Path, members: Mapping[str, bytes], *odd: tarfile.TarInfo) -> Path:
    """An archive that somebody else packed."""
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for one in odd:
            tar.addfile(one)
    return path


def unpack_tar(path: Path, folder: Path) -> None:
    """All of an archive that we made ourselves. Python before 3.11.4 has no filters, and ignores that one is set."""
    with tarfile.open(path) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)
