"""What became of the reminders of a simulated life: each that was set comes once, at its time, where it was asked for;
what comes late says so, and has a reason (I11).

What was set is known from what the tool said to the model, and from a look at the store each half hour and after each
event, so that a reminder that is lost from the store, from the outbox or on its way is missed all the same.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from assistant.core.bridge_api import OutgoingPart
from assistant.core.jobs import Job
from tests.simulate.network import SCOPES
from tests.simulate.plan import BEGAN, DAY, HOUR, MINUTE, ZONE

if TYPE_CHECKING:
    from tests.simulate.life import Life

SET = re.compile(r"^Reminder (?P<id>\d+) is set: \W(?P<text>.*?)\W, ", re.MULTILINE)
_KEY = re.compile(r"reminder:(?P<job>\d+):(?P<slot>\d{4}-\d\d-\d\dT\d\d:\d\d)")
_CLOCK = re.compile(r"\bat (\d{1,2}):(\d\d)")
_COUNTED = re.compile(r"^in (\d+) (hour|minute)s?$")
_DAYS = {"tomorrow": (1,), "in two days": (2,)}
_WEEKDAYS = {"friday": 4}
_PUNCTUAL = 3 * MINUTE
# Until when what is on its way, or waits for quiet hours, has come.
_COMES_WITHIN = 14 * HOUR
_KEPT = 400.0 * DAY


@dataclass(frozen=True, slots=True)
class Promise:
    """A time of a reminder that is to come."""

    job: int
    slot: str
    text: str
    scope: str
    bridge: str
    target: str
    due: float  # seconds since the beginning


class Reminders:
    def __init__(self, life: Life) -> None:
        self._life = life
        self._orders: dict[str, tuple[str, datetime]] = {}  # by text: when it is to come, and when that was said
        self._set: dict[int, str] = {}  # by job: the text of what was set and not seen in the store yet
        self._known: set[int] = set()
        self._promises: dict[tuple[int, str], Promise] = {}
        self._came: dict[tuple[int, str], list[float]] = defaultdict(list)
        self._digests: list[tuple[float, OutgoingPart]] = []
        self._dropped: list[tuple[float, str]] = []  # keys of what the owner did not want any more

    def _complain(self, text: str) -> None:
        self._life.complaints.append(f"I11: {text}")

    # ---------------------------------------------------------------------------------------------------- what was seen

    def note_order(self, text: str, when: str) -> None:
        self._orders[text] = when, self._life.machine.wall()

    def note_result(self, result: str) -> None:
        """What a tool said to the model."""
        for match in SET.finditer(result):
            if int(match["id"]) not in self._known:
                self._set[int(match["id"])] = match["text"]
                self.look()

    def note_dropped(self, key: str) -> None:
        self._dropped.append((self._life.now(), key))

    def note_shown(self, part: OutgoingPart) -> None:
        now = self._life.now()
        if part.key.startswith("reminders:"):
            self._digests.append((now, part))
        match = _KEY.match(part.key)
        if match is None:
            return
        self._came[int(match["job"]), match["slot"]].append(now)
        promise = self._promises.get((int(match["job"]), match["slot"]))
        place = part.item.outgoing.bridge, part.item.outgoing.target
        if promise is not None and place != (promise.bridge, promise.target):
            self._complain(f"{promise.text!r} was to come on {promise.bridge} to {promise.target} and came on {place}")
        self._check_punctual(part, datetime.fromisoformat(match["slot"]))

    def _check_punctual(self, part: OutgoingPart, named: datetime) -> None:
        """A reminder that is not told to be late comes at its time by the clock on the wall, and that is the time that
        was asked for."""
        life = self._life
        # A daily one keeps the name of its time on the day on which the clocks pass that over.
        slot = on_the_wall(named, named.hour, named.minute)
        text, now = part.text.partition("Reminder: ")[2].partition("\n")[0].strip(), life.local_time()
        late = abs(now.astimezone(UTC) - slot.replace(tzinfo=ZONE))
        if "It was due" in part.text:
            if not self._may_wait(life.now() - late.total_seconds(), life.now()):
                self._complain(f"{text!r} was due {slot} and came {now}, and nothing was in its way")
            return
        asked = _CLOCK.search(self._orders.get(text, ("",))[0])
        if asked and slot != on_the_wall(slot, int(asked[1]), int(asked[2])):
            self._complain(f"{text!r} was to come {self._orders[text][0]!r} and is planned for {slot}")
        if late > timedelta(seconds=_PUNCTUAL) and life.is_calm(HOUR):
            self._complain(f"{text!r} was due {slot} and came {now}, without a word of being late")

    def _may_wait(self, since: float, until: float) -> bool:
        quiet = self._life.world.settings.get("AGENDA__QUIET", "")
        return bool(quiet) or self._life.faults.was_any(since - HOUR, until)

    # ------------------------------------------------------------------------------------------------------ each event

    def look(self) -> None:
        """What waits is to come. By a wrong clock nothing is planned for good."""
        life = self._life
        if life.world.app is None or life.faults.was_clock_wrong(life.now() - 2 * HOUR):
            return
        jobs = life.world.app.stores.jobs
        for scope in SCOPES:
            for job in jobs.list_waiting(scope, "reminder"):
                self._set.pop(job.id, None)
                if job.id not in self._known:
                    self._known.add(job.id)
                    self._check_as_ordered(job)
                self._add_promise(job)
        for job_id, text in list(self._set.items()):
            found = [job for scope in SCOPES if (job := jobs.get_job(job_id, scope, "reminder"))]
            if not found or (found[0].state != "done" and not self._has_come(job_id)):
                self._complain(f"{text!r} was set as reminder {job_id}, and the store has {found}")
            del self._set[job_id]

    def _add_promise(self, job: Job) -> None:
        assert job.due is not None
        match = _KEY.match(f"reminder:{job.slot_name(job.due)}")
        if match is not None and (job.id, match["slot"]) not in self._promises:
            due = (job.due.at - BEGAN).total_seconds()
            self._promises[job.id, match["slot"]] = Promise(
                job.id, match["slot"], job.text, job.place.scope, job.place.bridge, job.place.target or "", due
            )

    def _check_as_ordered(self, job: Job) -> None:
        """Planned for when it was asked for, counted from when that was said or from when it was heard."""
        when, said_at = self._orders.get(job.text, ("", job.created_at))
        if job.due is None or self._life.faults.was_clock_wrong((min(said_at, job.created_at) - BEGAN).total_seconds()):
            return
        wanted = [moment for base in (said_at, job.created_at) for moment in moments_of_phrase(when, base)]
        if wanted and not any(abs(job.due.at - moment) <= timedelta(seconds=_PUNCTUAL) for moment in wanted):
            self._complain(f"{job.text!r} was to come {when!r} and is planned for {job.due.at}, not for {wanted}")

    # -------------------------------------------------------------------------------------------------------- each day

    def check(self) -> None:
        """Whatever was due is done with. Called when nothing goes on."""
        life = self._life
        if not life.is_calm(3 * HOUR):
            return
        for key, promise in list(self._promises.items()):
            if promise.due > life.now() - _COMES_WITHIN:
                continue
            came = [at for at in self._came.get(key, ()) if at >= promise.due - _PUNCTUAL]
            if not came and not self._is_told(promise) and not self._has_reason(promise):
                self._complain(f"{promise.text!r} was due {self._describe(promise)}, and never came")
            if len(came) > 1 and not life.faults.was_any(promise.due - DAY, came[-1]):
                self._complain(f"{promise.text!r} was due {self._describe(promise)}, and came {len(came)} times")
            del self._promises[key]
        old = life.now() - _KEPT
        self._digests = [one for one in self._digests if one[0] > old]
        self._dropped = [one for one in self._dropped if one[0] > old]

    def _has_come(self, job_id: int) -> bool:
        return any(job == job_id for job, _ in self._came)

    def _is_told(self, promise: Promise) -> bool:
        """In a list of many that came together, in the same place."""
        return any(
            at >= promise.due - _PUNCTUAL
            and (part.item.outgoing.bridge, part.item.outgoing.target) == (promise.bridge, promise.target)
            and (promise.text in part.text or "more; `/remind history`" in part.text)
            for at, part in self._digests
        )

    def _has_reason(self, promise: Promise) -> bool:
        """It was passed over while nothing ran, or for quiet hours, or the owner dropped what may have arrived."""
        life = self._life
        name = f"{promise.job}:{promise.slot}"
        if any(at >= promise.due - _PUNCTUAL and name in key for at, key in self._dropped):
            return True
        ended = life.world.running.stores.jobs.ended_slots(promise.scope, job_id=promise.job, limit=1000)
        slot = next((slot for slot in ended if slot.local_key.startswith(promise.slot)), None)
        is_passed_over = slot is not None and (slot.state == "missed" or "sent once, with the newest" in slot.note)
        return is_passed_over and self._may_wait(promise.due, promise.due + HOUR)

    def _describe(self, promise: Promise) -> str:
        at = (BEGAN.astimezone(UTC) + timedelta(seconds=promise.due)).astimezone(ZONE)
        return f"{at:%a %Y-%m-%d %H:%M} (reminder {promise.job} of {promise.scope} on {promise.bridge})"


def moments_of_phrase(when: str, base: datetime) -> list[datetime]:
    """What a phrase of the plan means, said at a moment; nothing for what repeats."""
    if match := _COUNTED.match(when):
        return [base + timedelta(**{f"{match[2]}s": int(match[1])})]
    clock, named = _CLOCK.search(when), when.partition(" at ")[0]
    today = base.astimezone(ZONE).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    days = _DAYS.get(named, ())
    if (weekday := _WEEKDAYS.get(named.removeprefix("on "), math.nan)) is not math.nan:
        ahead = int(weekday - today.weekday()) % 7
        # On that day itself both are meant.
        days = (ahead,) if ahead else (0, 7)
    if clock is None or when.startswith("every"):
        return []
    return [
        on_the_wall(today + timedelta(days=number), int(clock[1]), int(clock[2])).replace(tzinfo=ZONE)
        for number in days
    ]


def on_the_wall(day: datetime, hour: int, minute: int) -> datetime:
    """This time of a day, or the first after it where the clocks pass it over."""
    at = day.replace(hour=hour, minute=minute)
    there = at.replace(tzinfo=ZONE).astimezone(UTC).astimezone(ZONE).replace(tzinfo=None)
    return at if there == at else at.replace(hour=hour + 1, minute=0)
