"""Checks by the names of applied migrations whether this program can open a database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from assistant.core.errors import NewerSchema, OlderSchema, StoreError
from assistant.core.text import lazy_regex
from assistant.store.schema.library import Migrations, migration_names

_DIGITS = 4
_NAME = lazy_regex(r"\d{4}_[a-z_0-9]+", re.ASCII)


def require_known_schema(path: Path, applied: Sequence[str], migrations: Migrations) -> None:
    """Raises `NewerSchema` for a database of a later version, `StoreError` for one too old to upgrade."""
    names = migration_names(migrations)
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
    if not set(migration_names(migrations)) <= set(applied):
        raise OlderSchema(
            f"{path} was written by an earlier version. Nothing was changed; restart the "
            "assistant (`assistant run` or `assistant chat`), which upgrades it and keeps a copy."
        )


def is_list_damaged(applied: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether no version of this program, which knows `names`, can have applied just these migrations."""
    by_number = {name[:_DIGITS]: name for name in names}
    numbers = {name[:_DIGITS] for name in applied}
    if not all(_NAME.fullmatch(name) for name in applied) or len(numbers) < len(applied):
        return True
    if any(by_number.get(name[:_DIGITS], name) != name for name in applied):
        return True
    # A later version may have merged the first ones into one, and an earlier version lacks the last ones.
    missing = [name for name in names if name not in applied]
    is_known = set(applied) <= set(names)
    return any(name < max(applied, default="") and (is_known or name > min(applied)) for name in missing)
