"""`assistant backup list`, `verify`, `restore` and `remove`: they work on files, whether the assistant runs or not."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from pydantic import AliasPath, BeforeValidator, Field

from assistant.cli.home_stores import load_effective_settings
from assistant.cli.logging_setup import log_to_file
from assistant.cli.output import json_result, print_markdown, print_remark, print_text, require_utf8
from assistant.cli.shell import with_commands
from assistant.commands import backups as backup_commands
from assistant.commands.argv import rewrite_for_shell
from assistant.commands.backups import BackupItem, backup_items, render_backups
from assistant.commands.items import Item
from assistant.core.calendar import format_local_time, utc_now
from assistant.core.errors import UsageError
from assistant.core.plain_files import expand_home
from assistant.core.text import format_bytes, pluralize
from assistant.service.home_lock import home_lock
from assistant.settings.home import Home
from assistant.settings.settings import Settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.restore import finish_interrupted_restore
from assistant.wire.checks import build_restorer

if TYPE_CHECKING:
    from assistant.backup.restore import RestoredHome, VerifiedBackup

_NAME = "NAME|PATH"


class BackupProof(Item):
    """A backup that was opened and found complete and unchanged."""

    ok: bool = True
    path: Path
    made_at: datetime = Field(validation_alias=AliasPath("manifest", "made_at"))
    kind: str = Field(validation_alias=AliasPath("manifest", "kind"))
    program: str = Field(validation_alias=AliasPath("manifest", "program"))
    files: Annotated[int, BeforeValidator(len)] = Field(validation_alias=AliasPath("manifest", "files"))
    bytes: int = Field(validation_alias=AliasPath("manifest", "bytes"))
    records: int = Field(validation_alias=AliasPath("report", "records"))
    sessions: int = Field(validation_alias=AliasPath("report", "sessions"))
    left_out: dict[str, str] = Field(validation_alias=AliasPath("manifest", "left_out"))


class RestoreReport(BackupProof):
    """The data folder that was restored, and the backup that it was restored from."""

    home: Path
    aside: Path | None = Field(validation_alias="former_home")  # where the previous content is
    said_again: list[int] = Field(validation_alias="restored_erased_ids")  # erased after the backup was made
    unfinished_forgetting: bool = Field(validation_alias="erasure_unfinished")


@click.command(name="list")
@json_result(list[BackupItem])
def list_() -> list[BackupItem]:
    """List the backups, oldest first.

    > assistant backup list --json
    """
    settings = load_effective_settings()
    # Also where the data folder is gone, and only backups are left.
    items = backup_items(BackupFolder(settings.home.path, settings.values.backup.folder))
    print_markdown(rewrite_for_shell(render_backups(items, settings.zone)))
    return items


@click.command()
@click.argument("name", metavar=f"[{_NAME}]", default="")
@json_result(BackupProof)
def verify(name: str) -> VerifiedBackup:
    """Check every file of a backup, its databases and its log. Without a name, the newest one.

    > assistant backup verify
    > assistant backup verify ~/usb/nocturne-20261120T050000Z-daily.tar.gz
    """
    settings = load_effective_settings()
    log_to_file(settings.home.program_log)
    restorer = build_restorer(settings)
    proved = restorer.verify(restorer.find(require_utf8(name, "NAME")), utc_now())
    print_text("\n".join(_proved_lines(proved, settings)))
    return proved


@click.command()
@click.argument("name", metavar=f"[{_NAME}]", default="")
@click.option("--force", is_flag=True, help="Also into a data folder that is not empty; what is there is kept aside.")
@click.option("--to", "to", type=click.Path(path_type=Path), metavar="FOLDER", help="Restore into this folder instead.")
@json_result(RestoreReport | None)
def restore(name: str, force: bool, to: Path | None) -> RestoredHome | None:
    """Restore your data folder from a backup, after checking it.

    Stop the assistant first. Without a name, it finishes a restore that was interrupted.

    > assistant backup restore nocturne-20261120T050000Z-daily.tar.gz --force
    > assistant backup restore ~/usb/nocturne.tar.gz --to ~/restored
    """
    settings = load_effective_settings()
    log_to_file(settings.home.program_log)
    home = Home(expand_home(to).absolute()) if to is not None else settings.home
    restorer = build_restorer(settings)
    path = restorer.find(require_utf8(name, "NAME")) if name else None
    with home_lock(home.path):
        if report := finish_interrupted_restore(home.path):
            print_remark(report)
        if path is None:
            if not report:
                raise UsageError("Name the backup to restore; `assistant backup list` lists them. Nothing was changed.")
            return None
        restored = restorer.restore(path, home.path, utc_now(), force=force)
    print_text("\n".join(_restored_lines(restored, settings)))
    return restored


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@json_result(list[str], "Print a JSON array of their names.")
def remove(names: tuple[str, ...]) -> list[str]:
    """Remove backups for good.

    > assistant backup remove nocturne-20261120T050000Z-daily.tar.gz
    """
    settings = load_effective_settings()
    folder = BackupFolder(settings.home.path, settings.values.backup.folder)
    with folder.lock():
        paths = [folder.find(require_utf8(name, "NAME")) for name in names]
        for path in paths:
            folder.remove(path)
            print_text(f"Removed {path.name}.")
    return [path.name for path in paths]


backup = with_commands(backup_commands.backup, list_, verify, restore, remove)


# ----------------------------------------------------------------------------------------------------------- rendering


def _proved_lines(proved: VerifiedBackup, settings: Settings) -> list[str]:
    manifest, report = proved.manifest, proved.report
    return [
        f"{proved.path.name}: your data folder on {format_local_time(manifest.made_at, settings.zone)}, "
        f"{pluralize(len(manifest.files), 'file')}, {format_bytes(manifest.bytes)}.",
        f"{pluralize(report.records, 'record')} of {pluralize(report.sessions, 'session')}: every file, the databases "
        "and the log are complete and unchanged.",
        *(f"Not in it: {name} ({why})." for name, why in manifest.left_out.items()),
    ]


def _restored_lines(restored: RestoredHome, settings: Settings) -> list[str]:
    lines = [f"Restored {restored.home}. {_proved_lines(restored, settings)[1]}"]
    if restored.former_home:
        lines.append(f"What was there before is kept in {restored.former_home}; remove it when you no longer need it.")
    if restored.restored_erased_ids:
        some = ", ".join(f"#{message_id}" for message_id in restored.restored_erased_ids[:8])
        more = f" and {len(restored.restored_erased_ids) - 8} more" if len(restored.restored_erased_ids) > 8 else ""
        lines.append(f"Erased after this backup was made, and now back: messages {some}{more}. Erase them again.")
    if restored.erasure_unfinished:
        lines.append("An erasure was not finished in what was there before. Erase the same again.")
    return lines
