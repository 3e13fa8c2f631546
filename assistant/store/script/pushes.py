"""Push notifications to external services such as ntfy, and their outcome per service.

A notification is recorded as `sending` before the service is called, so that after a crash its outcome is known to be
uncertain, and it is not repeated; neither is one that the service accepted. No text is stored: it is derived from the
pending messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.database import DatabaseStore
from assistant.store.rows import class_row

PushState = Literal["sending", "sent", "failed", "uncertain"]
_KEPT = timedelta(days=30)
_MOST_UNSEEN = 20


@dataclass(frozen=True, slots=True)
class Push:
    """A notification at one service. `error`: why it failed; `retry_at`: when to retry."""

    key: str
    service: str
    state: PushState
    attempts: int
    error: str
    retry_at: datetime | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class UnseenMessage:
    """An undelivered message to the owner."""

    key: str
    body: str


_read_push = class_row(Push)
_read_unseen = class_row(UnseenMessage)


class StoredPushes(DatabaseStore):
    def list_unseen_reminders(self, since: datetime, before: datetime) -> list[UnseenMessage]:
        """Return undelivered reminders created between two moments, oldest first."""
        return self._db.read_all(
            _read_unseen,
            "SELECT key, body FROM outbox INDEXED BY outbox_unsent WHERE state <> 'sent'"
            " AND state NOT IN ('withheld', 'dropped') AND scope = ? AND (key GLOB 'reminder:*' OR key GLOB"
            " 'reminders:*') AND created_at > ? AND created_at <= ? ORDER BY id LIMIT ?",
            (OWNER_SCOPE, since, before, _MOST_UNSEEN),
        )

    def list_unseen_approvals(self, since: datetime, before: datetime) -> list[UnseenMessage]:
        """Return pending approvals whose question is undelivered; `body` is the effect."""
        return self._db.read_all(
            _read_unseen,
            "SELECT 'approval:' || a.id AS key, a.effect AS body FROM approvals a WHERE a.state = 'pending'"
            " AND a.scope = ? AND EXISTS (SELECT 1 FROM outbox o WHERE o.turn = a.turn AND o.kind = 'reply' AND"
            " o.state NOT IN ('sent', 'withheld', 'dropped') AND o.created_at > ? AND o.created_at <= ?)"
            " ORDER BY a.id LIMIT ?",
            (OWNER_SCOPE, since, before, _MOST_UNSEEN),
        )

    def find(self, key: str, service: str) -> Push | None:
        return self._db.read_one(_read_push, "SELECT * FROM pushes WHERE key = ? AND service = ?", (key, service))

    def begin(self, key: str, service: str, now: datetime) -> None:
        """Count an attempt, durably, before it is made."""
        with self._db.write() as db:
            db.insert_if_new("pushes", key=key, service=service, state="failed", attempts=0, error="", updated_at=now)
            db.execute(
                "UPDATE pushes SET state = 'sending', attempts = attempts + 1, updated_at = ?"
                " WHERE key = ? AND service = ?",
                (now, key, service),
            )

    def end(
        self,
        key: str,
        service: str,
        state: PushState,
        now: datetime,
        *,
        error: str = "",
        retry_at: datetime | None = None,
    ) -> None:
        """Record what became of an attempt; `retry_at` None: it is not tried again."""
        where = {"key": key, "service": service}
        with self._db.write() as db:
            db.update_rows("pushes", where, state=state, error=error, retry_at=retry_at, updated_at=now)

    def recover_after_crash(self, now: datetime) -> None:
        """At start-up, mark interrupted pushes as uncertain, and delete old ones."""
        with self._db.write() as db:
            db.update_rows("pushes", {"state": "sending"}, state="uncertain", updated_at=now)
            db.execute("DELETE FROM pushes WHERE updated_at < ?", (now - _KEPT,))

    def newest_by_service(self, services: Sequence[str]) -> dict[str, Push]:
        """Return the most recent push per service."""
        sql = "SELECT * FROM pushes WHERE service = ? ORDER BY updated_at DESC LIMIT 1"
        found = (self._db.read_one(_read_push, sql, (service,)) for service in services)
        return {push.service: push for push in found if push is not None}
