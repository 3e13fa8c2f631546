"""Notifications to services outside, such as ntfy: what to send, and what became of each at each service.

What always holds: a notification is written as `sending` before its service is asked, so that after a kill it is known
that nobody knows, and it is not sent again; one that a service took is never sent there again. No words are kept here:
they are read anew from what waits for the person.
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
    """One notification at one service. `error`: why it failed; `retry_at`: when it may be tried again."""

    key: str
    service: str
    state: PushState
    attempts: int
    error: str
    retry_at: datetime | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class UnseenMessage:
    """A message to the owner that no bridge has delivered yet."""

    key: str
    body: str


_read_push = class_row(Push)
_read_unseen = class_row(UnseenMessage)


class StoredPushes(DatabaseStore):
    def list_unseen_reminders(self, since: datetime, before: datetime) -> list[UnseenMessage]:
        """Those that were due between the two moments and that no bridge has delivered, oldest first."""
        return self._db.read_all(
            _read_unseen,
            "SELECT key, body FROM outbox INDEXED BY outbox_unsent WHERE state <> 'sent'"
            " AND state NOT IN ('withheld', 'dropped') AND scope = ? AND (key GLOB 'reminder:*' OR key GLOB"
            " 'reminders:*') AND created_at > ? AND created_at <= ? ORDER BY id LIMIT ?",
            (OWNER_SCOPE, since, before, _MOST_UNSEEN),
        )

    def list_unseen_approvals(self, since: datetime, before: datetime) -> list[UnseenMessage]:
        """What waits for a yes or no and was asked in a message that no bridge has delivered: `body` is the effect."""
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
        where = {"key": key, "service": service}
        with self._db.write() as db:
            db.update_rows("pushes", where, state=state, error=error, retry_at=retry_at, updated_at=now)

    def recover_after_crash(self, now: datetime) -> None:
        """At start: what was being sent may have arrived. What is long over is dropped."""
        with self._db.write() as db:
            db.update_rows("pushes", {"state": "sending"}, state="uncertain", updated_at=now)
            db.execute("DELETE FROM pushes WHERE updated_at < ?", (now - _KEPT,))

    def newest_by_service(self, services: Sequence[str]) -> dict[str, Push]:
        """The one that was tried last at each."""
        sql = "SELECT * FROM pushes WHERE service = ? ORDER BY updated_at DESC LIMIT 1"
        found = (self._db.read_one(_read_push, sql, (service,)) for service in services)
        return {push.service: push for push in found if push is not None}
