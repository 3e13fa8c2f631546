"""The owner travels: what repeats at a time of day comes at that time by the clock of the zone in the settings.

What is set for one time comes at its moment, and what repeats within a day at its interval. Other people and rooms did
not move: theirs stays in the zone in which it was set.
"""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo

from assistant.agenda.recurrence import due_in_zone, follows_the_clock
from assistant.core.notices import Notice, NoticeKind
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize
from assistant.store.script.jobs import Jobs


def follow_time_zone(jobs: Jobs, zone: ZoneInfo, send: Callable[[Notice], None]) -> None:
    """At start-up: move what repeats to the zone, and tell it, once even after a crash. Raises `StoreError`."""
    moved = [job for job in jobs.list_of_other_zones(OWNER_SCOPE, zone.key) if follows_the_clock(job.spec)]
    dues = {job.id: due_in_zone(job.due, zone) for job in moved if job.due is not None}
    if not dues:
        return
    first, repeat = moved[0], "repeats" if len(dues) == 1 else "repeat"
    notice = NoticeKind.TIME_ZONE_CHANGED.fill(
        f"{first.zone}:{zone.key}:{min(dues)}:{dues[min(dues)].key}",
        zone=zone.key,
        before=first.zone,
        moved=f"{pluralize(len(dues), 'reminder or schedule', 'reminders and schedules')} {repeat}",
    )
    send(notice)
    jobs.move_to_zone(dues, zone.key)
