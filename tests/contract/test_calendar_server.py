"""Calendars and address books of a real server (Radicale): found, read whole, then only what is new, and written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from assistant.agenda.day_phrases import DayRange
from tests.support.calendar_home import NOW, CalendarHome, calendar_text, card_text, timed
from tests.support.radicale import PASSWORD, Radicale, run_radicale

MARCH = DayRange(date(2026, 3, 2), date(2026, 3, 31))


@pytest.fixture(scope="module")
def running() -> Iterator[Radicale]:
    with run_radicale() as it:
        yield it


@pytest.fixture
def server(running: Radicale) -> Radicale:
    running.clear()
    running.make_calendar("family")
    running.make_calendar("work")
    running.make_address_book("people")
    return running


def home_of(path: Path, server: Radicale, kind: str = "caldav", **more: object) -> CalendarHome:
    return CalendarHome(path / "home", [server.source(kind=kind, **more)], {"Server": PASSWORD})


def titles(home: CalendarHome) -> list[str]:
    return [it.text for it in home.days.read(MARCH, NOW)[0]]


async def test_all_calendars_of_a_user_are_found_and_read_and_then_what_is_new(
    tmp_path: Path, server: Radicale
) -> None:
    server.put("family/a.ics", calendar_text(timed("Dentist", "20260302T143000", more="UID:a")))
    server.put(
        "work/b.ics", calendar_text(timed("Standup", "20260304T090000", more="UID:b\nRRULE:FREQ=WEEKLY;COUNT=2"))
    )
    home = home_of(tmp_path, server)
    assert await home.read() == {"Server": ""}
    assert titles(home) == ["Dentist", "Standup", "Standup"]
    assert [it.name for _, it in home.reader.list_collections()] == ["family", "work"]
    server.put("family/a.ics", calendar_text(timed("Dentist again", "20260303T143000", more="UID:a")))
    server.put("family/c.ics", calendar_text(timed("Lunch", "20260305T120000", more="UID:c")))
    server.request("DELETE", "work/b.ics")
    assert await home.read() == {"Server": ""}
    assert titles(home) == ["Dentist again", "Lunch"]


async def test_only_what_changed_is_asked_for(tmp_path: Path, server: Radicale) -> None:
    for number in range(3):
        server.put(f"family/{number}.ics", calendar_text(timed("Lunch", "20260302T120000", more=f"UID:{number}")))
    home = home_of(tmp_path, server)
    await home.read()
    before = {it.url: it.token for _, it in home.reader.list_collections()}
    server.put("family/0.ics", calendar_text(timed("Supper", "20260302T180000", more="UID:0")))
    await home.read()
    after = {it.url: it.token for _, it in home.reader.list_collections()}
    changed = [url.rpartition("/")[0].rpartition("/")[2] for url in after if after[url] != before[url]]
    assert changed == ["family"]
    assert sorted(titles(home)) == ["Lunch", "Lunch", "Supper"]


async def test_the_address_of_one_calendar_is_that_one(tmp_path: Path, server: Radicale) -> None:
    server.put("family/a.ics", calendar_text(timed("Dentist", "20260302T143000", more="UID:a")))
    server.put("work/b.ics", calendar_text(timed("Standup", "20260304T090000", more="UID:b")))
    home = home_of(tmp_path, server, url=f"{server.url}ann/work/")
    assert await home.read() == {"Server": ""}
    assert titles(home) == ["Standup"]


async def test_address_books_are_read_and_their_birthdays_stand_in_the_agenda(tmp_path: Path, server: Radicale) -> None:
    server.put("people/a.vcf", card_text("Anna Berg", "EMAIL:anna@example.org\r\nBDAY:1980-03-02"))
    server.put("people/b.vcf", card_text("Bob", "TEL:+47 22"))
    home = home_of(tmp_path, server, kind="carddav")
    assert await home.read() == {"Server": ""}
    assert [it.name for it in home.reader.find_contacts(["berg"])] == ["Anna Berg"]
    assert [(it.text, it.note) for it in home.days.read(MARCH, NOW)[0]] == [("Anna Berg", "turns 46")]
    server.request("DELETE", "people/a.vcf")
    await home.read()
    assert [it.name for it in home.reader.find_contacts([])] == ["Bob"]


async def test_a_wrong_password_is_said_and_what_was_known_stays(tmp_path: Path, server: Radicale) -> None:
    server.put("family/a.ics", calendar_text(timed("Dentist", "20260302T143000", more="UID:a")))
    home = home_of(tmp_path, server)
    await home.read()
    wrong = CalendarHome(home.path, home.sources, {"Server": "wrong"})
    assert "refuses the user or the password" in (await wrong.read())["Server"]
    assert titles(wrong) == ["Dentist"]


async def test_a_damaged_entry_takes_no_other_along(tmp_path: Path, server: Radicale) -> None:
    server.put("family/a.ics", calendar_text(timed("Dentist", "20260302T143000", more="UID:a")))
    server.put("family/b.ics", calendar_text(timed("Bomb", "20260302T143000", more="UID:b\nRRULE:FREQ=SECONDLY")))
    home = home_of(tmp_path, server)
    assert "1 entry could not be read" in (await home.read())["Server"]
    assert titles(home) == ["Dentist"]
