"""Sends the morning brief and the evening check-in, each once per local day.

A day is marked as done in the transaction that sends its message, so that a crash, a restart or a repeated hour sends
no second one. Days on which nothing ran are skipped; empty messages are not sent; quiet hours delay them. The morning
brief waits a while for the night's sleep cycle.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.brief import Brief, BriefReader, format_brief, format_check_in
from assistant.agenda.catch_up import LatenessPolicy
from assistant.agenda.day_phrases import local_day
from assistant.core.calendar import local_to_utc
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError
from assistant.core.logger import get_logger
from assistant.core.notices import Notice, NoticeKind
from assistant.store.script.notices import StoredNotices

log = get_logger()

# How long after its time it is still useful: at night the morning brief is not.
_OF_USE = {NoticeKind.MORNING_BRIEF: timedelta(hours=8), NoticeKind.EVENING_CHECK_IN: timedelta(hours=4)}
_SLEEP_PATIENCE = timedelta(minutes=30)
# Marks of later days than this were set by a clock that was ahead.
_A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class BriefTimes:
    """Times of day in the time zone of the data folder, such as "07:30"; "" for none."""

    morning: str
    evening: str
    zone: ZoneInfo
    lateness: LatenessPolicy

    def find_due(self, kind: NoticeKind, now: datetime) -> date | None:
        """Return the local day whose message may be sent now."""
        at = self.morning if kind is NoticeKind.MORNING_BRIEF else self.evening
        if not at:
            return None
        today = local_day(now, self.zone)
        begin = self.lateness.next_allowed(
            local_to_utc(datetime.combine(today, time.fromisoformat(at.zfill(5))), self.zone)
        )
        is_due = begin <= now < begin + _OF_USE[kind] and self.lateness.next_allowed(now) == now
        return today if is_due else None


class BriefScheduler:
    def __init__(
        self,
        reader: BriefReader,
        notices: StoredNotices,
        times: Callable[[], BriefTimes],
        send: Callable[[Notice], None],
        is_night_due: Callable[[datetime], bool],
        clock: Callable[[], datetime],
    ) -> None:
        """`send` sends a notice to the owner, where they were last; `is_night_due` returns whether the night's sleep
        cycle is still to run or to end."""
        self._reader = reader
        self._notices = notices
        self._times = times
        self._send = send
        self._is_night_due = is_night_due
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._waits_since: datetime | None = None

    def check_due(self) -> None:
        """Called at every wake-up."""
        if self._task is not None and not self._task.done():
            return
        now, times = self._clock(), self._times()
        try:
            due = [(kind, day) for kind in _OF_USE if (day := self._find_due(kind, times, now)) is not None]
        except AssistantError as error:
            log.error("nobody can tell whether a brief is due", error=str(error))
            return
        if due:
            self._task = asyncio.create_task(self._run(due, now), name="brief")

    async def wait_idle(self) -> None:
        """Wait until the message being sent is in the outbox."""
        if self._task is not None:
            await self._task

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _find_due(self, kind: NoticeKind, times: BriefTimes, now: datetime) -> date | None:
        day = times.find_due(kind, now)
        if day is None:
            return None
        self._notices.clear_ahead(kind, now + _A_DAY)
        if self._notices.was_sent(kind.fill(day.isoformat(), text="").mark):
            return None
        return None if kind is NoticeKind.MORNING_BRIEF and self._waits_for_sleep(now) else day

    def _waits_for_sleep(self, now: datetime) -> bool:
        if not self._is_night_due(now):
            self._waits_since = None
            return False
        if self._waits_since is None or self._waits_since > now:
            self._waits_since = now
        return now - self._waits_since < _SLEEP_PATIENCE

    async def _run(self, due: Sequence[tuple[NoticeKind, date]], now: datetime) -> None:
        try:
            brief = await self._reader.read(now)
            for kind, day in due:
                self._send_or_mark(kind.fill(day.isoformat(), text=_text(kind, brief)), now)
        except AssistantError as error:
            log.error("the brief was not sent; it is tried again", error=str(error))

    def _send_or_mark(self, notice: Notice, now: datetime) -> None:
        # Whether the morning has nothing to report is decided in the morning.
        if notice.text == notice.kind.fill(text="").text:
            self._notices.mark_sent(notice.mark, now)
        else:
            self._send(notice)


def _text(kind: NoticeKind, brief: Brief) -> str:
    """Return the text after the first sentence; "" if there is none."""
    if kind is NoticeKind.EVENING_CHECK_IN:
        text = format_check_in(brief)
    else:
        text = "" if brief.is_empty else format_brief(brief)
    return f"\n\n{text}" if text else ""
