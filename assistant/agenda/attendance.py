"""Checks whether due reminders and schedules will run, and warns before and after if not (I11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.catch_up import LatenessPolicy
from assistant.core.calendar import format_moment
from assistant.core.dataclass import dataclass
from assistant.core.jobs import JobKind
from assistant.core.quoting import quote_text
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize, shorten_line
from assistant.service.presence import advise_to_stay
from assistant.store.script.jobs import Jobs

# A chat that stays open until then is enough to omit the warning.
_NOTHING_WILL_RUN = "only while the assistant runs, and nothing runs it once you leave."
_WHAT_WAITS: Mapping[JobKind, str] = {"reminder": "Reminders come", "schedule": "Schedules run"}
# For people other than the owner, who cannot change it.
NOBODY_SAYS_WHETHER = "It comes only if the assistant is running at that time, which is not certain."
# Number of clock checks after which something due that did not run needs attention.
_WATCHES = 4
_NAMED = 3
_FIRST_WORDS = 60


def nothing_will_run(kind: JobKind) -> str:
    """Return the warning shown when something is set."""
    return f"{_WHAT_WAITS[kind]} {_NOTHING_WILL_RUN} {advise_to_stay()}"


def warns_that_nothing_runs(text: str) -> bool:
    """Return whether an answer contains `nothing_will_run`."""
    return _NOTHING_WILL_RUN in text


def unattended_note(jobs: Jobs, stays: Callable[[], bool], zone: ZoneInfo, now: datetime) -> str:
    """Return a line about what waits while nothing will run it; "" if nothing waits, or it will run."""
    counts, due_at = jobs.count_active(), jobs.next_due_at()
    if not counts or due_at is None or stays():
        return ""
    of_several = sum(counts.values()) > 1
    named = " and ".join(pluralize(counts[kind], kind) for kind in _WHAT_WAITS if kind in counts)
    what = f"{named} {'wait' if of_several else 'waits'}"
    if due_at <= now:
        since = f"{'the first ' * of_several}since {format_moment(due_at, zone)}"
        return f"{what}, {since}, and nothing runs the assistant. {advise_to_stay()}"
    until = f"{'the next ' * of_several}for {format_moment(due_at, zone)}"
    return f"{what}, {until}, and nothing will run the assistant then. {advise_to_stay()}"


@dataclass(frozen=True, slots=True)
class AgendaWatch:
    """How to detect that something due did not run.

    - `is_served`: a process that runs it exists, and is given a moment to do so.
    """

    lateness: LatenessPolicy
    watch_seconds: float
    zone: ZoneInfo
    is_served: bool

    @property
    def grace(self) -> timedelta:
        """How long a due time may have passed before it is a problem; zero where no daemon watches."""
        moment = max(self.lateness.late_after, timedelta(seconds=_WATCHES * self.watch_seconds))
        return moment if self.is_served else timedelta(0)


def find_agenda_problems(jobs: Jobs, watch: AgendaWatch, now: datetime) -> Iterator[str]:
    """Return the problems of the agenda, for `status`."""
    unseen = sum(jobs.count_unseen().values())
    if unseen:
        slots = jobs.list_unseen(OWNER_SCOPE, limit=_NAMED)
        named = [_named(slot.name or slot.text, slot.due_at, watch.zone, slot.state) for slot in slots]
        what = pluralize(unseen, "reminder or schedule", "times of reminders and schedules")
        yield (
            f"{what} came late or not at all, because the assistant was not running then{_listed(named, unseen)}. "
            f"`assistant schedule history` shows why and ends this warning; {advise_to_stay()}"
        )
    window = watch.lateness.quiet.window(now) if watch.lateness.quiet is not None else None
    before = (now if window is None else window[0]) - watch.grace
    overdue = jobs.count_overdue(before)
    if overdue:
        due = [job for job in jobs.list_due(None, before, limit=_NAMED) if job.place.scope == OWNER_SCOPE]
        named = [_named(job.name or job.text, job.due.at, watch.zone) for job in due if job.due is not None]
        what = pluralize(overdue, "reminder or schedule is due and was", "reminders and schedules are due and were")
        yield (f"{what} not sent{_listed(named, overdue)}. They come as soon as the assistant runs. {advise_to_stay()}")


def _named(text: str, due_at: datetime, zone: ZoneInfo, state: str = "") -> str:
    return f"{quote_text(shorten_line(text, _FIRST_WORDS))} ({format_moment(due_at, zone)}{state and f', {state}'})"


def _listed(named: Sequence[str], of: int) -> str:
    more = [f"{of - len(named):,} more"] if of > len(named) else []
    return f": {'; '.join([*named, *more])}" if named else ""
