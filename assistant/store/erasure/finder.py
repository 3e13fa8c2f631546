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
    MIN_LETTERS,
    MIN_SPACELESS_LETTERS,
    ErasureMatches,
    ErasurePreview,
    ErasureRequest,
    PhraseMatcher,
    identifying_phrases,
    is_searchable_phrase,
)
from assistant.core.errors import StoreError, UsageError
from assistant.core.memories import MIN_ID_DIGITS
from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.archive.format import list_archive_rows
from assistant.store.database import Database, column_names
from assistant.store.erasure.databases import (
    RowChange,
    find_character_changes,
    find_entries_of_messages,
    find_script_changes,
    removed_entries,
)
from assistant.store.erasure.files import ErasableFile, find_affected_archives, list_erasable_files
from assistant.store.erasure.plan import ErasurePlan, RecordLocation
from assistant.store.log.format import SALT_KEY
from assistant.store.log.reader import LogFiles
from assistant.store.log.redact import is_blank_line
from assistant.store.script.index import find_spans

_MAX_EXAMPLES = 5
_LIKE_A_MEMORY = 10 ** (MIN_ID_DIGITS - 1)
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
            return self.plan_erasure(ErasureRequest(plan.scope, memories=memories, text=plan.phrases[0]))
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
        places = tuple(
            ErasureMatches(place, len(shown), tuple(dict.fromkeys(shown))[:_MAX_EXAMPLES])
            for place, shown in lines.items()
        )
        related = tuple(self._describe_related_entries(plan, learned))
        return ErasurePreview(request, tuple(sorted(message_ids)), places, related, self._database_copies(plan))

    def _describe_related_entries(self, plan: ErasurePlan, changes: Iterable[RowChange]) -> Iterator[str]:
        """Journal entries made of messages of the plan that will stay, a line each."""
        alone, shared = find_entries_of_messages(self._people, plan)
        changed = {change.row for change in changes if change.table == "journal"}
        for entry_id, content in {**shared, **alone}.items():
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
            return _find_memories(memory, plan)

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
            if row["message_id"] in plan.ids or (plan.everywhere and plan.wording.matches(row["body"])):
                which = f"Message {row['message_id']}"
                raise UsageError(f"{which} waits to be answered. Nothing was changed; forget it after the answer.")

    # ---------------------------------------------------------------------------------------------- what is asked for

    def _plan_text(self, request: ErasureRequest) -> ErasurePlan:
        if not is_searchable_phrase(request.text):
            raise UsageError(
                f"Less than {MIN_LETTERS} letters or digits ({MIN_SPACELESS_LETTERS} of Chinese, Japanese or Thai) are "
                "too short to be looked for everywhere. Nothing was changed; give a longer phrase, or name what has it:"
                " #17 (a message), entry 12, or a memory's id."
            )
        wording = PhraseMatcher([request.text])
        records = tuple(
            record
            for session in self.sessions_of_scope(request.scope)
            for record in self.find_records_with_words(session, wording)
        )
        return ErasurePlan(request.scope, (request.text,), records, (), request.memories, everywhere=True)

    def _plan_named(self, request: ErasureRequest) -> ErasurePlan:
        records = self._requested_records(request)
        entries = {row["id"]: row["content"] for row in self._requested_entries(request)}
        phrases = [phrase for record in records for phrase in _phrases(record)]
        phrases += [phrase for content in entries.values() for phrase in identifying_phrases(content)]
        plan = ErasurePlan(
            request.scope,
            tuple(dict.fromkeys(phrases)),
            tuple(RecordLocation(record.id, record.session, record.span) for record in records),
            tuple(entries),
            request.memories,
            tuple((record.turn or "", call.id) for record in records for call in record.tool_calls),
        )
        alone, _ = find_entries_of_messages(self._people, plan)
        return replace(plan, entries=tuple(dict.fromkeys((*entries, *alone))))

    def _requested_records(self, request: ErasureRequest) -> list[LogRecord]:
        """The messages that are named, what later edits of them said, and reminders that they asked for."""
        records = []
        for message_id in dict.fromkeys(request.messages):
            row = self.find_message(message_id, request.scope)
            if row is None:
                hint = f"; if you mean a memory, say `memory {message_id}`" if message_id >= _LIKE_A_MEMORY else ""
                raise UsageError(f"There is no message {message_id}. Nothing was changed{hint}.")
            records.append(self._log.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"])))
        edits = self._db.rows(
            "SELECT session, byte_start, byte_end FROM messages"
            " WHERE scope = ? AND kind IN ('edit', 'delete', 'reminder')",
            (request.scope,),
        )
        for row in edits:
            record = self._log.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"]))
            if set(record.refs) & set(request.messages) and record.id not in request.messages:
                records.append(record)
        return records

    def find_message(self, message_id: int, scope: str) -> Row | None:
        """Where it stands in the log."""
        return self._db.row(
            f"SELECT session, byte_start, byte_end FROM messages WHERE id = ? AND scope = ? AND {_SAYING}",
            (message_id, scope),
        )

    def _requested_entries(self, request: ErasureRequest) -> list[Row]:
        of_memories = (row["entry_id"] for row in self._consolidated("memory_id", request.memories))
        rows = self._people.rows(
            "SELECT * FROM journal WHERE id IN (SELECT value FROM json_each(?)) AND scope = ?",
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


@contextmanager
def open_home_copy(home: Path) -> Iterator[ErasureFinder]:
    """A home that was unpacked from a backup, whatever version wrote it. Raises `StoreError` where it is none."""
    with (
        closing(Database.open_reader(home / "script.db")) as db,
        closing(Database.open_reader(home / "character.db")) as people,
        closing(LogFiles(home)) as log,
    ):
        yield ErasureFinder(home, db, people, log)


def _phrases(record: LogRecord) -> list[str]:
    """What can be known again of a record elsewhere: what was said, and what tools were asked for."""
    texts = [record.content, *(text for call in record.tool_calls for text in _texts(dict(call.arguments)))]
    return [phrase for text in texts for phrase in identifying_phrases(text)]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in inner for text in _texts(item)]


def _find_memories(db: Database, plan: ErasurePlan) -> dict[str, str]:
    """Words by id of the scope's memories that have the words now, or had them before, or are named."""
    if not column_names(db, "memories"):
        return {}
    texts: dict[str, str] = {}
    for row in db.iterate("SELECT id, text, payload FROM memories WHERE scope = ?", (plan.scope,)):
        if row["id"] in plan.memories or plan.wording.matches(row["text"]) or plan.wording.matches(row["payload"]):
            texts[row["id"]] = row["text"]
    # Of a memory that is gone, nobody knows whose it was: it goes with whoever names it.
    rows = db.iterate(
        "SELECT h.memory_id, h.old_memory, h.new_memory, m.scope FROM history h"
        " LEFT JOIN memories m ON m.id = h.memory_id WHERE m.scope = ? OR m.scope IS NULL",
        (plan.scope,),
    )
    for row in rows:
        versions = [text for text in (row["old_memory"], row["new_memory"]) if text]
        owned = row["scope"] is not None or plan.scope == OWNER_SCOPE
        if row["memory_id"] in plan.memories or (owned and any(map(plan.wording.matches, versions))):
            texts.setdefault(row["memory_id"], versions[0] if versions else "")
    return texts


# ------------------------------------------------------------------------------------------------ copies of databases


def list_database_copies(home: Path) -> list[Path]:
    """The copies of databases that were made before a migration."""
    return sorted(path for path in (home / "backups").glob("*.db") if not path.is_symlink())


def database_copy_has_words(path: Path, plan: ErasurePlan) -> bool:
    """Whether a copy has what is to be erased. Raises `StoreError` where it cannot be read."""
    with closing(Database.open_unmigrated(path)) as db:
        if column_names(db, "conversation_history"):
            return any(True for _ in find_script_changes(db, plan)) or _has_full_text(db, plan)
        if column_names(db, "memories"):
            return bool(_find_memories(db, plan))
        return any(True for _ in find_character_changes(db, plan))


def _has_full_text(db: Database, plan: ErasurePlan) -> bool:
    """Whether the full text of an older version knows the words of records that are to be erased."""
    return bool(column_names(db, "messages_fts_docsize")) and any(
        db.row("SELECT 1 FROM messages_fts_docsize WHERE id = ?", (message_id,)) for message_id in plan.ids
    )
