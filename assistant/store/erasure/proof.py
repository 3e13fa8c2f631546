"""The proof of an erasure: every byte of every file under the home is searched for the words (in backups, every byte of
what they hold: `assistant.store.erasure.backups`), and each find is reported so that a person knows whose it is and
what to do.

What always holds:
- Nothing is changed. Files are read as they are, gzip unpacked; words are found in UTF-8 and as JSON escapes them.
- A database file may rightly have the words in rows of other scopes: these are counted, and what exceeds them is
  reported.
- Databases are read in another process: a process that closes any descriptor of a file releases every lock that SQLite
  has on it there, and the next close of the same database would remove its write-ahead log under an open connection.
- A guest is told of their own places alone, never whether somebody else said the same (I10).
"""

from __future__ import annotations

import gzip
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from assistant.core.backups import parse_backup_name
from assistant.core.erasure import ErasureLeftover, PhraseMatcher
from assistant.core.errors import StoreError
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.backup.restore import PREVIOUS_HOME_PREFIX
from assistant.store.character.memory_files import DAILY_NOTES_FOLDER
from assistant.store.database import Database, column_names
from assistant.store.erasure.finder import ErasureFinder
from assistant.store.erasure.plan import ErasurePlan, is_plan_file
from assistant.store.log.reader import LOG_NAME, session_folder_name

_BLOCK = 4 << 20
# Longer than any phrase, its spaces and escapes included.
_OVERLAP = 64 << 10
_DATABASE = b"SQLite format 3\0"
# Tables that tell otherwise whose a row is. What memories that are gone said before is the owner's.
_WHOSE = {
    "history": "coalesce((SELECT scope FROM memories WHERE id = memory_id), 'owner')",
    "consolidated_entry_ids": "(SELECT scope FROM journal WHERE id = entry_id)",
}


def list_files_to_search(home: Path) -> Iterator[Path]:
    """Every plain file under the home but the plans of erasures themselves, and backups, whose files are searched
    one by one; links are not followed."""
    for path in sorted(home.rglob("*")):
        own = (path.parent == home and is_plan_file(path)) or parse_backup_name(path.name, 0) is not None
        # Files may go meanwhile.
        with suppress(FileNotFoundError):
            if not own and stat.S_ISREG(path.lstat().st_mode):
                yield path


def count_words_in_file(path: Path, wording: PhraseMatcher) -> int:
    """How often a file has the words. Raises `StoreError` where it cannot be read."""
    try:
        with _read(path) as file:
            return _copies(gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file, wording)
    except FileNotFoundError:
        return 0
    except (OSError, EOFError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


@contextmanager
def _read(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, from its beginning. Raises `OSError`, also at the end where not all could be read."""
    if ".db" not in path.suffixes and not path.suffix.startswith(".db-"):
        with path.open("rb") as file:
            yield file
        return
    path.stat()
    with subprocess.Popen(("cat", "--", path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reading:
        assert reading.stdout is not None
        yield reading.stdout
        all_read = not reading.stdout.read(1)
    if all_read and reading.returncode:
        path.stat()
        raise OSError("it could not be read to its end")


def _copies(file: IO[bytes] | gzip.GzipFile, wording: PhraseMatcher) -> int:
    """A copy belongs to the block in which it ends, so that none is counted twice."""
    count, before = 0, b""
    while block := file.read(_BLOCK):
        data = before + block
        count += sum(end > len(before) for end in wording.match_ends(data))
        before = data[-_OVERLAP:]
    return count


def is_database_file(path: Path) -> bool:
    try:
        with _read(path) as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False


def count_words_of_other_scopes(path: Path, plan: ErasurePlan) -> int:
    """How often a database has the words in rows of other scopes, indexes included. Raises `StoreError`."""
    with closing(Database.open_reader(path)) as db:
        tables = db.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
        return sum(_rightly_in(db, row["name"], plan) for row in tables)


def _rightly_in(db: Database, table: str, plan: ErasurePlan) -> int:
    whose = _WHOSE.get(table, "scope" if "scope" in column_names(db, table) else None)
    if whose is None:
        return 0
    sql = "SELECT i.name FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS i WHERE i.name IS NOT NULL"
    indexed = [row["name"] for row in db.rows(sql, (table,))]
    return sum(
        plan.wording.count_matches(value) * (1 + indexed.count(column))
        for row in db.iterate(f"SELECT * FROM {table} WHERE {whose} <> ?", (plan.scope,))
        for column, value in dict(row).items()
        if isinstance(value, str)
    )


_NAMED = 8


def search_home_for_remains(finder: ErasureFinder, plan: ErasurePlan) -> tuple[list[ErasureLeftover], int]:
    """What is left, by file, and how many files were read."""
    leftovers, searched = [], 0
    own = _own_folders(finder, plan)
    for path in list_files_to_search(finder.home):
        searched += 1
        name = path.relative_to(finder.home).as_posix()
        try:
            count = count_words_in_file(path, plan.wording)
            leftover = _describe_remain(path, name, count, own, finder, plan) if count else None
        except StoreError as error:
            leftover = ErasureLeftover(name, 1, f"not searched: {error}")
        if leftover is not None and (plan.scope == OWNER_SCOPE or leftover.kind != "other_scope"):
            leftovers.append(leftover)
    return leftovers, searched


def _own_folders(finder: ErasureFinder, plan: ErasurePlan) -> dict[str, str]:
    """Folders of the scope, relative to the home, with the session of each."""
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
    if name.startswith(PREVIOUS_HOME_PREFIX):
        why = f"your data as it was before a restore: remove {top} if you do not need it any more"
        return ErasureLeftover(name, count, why, "former_home")
    if is_database_file(path):
        theirs = count_words_of_other_scopes(path, plan)
        return _still_there(name, count - theirs, plan) if count > theirs else _of_others(name, count)
    if session is not None:
        in_log = path.name == LOG_NAME
        return _still_in_log(name, count, session, finder, plan) if in_log else _still_there(name, count, plan)
    if plan.scope != OWNER_SCOPE or top in ("log", "archive") or (top == DAILY_NOTES_FOLDER and "/" in rest):
        return _of_others(name, count)
    if top in ("workspace", "PERSONA.md", "config.toml"):
        why = "your own file: change it, or remove it, if you do not want the words there"
        return ErasureLeftover(name, count, why, "own_file")
    return _still_there(name, count, plan)


def _of_others(name: str, count: int) -> ErasureLeftover:
    why = "another person's: they said the same words"
    return ErasureLeftover(name, count, why, "other_scope")


def _still_there(name: str, count: int, plan: ErasurePlan) -> ErasureLeftover:
    if plan.everywhere:
        return ErasureLeftover(name, count, "not done: forget it again, and see what is reported for this file")
    why = "the same words in something else that was said; forget the words themselves to have them gone there too"
    return ErasureLeftover(name, count, why, "same_words")


def _still_in_log(name: str, count: int, session: str, finder: ErasureFinder, plan: ErasurePlan) -> ErasureLeftover:
    also = [str(record.id) for record in finder.find_records_with_words(session, plan.wording)]
    if not also:
        why = "not done: the words are in a part of the log that cannot be changed (a sender's name, for example)"
        return ErasureLeftover(name, count, why)
    more = f" and {len(also) - _NAMED} more" if len(also) > _NAMED else ""
    why = f"messages {', '.join(also[:_NAMED])}{more} say the same; forget them, or the words themselves, too"
    return ErasureLeftover(name, count, why, "same_words")
