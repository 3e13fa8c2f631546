"""Decides when conversations end: daily at an hour, after inactivity, or on request; one at a time.

A policy only ends a conversation with messages, so that it ends once per night or pause. A clock set back delays a
reset, but never repeats it. A reset interrupted by a crash, or waiting for the archive, is continued until it is done
or cancelled; a daily one comes after the sleep cycle of its night; missed ones are reported by `find_reset_problems`
(I11).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Literal

from assistant.core.calendar import SleepSchedule, is_late_start, is_still_ahead
from assistant.core.dataclass import dataclass
from assistant.core.errors import ArchiveUnavailable, AssistantError, UsageError
from assistant.core.logger import get_logger
from assistant.core.sessions import EndReason, GenerationActivity, SessionKind, SessionReset, session_kind, session_name
from assistant.core.store_ports import Conversation
from assistant.sessions.reset import (
    MAX_RETRY_PAUSE,
    ResetContext,
    ResetRequest,
    ResetResult,
    ResetStores,
    SessionResetter,
)
from assistant.store.script.generations import StoredGenerations, StoredResets

log = get_logger()


SessionResetPolicy = Literal["manual", "daily", "idle"]

# A sleep cycle of the same night that does not finish is not waited for all day.
_LONGEST_WAIT_FOR_SLEEP = timedelta(hours=2)
# A daily reset is reported as missed so long after its hour.
_OVERDUE = timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class DueReset:
    """A generation to end now, and why."""

    session: str
    generation: int
    reason: EndReason
    slot: datetime  # when it was due
    late: bool  # due long ago, for example because the assistant was not running


@dataclass(frozen=True, slots=True)
class ResetPolicies:
    """When conversations end."""

    by_kind: Mapping[SessionKind, SessionResetPolicy]
    at: str  # the hour of daily resets, in the zone
    idle: timedelta  # length of the inactivity
    zone: tzinfo

    @property
    def has_automatic(self) -> bool:
        """Return whether any conversation ends automatically."""
        return any(policy != "manual" for policy in self.by_kind.values())

    def policy_of_session(self, session: str) -> SessionResetPolicy:
        return self.by_kind[session_kind(session)]

    def due_reset(self, spoken: GenerationActivity, now: datetime) -> DueReset | None:
        """Return the reset if the current generation is to end now."""
        if spoken.first_at is None or spoken.last_at is None:
            return None
        slot: datetime | None = None
        reason: EndReason = "idle"
        match self.policy_of_session(spoken.session):
            case "daily":
                reason, slot = "daily", SleepSchedule(self.at, self.zone).find_due_night(None, spoken.first_at, now)
            case "idle" if now - spoken.last_at >= self.idle:
                slot = spoken.last_at + self.idle
        if slot is None:
            return None
        return DueReset(spoken.session, spoken.generation, reason, slot, is_late_start(slot, now))

    def overdue_reset(self, spoken: GenerationActivity, now: datetime) -> DueReset | None:
        """Return a daily reset that should have happened long ago."""
        due = self.due_reset(spoken, now)
        return due if due is not None and due.reason == "daily" and now - due.slot > _OVERDUE else None


def waits_for_sleep(reset: DueReset, night_is_due: bool, since: datetime, now: datetime) -> bool:
    """Return whether a daily reset, known to be due `since`, waits for a sleep cycle that is due as well."""
    return reset.reason == "daily" and night_is_due and now - since < _LONGEST_WAIT_FOR_SLEEP


class ResetScheduler:
    def __init__(
        self, resetter: SessionResetter, stores: ResetStores, context: ResetContext, policies: ResetPolicies
    ) -> None:
        self._resetter = resetter
        self._stores = stores
        self._context = context
        self._policies = policies
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._first_seen_due: dict[tuple[str, int], datetime] = {}

    async def reset_now(self, request: ResetRequest) -> ResetResult:
        """Reset now. Raises what `SessionResetter.reset_session` raises."""
        if self._lock.locked():
            raise UsageError("Another conversation is being reset. Nothing was changed; try again when that has ended.")
        async with self._lock:
            return await self._resetter.reset_session(request)

    def cancel_reset(self, session: str, now: datetime) -> bool:
        """Cancel a waiting reset; return whether there was one."""
        generations = [
            reset.generation for reset in self._stores.resets.unfinished_resets() if reset.session == session
        ]
        return bool([reset for reset in generations if self._stores.resets.withdraw(session, reset, now)])

    def check_due(self) -> asyncio.Task[None] | None:
        """Called at every wake-up: start what is due; None if nothing is, or one is in progress."""
        if self._lock.locked() or (self._task is not None and not self._task.done()):
            return None
        try:
            requests = list(self.due_requests(self._context.clock()))
        except AssistantError as error:
            log.error("nobody can tell whether a reset is due", error=str(error))
            return None
        if not requests:
            return None
        self._task = asyncio.create_task(self._carry_out(requests), name="resets")
        return self._task

    async def stop(self) -> None:
        """Stop; unfinished resets are continued at the next start."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    # -------------------------------------------------------------------------------------------------------------- due

    def due_requests(self, now: datetime) -> Iterator[ResetRequest]:
        """Return what to reset now: interrupted or postponed resets, then those of the policies."""
        unfinished = self._stores.resets.unfinished_resets()
        for reset in unfinished:
            # A retry further in the future than the longest pause was set by a wrong clock.
            if reset.retry_at is None or not is_still_ahead(reset.retry_at, now, MAX_RETRY_PAUSE):
                yield ResetRequest(reset.session, reset.reason, late=reset.attempts > 0, resumes=reset.resumes)
        if not self._policies.has_automatic:
            return
        under_way = {reset.session for reset in unfinished}
        for due in self._due_by_policy(now):
            since = self._first_seen_due.setdefault((due.session, due.generation), now)
            waits = waits_for_sleep(due, self._context.is_sleep_due(now), since, now)
            if due.session not in under_way and not waits:
                yield ResetRequest(due.session, due.reason, due.late)

    def _due_by_policy(self, now: datetime) -> Iterator[DueReset]:
        for info in self._stores.conversation.list_sessions():
            if self._policies.policy_of_session(info.key) == "manual":
                continue
            spoken = self._stores.generations.current_activity(info.key)
            due = None if spoken is None else self._policies.due_reset(spoken, now)
            if due is not None:
                yield due

    async def _carry_out(self, requests: list[ResetRequest]) -> None:
        for request in requests:
            try:
                done = await self.reset_now(request)
            except ArchiveUnavailable as error:
                log.error("a reset waits for the archive", session=request.session, error=str(error))
            except UsageError as error:
                # A person is talking, or a sleep cycle runs: check again soon.
                log.info("a reset waits", session=request.session, why=str(error))
            except AssistantError as error:
                log.error("a reset failed", session=request.session, error=str(error))
            else:
                self._first_seen_due.pop((request.session, done.ended.number), None)


def find_reset_problems(
    conversation: Conversation,
    generations: StoredGenerations,
    resets: StoredResets,
    policies: ResetPolicies,
    now: datetime,
) -> Iterator[str]:
    """Return problems with resets that did not happen, from the stores alone."""
    waiting = resets.unfinished_resets()
    yield from (_waits(reset, policies) for reset in waiting if reset.state == "waiting")
    for info in conversation.list_sessions() if policies.has_automatic else ():
        spoken = generations.current_activity(info.key)
        overdue = None if spoken is None else policies.overdue_reset(spoken, now)
        if overdue is not None and info.key not in {reset.session for reset in waiting}:
            hour = f"{overdue.slot.astimezone(policies.zone):%Y-%m-%d %H:%M}"
            yield (
                f"The daily reset of {session_name(info.key)} was due at {hour} and did not happen. Keep "
                f"`assistant run` running, or say `assistant reset {session_name(info.key)}`."
            )


def _waits(reset: SessionReset, policies: ResetPolicies) -> str:
    next_try = "" if reset.retry_at is None else f", next at {reset.retry_at.astimezone(policies.zone):%Y-%m-%d %H:%M}"
    why = reset.note if reset.note.endswith((".", "…")) else f"{reset.note}."
    return (
        f"The reset of {session_name(reset.session)} waits for the archive{next_try}: {why} "
        f"`assistant reset {session_name(reset.session)} --cancel` cancels it."
    )
