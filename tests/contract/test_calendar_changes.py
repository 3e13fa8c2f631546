"""Changes of a real server's calendars (Radicale), as tools ask for them: what was asked for is there once, whatever is
done twice, and everything else stays as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assistant.calendars.service import CalendarError
from assistant.core.calendar_events import CalendarChange
from assistant.core.errors import ToolError
from assistant.core.ports import Tool, ToolContext
from tests.support.calendar_home import NOW, CalendarHome, calendar_text, timed
from tests.support.radicale import PASSWORD, Radicale, run_radicale
from tools.toolbox import calendar_tools

INVITED = "\n".join(
    [
        "ORGANIZER;CN=Bob:mailto:bob@example.org",
        "ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:ann@example.org",
        "ATTENDEE:mailto:bob@example.org",
    ]
)
SERIES = timed("Class", "20260303T180000", more="UID:class\nRRULE:FREQ=WEEKLY;COUNT=4\nX-OWN:kept")


@pytest.fixture(scope="module")
def running() -> Iterator[Radicale]:
    with run_radicale() as it:
        yield it


@pytest.fixture
def server(running: Radicale) -> Radicale:
    running.clear()
    running.make_calendar("family")
    return running


class Tools:
    """The tools over a home, called as after an approval."""

    def __init__(self, home: CalendarHome) -> None:
        self.home = home
        self._tools: dict[str, Tool] = {it.spec.name: it for it in calendar_tools(home.service, 10_000)}

    def context(self, key: str) -> ToolContext:
        return ToolContext("main", "owner", "turn", key, NOW)

    async def describe(self, name: str, **arguments: Any) -> str:
        return await self._tools[name].describe(arguments, self.context("k"))

    async def run(self, tool_name: str, key: str = "k", **arguments: Any) -> str:
        return await self._tools[tool_name].run(arguments, self.context(key))

    async def ref(self, words: str, when: str = "this month") -> str:
        found = await self.run("find_events", when=when, words=words)
        return found.splitlines()[1].removeprefix("- ").partition(":")[0]


@asynccontextmanager
async def tools_over(path: Path, server: Radicale) -> AsyncIterator[Tools]:
    home = CalendarHome(path / "home", [server.source(email="ann@example.org")], {"Server": PASSWORD})
    assert await home.read() == {"Server": ""}
    yield Tools(home)


async def test_an_event_is_added_once_however_often_that_is_done_and_stands_in_the_agenda(
    tmp_path: Path, server: Radicale
) -> None:
    async with tools_over(tmp_path, server) as tools:
        asked = {"title": "Dentist", "when": "thursday at 14:30", "minutes": 45, "place": "Main Street 5"}
        assert await tools.describe("add_event", **asked) == (
            'add to the calendar "family": "Dentist", Thursday 2026-03-05 14:30 to 15:15 at "Main Street 5"'
        )
        for _ in range(2):
            assert await tools.run("add_event", **asked) == (
                'It is in the calendar: "Dentist", Thursday 2026-03-05 14:30 to 15:15.'
            )
        (entry,) = server.entries("family")
        assert "DTSTART;TZID=Europe/Oslo:20260305T143000" in entry
        assert "Thursday 2026-03-05 14:30 to 15:15" in await tools.run("find_events", when="thursday")
        await tools.run("add_event", key="another", **asked)
        assert len(server.entries("family")) == 2


async def test_an_event_of_days_is_those_days(tmp_path: Path, server: Radicale) -> None:
    async with tools_over(tmp_path, server) as tools:
        asked = {"title": "Trip", "when": "thursday to saturday", "all_day": True}
        assert "Thursday 2026-03-05 to Saturday 2026-03-07, all day" in await tools.describe("add_event", **asked)
        await tools.run("add_event", **asked)
        assert "DTEND;VALUE=DATE:20260308" in server.entries("family")[0]


async def test_one_event_of_a_series_is_moved_and_the_others_stay(tmp_path: Path, server: Radicale) -> None:
    server.put("family/c.ics", calendar_text(SERIES))
    async with tools_over(tmp_path, server) as tools:
        ref = await tools.ref("class", "10 march")
        assert await tools.describe("move_event", event=ref, when="11 march at 19:00") == (
            'move "Class", Tuesday 2026-03-10 18:00 to 19:00, in the calendar "family", '
            "to Wednesday 2026-03-11 19:00 to 20:00"
        )
        for _ in range(2):
            await tools.run("move_event", event=ref, when="11 march at 19:00")
        events = tools.home.reader.list_events(NOW, NOW.replace(month=4))
        assert [f"{it.starts:%m-%d %H:%M}" for it in events] == [
            "03-03 17:00",
            "03-11 18:00",
            "03-17 17:00",
            "03-24 17:00",
        ]
        text = server.get("family/c.ics")
        assert text.count("RECURRENCE-ID") == 1
        assert "X-OWN:kept" in text


async def test_one_event_of_a_series_or_all_of_it_is_cancelled(tmp_path: Path, server: Radicale) -> None:
    server.put("family/c.ics", calendar_text(SERIES))
    async with tools_over(tmp_path, server) as tools:
        ref, other = await tools.ref("class", "10 march"), await tools.ref("class", "17 march")
        await tools.run("cancel_event", event=ref)
        await again(tools, ref)
        events = tools.home.reader.list_events(NOW, NOW.replace(month=4))
        assert [f"{it.starts:%m-%d}" for it in events] == ["03-03", "03-17", "03-24"]
        assert server.get("family/c.ics").count("EXDATE") == 1
        assert "every event of the series" in await tools.describe("cancel_event", event=other, whole_series=True)
        await tools.run("cancel_event", event=other, whole_series=True)
        assert server.entries("family") == []
        assert tools.home.reader.list_events(NOW, NOW.replace(month=4)) == []


async def again(tools: Tools, ref: str) -> None:
    """What the store does not have any more is done again by the change itself."""
    change = CalendarChange(
        "cancel",
        "k",
        "Server",
        url=f"{tools.home.sources[0].url}ann/family/c.ics",
        uid="class",
        occurrence="20260310T170000Z",
    )
    await tools.home.service.change(change)


async def test_an_invitation_is_answered_and_the_answer_shown(tmp_path: Path, server: Radicale) -> None:
    server.put("family/l.ics", calendar_text(timed("Lunch", "20260304T120000", more=f"UID:lunch\n{INVITED}")))
    async with tools_over(tmp_path, server) as tools:
        ref = await tools.ref("lunch")
        assert "invitation from Bob, not answered" in await tools.run("find_events", words="lunch")
        assert await tools.describe("answer_invitation", event=ref, answer="declined") == (
            'answer no to the invitation of "Bob": "Lunch", Wednesday 2026-03-04 12:00 to 13:00, '
            'in the calendar "family"'
        )
        for _ in range(2):
            await tools.run("answer_invitation", event=ref, answer="declined")
        assert "PARTSTAT=DECLINED" in server.get("family/l.ics")
        assert "you declined" in await tools.run("find_events", words="lunch")


async def test_what_somebody_else_changed_meanwhile_is_not_lost(tmp_path: Path, server: Radicale) -> None:
    server.put("family/c.ics", calendar_text(timed("Lunch", "20260304T120000", more="UID:l")))
    async with tools_over(tmp_path, server) as tools:
        ref = await tools.ref("lunch")
        server.put("family/c.ics", calendar_text(timed("Long lunch", "20260304T120000", more="UID:l\nLOCATION:Quay")))
        await tools.run("move_event", event=ref, when="5 march at 12:00")
        text = server.get("family/c.ics")
    assert "Long lunch" in text
    assert "LOCATION:Quay" in text
    assert "20260305T120000" in text


async def test_what_is_gone_is_not_changed_and_what_is_only_read_is_refused(tmp_path: Path, server: Radicale) -> None:
    server.put("family/c.ics", calendar_text(timed("Lunch", "20260304T120000", more="UID:l")))
    async with tools_over(tmp_path, server) as tools:
        ref = await tools.ref("lunch")
        server.request("DELETE", "family/c.ics")
        with pytest.raises(ToolError, match="not in the calendar any more"):
            await tools.run("move_event", event=ref, when="5 march at 12:00")
        for _ in range(2):
            await tools.run("cancel_event", event=ref)
        with pytest.raises(ToolError, match="there is no event"):
            await tools.describe("cancel_event", event=ref)
        with pytest.raises(ToolError, match="no such calendar"):
            await tools.describe("add_event", title="Lunch", when="thursday at 12", calendar="work")


async def test_a_server_that_is_down_is_said_and_nothing_was_changed(tmp_path: Path, server: Radicale) -> None:
    async with tools_over(tmp_path, server) as tools:
        down = replace(server, port=1)
        tools.home.service.settings = tools.home.settings.changed(sources=(down.source(),))
        change = CalendarChange(
            "add",
            "k",
            "Server",
            collection=f"{down.url}ann/family/",
            title="Lunch",
            starts="2026-03-05T12:00",
            ends="2026-03-05T13:00",
        )
        with pytest.raises(CalendarError, match="cannot be reached") as error:
            await tools.home.service.change(change)
        assert not error.value.unsure


async def test_free_time_and_contacts_are_found(tmp_path: Path, server: Radicale) -> None:
    server.put("family/a.ics", calendar_text(timed("Lunch", "20260304T120000", more="UID:l")))
    async with tools_over(tmp_path, server) as tools:
        free = await tools.run("find_free_time", when="wednesday", minutes=120)
        assert free == "- Wednesday 2026-03-04 09:00 to 12:00\n- Wednesday 2026-03-04 13:00 to 18:00"
        assert await tools.run("find_contact", name="Anna") == "Nobody in the address books is called that."
