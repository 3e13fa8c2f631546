"""A person's right that words are erased from every copy: the steps of an erasure over the stores of a home.

What always holds:
- What is to be done is written down (`forgetting-1.json`, words and all) before anything is changed, and removed when
  all of it is done and proved; each step in between can be repeated. Killed anywhere, the next start, or the same
  command again, finishes it.
- Offsets, chain, coverage and counts stay. A redaction is recorded before its records are blanked, so that at any
  moment every blank record is named by one (I2).
- Only what belongs to the scope is changed (I10).
- What could not be done is reported, never skipped: the byte search at the end decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Protocol

from assistant.core.erasure import ErasureLeftover, ErasurePreview, ErasureRequest
from assistant.core.erasure import ErasureMatches as Shown
from assistant.core.errors import StoreError
from assistant.core.messages import LogByteRange
from assistant.store.archive.archive import StoredArchive
from assistant.store.archive.index import list_archive_urls
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.database import Database
from assistant.store.erasure.archives import erase_in_archives, find_affected_archives
from assistant.store.erasure.character_db import erase_in_character_db, find_character_changes, find_memories_with_words
from assistant.store.erasure.files import (
    ErasableFile,
    database_copy_has_words,
    erase_in_database_copy,
    list_database_copies,
    list_erasable_files,
    remove_temporary_copies,
)
from assistant.store.erasure.finder import ErasureFinder
from assistant.store.erasure.plan import ErasurePlan, read_plan_files, remove_plan_file, write_plan_file
from assistant.store.erasure.proof import search_home_for_remains
from assistant.store.erasure.script_db import erase_in_script_db, find_script_changes
from assistant.store.log.redact import blank_record
from assistant.store.log.writer import MessageLog
from assistant.store.script.conversation import StoredConversation
from assistant.store.script.index import find_spans
from assistant.store.search.sources import indexed_text

_SHOWN = 5
_SEARCH = "search.db"


class ErasableIndex(Protocol):
    """The search index of what was said. Both methods raise `StoreError`."""

    def forget(self, message_ids: Sequence[int], words_of: Callable[[int], str]) -> None:
        """Take messages out so that none of their words is left; `words_of` gives what was indexed of each."""
        ...

    def clear(self) -> None:
        """Throw everything away: it is made again from the log."""
        ...


class ErasureStore:
    """`index` None: the home has no search index that this process may write."""

    def __init__(
        self,
        home: Path,
        db: Database,
        people: Database,
        log: MessageLog,
        conversation: StoredConversation,
        index: ErasableIndex | None,
        entries: ErasableIndex | None = None,
        archive: StoredArchive | None = None,
    ) -> None:
        """`index` has the words of the log, `entries` those of the journal. `archive` None: nothing was archived."""
        self._home = home
        self._db = db
        self._people = people
        self._log = log
        self._conversation = conversation
        self._index = index
        self._entries = entries
        self._archive = archive
        self._marking = ErasureFinder(db, people, log)
        self._counted = conversation.appender.with_tokens

    # -------------------------------------------------------------------------------------------------------- looking

    def plan_erasure(self, wanted: ErasureRequest) -> ErasurePlan:
        """What it is about. Raises `UsageError` for what is not there, or too short to be looked for."""
        marked = self._marking.plan_erasure(wanted)
        return self.with_memories(marked, tuple(memory for memory, _ in self._local_memories(marked)))

    def with_memories(self, marked: ErasurePlan, memory_ids: tuple[str, ...]) -> ErasurePlan:
        """The same with these memories too."""
        return marked.with_changes(memories=tuple(dict.fromkeys((*marked.memories, *memory_ids))))

    def plan_for_copy(self, marked: ErasurePlan) -> ErasurePlan:
        """The same for another state of the home it was marked in: whatever has the words there, or the records that
        are there too, in their places; and the memories that have the words there."""
        memories = tuple(memory for memory, _ in self._local_memories(marked))
        if marked.everywhere:
            return self._marking.plan_erasure(ErasureRequest(marked.scope, memories=memories, text=marked.phrases[0]))
        here = find_spans(self._db, [record.id for record in marked.records])
        records = tuple(one for one in marked.records if here.get(one.id) == (one.session, one.span))
        return marked.with_changes(records=records, memories=memories)

    def preview(self, wanted: ErasureRequest, marked: ErasurePlan) -> ErasurePreview:
        """What would go, by place; nothing is changed."""
        said = {record.id for record in marked.records if not self._log.is_blank(record.session, record.span)}
        lines: dict[str, list[str]] = {}
        if said:
            lines["messages"] = [f"message {one}" for one in sorted(said)]
        changed = [*find_script_changes(self._db, marked, self._counted), *find_character_changes(self._people, marked)]
        for change in changed:
            lines.setdefault(change.place, []).append(change.shown)
        if marked.memories:
            words = dict(self._local_memories(marked))
            lines["memories"] = [words.get(memory, memory) for memory in marked.memories]
        for row in find_affected_archives(self._db, marked, list(said)):
            lines.setdefault("archives", []).append(row["url"])
        for place, path in self._files_with(marked):
            lines.setdefault(place, []).append(path.relative_to(self._home).as_posix())
        places = tuple(Shown(kind, len(of_it), tuple(dict.fromkeys(of_it))[:_SHOWN]) for kind, of_it in lines.items())
        return ErasurePreview(
            wanted, tuple(sorted(said)), places, tuple(self._marking.describe_related_entries(marked))
        )

    def has_message(self, message_id: int, scope: str) -> bool:
        """Whether something was said under this number."""
        return self._marking.find_message(message_id, scope) is not None

    def refuse_if_running(self, marked: ErasurePlan) -> None:
        """Raises `UsageError` where something of it belongs to what is being answered."""
        self._marking.refuse_if_running(marked)

    def _local_memories(self, marked: ErasurePlan) -> list[tuple[str, str]]:
        path = self._home / "memory.db"
        if not path.exists():
            return []
        memory = Database.open_reader(path)
        try:
            return find_memories_with_words(memory, marked)
        finally:
            memory.close()

    def _files_with(self, marked: ErasurePlan) -> Iterator[tuple[str, Path]]:
        """Files and backups that have something of it; one that cannot be read is told of when it is its turn."""
        for file in self._word_files(marked):
            with suppress(StoreError):
                if file.has_words():
                    yield file.place, file.path
        for path in list_database_copies(self._home):
            with suppress(StoreError):
                if database_copy_has_words(path, marked, self._counted):
                    yield "backups", path

    # ----------------------------------------------------------------------------------------------------- forgetting

    def write_plan(self, marked: ErasurePlan) -> ErasurePlan:
        """Write down what is to be done. Raises `StoreError`; then nothing was changed."""
        return write_plan_file(self._home, marked)

    def unfinished_plans(self) -> list[ErasurePlan]:
        """What was begun and not finished."""
        return read_plan_files(self._home)

    def execute(self, marked: ErasurePlan, now: datetime, *, is_retry: bool) -> list[ErasureLeftover]:
        """All but the memory layer; what could not be done. `again`: an earlier attempt was cut off. Raises
        `StoreError` where databases or logs cannot be written: then it is to be repeated."""
        self._leave_index(marked, again=is_retry)
        for db in (self._db, self._people):
            db.overwrite_deleted()
        with self._db.write():
            erase_in_script_db(self._db, marked, self._counted)
        self._redact(marked, now)
        for record in marked.records:
            blank_record(self._log, record.session, record.span)
        waiting = StoredMemoryFiles(self._home, self._people, count_tokens=len, max_tokens=0).recover_after_crash()
        left = [ErasureLeftover("memory files", 1, f"not done: {why}") for why in waiting]
        with self._people.write():
            journal = erase_in_character_db(self._people, marked)
        if self._entries is not None and (journal or is_retry):
            # A few thousand lines: made again sooner than words are picked out of it.
            self._entries.clear()
        left += self._files(marked)
        left += self._attempt((path.name, self._backup_step(path, marked)) for path in list_database_copies(self._home))
        return left

    def rewrite_archives(self, marked: ErasurePlan) -> list[ErasureLeftover]:
        """Rewrite archives, wherever they are; what could not be done. Slow, and uses nothing that another thread
        uses: for a worker thread. Raises `StoreError`."""
        return [] if self._archive is None else erase_in_archives(self._archive, marked)

    def rewrite_databases(self) -> list[ErasureLeftover]:
        """Have the databases keep nothing of what was deleted; what could not be done."""
        found = [self._home / name for name in (_SEARCH, "memory.db")]
        steps = [(db.path.name, db.vacuum) for db in (self._db, self._people)]
        return self._attempt([*steps, *((path.name, _rewriting(path)) for path in found if path.exists())])

    def search_remains(self, marked: ErasurePlan) -> tuple[list[ErasureLeftover], int]:
        """What a search through every byte of the home still finds, and how many files it read."""
        return search_home_for_remains(self._home, self._marking, marked)

    def remove_plan(self, marked: ErasurePlan) -> None:
        """All of it is done: the words are kept nowhere any more."""
        remove_plan_file(self._home, marked)

    def _leave_index(self, marked: ErasurePlan, *, again: bool) -> None:
        """Before the log is blanked: the index is told what it had of each record. Not twice: after a crash in between,
        the index is thrown away. Raises `StoreError`."""
        said = {one.id: one for one in marked.records if not self._log.is_blank(one.session, one.span)}
        if self._index is None or not said:
            return
        if not again:
            with suppress(StoreError):
                self._index.forget(
                    list(said), lambda one: indexed_text(self._log.read(said[one].session, said[one].span))
                )
                return
        self._index.clear()

    def _redact(self, marked: ErasurePlan, now: datetime) -> None:
        for session, records in marked.records_by_session().items():
            named = self._named(session)
            ids = [record.id for record in records if record.id not in named]
            if ids:
                self._conversation.annotate(session, "redaction", ids, "", now)

    def _named(self, session: str) -> set[int]:
        """What redactions of a session name already."""
        rows = self._db.rows(
            "SELECT byte_start, byte_end FROM messages WHERE session = ? AND kind = 'redaction'", (session,)
        )
        spans = [LogByteRange(row["byte_start"], row["byte_end"]) for row in rows]
        return {message_id for span in spans for message_id in self._log.read(session, span).refs}

    def _files(self, marked: ErasurePlan) -> list[ErasureLeftover]:
        found = self._word_files(marked)
        return self._attempt((file.path.relative_to(self._home).as_posix(), file.erase) for file in found)

    def _word_files(self, marked: ErasurePlan) -> list[ErasableFile]:
        known = list_archive_urls(self._db) if self._archive is not None else frozenset[str]()
        return list_erasable_files(self._home, self._marking.sessions_of_scope(marked.scope), marked, known)

    def _backup_step(self, path: Path, marked: ErasurePlan) -> Callable[[], None]:
        def step() -> None:
            remove_temporary_copies(path)
            if database_copy_has_words(path, marked, self._counted):
                erase_in_database_copy(path, marked, self._counted)

        return step

    @staticmethod
    def _attempt(steps: Iterable[tuple[str, Callable[[], None]]]) -> list[ErasureLeftover]:
        left = []
        for name, step in steps:
            try:
                step()
            except StoreError as error:
                left.append(ErasureLeftover(name, 1, f"not done: {error}"))
        return left


def _rewriting(path: Path) -> Callable[[], None]:
    def step() -> None:
        db = Database.open_unmigrated(path)
        try:
            db.vacuum()
        finally:
            db.close()

    return step
