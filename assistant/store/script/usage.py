"""What was spent, added up from the calls themselves for people who ask (caps are checked in `ledger`); which spending
notices were sent, and requests of the background that repeat themselves.

What always holds: a notice is stored in the transaction of its mark, so that a crash neither loses nor repeats it.
Of a repeated request a short digest is kept, for a day at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from sqlite3 import Row
from zoneinfo import ZoneInfo

from assistant.core.budget import BlockedRequest
from assistant.core.errors import RepeatedRequestBlocked
from assistant.core.messages import Usage
from assistant.core.model_api import SpendTotals, UsageKey
from assistant.core.records import OutgoingMessage
from assistant.store.database import Database
from assistant.store.encoding import format_time, parse_time
from assistant.store.script import sessions as session_rows
from assistant.store.script.outbox import insert_outgoing

_COLUMNS: dict[str, str] = {"model": "model", "kind": "purpose", "session": "coalesce(session, '')"}
_SUMS = """
    count(*) AS calls, sum(input) AS input, sum(output) AS output, sum(cache_read) AS cache_read,
    sum(cache_write) AS cache_write, sum(iif(state = 'reserved', reserved_usd, usd)) AS usd,
    sum(iif(state = 'reserved', reserved_tokens, input + output + cache_read + cache_write)) AS tokens,
    sum(iif(iif(state = 'reserved', reserved_usd, usd) IS NULL,
        iif(state = 'reserved', reserved_tokens, input + output + cache_read + cache_write), 0)) AS unpriced_tokens,
    sum(state = 'settled' AND usd IS NOT NULL) AS priced
"""


class UsageSums:
    """`zone` is the home's: its days are those that are told."""

    def __init__(self, db: Database, zone: ZoneInfo) -> None:
        self._db = db
        self._zone = zone

    def spent(self, since: datetime, until: datetime, session: str | None) -> SpendTotals:
        """What was spent from `since` until before `until`."""
        of_session = "" if session is None else " AND session = ?"
        values = [format_time(since), format_time(until), *([] if session is None else [session])]
        row = self._db.row(f"SELECT {_SUMS} FROM usage WHERE ts >= ? AND ts < ?{of_session}", values)
        return _add_up([] if row is None else [row])

    def spent_by(self, key: UsageKey, since: datetime) -> list[tuple[str, SpendTotals]]:
        """Sums since a moment: days in order, the rest by name."""
        if key == "day":
            return list(self._days(since))
        column = _COLUMNS[key]
        rows = self._db.rows(
            f"SELECT {column} AS name, {_SUMS} FROM usage WHERE ts >= ? GROUP BY name ORDER BY name",
            (format_time(since),),
        )
        return [(row["name"], _add_up([row])) for row in rows]

    def _days(self, since: datetime) -> Iterator[tuple[str, SpendTotals]]:
        # Zones are offset by whole quarters of an hour, so a quarter lies within one day of any zone.
        quarters = self._db.rows(
            "SELECT substr(ts, 1, 14) || printf('%02d', substr(ts, 15, 2) / 15 * 15) || ':00Z' AS quarter,"
            f" {_SUMS} FROM usage WHERE ts >= ? GROUP BY quarter ORDER BY quarter",
            (format_time(since),),
        )
        dated = [(parse_time(row["quarter"]).astimezone(self._zone).date().isoformat(), row) for row in quarters]
        for day, rows in groupby(dated, key=itemgetter(0)):
            yield day, _add_up(row for _, row in rows)


def _add_up(rows: Iterable[Row]) -> SpendTotals:
    calls = tokens = unpriced = priced = 0
    usage, usd = Usage(), 0.0
    for row in rows:
        if row["calls"]:
            calls += row["calls"]
            tokens += row["tokens"]
            unpriced += row["unpriced_tokens"]
            priced += row["priced"]
            usd += row["usd"] or 0.0
            usage += Usage(row["input"], row["output"], row["cache_read"], row["cache_write"])
    known = Usage(usage.input, usage.output, usage.cache_read, usage.cache_write, usd if priced else None)
    return SpendTotals(calls, known, usd, tokens, unpriced)


_WITHIN = timedelta(hours=1)
# Until the home's next day begins: a day, and the hour by which one may be longer. What is longer a wrong clock made.
_MAX_BLOCK = timedelta(hours=25)


class SpendingNotices:
    """What was said once and is not said again."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def was_sent(self, name: str) -> bool:
        return self._db.row("SELECT 1 FROM spending_marks WHERE name = ?", (name,)) is not None

    def mark_sent(self, name: str, now: datetime) -> None:
        """On its own; setting it again changes nothing."""
        with self._db.write():
            self._insert(name, now)

    def send_once(self, name: str, notice: OutgoingMessage, now: datetime) -> None:
        """Inside a transaction: give a notice, unless it was given."""
        if not self.was_sent(name):
            self._insert(name, now)
            session = session_rows.find_session(self._db, notice.session)
            insert_outgoing(self._db, [notice], 1 if session is None else session.generation, None, now)

    def sent_among(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if self.was_sent(name)}

    def _insert(self, name: str, now: datetime) -> None:
        self._db.execute("INSERT OR IGNORE INTO spending_marks (name, at) VALUES (?, ?)", (name, format_time(now)))


class RepeatedCalls:
    """How often the same request of the background was sent within the last hour, and which ones are stopped."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def count_call(self, fingerprint: str, purpose: str, limit: int, now: datetime) -> None:
        """Inside a transaction: one more time, or not; raises `RequestRepeated` where it was sent `most` times."""
        row = self._db.row("SELECT * FROM repeated_requests WHERE fingerprint = ?", (fingerprint,))
        until = parse_time(row["stopped_until"]) if row is not None and row["stopped_until"] is not None else None
        if until is not None and now < until <= now + _MAX_BLOCK:
            raise RepeatedRequestBlocked()
        # What a wrong clock dated in the future is not of the last hour.
        recent = row is not None and until is None and timedelta() <= now - parse_time(row["first_at"]) < _WITHIN
        if row is not None and recent:
            if row["sent"] >= limit:
                raise RepeatedRequestBlocked()
            self._db.execute("UPDATE repeated_requests SET sent = sent + 1 WHERE fingerprint = ?", (fingerprint,))
            return
        self._db.execute(
            "DELETE FROM repeated_requests WHERE fingerprint = ? OR coalesce(stopped_until, '') < ? AND first_at < ?",
            (fingerprint, format_time(now), format_time(now - _WITHIN)),
        )
        self._db.execute(
            "INSERT INTO repeated_requests (fingerprint, purpose, first_at, sent) VALUES (?, ?, ?, 1)",
            (fingerprint, purpose, format_time(now)),
        )

    def uncount_call(self, fingerprint: str) -> None:
        """Inside a transaction: what was counted came to nothing that had to be paid for."""
        self._db.execute(
            "UPDATE repeated_requests SET sent = sent - 1 WHERE fingerprint = ? AND sent > 0", (fingerprint,)
        )

    def block(self, fingerprint: str, until: datetime) -> BlockedRequest | None:
        """Inside a transaction: not again before then; None where it is stopped already."""
        row = self._db.row(
            "SELECT * FROM repeated_requests WHERE fingerprint = ? AND stopped_until IS NULL", (fingerprint,)
        )
        if row is None:
            return None
        self._db.execute(
            "UPDATE repeated_requests SET stopped_until = ? WHERE fingerprint = ?", (format_time(until), fingerprint)
        )
        return BlockedRequest(row["purpose"], row["sent"], until)

    def list_blocked(self, now: datetime) -> list[BlockedRequest]:
        rows = self._db.rows(
            "SELECT * FROM repeated_requests WHERE stopped_until > ? AND stopped_until <= ?"
            " ORDER BY stopped_until, purpose",
            (format_time(now), format_time(now + _MAX_BLOCK)),
        )
        return [BlockedRequest(row["purpose"], row["sent"], parse_time(row["stopped_until"])) for row in rows]
