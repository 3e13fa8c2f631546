"""Backups: make one, list them. A shell also verifies, restores and removes them (`assistant/cli/backup.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, tzinfo
from itertools import islice

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup
from assistant.core.backups import BackupKind
from assistant.core.calendar import format_local_time
from assistant.core.dataclass import dataclass
from assistant.core.text import format_bytes, pluralize
from assistant.store.backup.folder import BackupFolder

_MOST_SECONDS = 6 * 3600.0
_LEFT_OUT_SHOWN = 10


@click.group(cls=CommandGroup)
def backup() -> None:
    """Back your data up into one file, and restore it from one.

    A backup is made while the assistant runs, automatically every day (see [backup] in config.toml).

    > assistant backup create
    > assistant backup verify
    > assistant backup restore ~/usb/nocturne.tar.gz --to ~/restored
    """


@dataclass(frozen=True, slots=True)
class BackupItem:
    """A backup in the folder of backups."""

    name: str
    made_at: datetime
    kind: BackupKind
    bytes: int
    path: str


def backup_items(folder: BackupFolder) -> list[BackupItem]:
    """Return all backups of the folder, oldest first, with their paths."""
    return [BackupItem(**asdict(backup), path=str(folder.path / backup.name)) for backup in folder.list_backups()]


def render_backups(items: Sequence[BackupItem], zone: tzinfo) -> str:
    lines = [
        f"- `{item.name}` — {format_local_time(item.made_at, zone)}, {item.kind}, {format_bytes(item.bytes)}"
        for item in items
    ]
    return "\n".join(lines) or "There is no backup yet; `/backup create` makes one."


@backup.command("list", render=render_backups, reads=True, with_session=False)
def list_backups(context: CommandContext) -> list[BackupItem]:
    """List the backups, oldest first.

    > assistant backup list --json
    """
    return backup_items(context.stores.backups)


@dataclass(frozen=True, slots=True)
class CreatedBackup(BackupItem):
    """A backup that was made and verified."""

    files: int
    unpacked_bytes: int
    left_out: dict[str, str]  # why each file is not in it
    seconds: float


def _render_created(made: CreatedBackup, _: tzinfo) -> str:
    lines = [
        f"Backed up to {made.path}: {pluralize(made.files, 'file')}, {format_bytes(made.unpacked_bytes)} packed into "
        f"{format_bytes(made.bytes)}, read back and verified, in {made.seconds:.1f} s.",
        *(f"Left out: {name} ({why})." for name, why in islice(made.left_out.items(), _LEFT_OUT_SHOWN)),
    ]
    more = len(made.left_out) - _LEFT_OUT_SHOWN
    return "\n".join([*lines, *([f"Left out: {more} more."] if more > 0 else [])])


@backup.command("create", render=_render_created, max_seconds=_MOST_SECONDS, with_session=False)
async def create(context: CommandContext) -> CreatedBackup:
    """Make a backup now and verify it. It stays until you remove it.

    > assistant backup create
    """
    made = await context.services.backups.create()
    return CreatedBackup(
        **asdict(made.backup),
        path=str(context.stores.backups.path / made.backup.name),
        files=made.files,
        unpacked_bytes=made.unpacked_bytes,
        left_out=dict(made.left_out),
        seconds=round(made.seconds, 3),
    )
