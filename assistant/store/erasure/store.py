"""Erases text from every copy in a data folder, step by step.

- The plan (`forgetting-1.json`, including the text) is stored before anything is changed, and deleted when everything
  is done and proved; each step can be repeated. After a crash, the next start, or the same command again, completes it.
- Offsets, chain, coverage and counts stay valid. A redaction is recorded before its records are blanked, so that every
  blank record is named by one at any time (I2).
- Only data of the scope is changed (I10).
- What could not be done is reported, never skipped; the byte search at the end decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path

from assistant.core.erasure import ErasureLeftover
from assistant.core.errors import StoreError
from assistant.core.messages import LogByteRange
from assistant.core.plain_files import read_own_file
from assistant.search.finder import SourceFinder
from assistant.store.archive.archive import StoredArchive
from assistant.store.calendars import CALENDARS_DB
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.database import Database
from assistant.store.derived import (
    DERIVED_DATABASES,
    FILES_DB,
    MEMORY_DB,
    SEARCH_DB,
    is_set_aside,
    remove_set_aside,
)
from assistant.store.erasure.character_rows import erase_in_character_db
from assistant.store.erasure.copies import database_copy_has_words, list_database_copies
from assistant.store.erasure.files import erase_in_archives, search_archives
from assistant.store.erasure.finder import WORKSPACE, ErasureFinder
from assistant.store.erasure.plan import PLAN_FILES, UNFINISHED_PLAN_FILES, ErasurePlan
from assistant.store.erasure.proof import search_home_for_remains
from assistant.store.erasure.script_rows import erase_in_script_db
from assistant.store.files import TextFile, find_files, sync_directory
from assistant.store.log.redact import blank_record
from assistant.store.log.writer import MessageLog
from assistant.store.rows import dump_json, from_json
from assistant.store.script.conversation import StoredConversation
from assistant.store.search.files import FileIndex
from assistant.store.search.sources import indexed_text

_REWRITTEN_DATABASES = (SEARCH_DB, MEMORY_DB, CALENDARS_DB)


class ErasureStore(ErasureFinder):
    """Finds what an erasure removes (`ErasureFinder`), and removes it.

    - `index`: the search index of the log; `entries`: that of the journal. None: this process may not write them.
    - `archive`: None if nothing was archived.
    - `files`: the index of files, and its search index.
    """

    def __init__(
        self,
        home: Path,
        db: Database,
        people: Database,
        log: MessageLog,
        conversation: StoredConversation,
        index: SourceFinder | None,
        entries: SourceFinder | None = None,
        archive: StoredArchive | None = None,
        files: tuple[FileIndex, SourceFinder] | None = None,
    ) -> None:
        super().__init__(home, db, people, log)
        self._conversation = conversation
        self._index = index
        self._entries = entries
        self._archive = archive
        self._files = files

    def write_plan(self, plan: ErasurePlan) -> ErasurePlan:
        """Store the plan durably, and return it with its file name. Raises `StoreError`, with nothing changed."""
        taken = {path.name for path in find_files(self.home, PLAN_FILES)}
        names = (PLAN_FILES.replace("*", str(number)) for number in count(1))
        noted = replace(plan, note=next(name for name in names if name not in taken))
        file = TextFile(self.home, noted.note)
        waiting = file.pending_file("new")
        waiting.write(dump_json(noted))
        waiting.move_to(file)
        return noted

    def unfinished_plans(self) -> list[ErasurePlan]:
        """Return unfinished plans, oldest first; deletes files that were being written or deleted during a crash.
        Raises `StoreError`, also for a damaged file."""
        self._remove_notes(find_files(self.home, UNFINISHED_PLAN_FILES))
        paths = sorted(find_files(self.home, PLAN_FILES), key=lambda path: (len(path.name), path.name))
        return [_read_plan(path) for path in paths]

    def execute(self, plan: ErasurePlan, now: datetime, *, is_retry: bool) -> list[ErasureLeftover]:
        """Do everything except for archives, memories and backups; return what could not be done. `is_retry`: an
        earlier attempt was interrupted. Raises `StoreError` if databases or logs cannot be written; then call it
        again."""
        self._remove_from_index(plan, is_retry=is_retry)
        for db in (self._db, self._people):
            db.overwrite_deleted()
        with self._db.write():
            erase_in_script_db(self._db, plan, self._conversation.appender.with_tokens)
        self._redact(plan, now)
        for record in plan.records:
            blank_record(self._log, record.session, record.span)
        waiting = StoredMemoryFiles(self.home, self._people, count_tokens=len, max_tokens=0).recover_after_crash()
        leftovers = [ErasureLeftover("memory files", 1, f"not done: {why}") for why in waiting]
        with self._people.write():
            journal = erase_in_character_db(self._people, plan)
        if self._entries is not None and (journal or is_retry):
            # A few thousand lines: rebuilding it is faster than removing words.
            self._entries.clear()
        leftovers += self._attempt((self._relative(file.path), file.erase) for file in self._erasable_files(plan))
        leftovers += self._attempt((name, partial(_remove_file, self.home / WORKSPACE / name)) for name in plan.files)
        leftovers += self._attempt([(FILES_DB, partial(self._remove_from_files, plan, is_retry=is_retry))])
        if not plan.keep_backups:
            copies = list_database_copies(self.home)
            leftovers += self._attempt((path.name, partial(_remove_copy_with_words, path, plan)) for path in copies)
        return leftovers

    def rewrite_archives(self, plan: ErasurePlan) -> list[ErasureLeftover]:
        """Rewrite archives, wherever they are; return what could not be done. Slow, and uses nothing shared with other
        threads: call it in a worker thread. Raises `StoreError`."""
        return [] if self._archive is None else erase_in_archives(self._archive, plan)

    def rewrite_databases(self) -> list[ErasureLeftover]:
        """Remove deleted content from the database files; return what could not be done."""
        others = [self.home / name for name in _REWRITTEN_DATABASES]
        derived = [self.home / name for name in DERIVED_DATABASES]
        steps: list[tuple[str, Callable[[], None]]] = [(db.path.name, db.vacuum) for db in (self._db, self._people)]
        steps += [(FILES_DB, self._files[0].vacuum)] if self._files is not None else []
        # A damaged one cannot be searched.
        steps += [(path.name, partial(remove_set_aside, path)) for path in derived if is_set_aside(path)]
        return self._attempt([*steps, *((path.name, partial(_vacuum, path)) for path in others if path.exists())])

    def search_remains(self, plan: ErasurePlan) -> tuple[list[ErasureLeftover], int]:
        """Return what a search of every byte of the data folder still finds, and the number of files read."""
        return search_home_for_remains(self, plan)

    def search_archives(self, plan: ErasurePlan, failed: Collection[str]) -> tuple[list[ErasureLeftover], int]:
        """Search archives that are elsewhere or encrypted, like `search_remains`, except the `failed` ones. For a
        worker thread."""
        return ([], 0) if self._archive is None else search_archives(self._archive, plan, failed)

    def remove_plan(self, plan: ErasurePlan) -> None:
        """Delete the plan when all is done, so that the text is stored nowhere. It is renamed first, so that no
        half-overwritten plan is found. Raises `StoreError`."""
        note, aside = self.home / plan.note, self.home / f".{plan.note}.done"
        with _explained(note):
            note.replace(aside)
        self._remove_notes([aside])

    def _remove_notes(self, paths: Iterable[Path]) -> None:
        for path in paths:
            with _explained(path):
                with path.open("r+b") as file:
                    file.write(b" " * path.stat().st_size)
                path.unlink()
                sync_directory(self.home)

    def _remove_from_index(self, plan: ErasurePlan, *, is_retry: bool) -> None:
        """Before the log is blanked, remove the words of each record from the index. Not done twice: after a crash in
        between, the index is discarded. Raises `StoreError`."""
        records = {place.id: place for place in plan.records if not self._log.is_blank(place.session, place.span)}
        if self._index is None or not records:
            return
        if not is_retry:
            with suppress(StoreError):
                self._index.forget(
                    list(records),
                    lambda message_id: indexed_text(
                        self._log.read(records[message_id].session, records[message_id].span)
                    ),
                )
                return
        self._index.clear()

    def _remove_from_files(self, plan: ErasurePlan, *, is_retry: bool) -> None:
        """Remove the text from the index of files. Raises `StoreError`."""
        if self._files is None or not ((self.home / FILES_DB).exists() and (plan.in_files or plan.files)):
            return
        index, finder = self._files
        if index.erase(plan.in_files, plan.files) or is_retry:
            # Rebuilding it is faster than removing words.
            finder.clear()

    def _redact(self, plan: ErasurePlan, now: datetime) -> None:
        for session, records in plan.records_by_session().items():
            redacted = self._redacted_ids(session)
            ids = [record.id for record in records if record.id not in redacted]
            if ids:
                self._conversation.annotate(session, "redaction", ids, "", now)

    def _redacted_ids(self, session: str) -> set[int]:
        """Return the ids already named by redactions of a session."""
        rows = self._db.rows(
            "SELECT byte_start, byte_end FROM messages WHERE session = ? AND kind = 'redaction'", (session,)
        )
        spans = [LogByteRange(row["byte_start"], row["byte_end"]) for row in rows]
        return {message_id for span in spans for message_id in self._log.read(session, span).refs}

    @staticmethod
    def _attempt(steps: Iterable[tuple[str, Callable[[], None]]]) -> list[ErasureLeftover]:
        leftovers = []
        for name, step in steps:
            try:
                step()
            except StoreError as error:
                leftovers.append(ErasureLeftover(name, 1, f"not done: {error}"))
        return leftovers


def _read_plan(path: Path) -> ErasurePlan:
    try:
        return replace(from_json(ErasurePlan, read_own_file(path)), note=path.name)
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path} cannot be read: an erasure was begun and not finished. Remove the file, then forget it again."
        ) from error


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} was not removed: {error.strerror}. It has words that were to be forgotten; remove it."
        ) from error


def _remove_copy_with_words(path: Path, plan: ErasurePlan) -> None:
    """Delete a database copy that has the text. Raises `StoreError`."""
    if database_copy_has_words(path, plan):
        for suffix in ("-wal", "-shm", ""):
            _remove_file(path.with_name(path.name + suffix))


def _remove_file(path: Path) -> None:
    """Delete a file. Raises `StoreError`."""
    try:
        if path.exists() or path.is_symlink():
            path.unlink()
            sync_directory(path.parent)
    except OSError as error:
        raise StoreError(f"{path} was not removed: {error.strerror}.") from error


def _vacuum(path: Path) -> None:
    with closing(Database.open_unmigrated(path)) as db:
        db.vacuum()
