"""A reminder that came due in time and could not be sent for a while says when it was due.

Its text was made when it came due, and a network that was away, or a terminal that nobody had open, gets it later.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.agenda.catch_up import LATE_LINE, REMINDER_KEY_PREFIX, LatenessPolicy
from assistant.core.calendar import format_moment
from assistant.core.dataclass import dataclass
from assistant.core.records import OutboxItem
from assistant.store.script.jobs import Jobs
from assistant.store.script.outbox import StoredOutbox


@dataclass(frozen=True, slots=True)
class LateDelivery:
    """Adds when a reminder was due before it is sent late. A list of many has their times."""

    outbox: StoredOutbox
    jobs: Jobs
    lateness: LatenessPolicy
    zone: ZoneInfo

    def __call__(self, item: OutboxItem, now: datetime) -> OutboxItem:
        """Return what to send: the item, or with one line more in the store. What may have arrived stays as it was
        (I8). Raises `StoreError`."""
        outgoing = item.outgoing
        if not outgoing.key.startswith(REMINDER_KEY_PREFIX) or item.state != "pending" or item.parts_sent:
            return item
        if now - item.created_at <= self.lateness.late_after or LATE_LINE in outgoing.body:
            return item
        due = self.jobs.due_of_message(outgoing.key)
        if due is None:
            return item
        return self.outbox.add_text(item.id, f"{LATE_LINE}{format_moment(due, self.zone)}.)", now) or item
