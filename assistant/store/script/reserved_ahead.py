"""Worst cases that are reserved before their call is known, by the commit that accepts a message (I9).

That commit waits for the disk in any case. A call that costs no more than what it reserved replaces the row by its own,
without another wait: after a power cut, either row counts. Where no call follows, the row is deleted: when the session
has no message to answer, and when the stores are closed. A killed process leaves it; the next start deletes it if the
machine has not been started since, for then the row of a call that was made cannot have been lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.core.budget import PeriodSpend, call_spend
from assistant.core.dataclass import dataclass
from assistant.core.errors import BudgetExceeded, StoreError
from assistant.core.model_api import ModelCall
from assistant.store.database import Database
from assistant.store.rows import parse_time
from assistant.store.script.spending_periods import find_periods

# By how much the next prompt of a session may grow beside the message: recalled words, the last answer, cold caches.
_MARGIN = 1.1
_MARGIN_TOKENS = 2_000
# Another one after each start of the machine. Only Linux has it.
BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ReservedAhead:
    """A reservation for a session's next call: `id` of its row, what it allows, and the day and month it counts in."""

    id: int
    call: ModelCall
    periods: Mapping[str, str]

    def covers(self, call: ModelCall, periods: Mapping[str, str]) -> bool:
        """Return whether the call may cost no more than this, in the same periods."""
        allowed = self.call
        tokens = call.input_tokens + call.max_output <= allowed.input_tokens + allowed.max_output
        if call.usd is None or allowed.usd is None:
            return tokens and call.usd is allowed.usd and periods == self.periods
        return tokens and call.usd <= allowed.usd and periods == self.periods


class AheadReservations:
    """What is reserved for the next calls of sessions."""

    def __init__(
        self,
        db: Database,
        zone: ZoneInfo,
        insert: Callable[[ModelCall, datetime, str], int],
        add: Callable[[Mapping[str, str], str, str | None, PeriodSpend], None],
    ) -> None:
        """Within a transaction, `insert` reserves a call, with the machine's boot, and `add` adds to the sums."""
        self._db = db
        self._zone = zone
        self._insert = insert
        self._add = add
        # By session: the last call of a conversation in this process, and what is reserved for its next one.
        self._last_calls: dict[str, ModelCall] = {}
        self._by_session: dict[str, ReservedAhead] = {}

    def find(self, session: str) -> ReservedAhead | None:
        """Return what is reserved for the session's next call."""
        return self._by_session.get(session)

    def note_call(self, session: str, call: ModelCall) -> None:
        """A call of the session is reserved, and what was reserved ahead of it deleted."""
        self._by_session.pop(session, None)
        self._last_calls[session] = call

    def reserve(self, session: str, characters: int, now: datetime) -> None:
        """Within the transaction that accepts a message of that many characters: reserve what the next call of the
        session may cost, judging by its last one, so that it need not wait for the disk. Nothing is reserved where that
        might pass a cap, or something is already."""
        last = self._last_calls.get(session)
        if last is None or session in self._by_session:
            return
        call = expect_next_call(last, characters)
        with suppress(BudgetExceeded):
            ahead = ReservedAhead(self._insert(call, now, _read_boot_id()), call, find_periods(now, self._zone))
            self._db.after_commit(lambda: self._by_session.update({session: ahead}))

    def delete(self, ahead: ReservedAhead) -> None:
        """Within a transaction: count it no longer."""
        self._delete(ahead.id, ahead.periods, ahead.call.purpose, ahead.call.session, worst_case(ahead.call))

    def release(self, session: str) -> None:
        """Count no longer what was reserved for a call that is not made; if the disk is in trouble, it counts until the
        session's next call."""
        ahead = self.find(session)
        with suppress(StoreError):
            if ahead is not None:
                with self._db.write(durable=False):
                    self.delete(ahead)
                del self._by_session[session]

    def keep_only(self, awaited: Callable[[], Collection[str]]) -> None:
        """Release what is reserved for all sessions but the `awaited`, in which there is a message to answer."""
        with suppress(StoreError):
            if self._by_session:
                for session in self._by_session.keys() - awaited():
                    self.release(session)

    def release_all(self) -> None:
        """At the end of the process, which makes no more calls."""
        for session in list(self._by_session):
            self.release(session)

    def release_after_crash(self) -> None:
        """At a start: count no longer what a killed process had reserved. After a power cut, or where that is not
        known, it goes on counting: the row of the call that replaced it may be lost."""
        sql = "SELECT * FROM usage WHERE boot IS NOT NULL AND boot = ?"
        with suppress(StoreError):
            if (boot := _read_boot_id()) and (rows := self._db.rows(sql, (boot,))):
                with self._db.write(durable=False):
                    for row in rows:
                        periods = find_periods(parse_time(row["ts"]), self._zone)
                        worst = call_spend(row["reserved_usd"], row["reserved_tokens"], calls=1)
                        self._delete(row["id"], periods, row["purpose"], row["session"], worst)

    def _delete(
        self, row_id: int, periods: Mapping[str, str], purpose: str, session: str | None, worst: PeriodSpend
    ) -> None:
        self._db.execute("DELETE FROM usage WHERE id = ?", (row_id,))
        self._add(periods, purpose, session, PeriodSpend() - worst)


def _read_boot_id() -> str:
    """Return what names the time since the machine was started; "" where that is not known."""
    try:
        return BOOT_ID_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def worst_case(call: ModelCall) -> PeriodSpend:
    return call_spend(call.usd, call.input_tokens + call.max_output, calls=1)


def expect_next_call(last: ModelCall, characters: int) -> ModelCall:
    """Return what the call after `last` in its session may cost, with a new message of that many characters."""
    tokens = last.input_tokens + last.max_output
    more = int(_MARGIN * tokens) - tokens + _MARGIN_TOKENS + characters
    usd = last.usd and last.usd * (tokens + more) / tokens
    return replace(last, input_tokens=last.input_tokens + more, usd=usd, turn=None)
