"""A home with MEMORY.md, files of days and profiles, for tests: open, closed and opened again over one directory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from assistant.core.profiles import Profile
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.character.profiles import StoredProfiles
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
DAY = date(2026, 11, 20)
GUEST = "peer:telegram:Ann/../x"
MAX_TOKENS = 100


def count_tokens(text: str) -> int:
    return len(text) // 4


@dataclass
class MemoryFilesHome:
    path: Path

    def open(self) -> MemoryFilesHome:
        self.db = Database.open(self.path / "character.db", character_migrations, NOW)
        self.files = StoredMemoryFiles(self.path, self.db, count_tokens=count_tokens, max_tokens=MAX_TOKENS)
        self.profiles = StoredProfiles(self.db)
        return self

    def close(self) -> None:
        self.db.close()

    def restart(self) -> MemoryFilesHome:
        self.close()
        return self.open()

    @property
    def memory_md(self) -> Path:
        return self.path / "MEMORY.md"

    def day_file(self) -> Path:
        return self.path / "memory" / "2026-11-20.md"

    def partial_files(self) -> list[str]:
        """Files that wait to take another's place."""
        return sorted(str(found.relative_to(self.path)) for found in self.path.rglob("*.partial"))


def person_profile(name: str, scope: str = "owner", **more: object) -> Profile:
    return Profile(scope, "person", name, **more)  # type: ignore[arg-type]
