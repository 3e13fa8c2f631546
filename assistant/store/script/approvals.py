"""Actions that wait for the owner's approval, in script.db.

Each is decided once and ends once, in the transaction that stores the messages about it. Rows are never deleted, so
that no number is reused and nothing is asked twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from assistant.core.approvals import Approval, ApprovalState, ProposedEffect
from assistant.core.calendar import CLOCK_TOLERANCE
from assistant.core.messages import Media, media_from_json
from assistant.core.notices import Notice, NoticeAddress, NoticePlace
from assistant.core.records import OutgoingMessage
from assistant.store.database import DatabaseStore
from assistant.store.rows import class_row, dump_json, json_safe, to_row
from assistant.store.script.notices import find_recent_place, send_in_transaction
from assistant.store.script.outbox import insert_outgoing

_read_approval = class_row(Approval)
# What a clock that was ahead allowed, nothing allows once it is set back: it would for years.
_ALLOWS = "allowed_until > ? AND decided_at <= ?"


class StoredApprovals(DatabaseStore):
    def propose(self, proposed: ProposedEffect, state: ApprovalState) -> Approval:
        """Store a proposal, once per key."""
        columns = to_row(replace(proposed, arguments=json_safe(proposed.arguments)))
        with self._db.write() as db:
            db.insert_if_new("approvals", **columns, state=state)
        return self._read("key = ?", proposed.key)[0]

    def find_by_key(self, key: str) -> Approval | None:
        return next(iter(self._read("key = ?", key)), None)

    def get(self, number: int) -> Approval | None:
        return next(iter(self._read("id = ?", number)), None)

    def list_by_turn(self, turn: str) -> list[Approval]:
        """Return the proposals of a turn in their order."""
        return self._read("turn = ? ORDER BY id", turn)

    def list_decided_by(self, turn: str) -> list[Approval]:
        """Return the proposals that were decided by the message of that turn, oldest first."""
        return self._read("decided_by = ? ORDER BY id", turn)

    def list_pending(self, session: str | None = None) -> list[Approval]:
        """Return proposals waiting for an answer, oldest first."""
        return self._read("state = 'pending' AND (?1 IS NULL OR session = ?1) ORDER BY id", session)

    def list_recent(self, limit: int) -> list[Approval]:
        """Return proposals that no longer wait, newest first."""
        return self._read("state NOT IN ('pending', 'refused') ORDER BY id DESC LIMIT ?", limit)

    def list_approved(self) -> list[Approval]:
        """Return approved proposals that are not carried out yet."""
        return self._read("state = 'approved' ORDER BY id")

    def was_asked_last(self, approval: Approval) -> bool:
        """Return whether its conversation has no message after the question, except for the message of the running
        turn."""
        ended = "SELECT id FROM turns WHERE session = ? AND state <> 'running' ORDER BY started_at DESC, rowid DESC"
        return bool(self._db.value(f"{ended} LIMIT 1", (approval.session,)) == approval.turn)

    def is_asked(self, approval: Approval) -> bool:
        """Return whether the answer that asks for it was sent."""
        return bool(self._db.value("SELECT state <> 'running' FROM turns WHERE id = ?", (approval.turn,)))

    def decide(
        self, number: int, state: ApprovalState, by: str, now: datetime, *, allowed_until: datetime | None = None
    ) -> bool:
        """Decide a waiting proposal; return whether it was waiting. With `allowed_until`, calls of its pattern need no
        approval until then."""
        decision = {"state": state, "decided_by": by, "decided_at": now, "allowed_until": allowed_until}
        ended = None if state == "approved" else now
        with self._db.write() as db:
            return bool(db.update_rows("approvals", {"id": number, "state": "pending"}, **decision, ended_at=ended))

    def use_allowed(self, tool: str, pattern: str, now: datetime) -> Approval | None:
        """Return the approval that currently allows such calls, counting one use, or None."""
        allowed = f"tool = ? AND pattern = ? AND {_ALLOWS} ORDER BY allowed_until DESC LIMIT 1"
        found = self._read(allowed, tool, pattern, now, now + CLOCK_TOLERANCE) if pattern else []
        for approval in found:
            with self._db.write() as db:
                db.update_rows("approvals", {"id": approval.id}, uses=approval.uses + 1, used_at=now)
        return next(iter(found), None)

    def list_allowed(self, now: datetime) -> list[Approval]:
        """Return approvals that currently allow more than their own call, oldest first."""
        return self._read(f"{_ALLOWS} ORDER BY id", now, now + CLOCK_TOLERANCE)

    def revoke(self, number: int, now: datetime) -> bool:
        """Revoke an approval; return whether it still allowed anything."""
        with self._db.write() as db:
            revoke = "UPDATE approvals SET allowed_until = ?2 WHERE id = ?1 AND allowed_until > ?2"
            return db.execute(revoke, (number, now)) == 1

    def end(
        self,
        approval: Approval,
        state: ApprovalState,
        result: str,
        now: datetime,
        make_message: Callable[[tuple[Media, ...]], OutgoingMessage | None],
    ) -> None:
        """Record that it was carried out, or not. `make_message` returns the message to send about it and the files to
        attach."""
        with self._db.write() as db:
            approved = {"id": approval.id, "state": "approved"}
            if not db.update_rows("approvals", approved, state=state, result=result, ended_at=now):
                return
            rows = db.rows("SELECT media FROM turn_files WHERE key = ?", (approval.key,))
            files = tuple(media_from_json(json.loads(row["media"])) for row in rows)
            if (message := make_message(files)) is not None:
                db.execute("DELETE FROM turn_files WHERE key = ?", (approval.key,))
                insert_outgoing(db, [message], now)

    def lapse(self, make_notice: Callable[[Approval], Notice], now: datetime) -> list[Approval]:
        """End proposals that have expired, each with its notice, sent to where its conversation was last written
        from."""
        lapsed = self._read("state = 'pending' AND expires_at <= ? ORDER BY id", now)
        for approval in lapsed:
            with self._db.write() as db:
                pending = {"id": approval.id, "state": "pending"}
                if db.update_rows("approvals", pending, state="lapsed", ended_at=now):
                    place = find_recent_place(db, approval.scope)
                    send_in_transaction(db, [make_notice(approval)], NoticeAddress((NoticePlace(place),)), now)
        return lapsed

    def _read(self, where: str, *values: Any) -> list[Approval]:
        return self._db.read_all(_read_approval, f"SELECT * FROM approvals WHERE {where}", values)


def dump_arguments(approval: ProposedEffect) -> str:
    """Return the arguments as JSON, to compare two proposals."""
    return dump_json(json_safe(approval.arguments))
