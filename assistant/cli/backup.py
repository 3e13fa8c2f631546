"""`assistant backup list`, `verify`, `restore` and `remove`: they work on files, whether the assistant runs or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assistant.cli.home_stores import load_effective_settings
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_json, print_markdown, print_remark, print_text, print_value, require_utf8
from assistant.cli.shell import with_commands
from assistant.commands import backups as backup_commands
from assistant.commands.argv import rewrite_for_shell
from assistant.commands.backups import BackupItem, backup_items, render_backups
from assistant.core.calendar import format_local_time, utc_now
from assistant.core.errors import UsageError
from assistant.core.text import format_bytes, pluralize
from assistant.service.home_lock import home_lock
from assistant.settings.home import Home
from assistant.settings.settings import Settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.restore import finish_interrupted_restore
from assistant.wire.checks import build_restorer

if TYPE_CHECKING:
    from assistant.backup.restore import RestoredHome, VerifiedBackup

_json_option = click.option("--json", "json_out", is_flag=True, help="Print JSON.")
_NAME = "NAME|PATH"


@click.command(name="list")
@_json_option
def list_(json_out: bool) -> None:
    """List the backups, oldest first.

    > assistant backup list --json
    """
    settings = load_effective_settings()
    # Also where the data folder is gone, and only backups are left.
    items = backup_items(BackupFolder(settings.home.path, settings.values.backup.folder))
    if json_out:
        print_value(list[BackupItem], items)
    else:
        print_markdown(rewrite_for_shell(render_backups(items, settings.zone)))


@click.command()
@click.argument("name", metavar=f"[{_NAME}]", default="")
@_json_option
def verify(name: str, json_out: bool) -> None:
    """Check every file of a backup, its databases and its log. Without a name, the newest one.

    > assistant backup verify
    > assistant backup verify ~/usb/nocturne-20261120T050000Z-daily.tar.gz
    """
    settings = load_effective_settings()
    configure_logging("error")
    restorer = build_restorer(settings)
    proved = restorer.verify(restorer.find(require_utf8(name, "NAME")), utc_now())
    if json_out:
        print_json({"ok": True, **_proved_json(proved)})
    else:
        print_text("\n".join(_proved_lines(proved, settings)))


@click.command()
@click.argument("name", metavar=f"[{_NAME}]", default="")
@click.option("--force", is_flag=True, help="Also into a data folder that is not empty; what is there is kept aside.")
@click.option("--to", "to", type=click.Path(path_type=Path), metavar="FOLDER", help="Restore into this folder instead.")
@_json_option
def restore(name: str, force: bool, to: Path | None, json_out: bool) -> None:
    """Restore your data folder from a backup, after checking it.

    Stop the assistant first. Without a name, it finishes a restore that was interrupted.

    > assistant backup restore nocturne-20261120T050000Z-daily.tar.gz --force
    > assistant backup restore ~/usb/nocturne.tar.gz --to ~/restored
    """
    settings = load_effective_settings()
    configure_logging("error")
    home = Home(to.expanduser().absolute()) if to is not None else settings.home
    restorer = build_restorer(settings)
    path = restorer.find(require_utf8(name, "NAME")) if name else None
    with home_lock(home.path):
        if report := finish_interrupted_restore(home.path):
            print_remark(report)
        if path is None:
            if not report:
                raise UsageError("Name the backup to restore; `assistant backup list` lists them. Nothing was changed.")
            return
        restored = restorer.restore(path, home.path, utc_now(), force=force)
    if json_out:
        print_json(_restored_json(restored))
    else:
        print_text("\n".join(_restored_lines(restored, settings)))


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def remove(names: tuple[str, ...]) -> None:
    """Remove backups for good.

    > assistant backup remove nocturne-20261120T050000Z-daily.tar.gz
    """
    settings = load_effective_settings()
    folder = BackupFolder(settings.home.path, settings.values.backup.folder)
    with folder.lock():
        for path in [folder.find(require_utf8(name, "NAME")) for name in names]:
            folder.remove(path)
            print_text(f"Removed {path.name}.")


backup = with_commands(backup_commands.backup, list_, verify, restore, remove)


# ----------------------------------------------------------------------------------------------------------- rendering


def _proved_json(proved: VerifiedBackup) -> dict[str, object]:
    manifest, report = proved.manifest, proved.report
    return {
        "path": str(proved.path),
        "made_at": manifest.made_at.isoformat(),
        "kind": manifest.kind,
        "program": manifest.program,
        "files": len(manifest.files),
        "bytes": manifest.bytes,
        "records": report.records,
        "sessions": report.sessions,
        "left_out": dict(manifest.left_out),
    }


def _proved_lines(proved: VerifiedBackup, settings: Settings) -> list[str]:
    manifest, report = proved.manifest, proved.report
    return [
        f"{proved.path.name}: your data folder on {format_local_time(manifest.made_at, settings.zone)}, "
        f"{pluralize(len(manifest.files), 'file')}, {format_bytes(manifest.bytes)}.",
        f"{pluralize(report.records, 'record')} of {pluralize(report.sessions, 'session')}: every file, the databases "
        "and the log are complete and unchanged.",
        *(f"Not in it: {name} ({why})." for name, why in manifest.left_out.items()),
    ]


def _restored_json(restored: RestoredHome) -> dict[str, object]:
    aside = restored.former_home
    return {
        "home": str(restored.home),
        "aside": str(aside) if aside else None,
        "said_again": list(restored.restored_erased_ids),
        "unfinished_forgetting": restored.erasure_unfinished,
        **_proved_json(restored.backup),
    }


def _restored_lines(restored: RestoredHome, settings: Settings) -> list[str]:
    lines = [f"Restored {restored.home}. {_proved_lines(restored.backup, settings)[1]}"]
    if restored.former_home:
        lines.append(f"What was there before is kept in {restored.former_home}; remove it when you no longer need it.")
    if restored.restored_erased_ids:
        some = ", ".join(f"#{message_id}" for message_id in restored.restored_erased_ids[:8])
        more = f" and {len(restored.restored_erased_ids) - 8} more" if len(restored.restored_erased_ids) > 8 else ""
        lines.append(f"Erased after this backup was made, and now back: messages {some}{more}. Erase them again.")
    if restored.erasure_unfinished:
        lines.append("An erasure was not finished in what was there before. Erase the same again.")
    return lines
