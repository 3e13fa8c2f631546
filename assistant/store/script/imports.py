"""Conversations imported from other programs (script.db and the message log).

- A conversation gets its number, durably, before its first record is logged; each of its messages has the other
  program's id in the log itself. So an interrupted import continues where it was, and importing the same or a newer
  export of the account adds only new messages.
- Erased messages stay erased when their export is imported again: their ids are kept, their text is not.
- Imported messages are in no view and no turn; an imported conversation is ended from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b

from assistant.core.import_records import SOURCE_NAMES, ImportCounts, ImportedBatch, ImportedMessage, ImportRun
from assistant.core.messages import Message
from assistant.core.records import SessionInfo
from assistant.core.sessions import IMPORT_PREFIX, OWNER_SCOPE
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.rows import class_row, dump_json, format_time
from assistant.store.script.append import Appender, RecordDraft, RecordOrigin
from assistant.store.script.index import span_of_row
from assistant.store.script.sessions import Session, insert_session, list_unread_imports

TITLE_ID = "title"
"""The external id of the first record of a conversation, which says where it is from and what it is called."""

_SELECT_RUNS = """
    SELECT i.*, (SELECT count(DISTINCT r.session) FROM imported_ranges r WHERE r.import_id = i.id) AS conversations,
     (SELECT count(*) FROM imported_ranges r JOIN messages m ON m.session = r.session
      AND m.seq BETWEEN r.from_seq AND r.to_seq WHERE r.import_id = i.id AND m.role <> 'system') AS messages
    FROM imports i
"""
_read_run = class_row(ImportRun)


class _KnownTexts:
    """The texts of a conversation up to a record of it, as digests: a memory file may have tens of thousands."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last_seq = 0
        self._digests: set[bytes] = set()

    def __contains__(self, text: str) -> bool:
        return _digest(text) in self._digests

    def is_of(self, session: Session, last_seq: int) -> bool:
        """Return whether nothing was said or changed in the conversation since."""
        return (self._session, self._last_seq) == (session, last_seq)

    def add(self, texts: Iterable[str], last_seq: int) -> None:
        self._digests.update(map(_digest, texts))
        self._last_seq = last_seq


class StoredImports:
    """Implements `ImportsPort`: runs of imports, which continue where they were interrupted."""

    def __init__(self, db: Database, log: LogFiles, appender: Appender) -> None:
        self._db = db
        self._log = log
        self._appender = appender
        self._known_texts: _KnownTexts | None = None

    def begin(self, source: str, name: str, now: datetime) -> int:
        """Return the number of a new import, or of an interrupted one of the same file, which continues."""
        with self._db.write() as db:
            unfinished = "SELECT id FROM imports WHERE source = ? AND name = ? AND state = 'running' ORDER BY id DESC"
            number: int | None = db.value(unfinished, (source, name))
            if number is None:
                number = db.insert_row(
                    "imports", source=source, name=name, state="running", scope=OWNER_SCOPE, begun_at=now
                )
        return number

    def without_own(self, batch: ImportedBatch) -> ImportedBatch:
        """Return the batch without messages that were said in this data folder, as an export of it has them."""
        ids = [message.external_id for message in batch.messages if message.external_id.isdecimal()]
        if batch.source != "jsonl" or not ids:
            return batch
        rows = self._db.rows(
            "SELECT id, ts FROM messages WHERE session = ? AND id IN (SELECT CAST(value AS INTEGER) FROM json_each(?))",
            (batch.external_id, dump_json(ids)),
        )
        own = {(str(row["id"]), row["ts"]) for row in rows}
        return replace(
            batch, messages=tuple(it for it in batch.messages if (it.external_id, format_time(it.at)) not in own)
        )

    def open_conversations(self, batches: Sequence[ImportedBatch], now: datetime) -> int:
        """Assign numbers to new conversations with one durable commit, and return how many were new."""
        wanted = {(batch.source, batch.external_id): batch for batch in batches if batch.messages}
        new = [batch for batch in wanted.values() if self._find_conversation(batch) is None]
        if new:
            with self._db.write() as db:
                for batch in new:
                    self._insert_conversation(db, batch, now)
        return len(new)

    def add(self, import_id: int, batch: ImportedBatch, now: datetime) -> ImportCounts:
        """Log and index the messages of a batch that are not stored yet. Raises `StoreError`; then all or nothing was
        logged, and calling it again adds the rest."""
        if not batch.messages:
            return ImportCounts()
        opened = self.open_conversations([batch], now)
        session = _session(self._find_conversation(batch) or 0)
        self._appender.catch_up_index(session.key, now)
        self._note_adopted(import_id, session)
        fresh, is_titled = self._select_new(session, batch)
        counts = ImportCounts(opened, len(fresh), len(batch.messages) - len(fresh))
        if not fresh:
            return counts
        drafts = [] if is_titled else [self._draft_title(session, batch, fresh[0].at)]
        drafts += [self._draft(session, batch, message, now) for message in fresh]
        # Records that a crash left only in the log are indexed now, and the next import records their range.
        with self._appender.appending(session, drafts, now, durable=False):
            self._note_range(import_id, session, len(drafts))
        if self._known_texts is not None:
            self._known_texts.add([message.text for message in fresh], self._last_seq(session))
        return counts

    def finish(self, import_id: int, rejected: int, now: datetime) -> None:
        """Finish an import. One that added nothing is deleted."""
        self._known_texts = None
        with self._db.write() as db:
            if db.value("SELECT 1 FROM imported_ranges WHERE import_id = ?", (import_id,)):
                db.update_rows("imports", {"id": import_id}, state="done", ended_at=now, rejected=rejected)
            else:
                db.execute("DELETE FROM imports WHERE id = ?", (import_id,))

    def find(self, import_id: int) -> ImportRun | None:
        return self._db.read_one(_read_run, f"{_SELECT_RUNS} WHERE i.id = ?", (import_id,))

    def list_runs(self) -> list[ImportRun]:
        """Return all imports, oldest first."""
        return self._db.read_all(_read_run, f"{_SELECT_RUNS} ORDER BY i.id")

    def list_unread(self, *, limit: int) -> list[SessionInfo]:
        return list_unread_imports(self._db, limit)

    def titles(self, sessions: Sequence[str]) -> dict[str, str]:
        """Return the titles of imported conversations by session."""
        numbers = [int(key.removeprefix(IMPORT_PREFIX)) for key in sessions if key.startswith(IMPORT_PREFIX)]
        marks = ", ".join("?" * len(numbers))
        rows = self._db.rows(f"SELECT id, title FROM imported_conversations WHERE id IN ({marks})", numbers)
        return {_key(row["id"]): row["title"] for row in rows}

    # ------------------------------------------------------------------------------------------------------- undoing

    def messages_of(self, import_id: int) -> dict[str, list[int]]:
        """Return the messages of an import that are still visible, by session."""
        rows = self._db.rows(
            "SELECT m.session, m.id FROM imported_ranges r JOIN messages m ON m.session = r.session"
            " AND m.seq BETWEEN r.from_seq AND r.to_seq"
            " WHERE r.import_id = ? AND m.hidden_by IS NULL AND m.kind = 'message' ORDER BY m.id",
            (import_id,),
        )
        by_session: dict[str, list[int]] = {}
        for row in rows:
            by_session.setdefault(row["session"], []).append(row["id"])
        return by_session

    def mark_undone(self, import_id: int, now: datetime) -> None:
        """Forget conversations of which no message is visible any more, so that the same export can be imported
        again."""
        with self._db.write() as db:
            db.update_rows("imports", {"id": import_id}, state="undone", ended_at=now)
            db.execute(
                "UPDATE imported_conversations SET source = 'undone' WHERE ? || id IN"
                " (SELECT session FROM imported_ranges WHERE import_id = ?) AND NOT EXISTS (SELECT 1 FROM messages m"
                " WHERE m.session = ? || imported_conversations.id AND m.kind = 'message' AND m.hidden_by IS NULL)",
                (IMPORT_PREFIX, import_id, IMPORT_PREFIX),
            )

    # ------------------------------------------------------------------------------------------------------- writing

    def _find_conversation(self, batch: ImportedBatch) -> int | None:
        number: int | None = self._db.value(
            "SELECT id FROM imported_conversations WHERE source = ? AND external_id = ? ORDER BY id DESC LIMIT 1",
            (batch.source, batch.external_id),
        )
        return number

    def _insert_conversation(self, db: Database, batch: ImportedBatch, now: datetime) -> None:
        """Within a transaction."""
        columns = {"source": batch.source, "external_id": batch.external_id, "title": batch.title}
        session = _session(db.insert_row("imported_conversations", scope=OWNER_SCOPE, **columns))
        begun_at = min((message.at for message in batch.messages), default=now)
        insert_session(db, session.key, session.generation, session.scope, begun_at)

    def _select_new(self, session: Session, batch: ImportedBatch) -> tuple[list[ImportedMessage], bool]:
        """Return the messages that are not stored yet, and whether the title is new."""
        ids = [TITLE_ID, *(message.external_id for message in batch.messages)]
        rows = self._db.rows(
            "SELECT external_id FROM messages WHERE session = ? AND hidden_by IS NULL"
            " AND external_id IN (SELECT value FROM json_each(?))",
            (session.key, dump_json(ids)),
        )
        known = {row["external_id"] for row in rows}
        has_texts = any(not message.external_id for message in batch.messages)
        known_texts = self._known_texts = self._shown_texts(session) if has_texts else None
        fresh = {
            message.external_id or message.text: message
            for message in batch.messages
            if (message.external_id not in known if message.external_id else message.text not in (known_texts or ()))
        }
        return list(fresh.values()), TITLE_ID in known

    def _shown_texts(self, session: Session) -> _KnownTexts:
        """Return the texts of a conversation whose messages have no ids, a memory file: read once for all batches."""
        last = self._last_seq(session)
        if self._known_texts is not None and self._known_texts.is_of(session, last):
            return self._known_texts
        spans = self._db.read_all(
            span_of_row,
            "SELECT byte_start, byte_end FROM messages WHERE session = ? AND kind = 'message' AND hidden_by IS NULL",
            (session.key,),
        )
        known = _KnownTexts(session)
        known.add((self._log.read(session.key, span).content for span in spans), last)
        return known

    def _last_seq(self, session: Session) -> int:
        return self._db.value("SELECT max(seq) FROM messages WHERE session = ?", (session.key,)) or 0

    def _draft_title(self, session: Session, batch: ImportedBatch, at: datetime) -> RecordDraft:
        title = f"Imported from {SOURCE_NAMES[batch.source]}: {batch.title}"
        origin = RecordOrigin(bridge=batch.source, trust="system", external_id=TITLE_ID)
        return self._appender.draft_record(session, Message("system", title, ts=at), origin, at)

    def _draft(self, session: Session, batch: ImportedBatch, message: ImportedMessage, now: datetime) -> RecordDraft:
        speaker = message.speaker or None
        origin = RecordOrigin(
            bridge=batch.source,
            sender=None if message.role == "assistant" else speaker or "owner",
            trust="model" if message.role == "assistant" else "guest" if speaker else "owner",
            external_id=message.external_id or None,
        )
        said = Message(message.role, message.text, ts=message.at, name=speaker)
        return self._appender.draft_record(session, said, origin, now)

    def _note_adopted(self, import_id: int, session: Session) -> None:
        """Assign records that a power cut left only in the log to the import that continues, so that they are undone
        with it."""
        row = self._db.row(
            "SELECT min(seq) AS first, max(seq) AS last FROM messages WHERE session = ?1 AND kind = 'message'"
            " AND seq > coalesce((SELECT max(to_seq) FROM imported_ranges WHERE session = ?1), 0)",
            (session.key,),
        )
        if row is not None and row["first"] is not None:
            with self._db.write() as db:
                values = {"import_id": import_id, "session": session.key}
                db.insert_row("imported_ranges", **values, from_seq=row["first"], to_seq=row["last"])

    def _note_range(self, import_id: int, session: Session, count: int) -> None:
        """Within the transaction that indexed `count` records. Consecutive batches of one import extend one range."""
        last = self._last_seq(session)
        values = {"import_id": import_id, "session": session.key}
        if not self._db.update_rows("imported_ranges", {**values, "to_seq": last - count}, to_seq=last):
            self._db.insert_row("imported_ranges", **values, from_seq=last - count + 1, to_seq=last)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _key(number: int) -> str:
    return f"{IMPORT_PREFIX}{number}"


def _session(number: int) -> Session:
    return Session(_key(number), 1, OWNER_SCOPE)
