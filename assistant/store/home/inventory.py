"""Records the state of each store of a data folder outside of the stores (`stores.json`), so that a store that is
missing, empty, or older than before can be distinguished from a new one.

- Each database that cannot be rebuilt has a mark, a number that only grows (`PRAGMA user_version`). It is raised in the
  database first and recorded here afterwards, so after a crash a database is at this mark or beyond; an older copy of
  it is not.
- Counts of content are only for people to read. Erasures and resets lower counts, never a mark.
- A fingerprint is that of a closed file: it is written when the stores are closed, and is outdated once the database
  has a higher mark. If such a file differs, another program, or the disk, changed it.
- A mark is settled once a checkpoint has moved it into the file itself. A file with a lower mark than that is an older
  copy, even if the write-ahead log next to it makes its mark look new.
- Later commits are in the write-ahead log of a store whose process was killed. If its end is missing or damaged, people
  are told once, because the first connection accepts the rest as complete (`wal_loss.py`).
- The file is replaced in one step and has a checksum. Without it nothing is refused: it is written again, and people
  are told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, StoreError, StoreLost
from assistant.core.plain_files import read_own_file
from assistant.core.text import pluralize
from assistant.store.database import Database
from assistant.store.derived import DERIVED_DATABASES
from assistant.store.files import replace_file
from assistant.store.home.closed_file import ClosedFile, fingerprint, read_mark, read_settled_mark
from assistant.store.home.wal_loss import has_lost_commits
from assistant.store.log.reader import LOG_NAME
from assistant.store.rows import dump_json, parse_time
from assistant.store.schema.creation import FIRST_MARK
from assistant.store.schema.migrations import character_migrations, script_migrations
from assistant.store.verify.salvage import find_damage

INVENTORY_FILE = "stores.json"
SCRIPT_DB, CHARACTER_DB = "script.db", "character.db"
# What people count of each store, with the singular and plural word.
_COUNTED: Mapping[str, Mapping[str, str]] = {
    SCRIPT_DB: {
        "received message": "SELECT coalesce(max(id), 0) FROM inbox",
        "delivery": "SELECT coalesce(max(id), 0) FROM outbox",
        "reminder": "SELECT count(*) FROM jobs WHERE kind = 'reminder' AND state IN ('active', 'paused')",
        "schedule": "SELECT count(*) FROM jobs WHERE kind <> 'reminder' AND state IN ('active', 'paused')",
        "compaction": "SELECT count(*) FROM checkpoints WHERE state = 'live'",
        "person": "SELECT count(*) FROM people",
    },
    CHARACTER_DB: {
        "journal entry": "SELECT count(*) FROM journal",
        "to-do": "SELECT count(*) FROM todos",
        "pinned text": "SELECT count(*) FROM pins",
        "profile": "SELECT count(*) FROM entity_profiles",
        "sleep": "SELECT count(*) FROM sleep_cycles",
    },
}
_PLURALS = {"person": "people", "journal entry": "journal entries", "delivery": "deliveries"}
_SOURCES = {
    SCRIPT_DB: "The message log has what was said; reminders, people and summaries are in a backup only",
    CHARACTER_DB: "The journal can be made again from the message log; to-dos, pins and profiles are in a backup only",
}
_MIGRATIONS = {SCRIPT_DB: script_migrations, CHARACTER_DB: character_migrations}


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """What is recorded about one store."""

    mark: int = 0
    held: Mapping[str, int] = field(default_factory=dict)  # by the singular word
    fingerprint: str = ""  # of the closed file; "" while it may be written
    settled: int = 0  # the newest mark that the file has without its write-ahead log, as far as is known


@dataclass(frozen=True, slots=True)
class Inventory:
    """What is recorded about all stores of a data folder."""

    at: datetime
    stores: Mapping[str, StoreEntry]

    def entry(self, name: str) -> StoreEntry:
        """Return what is recorded about a store; an empty entry if nothing is."""
        return self.stores.get(name, StoreEntry())


def read_inventory(home: Path) -> Inventory | None:
    """Return the inventory, None if there is none. Raises `CorruptStore` if it is damaged, `StoreError`."""
    path = home / INVENTORY_FILE
    try:
        data = read_own_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from error
    checksum, _, body = data.partition(b"\n")
    try:
        if checksum.decode() != hashlib.sha256(body).hexdigest():
            raise ValueError("its checksum differs")
        content = json.loads(body)
        stores = {name: StoreEntry(**entry) for name, entry in content["stores"].items()}
        return Inventory(parse_time(content["at"]), stores)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptStore(f"{path} is damaged. It is made again at the next start.") from error


def write_inventory(home: Path, inventory: Inventory) -> None:
    """Replace the inventory in one step, durably. Raises `StoreError`."""
    body = f"{dump_json(inventory)}\n".encode()
    try:
        replace_file(home / INVENTORY_FILE, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    except OSError as error:
        raise StoreError(f"{home / INVENTORY_FILE} was not written: {error.strerror}.") from error


def discard_fingerprints(home: Path) -> None:
    """Discard the fingerprints, before a database is written without opening all stores."""
    with suppress(StoreError):
        inventory = read_inventory(home)
        if inventory is not None and any(entry.fingerprint for entry in inventory.stores.values()):
            entries = {name: replace(entry, fingerprint="") for name, entry in inventory.stores.items()}
            write_inventory(home, replace(inventory, stores=entries))


# ------------------------------------------------------------------------------------------------------------- checking


def require_stores(home: Path) -> None:
    """Check that the databases that cannot be rebuilt exist and are not older than recorded. Fast, changes nothing,
    needs no lock. Raises `StoreLost`."""
    try:
        inventory = read_inventory(home)
    except StoreError:
        inventory = None
    for name in _COUNTED:
        if why := find_loss(home, name, inventory, look_closely=False):
            raise StoreLost(_describe_loss(home, name, why, inventory))


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """Findings about the stores at start-up."""

    inventory: Inventory | None
    remarks: tuple[str, ...] = ()  # for people, one line each
    derived_changed: tuple[str, ...] = ()  # databases to rebuild, since they changed after they were closed


def check_stores(home: Path) -> StoreCheck:
    """Check the stores before they are opened, holding the lock of the data folder. Raises `StoreLost` for a store that
    is missing, empty, damaged, or older than recorded."""
    # Before anything opens them.
    remarks = [*describe_lost_commits(home)]
    inventory: Inventory | None = None
    try:
        inventory = read_inventory(home)
        if inventory is None and any(read_mark(home / name) > FIRST_MARK for name in _COUNTED):
            remarks.append(f"{INVENTORY_FILE} was missing, so a loss before this start would not be noticed.")
    except CorruptStore:
        remarks.append(f"{INVENTORY_FILE} was damaged, so a loss before this start would not be noticed.")
    is_closed = True
    for name in _COUNTED:
        file = ClosedFile(home / name)
        if why := _find_loss(file, inventory):
            raise StoreLost(_describe_loss(home, name, why, inventory))
        if inventory is None:
            continue
        is_closed &= file.mark == inventory.entry(name).mark
        if remark := _describe_change(file, inventory):
            remarks.append(remark)
    changed: tuple[str, ...] = ()
    if inventory is not None and is_closed:
        known = {name: entry for name, entry in inventory.stores.items() if name in DERIVED_DATABASES}
        changed = tuple(name for name, entry in known.items() if _is_derived_changed(home / name, entry))
    return StoreCheck(inventory, tuple(remarks), changed)


def describe_lost_commits(home: Path) -> Iterator[str]:
    """Return a line for each database whose process was killed and which has lost its last commits. Call it before
    anything opens them, in this process above all. Raises `StoreError`."""
    since = ""
    with suppress(CorruptStore):
        if (inventory := read_inventory(home)) is not None:
            since = f" after {inventory.at:%Y-%m-%d %H:%M} UTC"
    for name in filter(lambda name: has_lost_commits(home / name), _COUNTED):
        yield (
            f"{name} lost what was written to it last: {name}-wal is cut off or damaged. {_SOURCES[name]}. Check what "
            f"you changed{since}."
        )


def describe_change(home: Path, name: str, inventory: Inventory) -> str:
    """Return a line for people if a database file is intact but changed after it was closed; else "". See `find_loss`
    for who may call it."""
    return _describe_change(ClosedFile(home / name), inventory)


def _describe_change(file: ClosedFile, inventory: Inventory) -> str:
    name = file.path.name
    if not file.is_changed(inventory.entry(name)):
        return ""
    return (
        f"{name} was changed while the assistant was not running, and is intact. If that was not you, its disk may be "
        "failing: compare it with a backup (`assistant backup list`)."
    )


def find_loss(home: Path, name: str, inventory: Inventory | None, *, look_closely: bool = True) -> str:
    """Describe what is wrong with a database that cannot be rebuilt, as the end of a sentence; "" if nothing. With
    `look_closely`, the caller holds the lock of the data folder and has none of its databases open."""
    return _find_loss(ClosedFile(home / name), inventory, look_closely=look_closely)


def _find_loss(file: ClosedFile, inventory: Inventory | None, *, look_closely: bool = True) -> str:
    path, name = file.path, file.path.name
    if why := _absence(path.parent, name, inventory):
        return why
    if not path.exists():
        return ""
    entry = inventory.entry(name) if inventory is not None else StoreEntry()
    try:
        if file.mark < entry.mark or (look_closely and read_settled_mark(path) < entry.settled):
            return "is older than it was"
        if look_closely and file.is_changed(entry):
            return find_damage(path, _MIGRATIONS[name])
    except CorruptStore:
        return "is damaged"
    return ""


def _absence(home: Path, name: str, inventory: Inventory | None) -> str:
    path = home / name
    known = inventory is not None and inventory.entry(name).mark > 0
    if name == SCRIPT_DB and not known:
        # An earlier version wrote no inventory, but has a log.
        known = any(path.stat().st_size for path in home.glob(f"log/*/{LOG_NAME}"))
    if not known or path.is_dir():
        return ""
    if not path.exists():
        return "is missing"
    if not path.is_file():
        return "is not a plain file"
    return "is empty" if path.stat().st_size == 0 and not path.with_name(f"{name}-wal").exists() else ""


def _describe_loss(home: Path, name: str, why: str, inventory: Inventory | None) -> str:
    entry = inventory.entry(name) if inventory is not None else StoreEntry()
    held = describe_counts(entry.held)
    had = f" On {inventory.at:%Y-%m-%d %H:%M} UTC it had {held}." if inventory is not None and held else ""
    return (
        f"{home / name} {why}.{had} {_SOURCES[name]}. Nothing was changed; `assistant verify --repair` makes it again "
        "from what is left, the log and the newest backup, and lists what is gone."
    )


def describe_counts(held: Mapping[str, int]) -> str:
    """Format counts like "2 reminders and 1 compaction"; "" if all are zero."""
    counts = [_number_of(count, word) for word, count in held.items() if count]
    return " and ".join(filter(None, (", ".join(counts[:-1]), *counts[-1:])))


def _number_of(count: int, word: str) -> str:
    return pluralize(count, word, _PLURALS.get(word, ""))


def count_held(database: Database) -> dict[str, int]:
    """Count the content of an open store. Raises `StoreError`."""
    return {word: int(database.value(sql)) for word, sql in _COUNTED[database.path.name].items()}


def list_shortfall(before: Mapping[str, int], now: Mapping[str, int]) -> Iterator[str]:
    """Return a line for each count that is lower than recorded."""
    for word, count in before.items():
        if missing := max(0, count - now.get(word, 0)):
            yield f"{pluralize(missing, word, _PLURALS.get(word, ''))} of {count:,}"


def _mark(database: Database) -> int:
    return int(database.value("PRAGMA user_version"))


def _empty_wal(database: Database) -> bool:
    """Move all of the write-ahead log into the file and truncate it; returns whether no reader kept it from that."""
    return not database.value("PRAGMA wal_checkpoint(TRUNCATE)")


def raise_mark(database: Database, mark: int) -> None:
    """Committed on return. Raises `StoreError`."""
    with database.write() as db:
        db.execute(f"PRAGMA user_version = {mark}")


def _raise_mark(database: Database, recorded: int) -> int:
    """Return the mark of a database that was changed since `recorded`. A new one has its first mark already: raising it
    would make a start wait for the disk."""
    mark = _mark(database)
    if recorded or mark != FIRST_MARK:
        mark = max(mark, recorded) + 1
        raise_mark(database, mark)
    return mark


def _is_derived_changed(path: Path, entry: StoreEntry) -> bool:
    if path.is_dir():
        # The code that opens it says so.
        return False
    return not path.exists() or (bool(entry.fingerprint) and fingerprint(path) != entry.fingerprint)


# ------------------------------------------------------------------------------------------------------------ recording


class StoreRecorder:
    """Maintains the inventory of a data folder whose databases are open."""

    def __init__(self, home: Path, databases: tuple[Database, ...], found: StoreCheck) -> None:
        self._home = home
        self._databases = databases
        self._inventory = found.inventory
        self._seen: dict[Database, tuple[int, int]] = {}

    def record_opened(self, now: datetime) -> None:
        """Like `record`, but leave the write-ahead logs as they are: the last closing emptied them, and somebody waits
        for the start."""
        self._record(now, lambda database: False)

    def record(self, now: datetime) -> None:
        """Raise the marks, and record what the stores hold, if anything changed. Raises `StoreError`; the earlier
        inventory then stays valid."""
        self._record(now, Database.checkpoint)

    def record_closing(self, now: datetime) -> None:
        """Raise the marks and empty the write-ahead logs before the databases are closed; `record_closed` records that.
        Raises `StoreError`."""
        try:
            for database in self._databases:
                database.require_same_file()
        except StoreError:
            # What is in its place now is another data folder, or none.
            self._inventory = None
            raise
        self._note(now, lambda database: False)
        if self._inventory is None:
            return
        stores = dict(self._inventory.stores)
        for name in (database.path.name for database in self._databases if _empty_wal(database)):
            stores[name] = replace(stores[name], settled=stores[name].mark)
        self._inventory = replace(self._inventory, stores=stores)

    def _record(self, now: datetime, settle: Callable[[Database], bool]) -> None:
        if (inventory := self._note(now, settle)) is not None:
            try:
                write_inventory(self._home, inventory)
            except StoreError:
                self._seen = {}
                raise

    def _note(self, now: datetime, settle: Callable[[Database], bool]) -> Inventory | None:
        """Note what the stores hold, with higher marks; None if nothing changed. `settle` moves the write-ahead log
        into the file, and returns whether all of it is there."""
        changes = {database: database.version() for database in self._databases}
        if changes == self._seen:
            return None
        entries = {}
        for database, version in changes.items():
            name = database.path.name
            before = self._inventory.entry(name) if self._inventory is not None else StoreEntry()
            mark, held = before.mark, before.held
            if version != self._seen.get(database):
                mark, held = _raise_mark(database, before.mark), count_held(database)
            settled = mark if settle(database) else before.settled
            entries[name] = StoreEntry(mark, held, settled=settled)
        for name in DERIVED_DATABASES:
            if (self._home / name).exists():
                entries[name] = StoreEntry()
        self._inventory, self._seen = Inventory(now, entries), changes
        return self._inventory

    def record_closed(self) -> None:
        """Record the state and fingerprints after the databases were closed. Raises `StoreError`."""
        if self._inventory is None:
            return
        names = dict.fromkeys((*self._inventory.stores, *DERIVED_DATABASES))
        entries = {
            name: replace(self._inventory.entry(name), fingerprint=fingerprint(self._home / name))
            for name in names
            if (self._home / name).exists()
        }
        write_inventory(self._home, replace(self._inventory, stores={**self._inventory.stores, **entries}))
