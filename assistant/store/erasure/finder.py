"""Finding what an erasure removes: the records, journal entries and memories behind what a person asked for.

What always holds: nothing is changed; only what belongs to the scope is found, and somebody else's id is reported as
one that does not exist (I10).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from sqlite3 import Row

from assistant.core.erasure import (
    MIN_LETTERS,
    MIN_SPACELESS_LETTERS,
    ErasureRequest,
    PhraseMatcher,
    identifying_phrases,
    is_searchable_phrase,
)
from assistant.core.errors import UsageError
from assistant.core.memories import MIN_ID_DIGITS
from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.store.database import Database, column_names
from assistant.store.erasure.character_db import find_character_changes, find_entries_of_messages
from assistant.store.erasure.plan import ErasurePlan, RecordLocation
from assistant.store.log.format import SALT_KEY
from assistant.store.log.reader import LogFiles
from assistant.store.log.redact import is_blank_line

_LIKE_A_MEMORY = 10 ** (MIN_ID_DIGITS - 1)
_SAYING = "kind NOT IN ('undo', 'redaction')"


class ErasureFinder:
    def __init__(self, db: Database, people: Database, log: LogFiles) -> None:
        self._db = db
        self._people = people
        self._log = log

    def sessions_of_scope(self, scope: str) -> list[str]:
        rows = self._db.rows("SELECT DISTINCT key FROM sessions WHERE scope = ? ORDER BY key", (scope,))
        return [row["key"] for row in rows]

    def plan_erasure(self, wanted: ErasureRequest) -> ErasurePlan:
        """Raises `UsageError` for a text that is too short and for ids that are not there."""
        if wanted.text.strip():
            return self._mark_text(wanted)
        records = self._records(wanted)
        phrases = [phrase for record in records for phrase in _phrases(record)]
        entries = {row["id"]: row["content"] for row in self._entries(wanted)}
        phrases += [phrase for said in entries.values() for phrase in identifying_phrases(said)]
        marked = ErasurePlan(
            wanted.scope,
            tuple(dict.fromkeys(phrases)),
            tuple(RecordLocation(record.id, record.session, record.span) for record in records),
            tuple(entries),
            wanted.memories,
            tuple((record.turn or "", call.id) for record in records for call in record.tool_calls),
        )
        alone, _ = find_entries_of_messages(self._people, marked)
        return self._with_derived(
            marked.with_changes(entries=(*entries, *(one for one in alone if one not in entries)))
        )

    def _mark_text(self, wanted: ErasureRequest) -> ErasurePlan:
        if not is_searchable_phrase(wanted.text):
            raise UsageError(
                f"Less than {MIN_LETTERS} letters or digits ({MIN_SPACELESS_LETTERS} of Chinese, Japanese or Thai) are "
                "too short to be looked for everywhere. Nothing was changed; give a longer phrase, or name what has it:"
                " #17 (a message), entry 12, or a memory's id."
            )
        wording = PhraseMatcher([wanted.text])
        records = [
            place
            for session in self.sessions_of_scope(wanted.scope)
            for place in self.find_records_with_words(session, wording)
        ]
        return self._with_derived(
            ErasurePlan(wanted.scope, (wanted.text,), tuple(records), (), wanted.memories, everywhere=True)
        )

    def find_records_with_words(self, session: str, wording: PhraseMatcher) -> Iterator[RecordLocation]:
        """The records of a log whose words are among these; of a line that is none, nothing."""
        for offset, line in self._log.iterate_lines(session):
            at = line.find(SALT_KEY)
            if at < 0 or is_blank_line(line) or not wording.match_ends(line[at:]):
                continue
            try:
                yield RecordLocation(
                    int(json.loads(line[:at] + b"}")["id"]), session, LogByteRange(offset, offset + len(line))
                )
            except (ValueError, KeyError, TypeError):
                continue

    def describe_related_entries(self, marked: ErasurePlan) -> list[str]:
        """Journal entries made of marked messages that will stay, a line each."""
        alone, shared = find_entries_of_messages(self._people, marked)
        changed = find_character_changes(self._people, marked)
        going = {change.row for change in changed if change.table == "journal"}
        said = dict(shared) | {row["id"]: row["content"] for row in self._rows("journal", alone)}
        return [f"journal entry {one}: {' '.join(said[one].split())[:100]}" for one in said if one not in going]

    def refuse_if_running(self, marked: ErasurePlan) -> None:
        """Raises `UsageError` while a turn of the scope runs, since it was told what stands there and may say it again,
        and where something of it waits to be answered."""
        if self._db.row("SELECT 1 FROM turns WHERE scope = ? AND state = 'running'", (marked.scope,)):
            raise UsageError(
                "A message is being answered, and the words may be part of that. Nothing was changed; wait for the"
                " answer, or /stop, then forget them."
            )
        waiting = self._db.rows(
            "SELECT message_id, body FROM inbox WHERE scope = ? AND state = 'accepted'", (marked.scope,)
        )
        for row in waiting:
            if row["message_id"] in marked.ids or (marked.everywhere and marked.wording.matches(row["body"])):
                which = f"Message {row['message_id']}"
                raise UsageError(f"{which} waits to be answered. Nothing was changed; forget it after the answer.")

    # ------------------------------------------------------------------------------------------------------------ ids

    def _records(self, wanted: ErasureRequest) -> list[LogRecord]:
        """The messages that are named, what later edits of them said, and reminders that they asked for."""
        found = []
        for message_id in dict.fromkeys(wanted.messages):
            row = self.find_message(message_id, wanted.scope)
            if row is None:
                meant = f"; if you mean a memory, say `memory {message_id}`" if message_id >= _LIKE_A_MEMORY else ""
                raise UsageError(f"There is no message {message_id}. Nothing was changed{meant}.")
            found.append(self._log.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"])))
        edits = self._db.rows(
            "SELECT session, byte_start, byte_end FROM messages"
            " WHERE scope = ? AND kind IN ('edit', 'delete', 'reminder')",
            (wanted.scope,),
        )
        for row in edits:
            record = self._log.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"]))
            if set(record.refs) & set(wanted.messages) and record.id not in wanted.messages:
                found.append(record)
        return found

    def find_message(self, message_id: int, scope: str) -> Row | None:
        """Where it stands in the log."""
        return self._db.row(
            f"SELECT session, byte_start, byte_end FROM messages WHERE id = ? AND scope = ? AND {_SAYING}",
            (message_id, scope),
        )

    def _entries(self, wanted: ErasureRequest) -> list[Row]:
        of_memories = [entry for memory in wanted.memories for entry in self._entries_of(memory)]
        ids = list(dict.fromkeys((*wanted.entries, *of_memories)))
        rows = [row for row in self._rows("journal", ids) if row["scope"] == wanted.scope]
        missing = set(wanted.entries) - {row["id"] for row in rows}
        if missing:
            raise UsageError(f"There is no journal entry {min(missing)}. Nothing was changed.")
        return rows

    # -------------------------------------------------------------------------------------------------------- derived

    def _with_derived(self, marked: ErasurePlan) -> ErasurePlan:
        """With the memories that entries went into which go: they are made anew of what is left."""
        going = [*marked.entries, *self._going(marked)]
        rows = self._consolidated("entry_id", going)
        memories = dict.fromkeys([*marked.memories, *(row["memory_id"] for row in rows if row["memory_id"])])
        return marked.with_changes(memories=tuple(memories))

    def _going(self, marked: ErasurePlan) -> list[int]:
        changed = find_character_changes(self._people, marked)
        return [change.row for change in changed if change.table == "journal" and change.values is None]

    def _entries_of(self, memory_id: str) -> list[int]:
        return [row["entry_id"] for row in self._consolidated("memory_id", [memory_id])]

    def _consolidated(self, column: str, values: Sequence[int | str]) -> list[Row]:
        if not column_names(self._people, "consolidated_entry_ids"):
            return []
        return self._people.rows(
            f"SELECT entry_id, memory_id FROM consolidated_entry_ids WHERE {column} IN"
            " (SELECT value FROM json_each(?))",
            (json.dumps(list(values)),),
        )

    def _rows(self, table: str, ids: Sequence[int]) -> list[Row]:
        return self._people.rows(
            f"SELECT * FROM {table} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
        )


def _phrases(record: LogRecord) -> list[str]:
    """What can be known again of a record elsewhere: what was said, and what tools were asked for."""
    said = [record.content, *(text for call in record.tool_calls for text in _texts(dict(call.arguments)))]
    return [phrase for text in said for phrase in identifying_phrases(text)]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in inner for text in _texts(item)]
