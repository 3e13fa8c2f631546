"""Sends push notifications to the owner about reminders and questions that no bridge has delivered, and about problems
that need a person.

Only what belongs to the owner is sent, and nothing that a bridge, terminal or page has delivered; each thing is sent
once per service (`StoredPushes`); quiet hours delay it; a setting determines how much text leaves the machine; a
failing service affects nothing else, is retried after a while, and is reported in the status.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from assistant.agenda.catch_up import LatenessPolicy
from assistant.core.calendar import is_still_ahead
from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError, UsageError
from assistant.core.logger import get_logger
from assistant.core.text import pluralize, shorten
from assistant.notify.services import PushError, PushService, send_push
from assistant.store.script.pushes import StoredPushes

log = get_logger()

TITLE = "Nocturne"
# By then a working bridge, or an attached person, has received it.
_GRACE = timedelta(seconds=20)
# Older ones are not sent, so that a long downtime does not cause many notifications.
_OF_USE = timedelta(hours=12)
_FIRST_RETRY, _LONGEST_RETRY = timedelta(minutes=1), timedelta(hours=1)
_LONGEST_BODY = 1_000
_MOST_PROBLEMS = 3
_DIGITS = re.compile(r"\d+")
_COUNT = re.compile(r"[\d,]+")


@dataclass(frozen=True, slots=True)
class NotifyConfig:
    services: tuple[PushService, ...]
    text: Literal["short", "full"]


@dataclass(frozen=True, slots=True)
class PushText:
    """One notification. `short` has none of the person's text."""

    key: str
    short: str
    full: str


@dataclass(frozen=True, slots=True)
class NotifyServiceReport:
    """The state of one service."""

    name: str
    ok: bool
    state: str  # of the last notification: sent, failed, uncertain; "" if there was none
    at: datetime | None
    error: str


class Notifier:
    def __init__(
        self,
        stored: StoredPushes,
        config: Callable[[], NotifyConfig],
        lateness: LatenessPolicy,
        is_looking: Callable[[], bool],
        clock: Callable[[], datetime],
        send: Callable[[PushService, str, str], Awaitable[None]] = send_push,
    ) -> None:
        """`is_looking`: whether a terminal or a page is attached now."""
        self._stored = stored
        self._config = config
        self._lateness = lateness
        self._is_looking = is_looking
        self._clock = clock
        self._send = send
        self._task: asyncio.Task[None] | None = None
        self._health: tuple[str, ...] = ()

    def recover_after_crash(self, now: datetime) -> None:
        """Raises `StoreError`."""
        self._stored.recover_after_crash(now)

    def check_due(self) -> None:
        """Called at every wake-up: send notifications about what was not delivered."""
        now = self._clock()
        services = self._config().services
        if not services or self._is_busy or self._lateness.next_allowed(now) != now:
            return
        try:
            texts = [*self._unseen(now), *self._unhealthy(now)]
            due = [(it, service) for it in texts for service in services if self._is_due(it.key, service, now)]
        except StoreError as error:
            log.error("nobody can tell what was not seen", error=str(error))
            return
        if due:
            self._task = asyncio.create_task(self._send_all(due), name="notifications")

    def is_used(self) -> bool:
        """Return whether there is a service."""
        return bool(self._config().services)

    def note_health(self, problems: Iterable[str]) -> None:
        """Record current problems; those of notifications themselves are ignored."""
        self._health = tuple(problems)

    async def wait_idle(self) -> None:
        """Wait until what is being sent now was tried. Does not start anything."""
        if self._task is not None:
            await self._task

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def test(self) -> list[NotifyServiceReport]:
        """Send a test to each service, regardless of quiet hours. Raises `UsageError` if there is none."""
        services = self._config().services
        if not services:
            raise UsageError("No service is set up. `assistant config secret set notify.urls` sets their addresses.")
        key = f"test:{self._clock().isoformat()}"
        await asyncio.gather(*(self._send_one(PushText(key, _TEST, _TEST), service) for service in services))
        return self.list_services()

    def list_services(self) -> list[NotifyServiceReport]:
        """Raises `StoreError`."""
        services = self._config().services
        newest = self._stored.newest_by_service([service.id for service in services])
        reports = []
        for service in services:
            push = newest.get(service.id)
            state, error, at = (push.state, push.error, push.updated_at) if push else ("", "", None)
            reports.append(NotifyServiceReport(service.name, state not in ("failed", "uncertain"), state, at, error))
        return reports

    def problems(self) -> list[str]:
        """Return current problems, one line each, for `status`."""
        try:
            reports = self.list_services()
        except StoreError as error:
            return [str(error)]
        return [
            f"Notifications: {report.error or _UNCERTAIN} What it is about waits in your conversation. `assistant "
            "notify test` tries now."
            for report in reports
            if not report.ok
        ]

    # ----------------------------------------------------------------------------------------------------------- within

    @property
    def _is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def _unseen(self, now: datetime) -> list[PushText]:
        since, before = now - _OF_USE, now - _GRACE
        reminders = [
            PushText(it.key, _short_reminder(it.key, it.body), it.body)
            for it in self._stored.list_unseen_reminders(since, before)
        ]
        questions = [
            PushText(it.key, "Something waits for your yes or no.", f"Waiting for your yes or no: {it.body}.")
            for it in self._stored.list_unseen_approvals(since, before)
        ]
        return [*reminders, *questions]

    def _unhealthy(self, now: datetime) -> list[PushText]:
        """Return problems to send, each line once per day, whatever numbers it contains."""
        if self._is_looking():
            return []
        return [
            PushText(f"health:{now:%Y-%m-%d}:{_name_of(line)}", _UNHEALTHY, line)
            for line in self._health[:_MOST_PROBLEMS]
        ]

    def _is_due(self, key: str, service: PushService, now: datetime) -> bool:
        push = self._stored.find(key, service.id)
        waits = push is not None and push.retry_at is not None and is_still_ahead(push.retry_at, now, _LONGEST_RETRY)
        return push is None or (push.state == "failed" and not waits)

    async def _send_all(self, due: Sequence[tuple[PushText, PushService]]) -> None:
        failed: set[PushService] = set()
        for text, service in due:
            if service in failed:
                continue
            try:
                if not await self._send_one(text, service):
                    failed.add(service)
            except StoreError as error:
                log.error("a notification was not noted", error=str(error))
                return

    async def _send_one(self, text: PushText, service: PushService) -> bool:
        self._stored.begin(text.key, service.id, self._clock())
        body = text.full if self._config().text == "full" else text.short
        try:
            await self._send(service, TITLE, shorten(body, _LONGEST_BODY))
        except PushError as error:
            self._fail(text.key, service, error)
            return False
        self._stored.end(text.key, service.id, "sent", self._clock())
        return True

    def _fail(self, key: str, service: PushService, error: PushError) -> None:
        now, push = self._clock(), self._stored.find(key, service.id)
        doublings: int = 2 ** min(push.attempts - 1 if push else 0, 10)
        retry_at = None if error.uncertain else now + min(_LONGEST_RETRY, _FIRST_RETRY * doublings)
        state: Literal["failed", "uncertain"] = "uncertain" if error.uncertain else "failed"
        self._stored.end(key, service.id, state, now, error=str(error), retry_at=retry_at)
        log.warning("a notification was not taken", service=service.name, uncertain=error.uncertain)


_TEST = "This is a test. Reminders and questions will arrive here."
_UNCERTAIN = "it is not known whether the last one arrived."
_UNHEALTHY = "The assistant needs you: `assistant status` says why."


def _name_of(problem: str) -> str:
    """Return a name that is the same for the same problem with other numbers, without any of its text."""
    return hashlib.sha256(_DIGITS.sub("", problem).encode()).hexdigest()[:12]


def _short_reminder(key: str, body: str) -> str:
    count = _COUNT.match(body) if key.startswith("reminders:") else None
    return f"You have {pluralize(int(count[0].replace(',', '')), 'reminder')}." if count else "You have a reminder."
