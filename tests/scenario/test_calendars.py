"""Calendars and contacts as a person meets them: read in the background, in one list with everything else, with what is
known when nothing can be reached, and only the owner's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from assistant.agenda.day_phrases import DayRange
from assistant.calendars.service import find_calendar_problems
from assistant.core.sessions import MAIN_SESSION
from assistant.health.status import build_stored_report
from assistant.models.offline.model import OfflineModel
from assistant.wire.stores import build_status_sources
from tests.support.calendar_home import NOW, OSLO, CalendarHome, calendar_text, card_text, source, timed
from tests.support.command_line import one_line_error, run_assistant
from tests.support.page_server import Answer, serving
from tests.support.running_app import ROOM, run_app
from tests.support.web_api import make_certificate

MARCH_2 = DayRange(date(2026, 3, 2), date(2026, 3, 2))
TODAY = calendar_text(
    timed("Dentist", "20260302T143000", 45, "LOCATION:Main Street 5"),
    timed("Standup", "20260216T090000", 15, "RRULE:FREQ=WEEKLY"),
    "DTSTART;VALUE=DATE:20260301\nDTEND;VALUE=DATE:20260304\nSUMMARY:Trip",
    timed("Night train", "20260302T230000", 120),
    timed("Lunch", "20260302T120000", 60, "STATUS:CANCELLED"),
)
PEOPLE = card_text("Anna Berg", "EMAIL:anna@example.org\r\nBDAY:1980-03-02") + card_text("Bob", "TEL:+47 22")


def config_of(*sources: str) -> str:
    return '[home]\ntimezone = "Europe/Oslo"\n' + "".join(f"[[calendar.sources]]\n{it}\n" for it in sources)


def files_home(path: Path) -> Path:
    """A data folder with a calendar and an address book in files."""
    home = path / "home"
    home.mkdir(mode=0o700)
    (path / "own.ics").write_text(TODAY)
    (path / "people.vcf").write_text(PEOPLE)
    own = f'name = "Own"\nkind = "ics"\nurl = "{path}/own.ics"'
    people = f'name = "People"\nkind = "vcard"\nurl = "{path}/people.vcf"'
    (home / "config.toml").write_text(config_of(own, people))
    return home


async def test_the_agenda_has_calendars_and_birthdays_in_one_list_with_reminders(tmp_path: Path) -> None:
    async with run_app(files_home(tmp_path), now=lambda: NOW) as live:
        run = live.app.commands.run
        await run("/calendar sync", MAIN_SESSION)
        await run('/remind call mum --at "today at 15:00"', MAIN_SESSION)
        agenda = await run("/agenda today", MAIN_SESSION)
        assert await run("/contacts Anna", MAIN_SESSION) == '- "Anna Berg": "anna@example.org", born 1980-03-02'
    assert agenda.splitlines() == [
        "Monday 2026-03-02:",
        '- "Anna Berg" (birthday, turns 46)',
        '- "Trip" (calendar "Own", until Tuesday 2026-03-03)',
        '- 09:00-09:15 "Standup" (calendar "Own", repeats)',
        '- 12:00-13:00 "Lunch" (calendar "Own", cancelled)',
        '- 14:30-15:15 "Dentist" (at "Main Street 5", calendar "Own")',
        '- 15:00 "call mum" (reminder 1)',
        '- 23:00 "Night train" (calendar "Own", until Tuesday 2026-03-03 01:00)',
    ]


async def test_what_was_just_added_is_read_by_the_next_command(tmp_path: Path) -> None:
    config = files_home(tmp_path) / "config.toml"
    text = config.read_text()
    config.write_text(config_of())
    async with run_app(config.parent, now=lambda: NOW) as live:
        config.write_text(text)
        assert "Own (ics), 5 events" in await live.app.commands.run("/calendar sync", MAIN_SESSION)


async def test_what_repeats_is_known_also_after_a_clock_that_was_years_ahead(
    tmp_path: Path,
) -> None:
    shown = [NOW + timedelta(days=3 * 365)]
    async with run_app(files_home(tmp_path), now=lambda: shown[0]) as live:
        await live.app.commands.run("/calendar sync", MAIN_SESSION)
        shown[0] = NOW
        await live.app.commands.run("/calendar sync", MAIN_SESSION)
        assert "Standup" in await live.app.commands.run("/agenda today", MAIN_SESSION)


async def test_nobody_but_the_owner_sees_a_calendar(tmp_path: Path) -> None:
    async with run_app(files_home(tmp_path), now=lambda: NOW) as live:
        await live.app.commands.run("/calendar sync", MAIN_SESSION)
        days = live.app.stores.agenda_days
        assert len((await days.read("owner", MARCH_2, NOW)).items) == 6
        for scope in ("peer:kept:7", f"room:{ROOM}"):
            assert (await days.read(scope, MARCH_2, NOW)).items == ()


async def test_offline_mode_answers_with_what_is_in_the_calendar(tmp_path: Path) -> None:
    async with run_app(files_home(tmp_path), model=OfflineModel(), now=lambda: NOW) as live:  # type: ignore[arg-type]
        await live.app.commands.run("/calendar sync", MAIN_SESSION)
        await live.say("What is on today?")
        await live.wait_idle()
        (answer,) = live.bridge.bodies
    assert "Dentist" in answer
    assert "Main Street 5" in answer


async def test_what_cannot_be_read_keeps_what_was_known_says_its_age_and_turns_the_status(tmp_path: Path) -> None:
    home = files_home(tmp_path)
    async with run_app(home, now=lambda: NOW) as live:
        await live.app.commands.run("/calendar sync", MAIN_SESSION)
        (tmp_path / "own.ics").write_text("<html>Sorry</html>")
        await live.app.commands.run("/calendar sync", MAIN_SESSION)
        agenda = await live.app.commands.run("/agenda today", MAIN_SESSION)
        stores, settings = live.app.stores, live.app.settings
        sources = build_status_sources(settings, stores, is_served=True)
        problems = build_stored_report(settings, sources, "", NOW)["problems"]
    assert "Dentist" in agenda
    assert "Calendar Own is as of Mon 2026-03-02 10:00." in agenda
    assert [line for line in problems if "Calendar Own is not read" in line]


async def test_what_was_not_read_for_a_while_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.ics").write_text(TODAY)
    home = CalendarHome(tmp_path / "home", [source("Own", "ics", tmp_path / "a.ics")])
    assert await home.read() == {"Own": ""}
    assert home.days.read(MARCH_2, NOW)[1] == ()
    assert home.days.read(MARCH_2, NOW + timedelta(hours=2))[1] == ("Calendar Own is as of Mon 2026-03-02 10:00.",)


async def test_a_source_that_is_removed_is_forgotten_and_one_that_is_damaged_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "a.ics").write_text(TODAY)
    kept = [source("Own", "ics", tmp_path / "a.ics")]
    home = CalendarHome(tmp_path / "home", [*kept, source("Other", "ics", tmp_path / "a.ics")])
    await home.read()
    home.service.take_over(home.settings.changed(sources=tuple(kept)))
    home.service.check_due()
    await home.service.finish()
    assert list(home.reader.list_sources()) == ["Own"]
    database = tmp_path / "home" / "calendars" / "calendars.db"
    database.write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    assert home.days.read(MARCH_2, NOW)[1][0].startswith("The calendars cannot be shown:")
    home.service = CalendarHome(home.path, kept).service
    await home.read()
    assert len(home.days.read(MARCH_2, NOW)[0]) == 5


ADDRESS = "/calendar.ics"


async def test_an_address_is_read_once_and_then_asked_only_whether_it_has_changed(tmp_path: Path) -> None:
    pages = {ADDRESS: Answer(TODAY.encode(), "text/calendar", headers={"ETag": '"1"'})}
    with serving(pages) as server:
        home = CalendarHome(tmp_path / "home", [source("Own", "ics", server.url(ADDRESS), private=True)])
        assert await home.read() == {"Own": ""}
        pages[ADDRESS] = Answer(b"", status=304)
        assert await home.read() == {"Own": ""}
    assert len(home.days.read(MARCH_2, NOW)[0]) == 5


HOSTILE = {
    "closes": (Answer(b"", headers={"Content-Length": "100"}), "gave no answer"),
    "stalls": (Answer(stalls=True), "took longer than 2 seconds"),
    "lies about what it is": (Answer(b"\x89PNG\r\n"), "is no calendar"),
    "is gone": (Answer(status=404), "answers 404"),
    "leads to a cloud's metadata": (
        Answer(status=302, headers={"Location": "http://169.254.169.254/latest/meta-data/"}),
        "own network",
    ),
    "leads to another port of this machine by a name": (
        Answer(status=302, headers={"Location": "http://localhost:1/"}),
        "own network",
    ),
    "leads in a circle": (Answer(status=302, headers={"Location": ADDRESS}), "redirects more than 5 times"),
    "leads to a file": (Answer(status=302, headers={"Location": "file:///etc/passwd"}), "no address of a page"),
    "is endless": (Answer(b"BEGIN:VCALENDAR\r\n" + b"X" * (2 << 20)), "more than 1 MB"),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_hostile_server_costs_nothing_but_a_line_that_says_why(tmp_path: Path, kind: str) -> None:
    answer, why = HOSTILE[kind]
    with serving({ADDRESS: answer}) as server:
        sources = [source("Own", "ics", server.url(ADDRESS), private=True)]
        home = CalendarHome(tmp_path / "home", sources, timeout_seconds=2 if "stalls" in kind else 60, max_megabytes=1)
        said = (await home.read())["Own"]
    assert why in said
    assert "Nothing of it" in " ".join(problems_of(home)) or "stalls" in kind


def problems_of(home: CalendarHome) -> Sequence[str]:
    return list(find_calendar_problems(home.reader, lambda: home.sources, OSLO, NOW)) + home.service.problems()


async def test_an_address_in_the_own_network_is_read_only_where_the_settings_say_so(tmp_path: Path) -> None:
    with serving({ADDRESS: Answer(TODAY.encode())}) as server:
        home = CalendarHome(tmp_path / "home", [source("Own", "ics", server.url(ADDRESS))])
        assert "own network" in (await home.read())["Own"]
        assert server.asked == []


async def test_a_server_of_ones_own_is_read_once_its_certificate_is_named(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "own")
    with serving({ADDRESS: Answer(TODAY.encode(), "text/calendar")}, tls=(certificate, key)) as server:
        url = server.url(ADDRESS).replace("http:", "https:")
        (said,) = (await CalendarHome(tmp_path / "a", [source("Own", "ics", url, private=True)]).read()).values()
        assert "its certificate is not accepted (self-signed certificate)" in said and "--ca-file" in said
        trusted = source("Own", "ics", url, private=True, ca_file=str(certificate))
        assert await CalendarHome(tmp_path / "b", [trusted]).read() == {"Own": ""}
        wrong = source("Own", "ics", url, private=True, ca_file=str(tmp_path / "none.pem"))
        (said,) = (await CalendarHome(tmp_path / "c", [wrong]).read()).values()
        assert said.endswith("none.pem cannot be used: No such file or directory. Nothing was sent.")
    assert len(server.asked) == 1


async def test_fifty_thousand_events_are_read_and_a_day_of_them_is_shown(tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    starts = (start + timedelta(minutes=20 * n) for n in range(50_000))
    events = (
        f"BEGIN:VEVENT\r\nUID:e{at:%s}\r\nDTSTART:{at:%Y%m%dT%H%M%SZ}\r\nSUMMARY:Event\r\nEND:VEVENT\r\n"
        for at in starts
    )
    (tmp_path / "a.ics").write_text(f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{''.join(events)}END:VCALENDAR\r\n")
    home = CalendarHome(tmp_path / "home", [source("Own", "ics", tmp_path / "a.ics")], timeout_seconds=600)
    assert await home.read() == {"Own": ""}
    assert home.reader.count_entries() == {"Own": (50_000, 0)}
    entries, remarks = home.days.read(MARCH_2, NOW)
    assert (len(entries), remarks) == (72, ())


def test_calendar_commands_in_a_shell_add_list_and_remove(tmp_path: Path) -> None:
    home = files_home(tmp_path)
    (home / "config.toml").unlink()
    added = run_assistant(home, "calendar", "add", str(tmp_path / "own.ics"), "--name", "Mine", "--json")
    assert json.loads(added.out) == {"name": "Mine", "kind": "ics", "found": ["5 events"]}
    again = run_assistant(home, "calendar", "add", str(tmp_path / "own.ics"))
    assert "is read already, as Mine. Nothing was changed" in one_line_error(again)
    refused = run_assistant(home, "calendar", "add", str(tmp_path / "missing.ics"))
    assert "Nothing was changed" in one_line_error(refused)
    assert refused.returncode == 2
    run_assistant(home, "calendar", "remove", "mine")
    assert "Mine" not in (home / "config.toml").read_text()
