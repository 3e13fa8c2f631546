"""Edits and deletions of messages on their network, after they arrived.

Only the account that sent a message may change it, and the same change counts once. As with messages, SQLite accepts
the change first and the log follows (I1); logged records are never rewritten (I2):

- If the message still waits, an edit replaces the text that will be answered; the log has both, the earlier text in an
  `edit` record of the turn right before the message. A deletion removes it from the inbox: the log has it as
  superseded, then the `delete`, and no view shows it.
- If a turn has already taken the message, the log gets an `edit` with the new text, or a `delete`, which the model sees
  from then on in addition to the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.bridge_api import MessageChange
from assistant.core.errors import CorruptStore
from assistant.core.messages import Message
from assistant.core.records import InboxItem
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.rows import clean_text, parse_time
from assistant.store.script.append import Appender, RecordDraft, RecordOrigin, inbox_item_origin
from assistant.store.script.inbox import BridgeStates, Inbox, message_of_inbox_item, read_inbox_item, update_inbox_words
from assistant.store.script.index import find_spans, is_indexed, list_logged_changes
from assistant.store.script.sessions import Session


class MessageEdits:
    """Stores edits and deletions of messages that already arrived."""

    def __init__(self, db: Database, log: LogFiles, appender: Appender) -> None:
        self._db = db
        self._log = log
        self._appender = appender
        self._inbox = Inbox(db, appender.next_id)
        self._states = BridgeStates(db)

    def record_change(self, change: MessageChange, now: datetime) -> str | None:
        """Store a change and return the session whose conversation now has it. None if nothing was stored: the message
        is unknown, another account sent it, or nothing changed. A repeated change is stored once. `change.position` is
        saved in every case. Raises `StoreError`."""
        row = self._find_change(change)
        if row is None and (item := self._find_item(change)) is not None:
            row = self._accept(change, item, now)
        if row is not None:
            self._complete(row, now)
        if change.position:
            self._states.save_position(change.bridge, change.position)
        return None if row is None else str(row["session"])

    def find_sender(self, bridge: str, external_id: str) -> str:
        """Return the sender of a message, "" if it was never stored."""
        sql = "SELECT sender FROM inbox WHERE bridge = ? AND external_id = ?"
        return str(self._db.value(sql, (bridge, external_id)) or "")

    def recover_after_crash(self, now: datetime) -> None:
        """At start-up, log accepted changes that are not in the log yet. Raises `StoreError`."""
        for row in self._db.rows("SELECT * FROM changes WHERE state = 'accepted' ORDER BY id"):
            self._complete(row, now)

    # ------------------------------------------------------------------------------------------------------- accepting

    def _find_change(self, change: MessageChange) -> Row | None:
        """Return the change if an earlier attempt stored it."""
        sql = "SELECT * FROM changes WHERE bridge = ? AND change_id = ?"
        return self._db.row(sql, (change.bridge, change.change_id))

    def _find_item(self, change: MessageChange) -> InboxItem | None:
        """Return the message if this account sent it and may change it, or None."""
        return self._db.read_one(
            read_inbox_item,
            "SELECT * FROM inbox_messages m WHERE bridge = ? AND external_id = ? AND sender = ? AND NOT EXISTS"
            " (SELECT 1 FROM changes c WHERE c.message_id = m.message_id AND c.kind = 'delete')",
            (change.bridge, change.external_id, change.sender),
        )

    def _accept(self, change: MessageChange, item: InboxItem, now: datetime) -> Row | None:
        """Accept the change, durably; None if the message already says that."""
        session = item.incoming.session
        self._appender.catch_up_index(session, now)
        waits = item.state == "accepted" and not is_indexed(self._db, item.message_id)
        before = item.incoming.content if waits else self._words_now(item)
        words = clean_text(change.content) if change.kind == "edit" else ""
        if change.kind == "edit" and words == before:
            return None
        edits_waiting = waits and change.kind == "edit"
        with self._db.write() as db:
            # accepted: to be logged. waiting: will be logged with its message. logged: in the log, as a record of its
            # own. joined: merged into the message before a turn took it.
            db.insert_row(
                "changes",
                bridge=change.bridge,
                change_id=change.change_id,
                kind=change.kind,
                session=session,
                scope=item.incoming.scope,
                message_id=item.message_id,
                record_id=self._appender.next_id(),
                content=before if edits_waiting else words,
                state="waiting" if edits_waiting else "accepted",
                at=now,
            )
            if edits_waiting:
                update_inbox_words(db, item, replace(item.incoming, content=words))
            elif change.kind == "delete" and item.state == "accepted":
                db.update_rows("inbox", {"id": item.id}, state="superseded", ended_at=now)
        return self._find_change(change)

    def _words_now(self, item: InboxItem) -> str:
        """Return the current text of an item: its newest edit, or the original."""
        edits = [row["record_id"] for row in list_logged_changes(self._db, [item.message_id]) if row["kind"] == "edit"]
        newest = edits[-1] if edits else item.message_id
        place = find_spans(self._db, [newest]).get(newest)
        return item.incoming.content if place is None else self._log.read(*place).content

    # --------------------------------------------------------------------------------------------------------- logging

    def _complete(self, row: Row, now: datetime) -> None:
        """Log what is accepted but not logged. Raises `StoreError`; it is then retried later."""
        if row["state"] != "accepted":
            return
        session = self._appender.current_session(row["session"], now)
        sql = "SELECT * FROM inbox_messages WHERE message_id = ?"
        item = self._db.read_one(read_inbox_item, sql, (row["message_id"],))
        if item is None:
            raise CorruptStore
        drafts = draft_unlogged(self._db, self._appender, session, [item], None, now)
        if not is_indexed(self._db, row["record_id"]):
            refs = (item.message_id, *(edit["record_id"] for edit in _list_waiting_edits(self._db, item)))
            drafts.append(_draft_edit(self._appender, session, row, item, None, row["content"], refs))
        with self._appender.appending(session, drafts, now):
            mark_waiting_logged(self._db, [item], None)
            if item.state == "superseded":
                self._inbox.end_items([item.id], item.state, now)
            self._db.update_rows("changes", {"id": row["id"]}, state="logged", content="")


def draft_unlogged(
    db: Database, appender: Appender, session: Session, items: Sequence[InboxItem], turn: str | None, now: datetime
) -> list[RecordDraft]:
    """Return drafts of the items that are not logged yet, each with its edits while it waited. If a turn takes the
    item, its earlier texts come before it; otherwise the original is logged first, and later texts after it."""
    appender.catch_up_index(session.key, now)
    drafts = [draft for item in items for draft in _draft_with_edits(db, appender, session, item, turn, now)]
    return [draft for draft in drafts if not is_indexed(db, draft.record.id)]


def _draft_with_edits(
    db: Database, appender: Appender, session: Session, item: InboxItem, turn: str | None, now: datetime
) -> list[RecordDraft]:
    if edits := _list_waiting_edits(db, item):
        # May have been edited since it was read.
        item = db.read_one(read_inbox_item, "SELECT * FROM inbox_messages WHERE id = ?", (item.id,)) or item
    words = [*(edit["content"] for edit in edits), item.incoming.content]
    # The original text, or the text to be answered; each edit record has one of the others.
    content = words.pop(0 if turn is None else -1)
    message = appender.draft_record(
        session, replace(message_of_inbox_item(item), content=content), inbox_item_origin(item, turn), now
    )
    edit_drafts = [
        _draft_edit(appender, session, edit, item, turn, other, (item.message_id,))
        for edit, other in zip(edits, words, strict=True)
    ]
    return [message, *edit_drafts] if turn is None else [*edit_drafts, message]


def _list_waiting_edits(db: Database, item: InboxItem) -> list[Row]:
    """Return edits that will be logged together with their message, oldest first."""
    return db.rows("SELECT * FROM changes WHERE message_id = ? AND state = 'waiting' ORDER BY id", (item.message_id,))


def mark_waiting_logged(db: Database, items: Sequence[InboxItem], turn: str | None) -> None:
    """Within the transaction that shows messages: mark their waiting edits as logged."""
    state = "logged" if turn is None else "joined"
    for item in items:
        db.update_rows("changes", {"message_id": item.message_id, "state": "waiting"}, state=state, content="")


def _draft_edit(
    appender: Appender,
    session: Session,
    row: Row,
    item: InboxItem,
    turn: str | None,
    words: str,
    refs: tuple[int, ...],
) -> RecordDraft:
    origin = RecordOrigin(row["kind"], row["bridge"], item.incoming.sender, item.incoming.trust, turn, refs)
    at = parse_time(row["at"])
    message = Message("system", words, row["record_id"], at, name=item.incoming.name)
    return appender.draft_record(session, message, origin, at)
