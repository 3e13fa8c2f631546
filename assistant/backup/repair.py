"""Repairs a damaged data folder (`assistant verify --repair`) from what is readable, the message log, backups and
archives together.

It never goes back in time: backups only fill what is unreadable, and newer data stays. Damaged files are kept under
another name. Losses are reported as far as they can be determined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path

from assistant.backup.restore import UnpackedStores
from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, StoreError
from assistant.core.records import IntegrityProblem, IntegrityReport
from assistant.core.text import pluralize
from assistant.store.archive.archive import StoredArchive
from assistant.store.archive.restore import write_log_copy
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.tarball import unpack_backup_file
from assistant.store.database import Database
from assistant.store.derived import FILES_DB, MEMORY_DB, SEARCH_DB, set_aside
from assistant.store.files import WriteThrottle
from assistant.store.home.closed_file import read_mark
from assistant.store.home.inventory import (
    CHARACTER_DB,
    SCRIPT_DB,
    Inventory,
    count_held,
    describe_change,
    describe_lost_commits,
    find_loss,
    list_shortfall,
    raise_mark,
    read_inventory,
)
from assistant.store.home.repair_files import (
    begin_work,
    end_work,
    finish_interrupted_repair,
    made_databases,
    put_in_place,
    repair_errors,
    work_folder,
)
from assistant.store.log.reader import LogFiles
from assistant.store.log.rebuild import LogCopies, LogCopy
from assistant.store.schema.migrations import (
    character_migrations,
    files_migrations,
    memory_migrations,
    script_migrations,
    search_migrations,
)
from assistant.store.verify.salvage import Salvage, drop_dangling, find_damage, salvage_database

_MIGRATIONS = {SCRIPT_DB: script_migrations, CHARACTER_DB: character_migrations}
_DERIVED = {MEMORY_DB: memory_migrations, SEARCH_DB: search_migrations, FILES_DB: files_migrations}
_REMADE = {
    SCRIPT_DB: "",
    CHARACTER_DB: " `assistant memory rebuild --from-log` reads the message log again for what the journal lacks.",
}

OpenStores = Callable[[Path, datetime], AbstractContextManager[UnpackedStores]]


@dataclass(frozen=True, slots=True)
class _Copy:
    """An unpacked backup."""

    made_at: datetime
    home: Path

    def logs(self) -> LogCopy:
        return LogCopy(LogFiles(self.home), f"the backup of {self.made_at:%Y-%m-%d %H:%M} UTC")


@dataclass(slots=True)
class _Outcome:
    repaired: list[str] = field(default_factory=list)
    gone: list[IntegrityProblem] = field(default_factory=list)


class HomeRepairer:
    def __init__(self, home: Path, folder: BackupFolder, open_stores: OpenStores) -> None:
        self._home = home
        self._folder = folder
        self._open_stores = open_stores

    def repair(self, now: datetime) -> IntegrityReport:
        """Repair the data folder, whose lock the caller holds. Raises `StoreError`; the old files are then still
        there."""
        finish_interrupted_repair(self._home)
        outcome = _Outcome()
        # Before anything opens them.
        outcome.gone += [IntegrityProblem("store", "databases", line) for line in describe_lost_commits(self._home)]
        begin_work(self._home)
        inventory = self._inventory()
        copies = self._unpack_backups(outcome)
        newest = next(copies, None)
        self._repair_databases(newest, inventory, outcome, now)
        with self._open_stores(self._home, now) as stores:
            others = self._list_other_logs(stores.archive, copies, outcome)
            logs = LogCopies(None if newest is None else newest.logs(), others)
            report = stores.verifier.repair(now, logs)
        if inventory is not None:
            outcome.gone += self._shortfalls(inventory)
        end_work(self._home)
        return replace(
            report, problems=(*outcome.gone, *report.problems), repaired=(*outcome.repaired, *report.repaired)
        )

    def _inventory(self) -> Inventory | None:
        try:
            return read_inventory(work_folder(self._home))
        except CorruptStore:
            return None

    def _unpack_backups(self, outcome: _Outcome) -> Iterator[_Copy]:
        """Return the intact backups, newest first, with their databases migrated."""
        try:
            backups = self._folder.list_backups()
        except StoreError as error:
            outcome.repaired.append(f"{error} No backup was used.")
            return
        for number, backup in enumerate(reversed(backups)):
            target = work_folder(self._home) / f"backup-{number}"
            try:
                unpack_backup_file(self._folder.path / backup.name, target, WriteThrottle(throttled=False))
                for name, migrations in _MIGRATIONS.items():
                    Database.open(target / name, migrations, backup.made_at, keep_copy=False).close()
            except CorruptStore as error:
                outcome.gone.append(IntegrityProblem("backup", backup.name, str(error)))
            else:
                yield _Copy(backup.made_at, target)

    def _list_other_logs(
        self, archive: StoredArchive, backups: Iterator[_Copy], outcome: _Outcome
    ) -> Iterator[LogCopy]:
        """Unpack further backups only if the log and the newest backup are incomplete: a backup's log may have been
        damaged already, but not in an earlier backup."""
        target = work_folder(self._home) / "archives"
        with repair_errors(self._home):
            outcome.gone += [IntegrityProblem("archive", "archive", text) for text in write_log_copy(archive, target)]
        yield LogCopy(LogFiles(target), "archives")
        yield from (copy.logs() for copy in backups)

    def _repair_databases(
        self, copy: _Copy | None, inventory: Inventory | None, outcome: _Outcome, now: datetime
    ) -> None:
        made = False
        for name, migrations in _MIGRATIONS.items():
            why = find_loss(self._home, name, inventory) or find_damage(self._home / name, migrations)
            if not why:
                if inventory is not None and (remark := describe_change(self._home, name, inventory)):
                    outcome.gone.append(IntegrityProblem("store", name, remark))
                continue
            made = True
            source = self._home / name
            copies = [] if copy is None else [copy.home / name]
            if why.startswith("is older") and copies and read_mark(copies[0]) > read_mark(source):
                source, copies = copies[0], []
            target = made_databases(self._home) / name
            salvage = salvage_database(source, copies, target, migrations, now)
            with closing(Database.open_unmigrated(target)) as database:
                if name == CHARACTER_DB:
                    # The index is the first step for script.db.
                    with database.write() as db:
                        drop_dangling(db)
                raise_mark(database, max(1, inventory.entry(name).mark if inventory is not None else 1))
            _describe(outcome, name, why, salvage, copy)
        if made:
            put_in_place(self._home, now)
        for name, migrations in _DERIVED.items():
            if find_damage(self._home / name, migrations):
                set_aside(self._home / name)
                outcome.repaired.append(f"{name} is damaged; the assistant makes it again when it runs.")

    def _shortfalls(self, inventory: Inventory) -> Iterator[IntegrityProblem]:
        for name in _MIGRATIONS:
            with closing(Database.open_reader(self._home / name)) as database:
                for line in list_shortfall(inventory.entry(name).held, count_held(database)):
                    when = f"{inventory.at:%Y-%m-%d %H:%M} UTC"
                    yield IntegrityProblem("gone", name, f"gone since {when}: {line}.{_REMADE[name]}")


def _describe(outcome: _Outcome, name: str, why: str, salvage: Salvage, copy: _Copy | None) -> None:
    rows = f"{pluralize(salvage.rows, 'row')} of it"
    filled = f", {salvage.rows_from_copy:,} from the backup of {copy.made_at:%Y-%m-%d %H:%M} UTC" if copy else ""
    outcome.repaired.append(f"{name} {why}. It was made again: {rows} could be read{filled}.")
    if salvage.incomplete_tables:
        backup = "newer than the newest backup" if copy else "of them (there is no backup)"
        outcome.gone.append(
            IntegrityProblem(
                "gone",
                name,
                f"not all could be read of {', '.join(salvage.incomplete_tables)}: what was there and {backup} is gone",
            )
        )
