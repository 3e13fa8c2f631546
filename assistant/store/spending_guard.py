"""What the guard over spending remembers: what the owner was told once, and requests that repeat themselves.

What always holds: a notice is stored in the transaction of the mark that it was given, so that a crash neither loses
it nor repeats it. What a request was is kept as a few letters of a digest, for a day at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from assistant.core.budget import BlockedRequest
from assistant.core.errors import RepeatedRequestBlocked
from assistant.core.records import OutgoingMessage
from assistant.store import outbox, session_rows
from assistant.store.database import Database
from assistant.store.text import moment, stamp

_WITHIN = timedelta(hours=1)
# Until the home's next day begins: a day, and the hour by which one may be longer. What is longer a wrong clock made.
_LONGEST_STOP = timedelta(hours=25)


class Marks:
    """What was said once and is not said again."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def has(self, name: str) -> bool:
        return self._db.row("SELECT 1 FROM spending_marks WHERE name = ?", (name,)) is not None

    def note(self, name: str, now: datetime) -> None:
        """On its own; setting it again changes nothing."""
        with self._db.write():
            self._insert(name, now)

    def tell(self, name: str, notice: OutgoingMessage, now: datetime) -> None:
        """Inside a transaction: give a notice, unless it was given."""
        if not self.has(name):
            self._insert(name, now)
            session = session_rows.current(self._db, notice.session)
            outbox.insert(self._db, [notice], 1 if session is None else session.generation, None, now)

    def known(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if self.has(name)}

    def _insert(self, name: str, now: datetime) -> None:
        self._db.execute("INSERT OR IGNORE INTO spending_marks (name, at) VALUES (?, ?)", (name, stamp(now)))


class Repeats:
    """How often the same request of the background was sent within the last hour, and which ones are stopped."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def sent(self, fingerprint: str, purpose: str, most: int, now: datetime) -> None:
        """Inside a transaction: one more time, or not; raises `RequestRepeated` where it was sent `most` times."""
        row = self._db.row("SELECT * FROM repeated_requests WHERE fingerprint = ?", (fingerprint,))
        until = moment(row["stopped_until"]) if row is not None and row["stopped_until"] is not None else None
        if until is not None and now < until <= now + _LONGEST_STOP:
            raise RepeatedRequestBlocked()
        # What a wrong clock dated in the future is not of the last hour.
        recent = row is not None and until is None and timedelta() <= now - moment(row["first_at"]) < _WITHIN
        if row is not None and recent:
            if row["sent"] >= most:
                raise RepeatedRequestBlocked()
            self._db.execute("UPDATE repeated_requests SET sent = sent + 1 WHERE fingerprint = ?", (fingerprint,))
            return
        self._db.execute(
            "DELETE FROM repeated_requests WHERE fingerprint = ? OR coalesce(stopped_until, '') < ? AND first_at < ?",
            (fingerprint, stamp(now), stamp(now - _WITHIN)),
        )
        self._db.execute(
            "INSERT INTO repeated_requests (fingerprint, purpose, first_at, sent) VALUES (?, ?, ?, 1)",
            (fingerprint, purpose, stamp(now)),
        )

    def not_sent(self, fingerprint: str) -> None:
        """Inside a transaction: what was counted came to nothing that had to be paid for."""
        self._db.execute(
            "UPDATE repeated_requests SET sent = sent - 1 WHERE fingerprint = ? AND sent > 0", (fingerprint,)
        )  # fmt: skip

    def stop(self, fingerprint: str, until: datetime) -> BlockedRequest | None:
        """Inside a transaction: not again before then; None where it is stopped already."""
        row = self._db.row(
            "SELECT * FROM repeated_requests WHERE fingerprint = ? AND stopped_until IS NULL", (fingerprint,)
        )  # fmt: skip
        if row is None:
            return None
        self._db.execute(
            "UPDATE repeated_requests SET stopped_until = ? WHERE fingerprint = ?", (stamp(until), fingerprint)
        )  # fmt: skip
        return BlockedRequest(row["purpose"], row["sent"], until)

    def stopped(self, now: datetime) -> list[BlockedRequest]:
        rows = self._db.rows(
            "SELECT * FROM repeated_requests WHERE stopped_until > ? AND stopped_until <= ?"
            " ORDER BY stopped_until, purpose",
            (stamp(now), stamp(now + _LONGEST_STOP)),
        )
        return [BlockedRequest(row["purpose"], row["sent"], moment(row["stopped_until"])) for row in rows]
