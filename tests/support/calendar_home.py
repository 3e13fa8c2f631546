"""Calendars for tests: texts of events, and a service over a home whose sources a test chooses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.agenda.calendar_days import CalendarDays
from assistant.calendars.service import CalendarService
from assistant.core.secret_text import SecretStr
from assistant.settings.calendar_sources import CalendarSettings, CalendarSource
from assistant.settings.home import Home
from assistant.settings.settings import parse_settings_values
from assistant.store.calendars import CalendarReader

OSLO = ZoneInfo("Europe/Oslo")
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def calendar_text(*events: str, name: str = "") -> str:
    """A calendar of events, each given by its properties without UID where it may be any."""
    bodies = [
        "\n".join(["BEGIN:VEVENT", "" if "UID:" in it else f"UID:event-{number}@test", it.strip(), "END:VEVENT"])
        for number, it in enumerate(events)
    ]
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", f"X-WR-CALNAME:{name}" if name else ""]
    lines = "\n".join([*head, *bodies, "END:VCALENDAR"]).splitlines()
    return "\r\n".join(line.strip() for line in lines if line.strip()) + "\r\n"


def timed(title: str, start: str, minutes: int = 60, more: str = "", zone: str = "Europe/Oslo") -> str:
    """An event at a local time, as in "20260302T090000"."""
    end = datetime.strptime(start, "%Y%m%dT%H%M%S") + timedelta(minutes=minutes)
    return f"DTSTART;TZID={zone}:{start}\nDTEND;TZID={zone}:{end:%Y%m%dT%H%M%S}\nSUMMARY:{title}\n{more}"


def card_text(name: str, more: str = "") -> str:
    return f"BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{name}\r\nFN:{name}\r\n{more}\r\nEND:VCARD\r\n".replace(
        "\r\n\r\n", "\r\n"
    )


@dataclass
class CalendarHome:
    """`now` is what the clock shows."""

    path: Path
    sources: Sequence[CalendarSource] = ()
    passwords: dict[str, str] = field(default_factory=dict)
    now: datetime = NOW
    zone: ZoneInfo = OSLO
    timeout_seconds: float = 60.0
    max_megabytes: int = 50

    def __post_init__(self) -> None:
        defaults = parse_settings_values(Home(self.path), "")[0].calendar
        self.settings: CalendarSettings = defaults.changed(
            sources=tuple(self.sources),
            passwords=SecretStr(json.dumps(self.passwords)),
            timeout_seconds=self.timeout_seconds,
            max_megabytes=self.max_megabytes,
        )
        self.reader = CalendarReader(self.path)
        self.service = CalendarService(self.settings, self.reader, self.zone, lambda: self.now)
        self.days = CalendarDays(self.reader, self.zone, lambda: self.settings)

    async def read(self) -> dict[str, str]:
        """By source, what went wrong."""
        return await self.service.read_now()


def source(name: str, kind: str, url: str | Path, **more: object) -> CalendarSource:
    return CalendarSource.from_values({"name": name, "kind": kind, "url": str(url), **more})
