"""Checks by the names of applied migrations whether this program can open a database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import sqlite_utils
from sqlite_utils import Migrations

from assistant.core.errors import NewerSchema, OlderSchema, StoreError


def require_known_schema(path: Path, applied: Sequence[str], migrations: Migrations) -> None:
    """Raises `NewerSchema` for a database of a later version, `StoreError` for one too old to upgrade."""
    names = _migration_names(migrations)
    # The first migration does in one step what it and the migrations before it did in several.
    retired = {name for name in applied if name < names[0]}
    if retired and names[0] not in applied:
        raise StoreError(
            f"{path} was written by a version that this one cannot upgrade (it has no {names[0]}). "
            "Nothing was changed; start the version before this one once, which can, then this one."
        )
    unknown = sorted(set(applied) - retired - set(names))
    if unknown:
        raise NewerSchema(
            f"{path.name} was written by a newer version (it has {', '.join(unknown)}). Nothing was changed; "
            f"install that version, or restore a backup from {path.parent / 'backups'}."
        )


def require_current_schema(path: Path, applied: Sequence[str], migrations: Migrations) -> None:
    """Raises like `require_known_schema`, and `OlderSchema` if opening for writing would migrate the database."""
    require_known_schema(path, applied, migrations)
    if not set(_migration_names(migrations)) <= set(applied):
        raise OlderSchema(
            f"{path} was written by an earlier version. Nothing was changed; restart the "
            "assistant (`assistant run` or `assistant chat`), which upgrades it and keeps a copy."
        )


def _migration_names(migrations: Migrations) -> list[str]:
    empty = sqlite_utils.Database(memory=True, execute_plugins=False)
    return [migration.name for migration in migrations.pending(empty)]
