"""Months of a whole app by the clock that the daemon reads: conversations that end by themselves, daily ones over both
changes of the clocks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from assistant.core.messages import Message
from assistant.core.sessions import Generation
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from tests.support.imports import import_messages
from tests.support.machine_clock import MachineClock
from tests.support.scripted import ScriptedModel

BEGUN = datetime(2026, 1, 1, 11, tzinfo=UTC)
DAYS = 365
IDLE_DAYS = 100
# In Oslo the clocks change on 29 March and 25 October; 02:30 is left out on the one and comes twice on the other.
QUIET = {"ASSISTANT_HOME__TIMEZONE": "Europe/Oslo", "ASSISTANT_SLEEP__AT": "", "ASSISTANT_BACKUP__AT": ""}


@asynccontextmanager
async def open_app(path: Path, machine: MachineClock, **environ: str) -> AsyncIterator[App]:
    settings = load_settings(None, {"ASSISTANT_HOME": str(path), **QUIET, **environ})
    app = build_app(settings, machine.wall, model=ScriptedModel())
    await app.start()
    try:
        yield app
        assert app.stores.verifier.verify().ok
    finally:
        await app.stop(0)
        app.close()


async def live(app: App, machine: MachineClock, days: int, *looks: timedelta) -> list[Generation]:
    """Something is said every day at the same moment, and looked at so long after; the generations that ended."""
    for day in range(days):
        noon = BEGUN + timedelta(days=day)
        machine.run(noon - machine.wall())
        message = Message("user", f"This was day {day}.", ts=noon)
        import_messages(app.stores.conversation, "main", "owner", [message], noon)
        for look in looks:
            machine.run(noon + look - machine.wall())
            task = app.resets.check_due()
            if task is not None:
                await task
    return [one for one in app.stores.generations.list_generations("main") if one.ended_at is not None]


async def test_f31_a_year_of_daily_resets_ends_one_conversation_a_night_and_loses_none(tmp_path: Path) -> None:
    hours = [timedelta(hours=hours) for hours in (13, 13.75, 14, 14.75, 15, 20)]
    machine = MachineClock(BEGUN)
    async with open_app(tmp_path, machine, ASSISTANT_RESET__MAIN="daily", ASSISTANT_RESET__AT="02:30") as app:
        ended = await live(app, machine, DAYS, *hours)
        nights = [one.ended_at.astimezone(app.settings.zone).date() for one in ended if one.ended_at is not None]
        assert nights == [date(2026, 1, 2) + timedelta(days=day) for day in range(DAYS)]
        assert [one.messages for one in ended] == [1] * DAYS
        assert len(app.stores.archive.list_archives("owner")) == DAYS


async def test_f31_months_of_idle_resets_end_one_conversation_a_silence_and_lose_none(tmp_path: Path) -> None:
    looks = [timedelta(minutes=minutes) for minutes in (119, 121, 400)]
    machine = MachineClock(BEGUN)
    async with open_app(tmp_path, machine, ASSISTANT_RESET__MAIN="idle", ASSISTANT_RESET__IDLE_MINUTES="120") as app:
        ended = await live(app, machine, IDLE_DAYS, *looks)
        assert [one.ended_at for one in ended] == [BEGUN + timedelta(days=day, minutes=121) for day in range(IDLE_DAYS)]
        assert [one.messages for one in ended] == [1] * IDLE_DAYS
        assert len(app.stores.archive.list_archives("owner")) == IDLE_DAYS
