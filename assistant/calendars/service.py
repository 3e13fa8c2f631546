"""Calendars and address books of a running assistant: when each is read, the child process that reads it, and its
state.

The event loop never blocks: a child process reads and changes (`worker.py`) within a time limit, and is killed if it
takes longer. Data read earlier stays, with its age.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from assistant.core.calendar import format_local_time
from assistant.core.calendar_events import CalendarChange, SourceState
from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError, UsageError, install_hint
from assistant.core.logger import get_logger
from assistant.core.processes import end_process
from assistant.settings.calendar_sources import CalendarSettings, CalendarSource, read_passwords
from assistant.store.calendars import CalendarReader

log = get_logger()

_COMMAND = (sys.executable, "-P", "-B", "-X", "utf8", "-m", "assistant.calendars.worker")
_MOST_BYTES_OF_ANSWER = 1 << 20


def require_calendar_libraries() -> None:
    """Raises `UsageError` if the libraries are not installed."""
    if find_spec("icalendar") is None or find_spec("recurring_ical_events") is None:
        raise UsageError(f"What reads calendars is not installed; {install_hint('calendar')}.")


class CalendarError(UsageError):
    """A source could not be read or changed. `unsure`: it is unknown whether a change was made."""

    def __init__(self, text: str, *, unsure: bool = False) -> None:
        super().__init__(text)
        self.unsure = unsure


def _unsure(action: str) -> str:
    return " Nobody knows whether the change was carried out: look into the calendar." if action == "change" else ""


@dataclass(frozen=True, slots=True)
class CalendarWorker:
    """Runs the child process."""

    home: Path
    zone: ZoneInfo
    timeout_seconds: float
    max_bytes: int

    async def run(self, action: str, now: datetime, **order: Any) -> Mapping[str, Any]:
        """Return the child's answer. Raises `CalendarError`."""
        order |= {"action": action, "home": str(self.home), "zone": str(self.zone), "now": now.isoformat()}
        order |= {"max_bytes": self.max_bytes}
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            process = await asyncio.create_subprocess_exec(
                *_COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, limit=_MOST_BYTES_OF_ANSWER
            )
        except OSError as error:
            raise CalendarError(f"No process can be started to read it ({error.strerror}).") from error
        try:
            async with asyncio.timeout(self.timeout_seconds):
                text, _ = await process.communicate(json.dumps(order).encode())
        except TimeoutError:
            raise CalendarError(
                f"It took longer than {self.timeout_seconds:.0f} seconds (calendar.timeout_seconds).{_unsure(action)}",
                unsure=action == "change",
            ) from None
        finally:
            await end_process(process)
        try:
            answer: Mapping[str, Any] = json.loads(text)
        except ValueError:
            why = f"What reads it ended (exit code {process.returncode}).{_unsure(action)}"
            raise CalendarError(why, unsure=action == "change") from None
        if answer.get("error"):
            raise CalendarError(str(answer["error"]), unsure=bool(answer.get("unsure")))
        return answer


@dataclass
class CalendarService:
    """`clock` returns the time of the assistant."""

    settings: CalendarSettings
    reader: CalendarReader
    zone: ZoneInfo
    clock: Callable[[], datetime]
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _tried: dict[str, tuple[CalendarSource, datetime]] = field(default_factory=dict)
    _errors: dict[str, str] = field(default_factory=dict)
    _has_forgotten: bool = False

    @property
    def worker(self) -> CalendarWorker:
        """Return what runs one reading in a child process, under the current settings."""
        chosen = self.settings
        return CalendarWorker(self.reader.home, self.zone, chosen.timeout_seconds, chosen.max_megabytes * 2**20)

    def take_over(self, settings: CalendarSettings) -> None:
        """Apply new settings: new sources are read at the next check, removed ones are deleted."""
        if settings != self.settings:
            self.settings, self._has_forgotten = settings, False

    def check_due(self) -> None:
        """Start reading sources that are out of date."""
        if not self.settings.sources and (self._has_forgotten or not self._is_there()):
            return
        try:
            require_calendar_libraries()
        except UsageError as error:
            self._errors = {it.name: str(error) for it in self.settings.sources}
            return
        now = self.clock()
        if not self._has_forgotten:
            self._has_forgotten = True
            self._start("", self._forget_others(now))
        for source in self.settings.sources:
            if self._is_due(source, now) and source.name not in self._running:
                self._start(source.name, self._read_or_note(source, now))

    def _is_due(self, source: CalendarSource, now: datetime) -> bool:
        tried, interval = self._tried.get(source.name), timedelta(minutes=self.settings.interval_minutes)
        return tried is None or tried[0] != source or not timedelta(0) <= now - tried[1] < interval

    def _start(self, name: str, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"calendar {name}".strip())
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name, None))

    async def _forget_others(self, now: datetime) -> None:
        with contextlib.suppress(CalendarError):
            await self.worker.run("forget", now, names=[it.name for it in self.settings.sources])

    async def _read_or_note(self, source: CalendarSource, now: datetime) -> None:
        try:
            await self._read(source, now)
        except CalendarError as error:
            log.warning("a calendar was not read", calendar=source.name, error=str(error))

    async def _read(self, source: CalendarSource, now: datetime) -> str:
        self._tried[source.name] = source, now
        try:
            answer = await self.worker.run("read", now, source=source.as_json(), password=self.password_of(source))
        except CalendarError as error:
            self._errors[source.name] = str(error)
            raise
        self._errors.pop(source.name, None)
        return str(answer.get("remark", ""))

    async def read_now(self, names: Sequence[str] = ()) -> dict[str, str]:
        """Read sources now, all without `names`; return errors by name, "" for none."""
        require_calendar_libraries()
        outcomes: dict[str, str] = {}
        for source in self.settings.sources:
            if names and source.name not in names:
                continue
            if (running := self._running.get(source.name)) is not None:
                await asyncio.wait([running])
            try:
                outcomes[source.name] = await self._read(source, self.clock())
            except CalendarError as error:
                outcomes[source.name] = str(error)
        return outcomes

    async def change(self, change: CalendarChange) -> None:
        """Make a change the owner approved. Raises `CalendarError`, which says if the outcome is unknown."""
        require_calendar_libraries()
        source = self.find_source(change.source)
        await self.worker.run(
            "change",
            self.clock(),
            source=source.as_json(),
            password=self.password_of(source),
            change=asdict(change),
        )

    def find_source(self, name: str) -> CalendarSource:
        """Raises `CalendarError`."""
        for source in self.settings.sources:
            if source.name == name:
                return source
        raise CalendarError(f"The calendar {name!r} is not in the settings any more. Nothing was changed.")

    def password_of(self, source: CalendarSource) -> str:
        """Return "" if none is stored."""
        return read_passwords(self.settings.passwords).get(source.name, "")

    def _is_there(self) -> bool:
        with contextlib.suppress(StoreError):
            return bool(self.reader.list_sources())
        return False

    async def finish(self) -> None:
        """Wait for reads in progress."""
        if self._running:
            await asyncio.wait([*self._running.values()])

    async def stop(self) -> None:
        for task in [*self._running.values()]:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def problems(self) -> list[str]:
        """Return problems the child could not store itself."""
        stored = self._stored()
        return [
            f"Calendar {name}: {error} What was read before is shown."
            for name, error in self._errors.items()
            if name not in stored or not stored[name].error
        ]

    def _stored(self) -> Mapping[str, SourceState]:
        try:
            return self.reader.list_sources()
        except StoreError:
            return {}


def find_calendar_problems(
    reader: CalendarReader, list_sources: Callable[[], Sequence[CalendarSource]], zone: ZoneInfo, now: datetime
) -> Iterator[str]:
    """Return sources that cannot be read, which need a person."""
    if not list_sources():
        return
    try:
        states = reader.list_sources()
    except StoreError as error:
        yield f"What was read of the calendars cannot be shown: {error} `assistant calendar sync` reads them anew."
        return
    for source in list_sources():
        state = states.get(source.name)
        if state is not None and state.error:
            shown = (
                f"What is shown is of {format_local_time(state.read_at, zone)}."
                if state.read_at
                else ("Nothing of it is shown.")
            )
            yield f"Calendar {source.name} is not read: {state.error} {shown} `assistant calendar sync` tries again."
