"""Finds what an erasure removes: the records, journal entries and memories that a person named, and their copies in
databases, logs and files.

Nothing is changed. Only data of the scope is found; another scope's id is reported as not existing (I10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from assistant.core.erasure import MESSAGES_PLACE, ErasedMessage, ErasureMatches, ErasurePreview, ErasureRequest
from assistant.core.erasure_phrases import PhraseMatcher, identifying_phrases, is_searchable_phrase
from assistant.core.erasure_values import MIN_LETTERS, MIN_SPACELESS_LETTERS
from assistant.core.errors import StoreError, UsageError
from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import shorten_line
from assistant.store.archive.format import list_archive_rows
from assistant.store.database import Database
from assistant.store.derived import FILES_DB
from assistant.store.erasure.byte_search import ByteSearch
from assistant.store.erasure.character_rows import changed_entries, find_character_changes, find_journal_changes
from assistant.store.erasure.copies import database_copy_has_words, find_memories, list_database_copies
from assistant.store.erasure.derived import TRANSFER_FOLDERS, add_derived, list_calls, spoken_texts
from assistant.store.erasure.files import ErasableFile, find_affected_archives, list_erasable_files
from assistant.store.erasure.own_words import without_own_words
from assistant.store.erasure.plan import ErasurePlan, RecordLocation
from assistant.store.erasure.script_rows import find_script_changes
from assistant.store.erasure.sources import ErasureSources
from assistant.store.erasure.word_tables import PROGRAM_NAMES, RowChange
from assistant.store.files import walk_files
from assistant.store.log.format import SALT_KEY, decode_record
from assistant.store.log.reader import LogFiles
from assistant.store.log.redact import is_blank_line
from assistant.store.script.index import find_spans, span_of_row
from assistant.store.search.files import FileIndex

WORKSPACE = "workspace"
_MAX_EXAMPLES = 5
_EXCERPT = 100
# Calls whose model is named in the log need not be looked up among all stored calls.
_NAMES = {table: columns for table, columns in PROGRAM_NAMES.items() if table != "usage"}


class ErasureFinder(ErasureSources):
    """Finds copies of text in the databases, logs and files of a data folder, or of an unpacked backup."""

    def plan_erasure(
        self, request: ErasureRequest, memory_texts: Mapping[str, str] = MappingProxyType({})
    ) -> ErasurePlan:
        """Return the plan for a request. `memory_texts`: texts of memories by id. Raises `UsageError` for a text that
        is too short, and for unknown ids."""
        plan = self._plan_text(request) if request.text.strip() else self._plan_named(request, memory_texts)
        left = dict.fromkeys(plan.entries, "") | changed_entries(find_journal_changes(self._people, plan))
        # Memories made of deleted entries are made again from what is left.
        rows = self._consolidated("entry_id", [entry for entry, text in left.items() if not text])
        plan = plan.with_memories(row["memory_id"] for row in rows if row["memory_id"])
        texts = {**self._local_memories(plan), **memory_texts}
        learned = self._learned_sentences(plan.scope, left, [texts.get(memory, "") for memory in plan.memories])
        plan = replace(plan, learned=tuple(learned))
        return replace(plan.with_memories(self._local_memories(plan)), keep_backups=request.keep_backups)

    def _learned_sentences(self, scope: str, left: Mapping[int, str], memories: Iterable[str]) -> Iterable[str]:
        """Return sentences that only deleted journal entries and memories have, and no remaining entry; `left` is what
        is left of changed entries by id."""
        entries = self._people.rows("SELECT id, content FROM journal WHERE scope = ?", (scope,))
        kept = {phrase for row in entries for phrase in _sentences(left.get(row["id"], row["content"]))}
        gone = [(row["content"], not left[row["id"]]) for row in entries if row["id"] in left]
        gone += [(text, True) for text in memories]
        # The parts of an entry around what is cut out stay.
        said = (phrase for text, is_whole in gone for phrase in _sentences(text, with_cut_ends=is_whole))
        return dict.fromkeys(phrase for phrase in said if phrase not in kept)

    def plan_for_copy(self, plan: ErasurePlan) -> ErasurePlan:
        """Return the same erasure for this copy of the data folder: records that have the text here, or records of the
        plan that are here at the same place, and memories that have the text here."""
        memories = tuple(self._local_memories(plan))
        if plan.everywhere:
            here = self.plan_erasure(ErasureRequest(plan.scope, memories=memories, text=plan.phrases[0]))
            # No backup has the index of files, which knows the words of documents.
            files = tuple(sorted({*here.files, *plan.files}))
            here = replace(here, values=plan.values, runs=plan.runs, words=plan.words, learned=plan.learned)
            return self._with_pictures(replace(here, files=files))
        spans = find_spans(self._db, [record.id for record in plan.records])
        records = tuple(record for record in plan.records if spans.get(record.id) == (record.session, record.span))
        return replace(plan, records=records, memories=memories)

    def preview(self, request: ErasureRequest, plan: ErasurePlan) -> ErasurePreview:
        """Return what would be removed, by place; changes nothing. Files that cannot be read are omitted."""
        message_ids = {record.id for record in plan.records if not self._log.is_blank(record.session, record.span)}
        lines: dict[str, list[str]] = {}
        if message_ids:
            lines[MESSAGES_PLACE] = [""] * len(message_ids)
        learned = list(find_character_changes(self._people, plan))
        for change in (*find_script_changes(self._db, plan), *learned):
            lines.setdefault(change.place, []).append(change.shown)
        if plan.memories:
            texts = self._local_memories(plan)
            lines["memories"] = [texts.get(memory, memory) for memory in plan.memories]
        for row in find_affected_archives(self._db, plan, message_ids):
            lines.setdefault("archives", []).append(row["url"])
        for file in self._erasable_files(plan):
            with suppress(StoreError):
                if file.has_words():
                    lines.setdefault(file.place, []).append(self._relative(file.path))
        if files := [name for name in plan.files if (self.home / WORKSPACE / name).is_file()]:
            lines["files that you added, and that came with messages"] = files
        if plan.own_files:
            lines["the search index, of files of your own, which stay"] = list(plan.own_files)
        places = tuple(
            ErasureMatches(place, len(shown), tuple(filter(None, dict.fromkeys(shown)))[:_MAX_EXAMPLES])
            for place, shown in lines.items()
        )
        related = tuple(self._describe_related_entries(request, plan, learned))
        copies = self._database_copies(plan)
        has_sources = bool(request.entries or request.memories) and not request.text
        named = self._messages_of(self._read_entries(plan.entries, plan.scope), plan.scope) if has_sources else []
        shown = ErasurePreview(request, tuple(sorted(message_ids)), places, related=related, backups=copies)
        return replace(
            shown,
            values=plan.values,
            first_messages=tuple(self._first_messages(sorted(message_ids), request.scope)),
            came_from=tuple(self._describe_messages(named, request.scope, 2 * _EXCERPT)),
        )

    def _first_messages(self, message_ids: Sequence[int], scope: str) -> Iterator[ErasedMessage]:
        """Return the first of the affected messages. Tool calls and results derive from them and are not shown."""
        said = (one for one in self._describe_messages(message_ids, scope, _EXCERPT) if one.is_said)
        return islice(said, _MAX_EXAMPLES)

    def _describe_messages(self, message_ids: Iterable[int], scope: str, length: int) -> Iterator[ErasedMessage]:
        for message_id in message_ids:
            row = self.find_message(message_id, scope)
            if row is not None:
                record = self._log.read(row["session"], span_of_row(row))
                is_said = record.role != "tool" and not record.tool_calls
                words = shorten_line(" ".join(spoken_texts(record)), length)
                yield ErasedMessage(message_id, record.ts, words, is_said)

    def _describe_related_entries(
        self, request: ErasureRequest, plan: ErasurePlan, changes: Iterable[RowChange]
    ) -> Iterator[str]:
        """Describe, one per line, what stays although it may be about it: journal entries made of messages of the plan
        and of others, or merged into a deleted memory, and answers with a word that only these messages contained."""
        changed = {change.row for change in changes if change.table == "journal"}
        entries = {entry_id: content for entry_id, (content, _) in self._entries_of(plan).items()}
        merged = self._entries_merged_into(request.memories, request.scope)
        entries |= {row["id"]: row["content"] for row in merged}
        for entry_id, content in entries.items():
            if entry_id not in changed:
                yield f"journal entry {entry_id}: {shorten_line(content, _EXCERPT)}"
        for answer in self._describe_messages(plan.mentions, request.scope, _EXCERPT):
            yield f"answer #{answer.id} of {answer.at:%Y-%m-%d}: {answer.excerpt}"

    def _database_copies(self, plan: ErasurePlan) -> tuple[str, ...]:
        names = []
        for path in list_database_copies(self.home):
            with suppress(StoreError):
                if database_copy_has_words(path, plan):
                    names.append(self._relative(path))
        return tuple(names)

    def _local_memories(self, plan: ErasurePlan) -> dict[str, str]:
        path = self.home / "memory.db"
        if not path.exists():
            return {}
        with closing(Database.open_reader(path)) as memory:
            return find_memories(memory, plan)

    def _erasable_files(self, plan: ErasurePlan) -> list[ErasableFile]:
        """Return the files of the scope, except for indexed archives, which are rewritten separately."""
        archived = {row["url"] for row in list_archive_rows(self._db)}
        return list_erasable_files(self.home, self.sessions_of_scope(plan.scope), plan, archived)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.home).as_posix()

    def values_of_others(self, plan: ErasurePlan) -> set[str]:
        """Return values of the plan that somebody of another scope said."""
        own = self.sessions_of_scope(plan.scope)
        lines = (
            line
            for session in self._log.sessions()
            if session not in own
            for _, line in self._log.iterate_lines(session)
        )
        return {value for line in lines for value in plan.wording.matched(without_own_words(line))}

    def values_in_files(self, plan: ErasurePlan) -> set[str]:
        """Return values of the plan that are in files that stay searchable."""
        with closing(FileIndex(self.home / FILES_DB, reading=True)) as index:
            return {value for text in index.texts() for value in plan.wording.matched(text.encode())}

    def refuse_if_running(self, plan: ErasurePlan) -> None:
        """Raises `UsageError` while a turn of the scope runs, since its model has read the text and may repeat it, and
        while an affected message waits to be answered."""
        if self._db.row("SELECT 1 FROM turns WHERE scope = ? AND state = 'running'", (plan.scope,)):
            raise UsageError(
                "A message is being answered, and the words may be part of that. Nothing was changed; wait for the"
                " answer, or /stop, then forget them."
            )
        waiting = self._db.rows(
            "SELECT message_id, body FROM inbox_messages WHERE scope = ? AND state = 'accepted'", (plan.scope,)
        )
        for row in waiting:
            if row["message_id"] in plan.ids or plan.unique.matches(row["body"]):
                raise UsageError(
                    "A message with these words waits to be answered. Nothing was changed; forget it after the answer."
                )

    # ---------------------------------------------------------------------------------------------- what is asked for

    def _plan_text(self, request: ErasureRequest) -> ErasurePlan:
        if not is_searchable_phrase(request.text):
            raise UsageError(
                f"That is too short to be looked for everywhere: it takes {MIN_LETTERS} letters or digits "
                f"({MIN_SPACELESS_LETTERS} of Chinese, Japanese or Thai). Nothing was changed; give a longer phrase, "
                "or name what has it: #17 (a message), e12 (a journal entry), or a memory's id."
            )
        wording = PhraseMatcher([request.text])
        found = [
            self._log.read(record.session, record.span)
            for session in self.sessions_of_scope(request.scope)
            for record in self.find_records_with_words(session, wording)
        ]
        records = [*found, *self._changes_of([record.id for record in found], request.scope)]
        plan = ErasurePlan(request.scope, (request.text,), memories=request.memories, everywhere=True)
        indexed = self._indexed_files(plan)
        files = self._transferred_files(plan) if request.scope == OWNER_SCOPE else []
        files += [path for path in indexed if path.startswith(TRANSFER_FOLDERS)]
        plan = self._with_derived(plan, records, ())
        own = (path for path in indexed if not path.startswith(TRANSFER_FOLDERS))
        return self._with_pictures(replace(plan, files=tuple(sorted({*plan.files, *files})), own_files=tuple(own)))

    def _with_pictures(self, plan: ErasurePlan) -> ErasurePlan:
        """Return the plan with the messages that contain one of its files themselves, as they do pictures."""
        located = {record.id: record for record in plan.records}
        names = [path.encode() for path in plan.files]
        for session in self.sessions_of_scope(plan.scope) if names else ():
            for offset, line in self._log.iterate_lines(session):
                if SALT_KEY not in line or is_blank_line(line) or not any(name in line for name in names):
                    continue
                record = decode_record(line, offset)
                if any(medium.data and medium.path in plan.files for medium in record.media):
                    place = LogByteRange(offset, offset + len(line))
                    located.setdefault(record.id, RecordLocation(record.id, session, place))
        return replace(plan, records=tuple(located.values()))

    def _indexed_files(self, plan: ErasurePlan) -> list[str]:
        """Return indexed files whose text has the words; documents cannot be searched as bytes."""
        with closing(FileIndex(self.home / FILES_DB, reading=True)) as index:
            return index.files_with_words(plan.in_files) if plan.in_files else []

    def _transferred_files(self, plan: ErasurePlan) -> list[str]:
        """Return received and sent files that have the words: paths in the workspace."""
        search, workspace, found = ByteSearch(plan), self.home / WORKSPACE, []
        for folder in TRANSFER_FOLDERS:
            for path in walk_files(workspace / folder) if (workspace / folder).is_dir() else ():
                with suppress(StoreError):
                    if path.is_file() and not path.is_symlink() and search.count_in_file(path):
                        found.append(path.relative_to(workspace).as_posix())
        return found

    def _plan_named(self, request: ErasureRequest, memory_texts: Mapping[str, str]) -> ErasurePlan:
        rows = self._requested_entries(request, memory_texts)
        came_from = self._messages_of(rows, request.scope)
        unlearned = tuple(came_from) if request.keep_messages else ()
        named = request.messages if unlearned else tuple(dict.fromkeys((*request.messages, *came_from)))
        records = self._requested_records(replace(request, messages=named))
        plan = ErasurePlan(request.scope, (), (), tuple(row["id"] for row in rows), request.memories)
        told = [memory_texts[memory] for memory in request.memories if memory in memory_texts]
        phrases = _phrases((*told, *(row["content"] for row in rows)))
        plan = replace(plan, unlearned=unlearned, phrases=tuple(dict.fromkeys(phrases)))
        # A summary's content was said in the conversation, which stays.
        texts = [*told, *(row["content"] for row in rows if row["source_type"] != "context_synthesis")]
        return self._with_derived(plan, records, texts)

    def _with_derived(self, plan: ErasurePlan, records: Sequence[LogRecord], texts: Sequence[str]) -> ErasurePlan:
        """Return the plan with these messages and everything derived from them and from the texts."""
        records = [*records, *self._readings_of(records, plan.scope)]
        said = _phrases(text for record in records if record.role == "user" for text in spoken_texts(record))
        plan = replace(
            plan,
            phrases=plan.phrases if plan.everywhere else tuple(dict.fromkeys((*said, *plan.phrases))),
            records=tuple(RecordLocation(record.id, record.session, record.span) for record in records),
            calls=list_calls(records),
        )
        others = self._entries_of_others(plan) if texts else ()
        sessions = self.sessions_of_scope(plan.scope)
        plan = add_derived(plan, records, texts, others, self._program_names(), self._log, sessions)
        entries = self._entries_of(plan)
        alone = [entry for entry, (_, is_alone) in entries.items() if is_alone]
        return replace(plan, entries=tuple(dict.fromkeys((*plan.entries, *alone))))

    def _program_names(self) -> set[str]:
        """Return names that the program itself assigns, such as those of tools."""
        known = {table: set(self._db.column_names(table)).intersection(columns) for table, columns in _NAMES.items()}
        return {
            row["name"]
            for table, columns in known.items()
            for column in columns
            for row in self._db.rows(f"SELECT DISTINCT {column} AS name FROM {table}")
        }


def _phrases(texts: Iterable[str]) -> list[str]:
    return [phrase for text in texts for phrase in identifying_phrases(text)]


def _sentences(text: str, *, with_cut_ends: bool = True) -> list[str]:
    """Split a text like `identifying_phrases`; a short text is returned whole."""
    found = identifying_phrases(text, with_cut_ends=with_cut_ends)
    return found or list(filter(is_searchable_phrase, [text.strip().rstrip(".!?\u3002")]))


@contextmanager
def open_home_copy(home: Path) -> Iterator[ErasureFinder]:
    """Open a data folder unpacked from a backup, of any version. Raises `StoreError` if it is not one."""
    with (
        closing(Database.open_reader(home / "script.db")) as db,
        closing(Database.open_reader(home / "character.db")) as people,
        closing(LogFiles(home)) as log,
    ):
        yield ErasureFinder(home, db, people, log)
