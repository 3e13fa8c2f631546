"""Finding what an erasure removes: the records, journal entries and memories behind what a person asked for, and the
copies of them in databases, logs and files.

What always holds: nothing is changed; only what belongs to the scope is found, and somebody else's id is reported as
one that does not exist (I10).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from sqlite3 import Row

from assistant.core.erasure import (
    ErasureMatches,
    ErasurePreview,
    ErasureRequest,
    PhraseMatcher,
    identifying_phrases,
    is_searchable_phrase,
)
from assistant.core.erasure_values import MIN_LETTERS, MIN_SPACELESS_LETTERS, find_values
from assistant.core.errors import StoreError, UsageError
from assistant.core.memories import MIN_ID_DIGITS
from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import shorten_line
from assistant.store.archive.format import list_archive_rows
from assistant.store.database import Database, column_names
from assistant.store.erasure.byte_search import ByteSearch
from assistant.store.erasure.copies import database_copy_has_words, find_memories, list_database_copies
from assistant.store.erasure.databases import (
    RANGE_ENTRIES,
    RowChange,
    find_character_changes,
    find_entries_of_messages,
    find_script_changes,
    removed_entries,
)
from assistant.store.erasure.derived import TRANSFER_FOLDERS, add_derived, list_calls, spoken_texts
from assistant.store.erasure.files import ErasableFile, find_affected_archives, list_erasable_files
from assistant.store.erasure.plan import ErasurePlan, RecordLocation
from assistant.store.log.format import SALT_KEY
from assistant.store.log.reader import LogFiles
from assistant.store.log.redact import is_blank_line
from assistant.store.script.index import find_spans, span_of_row

WORKSPACE = "workspace"
_MAX_EXAMPLES = 5
_LIKE_A_MEMORY = 10 ** (MIN_ID_DIGITS - 1)
_AMONG = "id IN (SELECT value FROM json_each(?))"
_SAYING = "kind NOT IN ('undo', 'redaction')"


class ErasureFinder:
    """The copies of what was said in the databases, logs and files of one home, or of an unpacked backup."""

    def __init__(self, home: Path, db: Database, people: Database, log: LogFiles) -> None:
        """`db` is script.db, `people` character.db."""
        self.home = home
        self._db = db
        self._people = people
        self._log = log

    def sessions_of_scope(self, scope: str) -> list[str]:
        rows = self._db.rows("SELECT DISTINCT key FROM sessions WHERE scope = ? ORDER BY key", (scope,))
        return [row["key"] for row in rows]

    def plan_erasure(self, request: ErasureRequest) -> ErasurePlan:
        """What the request is about. Raises `UsageError` for a text that is too short, and for unknown ids."""
        plan = self._plan_text(request) if request.text.strip() else self._plan_named(request)
        # Memories that entries went into which go: they are made anew of what is left.
        going = [*plan.entries, *removed_entries(find_character_changes(self._people, plan))]
        rows = self._consolidated("entry_id", going)
        plan = plan.with_memories(row["memory_id"] for row in rows if row["memory_id"])
        return replace(plan.with_memories(self._local_memories(plan)), keep_backups=request.keep_backups)

    def plan_for_copy(self, plan: ErasurePlan) -> ErasurePlan:
        """The same erasure for this copy of the home: what has the words here, or those of the plan's records that are
        here in the same place; and the memories that have the words here."""
        memories = tuple(self._local_memories(plan))
        if plan.everywhere:
            here = self.plan_erasure(ErasureRequest(plan.scope, memories=memories, text=plan.phrases[0]))
            return replace(here, values=plan.values, runs=plan.runs)
        spans = find_spans(self._db, [record.id for record in plan.records])
        records = tuple(record for record in plan.records if spans.get(record.id) == (record.session, record.span))
        return replace(plan, records=records, memories=memories)

    def preview(self, request: ErasureRequest, plan: ErasurePlan) -> ErasurePreview:
        """What would be removed, by place; nothing is changed. Of a file that cannot be read, nothing."""
        message_ids = {record.id for record in plan.records if not self._log.is_blank(record.session, record.span)}
        lines: dict[str, list[str]] = {}
        if message_ids:
            lines["messages"] = [f"message {message_id}" for message_id in sorted(message_ids)]
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
            lines["files that came with messages"] = files
        places = tuple(
            ErasureMatches(place, len(shown), tuple(dict.fromkeys(shown))[:_MAX_EXAMPLES])
            for place, shown in lines.items()
        )
        related = tuple(self._describe_related_entries(plan, learned))
        copies = self._database_copies(plan)
        named = self._messages_of(self._requested_entries(request), request.scope) if not request.text else []
        came_from = tuple(self._describe_message(message_id, request.scope) for message_id in named)
        shown = ErasurePreview(request, tuple(sorted(message_ids)), places, related, copies)
        return replace(shown, values=plan.values, came_from=came_from)

    def _describe_message(self, message_id: int, scope: str) -> str:
        row = self.find_message(message_id, scope)
        record = self._log.read(row["session"], span_of_row(row)) if row is not None else None
        return f"#{message_id}, {record.ts:%Y-%m-%d}: {shorten_line(record.content, 200)}" if record else ""

    def _describe_related_entries(self, plan: ErasurePlan, changes: Iterable[RowChange]) -> Iterator[str]:
        """Journal entries made of messages of the plan that will stay, a line each."""
        changed = {change.row for change in changes if change.table == "journal"}
        for entry_id, (content, _) in self._entries_of(plan).items():
            if entry_id not in changed:
                yield f"journal entry {entry_id}: {' '.join(content.split())[:100]}"

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
        """The files of the scope; archives that the index knows are rewritten as such."""
        archived = {row["url"] for row in list_archive_rows(self._db)}
        return list_erasable_files(self.home, self.sessions_of_scope(plan.scope), plan, archived)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.home).as_posix()

    def find_records_with_words(self, session: str, wording: PhraseMatcher) -> Iterator[RecordLocation]:
        """The records of a log whose words are among these; of a line that is none, nothing."""
        for offset, line in self._log.iterate_lines(session):
            at = line.find(SALT_KEY)
            if at < 0 or is_blank_line(line) or not wording.match_ends(line[at:]):
                continue
            with suppress(ValueError, KeyError, TypeError):
                message_id = int(json.loads(line[:at] + b"}")["id"])
                yield RecordLocation(message_id, session, LogByteRange(offset, offset + len(line)))

    def values_of_others(self, plan: ErasurePlan) -> set[str]:
        """Which of the values somebody of another scope said."""
        own = self.sessions_of_scope(plan.scope)
        lines = (
            line
            for session in self._log.sessions()
            if session not in own
            for _, line in self._log.iterate_lines(session)
        )
        return {value for line in lines for value in plan.wording.matched(line)}

    def refuse_if_running(self, plan: ErasurePlan) -> None:
        """Raises `UsageError` while a turn of the scope runs, since it was told what stands there and may say it again,
        and where something of it waits to be answered."""
        if self._db.row("SELECT 1 FROM turns WHERE scope = ? AND state = 'running'", (plan.scope,)):
            raise UsageError(
                "A message is being answered, and the words may be part of that. Nothing was changed; wait for the"
                " answer, or /stop, then forget them."
            )
        waiting = self._db.rows(
            "SELECT message_id, body FROM inbox WHERE scope = ? AND state = 'accepted'", (plan.scope,)
        )
        for row in waiting:
            if row["message_id"] in plan.ids or plan.unique.matches(row["body"]):
                which = f"Message {row['message_id']}"
                raise UsageError(f"{which} waits to be answered. Nothing was changed; forget it after the answer.")

    # ---------------------------------------------------------------------------------------------- what is asked for

    def _plan_text(self, request: ErasureRequest) -> ErasurePlan:
        if not is_searchable_phrase(request.text):
            raise UsageError(
                f"Less than {MIN_LETTERS} letters or digits ({MIN_SPACELESS_LETTERS} of Chinese, Japanese or Thai) are "
                "too short to be looked for everywhere. Nothing was changed; give a longer phrase, or name what has it:"
                " #17 (a message), e12 (a journal entry), or a memory's id."
            )
        wording = PhraseMatcher([request.text])
        found = [
            self._log.read(record.session, record.span)
            for session in self.sessions_of_scope(request.scope)
            for record in self.find_records_with_words(session, wording)
        ]
        records = [*found, *self._changes_of([record.id for record in found], request.scope)]
        plan = ErasurePlan(request.scope, (request.text,), memories=request.memories, everywhere=True)
        files = self._transferred_files(plan) if request.scope == OWNER_SCOPE else []
        plan = self._with_derived(plan, records, ())
        return replace(plan, files=tuple(sorted({*plan.files, *files})))

    def _transferred_files(self, plan: ErasurePlan) -> list[str]:
        """Files that came with messages, or went out with them, and have the words in them: paths in the workspace."""
        search, workspace, found = ByteSearch(plan), self.home / WORKSPACE, []
        for folder in TRANSFER_FOLDERS:
            for path in sorted((workspace / folder).glob("*")):
                with suppress(StoreError):
                    if path.is_file() and not path.is_symlink() and search.count_in_file(path):
                        found.append(path.relative_to(workspace).as_posix())
        return found

    def _plan_named(self, request: ErasureRequest) -> ErasurePlan:
        rows = self._requested_entries(request)
        came_from = self._messages_of(rows, request.scope)
        unlearned = tuple(came_from) if request.keep_messages else ()
        named = request.messages if unlearned else tuple(dict.fromkeys((*request.messages, *came_from)))
        records = self._requested_records(replace(request, messages=named))
        plan = ErasurePlan(request.scope, (), (), tuple(row["id"] for row in rows), request.memories)
        plan = replace(plan, unlearned=unlearned, phrases=tuple(_phrases(row["content"] for row in rows)))
        # What a summary tells was said in the conversation, which stays.
        texts = [row["content"] for row in rows if row["source_type"] != "context_synthesis"]
        return self._with_derived(plan, records, texts)

    def _with_derived(self, plan: ErasurePlan, records: Sequence[LogRecord], texts: Sequence[str]) -> ErasurePlan:
        """With these messages, and all that was made of them and of the texts."""
        records = [*records, *self._readings_of(records, plan.scope)]
        said = _phrases(text for record in records if record.role == "user" for text in spoken_texts(record))
        plan = replace(
            plan,
            phrases=plan.phrases if plan.everywhere else tuple(dict.fromkeys((*said, *plan.phrases))),
            records=tuple(RecordLocation(record.id, record.session, record.span) for record in records),
            calls=list_calls(records),
        )
        plan = add_derived(plan, records, texts, self._log, self.sessions_of_scope(plan.scope))
        entries = self._entries_of(plan)
        alone = [entry for entry, (_, is_alone) in entries.items() if is_alone]
        return replace(plan, entries=tuple(dict.fromkeys((*plan.entries, *alone))))

    def _entries_of(self, plan: ErasurePlan) -> dict[int, tuple[str, bool]]:
        """Journal entries made of messages of the plan: their words, and whether no other message of a person is in
        them."""
        found = list(find_entries_of_messages(self._people, plan))
        others = {message_id for _, _, sources in found for message_id in sources - plan.ids}
        rows = self._db.rows(f"SELECT id FROM messages WHERE role = 'user' AND {_AMONG}", (json.dumps(list(others)),))
        said = {row["id"] for row in rows}
        return {entry: (content, sources.isdisjoint(said)) for entry, content, sources in found}

    def _messages_of(self, entries: Sequence[Row], scope: str) -> list[int]:
        """The messages of people that entries came from, and are not forgotten yet; of an entry made of a whole range
        of messages, those that have its values."""
        found: dict[int, None] = {}
        for entry in entries:
            # The summary of a conversation came from all of it, which nobody means by it.
            sources = [] if entry["source_type"] == "context_synthesis" else json.loads(entry["sources"])
            is_range = entry["source_type"] in RANGE_ENTRIES
            matcher = PhraseMatcher((), find_values(entry["content"])[0])
            for row in self._said(sources, scope, is_range=is_range):
                record = self._log.read(row["session"], span_of_row(row))
                if record.content and (not is_range or matcher.matches(record.content)):
                    found[record.id] = None
        return list(found)

    def _said(self, message_ids: Sequence[int], scope: str, *, is_range: bool) -> list[Row]:
        """What people said under these numbers, or from the first of them to the last."""
        if not message_ids:
            return []
        which = "id BETWEEN json_extract(?, '$[0]') AND json_extract(?, '$[#-1]')" if is_range else _AMONG
        ids = json.dumps(sorted(message_ids))
        return self._db.rows(
            f"SELECT session, byte_start, byte_end FROM messages WHERE scope = ? AND role = 'user' AND {_SAYING}"
            f" AND {which} ORDER BY id",
            (scope, ids, ids) if is_range else (scope, ids),
        )

    def _requested_records(self, request: ErasureRequest) -> list[LogRecord]:
        """The messages that are named, what later edits of them said, and reminders that they asked for."""
        records = []
        for message_id in dict.fromkeys(request.messages):
            row = self.find_message(message_id, request.scope)
            if row is None:
                hint = f"; if you mean a memory, say `memory {message_id}`" if message_id >= _LIKE_A_MEMORY else ""
                raise UsageError(f"There is no message {message_id}. Nothing was changed{hint}.")
            records.append(self._log.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"])))
        return [*records, *self._changes_of(request.messages, request.scope)]

    def _changes_of(self, message_ids: Sequence[int], scope: str) -> list[LogRecord]:
        """What later edits of messages said, and reminders that they asked for."""
        rows = self._db.rows(
            "SELECT session, byte_start, byte_end FROM messages"
            " WHERE scope = ? AND kind IN ('edit', 'delete', 'reminder')",
            (scope,),
        )
        records = [self._log.read(row["session"], span_of_row(row)) for row in rows if message_ids]
        return [record for record in records if set(record.refs) & set(message_ids) and record.id not in message_ids]

    def _readings_of(self, records: Sequence[LogRecord], scope: str) -> list[LogRecord]:
        """What tools read in files that came with these messages."""
        paths = [media.path for record in records for media in record.media if media.path]
        rows = self._db.rows(
            "SELECT m.session, m.byte_start, m.byte_end FROM tool_runs r JOIN messages m ON m.turn = r.turn"
            " AND m.tool_call_id = r.call_id WHERE r.scope = ? AND json_extract(r.arguments, '$.path') IN"
            " (SELECT value FROM json_each(?))",
            (scope, json.dumps(paths)),
        )
        met = {record.id for record in records}
        found = [self._log.read(row["session"], span_of_row(row)) for row in rows if paths]
        return [record for record in found if record.id not in met]

    def find_message(self, message_id: int, scope: str) -> Row | None:
        """Where it stands in the log."""
        return self._db.row(
            f"SELECT session, byte_start, byte_end FROM messages WHERE id = ? AND scope = ? AND {_SAYING}",
            (message_id, scope),
        )

    def _requested_entries(self, request: ErasureRequest) -> list[Row]:
        of_memories = (row["entry_id"] for row in self._consolidated("memory_id", request.memories))
        rows = self._people.rows(
            f"SELECT * FROM journal WHERE {_AMONG} AND scope = ?",
            (json.dumps([*request.entries, *of_memories]), request.scope),
        )
        missing = set(request.entries) - {row["id"] for row in rows}
        if missing:
            raise UsageError(f"There is no journal entry {min(missing)}. Nothing was changed.")
        return rows

    def _consolidated(self, column: str, values: Sequence[int | str]) -> list[Row]:
        if not column_names(self._people, "consolidated_entry_ids"):
            return []
        return self._people.rows(
            f"SELECT entry_id, memory_id FROM consolidated_entry_ids WHERE {column} IN"
            " (SELECT value FROM json_each(?))",
            (json.dumps(list(values)),),
        )


def _phrases(texts: Iterable[str]) -> list[str]:
    return [phrase for text in texts for phrase in identifying_phrases(text)]


@contextmanager
def open_home_copy(home: Path) -> Iterator[ErasureFinder]:
    """A home that was unpacked from a backup, whatever version wrote it. Raises `StoreError` where it is none."""
    with (
        closing(Database.open_reader(home / "script.db")) as db,
        closing(Database.open_reader(home / "character.db")) as people,
        closing(LogFiles(home)) as log,
    ):
        yield ErasureFinder(home, db, people, log)
