"""Proves an erasure: searches every byte of every file in the data folder for the text (in backups, every byte of their
content: `assistant.store.erasure.backups`), and reports each find with whose it is and what to do.

- Nothing is changed. Text is found in any encoding (`ByteSearch`); in databases also row by row, since a long text is
  split across pages.
- A database may rightly have the text in rows of other scopes: these are counted, and only further finds are reported.
- A guest's report covers only their own files, and never shows whether somebody else said the same (I10).
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from assistant.core.backups import parse_backup_name
from assistant.core.dataclass import dataclass
from assistant.core.erasure import ErasureLeftover
from assistant.core.errors import StoreError
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.backup.restore import PREVIOUS_HOME_PREFIX
from assistant.store.calendars import CALENDARS_DB
from assistant.store.character.memory_files import DAILY_NOTES_FOLDER, MEMORY_FILE
from assistant.store.database import Database
from assistant.store.derived import FILES_DB
from assistant.store.erasure.byte_search import ByteSearch, open_beside_sqlite
from assistant.store.erasure.files import CHAT_HISTORY_FILE
from assistant.store.erasure.finder import WORKSPACE, ErasureFinder
from assistant.store.erasure.own_words import (
    said_in_json,
    without_own_words,
    without_own_words_of_file,
    without_words_of_schema,
)
from assistant.store.erasure.plan import ErasurePlan, is_plan_file
from assistant.store.erasure.word_tables import PROGRAM_COLUMNS, PROGRAM_NAMES
from assistant.store.files import walk_files
from assistant.store.home.guard import PROGRAM_FILES, READ_AS_TEXT
from assistant.store.home.inventory import INVENTORY_FILE
from assistant.store.home.repair_files import BEFORE_REPAIR_PREFIX
from assistant.store.log.reader import LOG_NAME, session_folder_name
from assistant.store.search.files import FileIndex

_DATABASE = b"SQLite format 3\0"
# An index of everything that was said: it has no scopes.
_INDEX = "search.db"
# Tables that show the scope in another way. Earlier versions of deleted memories count as the owner's.
_WHOSE = {
    "history": "coalesce((SELECT scope FROM memories WHERE id = memory_id), 'owner')",
    "consolidated_entry_ids": "(SELECT scope FROM journal WHERE id = entry_id)",
}
# What the program writes, and databases; everything else in the data folder is the person's own.
_OF_THE_PROGRAM = frozenset(("run", "mem0", "models", "bridges", "backups", DAILY_NOTES_FOLDER, CHAT_HISTORY_FILE))
_IN_FOLDERS = frozenset(("log", "archive"))  # of the program, one folder per conversation
# What no erasure changes, by table: names that a person assigned, and what others say.
_NAMED_BY_PEOPLE = "the name of a person, an account or a room; `assistant people` changes or removes it"
_STAYS = dict.fromkeys(
    ("people", "identities", "rooms", "pairings", "accounts_at", "places", "told"), _NAMED_BY_PEOPLE
) | {"mcp_tools": "an MCP server says it of its tools; `assistant mcp remove NAME` removes what is kept of it"}


def list_files_to_search(home: Path) -> Iterator[Path]:
    """Return every plain file in the data folder, except for erasure plans, and backups, whose files are searched
    separately; links are not followed."""
    for path in walk_files(home):
        own = (path.parent == home and is_plan_file(path)) or parse_backup_name(path.name, 0) is not None
        # Files may be deleted meanwhile.
        with suppress(FileNotFoundError):
            if not own and stat.S_ISREG(path.lstat().st_mode):
                yield path


def _is_database_file(path: Path) -> bool:
    try:
        with open_beside_sqlite(path) as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class _RowCounts:
    """How often a database has the text: in rows of other scopes, and as names assigned by the program, indexes
    included; and in other rows, with their tables."""

    theirs: int
    names: int
    own: int
    tables: frozenset[str]


def _count_rows(path: Path, plan: ErasurePlan, *, long_only: bool) -> _RowCounts:
    """Count matching rows. `long_only`: only rows that SQLite may have split. Raises `StoreError`."""
    counts, tables = Counter[str](), set()
    with closing(Database.open_reader(path)) as db:
        # A record under a quarter of a page, header included, is never split, in any kind of table.
        min_bytes = db.value("PRAGMA page_size") // 5 if long_only else 0
        for row in db.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"):
            counted = _count_in_table(db, row["name"], plan, min_bytes)
            counts.update(counted)
            tables |= {row["name"]} if counted["own"] else set()
    return _RowCounts(counts["theirs"], counts["names"], counts["own"], frozenset(tables))


def _count_in_table(db: Database, table: str, plan: ErasurePlan, min_bytes: int) -> Counter[str]:
    columns = db.column_names(table)
    whose = _WHOSE.get(table, "scope" if "scope" in columns else None)
    length = " + ".join(f'coalesce(length(CAST("{column}" AS BLOB)), 0)' for column in columns)
    sql = "SELECT i.name FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS i WHERE i.name IS NOT NULL"
    indexed = [row["name"] for row in db.rows(sql, (table,))]
    counts, names = Counter[str](), (*PROGRAM_NAMES.get(table, ()), *PROGRAM_COLUMNS)
    for row in db.iterate(f"SELECT {whose or 'NULL'} AS whose, * FROM {table} WHERE {length} >= ?", (min_bytes,)):
        values = {column: row[column].encode(errors="replace") for column in columns if isinstance(row[column], str)}
        if not plan.wording.match_ends(b"\0".join(values.values())):
            continue
        whose = "own" if row["whose"] in (None, plan.scope) else "theirs"
        for column, value in values.items():
            times = 1 + indexed.count(column)
            found = len(plan.wording.match_ends(value))
            said = _count_said(value, plan) if found and column not in names else 0
            counts["names"] += (found - said) * times
            counts[whose] += said * (1 if whose == "own" else times)
    return counts


def _count_said(value: bytes, plan: ErasurePlan) -> int:
    """Return how often a value of a row has the text; of JSON, what the program itself puts into it does not count."""
    said = said_in_json(value.decode()).encode() if value.startswith((b"{", b"[")) else value
    return len(plan.wording.match_ends(said))


_IN_NAME = "the name of a conversation has the words; each of its records has it, and it cannot be changed"


def search_home_for_remains(finder: ErasureFinder, plan: ErasurePlan) -> tuple[list[ErasureLeftover], int]:
    """Return what is left, by file, and the number of files read."""
    leftovers, searched = [], 0
    own = _own_folders(finder, plan)
    is_name = any(map(plan.wording.matches, finder.sessions_of_scope(plan.scope)))
    search = ByteSearch(plan)
    for path in list_files_to_search(finder.home):
        searched += 1
        name = path.relative_to(finder.home).as_posix()
        try:
            count = search.count_in_file(path)
            if path.suffix == ".db" and _is_database_file(path):
                leftover = _describe_database(path, name, count, finder, plan)
            else:
                count = count and _count_what_was_said(search, path, name, plan)
                leftover = _describe_remain(path, name, count, own, finder, plan) if count else None
            leftover = leftover or _describe_name(name, plan)
        except StoreError as error:
            leftover = ErasureLeftover(name, 1, f"not searched: {error}")
        if (
            leftover is not None
            and is_name
            and leftover.kind == "not_done"
            and (".db" in name or name.startswith("log/"))
        ):
            leftover = replace(leftover, why=_IN_NAME, kind="conversation_name")
        if leftover is not None and (plan.scope == OWNER_SCOPE or leftover.kind != "other_scope"):
            leftovers.append(leftover)
    leftovers += _describe_own_files(plan, {leftover.where for leftover in leftovers})
    return [*leftovers, *_describe_mentions(plan)], searched


def _count_what_was_said(search: ByteSearch, path: Path, name: str, plan: ErasurePlan) -> int:
    """Return how often a file with the text has it in what somebody said, where the program's own words can be told
    from that: in logs, archives and lists of its own; in the part of a database that is not in its file yet, by its
    rows."""
    top = name.partition("/")[0]
    if top in _IN_FOLDERS:
        return search.count_in_file(path, without_own_words)
    if name == INVENTORY_FILE:
        return 0
    if top in _OF_THE_PROGRAM and name.endswith(".json"):
        return search.count_in_file(path, without_own_words_of_file)
    database = path.with_name(path.name.removesuffix("-wal").removesuffix("-shm"))
    if database == path or not _is_database_file(database):
        return search.count_in_file(path)
    rows = _count_rows(database, plan, long_only=False)
    with closing(Database.open_reader(database)) as db:
        are_own = rows.names or without_words_of_schema(db, plan) != plan
    return 0 if are_own and not rows.own and not rows.theirs else search.count_in_file(path)


def _describe_name(name: str, plan: ErasurePlan) -> ErasureLeftover | None:
    """Describe a person's own file that has the text in its name, or in that of a folder."""
    top = name.partition("/")[0]
    is_named_by_us = top.removesuffix("-wal").removesuffix("-shm") in PROGRAM_FILES | READ_AS_TEXT
    is_own = plan.scope == OWNER_SCOPE and not is_named_by_us and top not in _OF_THE_PROGRAM | _IN_FOLDERS
    if not (is_own and plan.unique.matches(name)):
        return None
    return ErasureLeftover(name, 1, "your own file has it in its name: rename it, or remove it", "own_file")


def _describe_mentions(plan: ErasurePlan) -> Iterator[ErasureLeftover]:
    if plan.mentions:
        count = len(plan.mentions)
        named = ", ".join(f"#{message}" for message in plan.mentions[:_MOST_NAMED])
        more = f" and {count - _MOST_NAMED} more" if count > _MOST_NAMED else ""
        have = "a later answer, has a word" if count == 1 else "later answers, have words"
        why = f"{named}{more}, {have} that only this said; forget them by these numbers, or such a word, in quotes"
        yield ErasureLeftover("message log", count, why, "same_words")


def _own_folders(finder: ErasureFinder, plan: ErasurePlan) -> dict[str, str]:
    """Return the folders of the scope, relative to the data folder, with their session."""
    sessions = finder.sessions_of_scope(plan.scope)
    folders = {f"{kind}/{session_folder_name(key)}/": key for key in sessions for kind in ("log", "archive")}
    if plan.scope != OWNER_SCOPE:
        folders[f"{DAILY_NOTES_FOLDER}/{session_folder_name(plan.scope)}/"] = ""
    return folders


def _describe_remain(
    path: Path, name: str, count: int, own: dict[str, str], finder: ErasureFinder, plan: ErasurePlan
) -> ErasureLeftover:
    session = next((key for folder, key in own.items() if name.startswith(folder)), None)
    top, _, rest = name.partition("/")
    if name.startswith((PREVIOUS_HOME_PREFIX, BEFORE_REPAIR_PREFIX)):
        return _of_previous_home(name, count)
    if session is not None:
        in_log = path.name == LOG_NAME
        return _still_in_log(name, count, session, finder, plan) if in_log else _still_there(name, count, plan)
    is_in_folder = top in _IN_FOLDERS and "/" in rest
    if plan.scope != OWNER_SCOPE or is_in_folder or (top == DAILY_NOTES_FOLDER and "/" in rest):
        return _of_others(name, count)
    if top in _OF_THE_PROGRAM or name.startswith((".", MEMORY_FILE)) or ".db" in name:
        return _still_there(name, count, plan)
    why = "your own file (an export, for example): change it, or remove it, if you do not want the words there"
    return ErasureLeftover(name, count, why, "own_file")


def _describe_database(
    path: Path, name: str, count: int, finder: ErasureFinder, plan: ErasurePlan
) -> ErasureLeftover | None:
    if name.startswith((PREVIOUS_HOME_PREFIX, BEFORE_REPAIR_PREFIX)):
        return _of_previous_home(name, count) if count else None
    only_said = plan
    if count:
        with closing(Database.open_reader(path)) as db:
            only_said = without_words_of_schema(db, plan)
        count = ByteSearch(only_said).count_in_file(path)
    if name == _INDEX and count:
        others = finder.values_of_others(plan) | finder.values_in_files(plan)
        values, runs = _without(only_said.values, others), _without(only_said.runs, others)
        in_bytes = ByteSearch(replace(only_said, values=values, runs=runs)).count_in_file(path)
        names = _count_rows(path, plan, long_only=False).names
        if in_bytes > names:
            return _still_there(name, in_bytes - names, plan)
        return _of_others(name, count - names) if count > names else None
    if name == FILES_DB and plan.scope == OWNER_SCOPE:
        return _describe_file_index(path, count, plan)
    if name == CALENDARS_DB:
        return _describe_calendars(path, count, plan)
    rows = _count_rows(path, plan, long_only=not count)
    if rows.tables and plan.scope == OWNER_SCOPE and rows.tables <= _STAYS.keys():
        return ErasureLeftover(name, rows.own, _STAYS[min(rows.tables)], "own_file")
    left = max(count - rows.theirs - rows.names, rows.own)
    if left > 0:
        return _still_there(name, left, plan)
    return _of_others(name, count) if count > rows.names else None


def _describe_calendars(path: Path, count: int, plan: ErasurePlan) -> ErasureLeftover | None:
    """Describe finds in cached calendars, which come from their servers and are all the owner's: a guest learns nothing
    of them."""
    said = count or _count_rows(path, plan, long_only=True).own
    if not said or plan.scope != OWNER_SCOPE:
        return None
    why = "your own calendar or address book says the same; change it there, and it is gone here with the next reading"
    return ErasureLeftover(CALENDARS_DB, said, why, "own_file")


def _describe_file_index(path: Path, count: int, plan: ErasurePlan) -> ErasureLeftover | None:
    """Describe finds in the index of files: files that stay may contain the same text themselves."""
    rows = _count_rows(path, replace(plan, scope=""), long_only=not count)
    files = rows.theirs
    if max(count - files, rows.own) > 0:
        return _still_there(FILES_DB, max(count - files, rows.own), plan)
    if not files:
        return None
    with closing(FileIndex(path, reading=True)) as index:
        names = index.files_with_words(plan.wording)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    shown = f"{', '.join(names[:_MOST_NAMED])}{more}"
    return ErasureLeftover(shown, files, "your own file says the same, and stays searchable", "own_file")


_MOST_NAMED = 5


def _describe_own_files(plan: ErasurePlan, named: Collection[str]) -> Iterator[ErasureLeftover]:
    """Describe files that the byte search cannot check: outside of the data folder, or documents."""
    for path in plan.own_files:
        if f"{WORKSPACE}/{path}" not in named:
            why = "your own file, which is not searched any more; change it, or remove it, to have the words gone"
            yield ErasureLeftover(path, 1, why, "own_file")


def _without(values: tuple[str, ...], others: set[str]) -> tuple[str, ...]:
    return tuple(value for value in values if value not in others)


def _of_previous_home(name: str, count: int) -> ErasureLeftover:
    top = name.partition("/")[0]
    why = f"your data as it was before a restore or a repair: remove {top} if you do not need it any more"
    return ErasureLeftover(name, count, why, "former_home")


def _of_others(name: str, count: int) -> ErasureLeftover:
    why = "another person's: they said the same words"
    return ErasureLeftover(name, count, why, "other_scope")


def _still_there(name: str, count: int, plan: ErasurePlan) -> ErasureLeftover:
    if plan.everywhere:
        return ErasureLeftover(name, count, "not done: forget it again, and see what is reported for this file")
    why = "the same words in something else that was said; forget the words themselves to have them gone there too"
    return ErasureLeftover(name, count, why, "same_words")


def _still_in_log(name: str, count: int, session: str, finder: ErasureFinder, plan: ErasurePlan) -> ErasureLeftover:
    also = sum(1 for _ in finder.find_records_with_words(session, plan.wording))
    if not also:
        why = "not done: the words are in a part of the log that cannot be changed (a sender's name, for example)"
        return ErasureLeftover(name, count, why)
    says = "1 message says" if also == 1 else f"{also} messages say"
    why = f"{says} the same; `assistant log --grep TEXT` finds them. Forget them, or the words themselves, too"
    return ErasureLeftover(name, count, why, "same_words")
