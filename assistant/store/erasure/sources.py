"""Finds the log records and journal entries that an erasure is about, and which were derived from which.

Nothing is changed. Only data of the scope is found; another scope's id is reported as not existing (I10).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from sqlite3 import Row

from assistant.core.erasure import ErasureRequest
from assistant.core.erasure_phrases import PhraseMatcher, tells_of
from assistant.core.erasure_values import find_values
from assistant.core.errors import UsageError
from assistant.core.memories import MIN_ID_DIGITS
from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.store.database import Database
from assistant.store.erasure.character_rows import RANGE_ENTRIES
from assistant.store.erasure.own_words import is_said
from assistant.store.erasure.plan import ErasurePlan, RecordLocation
from assistant.store.log.format import SALT_KEY
from assistant.store.log.reader import LogFiles
from assistant.store.log.redact import is_blank_line
from assistant.store.script.index import span_of_row

_LIKE_A_MEMORY = 10 ** (MIN_ID_DIGITS - 1)
_AMONG = "id IN (SELECT value FROM json_each(?))"
_SAYING = "kind NOT IN ('undo', 'redaction')"


class ErasureSources:
    """Messages and journal entries of a data folder, or of an unpacked backup."""

    def __init__(self, home: Path, db: Database, people: Database, log: LogFiles) -> None:
        """`db` is script.db, `people` character.db."""
        self.home = home
        self._db = db
        self._people = people
        self._log = log

    def sessions_of_scope(self, scope: str) -> list[str]:
        rows = self._db.rows("SELECT DISTINCT key FROM sessions WHERE scope = ? ORDER BY key", (scope,))
        return [row["key"] for row in rows]

    def find_records_with_words(self, session: str, wording: PhraseMatcher) -> Iterator[RecordLocation]:
        """Return the records of a log that have this text; invalid lines are skipped."""
        for offset, line in self._log.iterate_lines(session):
            at = line.find(SALT_KEY)
            if at < 0 or is_blank_line(line) or not is_said(line[at:], wording):
                continue
            with suppress(ValueError, KeyError, TypeError):
                message_id = int(json.loads(line[:at] + b"}")["id"])
                yield RecordLocation(message_id, session, LogByteRange(offset, offset + len(line)))

    def _entries_of(self, plan: ErasurePlan) -> dict[int, tuple[str, bool]]:
        """Return journal entries made of individual messages of the plan, not of a range: their text, and whether they
        also derive from another message of a person."""
        rows = self._people.rows("SELECT id, content, sources, source_type FROM journal WHERE scope = ?", (plan.scope,))
        of_some = [(row, set(json.loads(row["sources"]))) for row in rows if row["source_type"] not in RANGE_ENTRIES]
        found = [(row, sources) for row, sources in of_some if sources & plan.ids]
        others = {message_id for _, sources in found for message_id in sources - plan.ids}
        rows = self._db.rows(f"SELECT id FROM messages WHERE role = 'user' AND {_AMONG}", (json.dumps(list(others)),))
        said = {row["id"] for row in rows}
        return {row["id"]: (row["content"], sources.isdisjoint(said)) for row, sources in found}

    def _entries_of_others(self, plan: ErasurePlan) -> Iterator[str]:
        """Return the text of journal entries made of other messages than those of the plan."""
        rows = self._people.rows("SELECT id, content, sources, source_type FROM journal WHERE scope = ?", (plan.scope,))
        for row in rows:
            is_range = row["source_type"] in RANGE_ENTRIES
            if not is_range and row["id"] not in plan.entries and plan.ids.isdisjoint(json.loads(row["sources"])):
                yield row["content"]

    def _messages_of(self, entries: Sequence[Row], scope: str) -> list[int]:
        """Return messages of people from which entries were made and that are not erased yet; for an entry made of a
        range of messages, those that have its values."""
        found: dict[int, None] = {}
        for entry in entries:
            # A summary derives from a whole conversation, which is not meant.
            sources = [] if entry["source_type"] == "context_synthesis" else json.loads(entry["sources"])
            is_range = entry["source_type"] in RANGE_ENTRIES
            matcher = PhraseMatcher((), find_values(entry["content"])[0])
            for row in self._spoken_rows(sources, scope, is_range=is_range):
                record = self._log.read(row["session"], span_of_row(row))
                if record.content and (not is_range or matcher.matches(record.content)):
                    found[record.id] = None
        return list(found)

    def _spoken_rows(self, message_ids: Sequence[int], scope: str, *, is_range: bool) -> list[Row]:
        """Return messages of people with these ids, or in the range from the first to the last."""
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
        """Return the named messages, their later edits, and reminders they requested."""
        records = []
        for message_id in dict.fromkeys(request.messages):
            row = self.find_message(message_id, request.scope)
            if row is None:
                hint = f"; if you mean a memory, say `memory {message_id}`" if message_id >= _LIKE_A_MEMORY else ""
                raise UsageError(f"There is no message {message_id}. Nothing was changed{hint}.")
            records.append(self._log.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"])))
        return [*records, *self._changes_of(request.messages, request.scope)]

    def _changes_of(self, message_ids: Sequence[int], scope: str) -> list[LogRecord]:
        """Return later edits of messages, and reminders they requested."""
        rows = self._db.rows(
            "SELECT session, byte_start, byte_end FROM messages"
            " WHERE scope = ? AND kind IN ('edit', 'delete', 'reminder')",
            (scope,),
        )
        records = [self._log.read(row["session"], span_of_row(row)) for row in rows if message_ids]
        return [record for record in records if set(record.refs) & set(message_ids) and record.id not in message_ids]

    def _readings_of(self, records: Sequence[LogRecord], scope: str) -> list[LogRecord]:
        """Return what tools read in files that came with these messages."""
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
        """Return where a message is in the log."""
        return self._db.row(
            f"SELECT session, byte_start, byte_end FROM messages WHERE id = ? AND scope = ? AND {_SAYING}",
            (message_id, scope),
        )

    def _requested_entries(self, request: ErasureRequest, memory_texts: Mapping[str, str]) -> list[Row]:
        """Return the named entries, and those of the named memories."""
        named = self._read_entries(request.entries, request.scope)
        missing = set(request.entries) - {row["id"] for row in named}
        if missing:
            raise UsageError(f"There is no journal entry {min(missing)}. Nothing was changed.")
        for memory_id in request.memories:
            merged = self._entries_merged_into([memory_id], request.scope)
            text = memory_texts.get(memory_id)
            told = [row for row in merged if text is None or tells_of(row["content"], text)]
            named += told or merged
        return list({row["id"]: row for row in named}.values())

    def _entries_merged_into(self, memory_ids: Sequence[str], scope: str) -> list[Row]:
        return self._read_entries([row["entry_id"] for row in self._consolidated("memory_id", memory_ids)], scope)

    def _read_entries(self, ids: Sequence[int], scope: str) -> list[Row]:
        return self._people.rows(
            f"SELECT * FROM journal WHERE {_AMONG} AND scope = ? ORDER BY id", (json.dumps(ids), scope)
        )

    def _consolidated(self, column: str, values: Sequence[int | str]) -> list[Row]:
        if not self._people.column_names("consolidated_entry_ids"):
            return []
        return self._people.rows(
            f"SELECT entry_id, memory_id FROM consolidated_entry_ids WHERE {column} IN"
            " (SELECT value FROM json_each(?))",
            (json.dumps(list(values)),),
        )
