"""Messages that were edited or deleted on their network after they had arrived.

What always holds: only the account that sent a message changes it, and the same change counts once. SQLite accepts
first, then the log has it, as with messages (I1); what the log has is never rewritten (I2):

- Of a message that still waits, an edit makes the words that will be answered; the log has both, the earlier ones in an
  `edit` of the turn right before the message. A deletion takes it out of the inbox: the log has it as superseded, then
  the `delete`, and no view shows it.
- Of a message that a turn has taken, the log gets an `edit` with the new words, or a `delete`: a fact that the model
  sees from then on, beside what was said.
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
    """What was edited or deleted on a network after it had arrived."""

    def __init__(self, db: Database, log: LogFiles, appender: Appender) -> None:
        self._db = db
        self._log = log
        self._appender = appender
        self._inbox = Inbox(db, appender.next_id)
        self._states = BridgeStates(db)

    def record_change(self, change: MessageChange, now: datetime) -> str | None:
        """The session whose conversation has it now; None where nothing was kept: the message is not known, another
        account sent it, or it says the same. A change that was kept before is not kept again. `change.position` is kept
        in every case. Raises `StoreError`."""
        row = self._find_change(change)
        if row is None and (item := self._find_item(change)) is not None:
            row = self._accept(change, item, now)
        if row is not None:
            self._complete(row, now)
        if change.position:
            self._states.save_position(change.bridge, change.position)
        return None if row is None else str(row["session"])

    def find_sender(self, bridge: str, external_id: str) -> str:
        """Whose message it is; "" for one that was never stored."""
        sql = "SELECT sender FROM inbox WHERE bridge = ? AND external_id = ?"
        return str(self._db.value(sql, (bridge, external_id)) or "")

    def recover_after_crash(self, now: datetime) -> None:
        """At start: what was accepted and is not in the log yet. Raises `StoreError`."""
        for row in self._db.rows("SELECT * FROM changes WHERE state = 'accepted' ORDER BY id"):
            self._complete(row, now)

    # ------------------------------------------------------------------------------------------------------- accepting

    def _find_change(self, change: MessageChange) -> Row | None:
        """The change, where an earlier attempt kept it."""
        sql = "SELECT * FROM changes WHERE bridge = ? AND change_id = ?"
        return self._db.row(sql, (change.bridge, change.change_id))

    def _find_item(self, change: MessageChange) -> InboxItem | None:
        """The message that this account sent and may change; None where nothing is to be kept."""
        return self._db.read_one(
            read_inbox_item,
            "SELECT * FROM inbox_messages m WHERE bridge = ? AND external_id = ? AND sender = ? AND NOT EXISTS"
            " (SELECT 1 FROM changes c WHERE c.message_id = m.message_id AND c.kind = 'delete')",
            (change.bridge, change.external_id, change.sender),
        )

    def _accept(self, change: MessageChange, item: InboxItem, now: datetime) -> Row | None:
        """Durable when it returns; None where the message says that already."""
        session = item.incoming.session
        self._appender.catch_up_index(session, now)
        waits = item.state == "accepted" and not is_indexed(self._db, item.message_id)
        before = item.incoming.content if waits else self._words_now(item)
        words = clean_text(change.content) if change.kind == "edit" else ""
        if change.kind == "edit" and words == before:
            return None
        edits_waiting = waits and change.kind == "edit"
        with self._db.write() as db:
            # accepted: to be logged. waiting: will be logged with its message. logged: a fact about its message.
            # joined: its words became the message's own before a turn took it up.
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
        """What the log has it say, its newest edit first."""
        edits = [row["record_id"] for row in list_logged_changes(self._db, [item.message_id]) if row["kind"] == "edit"]
        newest = edits[-1] if edits else item.message_id
        place = find_spans(self._db, [newest]).get(newest)
        return item.incoming.content if place is None else self._log.read(*place).content

    # --------------------------------------------------------------------------------------------------------- logging

    def _complete(self, row: Row, now: datetime) -> None:
        """Log what is accepted and not logged. Raises `StoreError`; then it is still to be done."""
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
    """Drafts of those items that the log does not have yet, each with what became of it while it waited: where a turn
    takes it, its earlier words come before it; where none does, it is logged as first said, the later words after."""
    appender.catch_up_index(session.key, now)
    drafts = [draft for item in items for draft in _draft_with_edits(db, appender, session, item, turn, now)]
    return [draft for draft in drafts if not is_indexed(db, draft.record.id)]


def _draft_with_edits(
    db: Database, appender: Appender, session: Session, item: InboxItem, turn: str | None, now: datetime
) -> list[RecordDraft]:
    if edits := _list_waiting_edits(db, item):
        # Since it was read, perhaps.
        item = db.read_one(read_inbox_item, "SELECT * FROM inbox_messages WHERE id = ?", (item.id,)) or item
    words = [*(edit["content"] for edit in edits), item.incoming.content]
    # As it was said first, or as it is to be answered; each edit has one of the others.
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
    """Edits that the log gets together with their message, oldest first."""
    return db.rows("SELECT * FROM changes WHERE message_id = ? AND state = 'waiting' ORDER BY id", (item.message_id,))


def mark_waiting_logged(db: Database, items: Sequence[InboxItem], turn: str | None) -> None:
    """Inside the transaction that shows messages: their log has what they were edited to while they waited."""
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
