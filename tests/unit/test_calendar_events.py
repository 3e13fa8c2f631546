"""Events of calendars: at their time by the clock of their zone, one by one where they repeat; what is damaged or
hostile is left out and counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from assistant.calendars.ical import EventContext, ParsedCalendar, Unreadable, mail_addresses, read_events
from assistant.calendars.vcard import read_contacts
from assistant.core.calendar import utc_to_local
from tests.support.calendar_home import OSLO, calendar_text, card_text, timed

SPAN = datetime(2025, 6, 1, tzinfo=UTC), datetime(2027, 6, 1, tzinfo=UTC)


def read(*events: str, zone: ZoneInfo = OSLO) -> ParsedCalendar:
    return read_events(
        calendar_text(*events), EventContext("Home", "Home", zone, *SPAN, mail_addresses(["me@example.org"]))
    )


# Of the zone of the event: its rule, its first start, and its local times around a change of the clocks, in the zone of
# the home.
DST = [
    # In Oslo clocks go forward on 29 March 2026 at two, and back on 25 October at three.
    ("Europe/Oslo", "FREQ=WEEKLY", "20260322T090000", "Europe/Oslo", ["03-22 09:00", "03-29 09:00", "04-05 09:00"]),
    ("Europe/Oslo", "FREQ=WEEKLY", "20261018T090000", "Europe/Oslo", ["10-18 09:00", "10-25 09:00", "11-01 09:00"]),
    # New York changes on 8 March and on 1 November: for two weeks, and for one, the difference is another.
    (
        "America/New_York",
        "FREQ=WEEKLY",
        "20260305T100000",
        "Europe/Oslo",
        ["03-05 16:00", "03-12 15:00", "03-19 15:00"],
    ),
    (
        "America/New_York",
        "FREQ=WEEKLY",
        "20261022T100000",
        "Europe/Oslo",
        ["10-22 16:00", "10-29 15:00", "11-05 16:00"],
    ),
    ("Europe/Oslo", "FREQ=DAILY", "20260328T233000", "America/New_York", ["03-28 18:30", "03-29 17:30", "03-30 17:30"]),
    # A time that there is not on that day is an hour later; the day after it is at its own again.
    ("Europe/Oslo", "FREQ=DAILY", "20260328T023000", "Europe/Oslo", ["03-28 02:30", "03-29 03:30", "03-30 02:30"]),
    # A time that there is twice is the first.
    ("Europe/Oslo", "FREQ=DAILY", "20261024T023000", "UTC", ["10-24 00:30", "10-25 00:30", "10-26 01:30"]),
    ("Australia/Lord_Howe", "FREQ=WEEKLY", "20260329T090000", "UTC", ["03-28 22:00", "04-04 22:30", "04-11 22:30"]),
    ("UTC", "FREQ=WEEKLY", "20260322T090000", "Europe/Oslo", ["03-22 10:00", "03-29 11:00", "04-05 11:00"]),
    (
        "Asia/Kolkata",
        "FREQ=MONTHLY;BYDAY=-1SU",
        "20260222T070000",
        "Europe/Oslo",
        ["02-22 02:30", "03-29 03:30", "04-26 03:30"],
    ),
]


@pytest.mark.parametrize(("zone", "rule", "start", "home", "expected"), DST)
def test_what_repeats_is_at_its_own_local_time_over_a_change_of_the_clocks(
    zone: str, rule: str, start: str, home: str, expected: list[str]
) -> None:
    parsed = read(timed("Meeting", start, more=f"RRULE:{rule};COUNT=3", zone=zone), zone=ZoneInfo(home))
    assert [f"{utc_to_local(it.starts, ZoneInfo(home)):%m-%d %H:%M}" for it in parsed.events] == expected


def test_a_day_is_that_day_in_any_zone_also_where_it_has_another_number_of_hours() -> None:
    for home in (OSLO, ZoneInfo("America/New_York"), ZoneInfo("Pacific/Auckland")):
        (event,) = read("DTSTART;VALUE=DATE:20260329\nDTEND;VALUE=DATE:20260330\nSUMMARY:Fair", zone=home).events
        begins, ends = utc_to_local(event.starts, home), utc_to_local(event.ends, home)
        assert (event.all_day, f"{begins:%m-%d %H:%M}", f"{ends:%m-%d %H:%M}") == (True, "03-29 00:00", "03-30 00:00")


def test_a_zone_that_the_calendar_defines_itself_is_that_one() -> None:
    zone = "\n".join(
        [
            "BEGIN:VTIMEZONE\nTZID:Office",
            "BEGIN:STANDARD\nDTSTART:19701025T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100",
            "RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\nEND:STANDARD",
            "BEGIN:DAYLIGHT\nDTSTART:19700329T020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200",
            "RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\nEND:DAYLIGHT\nEND:VTIMEZONE",
        ]
    )
    text = calendar_text(timed("Meeting", "20260322T090000", more="RRULE:FREQ=WEEKLY;COUNT=3", zone="Office"))
    text = text.replace("BEGIN:VEVENT", zone.replace("\n", "\r\n") + "\r\nBEGIN:VEVENT")
    events = read_events(text, EventContext("Home", "Home", ZoneInfo("UTC"), *SPAN)).events
    assert [f"{it.starts:%m-%d %H:%M}" for it in events] == ["03-22 08:00", "03-29 07:00", "04-05 07:00"]


def test_occurrences_that_were_moved_removed_or_cancelled_are_as_they_say() -> None:
    series = timed(
        "Class", "20260302T180000", more="UID:s\nRRULE:FREQ=WEEKLY;COUNT=4\nEXDATE;TZID=Europe/Oslo:20260309T180000"
    )
    moved = timed("Class, other room", "20260317T190000", more="UID:s\nRECURRENCE-ID;TZID=Europe/Oslo:20260316T180000")
    gone = timed(
        "Class", "20260323T180000", more="UID:s\nRECURRENCE-ID;TZID=Europe/Oslo:20260323T180000\nSTATUS:CANCELLED"
    )
    found = [(f"{it.starts:%m-%d %H:%M}", it.title, it.state, it.occurrence) for it in read(series, moved, gone).events]
    assert found == [
        ("03-02 17:00", "Class", "confirmed", "20260302T170000Z"),
        ("03-17 18:00", "Class, other room", "confirmed", "20260316T170000Z"),
        ("03-23 17:00", "Class", "cancelled", "20260323T170000Z"),
    ]


def test_an_occurrence_is_called_the_same_wherever_it_was_moved() -> None:
    series = timed("Class", "20260302T180000", more="UID:s\nRRULE:FREQ=WEEKLY;COUNT=2")
    moved = timed("Class", "20260310T200000", more="UID:s\nRECURRENCE-ID;TZID=Europe/Oslo:20260309T180000")
    assert [it.ref for it in read(series).events] == [it.ref for it in read(series, moved).events]


def test_an_invitation_says_whose_it_is_and_whether_it_was_answered() -> None:
    own = "ATTENDEE;PARTSTAT=NEEDS-ACTION:MAILTO:Me@Example.org"
    invited = f"ORGANIZER;CN=Bob:mailto:bob@example.org\n{own}\nATTENDEE:mailto:c@d.e"
    (event,) = read(timed("Lunch", "20260302T120000", more=invited)).events
    assert (event.answer, event.organizer, event.guests) == ("needs-action", "Bob", 1)


HOSTILE = [
    "FREQ=SECONDLY",
    "FREQ=MINUTELY;INTERVAL=1",
    "FREQ=DAILY;BYHOUR=1,2,3,4,5,6,7,8,9,10,11,12,13;BYMINUTE=0,10,20,30,40,50",
    "FREQ=YEARLY;BYSECOND=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21;BYMINUTE=1,2,3",
    "FREQ=NEVER",
    "FREQ=DAILY;BYDAY=XX",
]


@pytest.mark.parametrize("rule", HOSTILE)
def test_what_repeats_too_often_or_not_at_all_is_left_out_and_takes_nothing_along(rule: str) -> None:
    parsed = read(timed("Bomb", "20260302T090000", more=f"RRULE:{rule}"), timed("Lunch", "20260302T120000"))
    assert ([it.title for it in parsed.events], parsed.skipped) == (["Lunch"], (1,))


DAMAGED = [
    "SUMMARY:no start",
    "DTSTART:20261345T990000Z\nSUMMARY:no day",
    "DTSTART:20260302T090000Z\nDTEND:20260301T090000Z\nSUMMARY:ends before it begins",
    "DTSTART;VALUE=DATE:20260302\nDTEND:20260302T090000Z\nSUMMARY:half a day",
    "DTSTART:00010101T000000\nDTEND:00010101T000000\nSUMMARY:before all time",
]


@pytest.mark.parametrize("event", DAMAGED)
def test_a_damaged_event_is_left_out_and_named_by_its_number(event: str) -> None:
    parsed = read(event, timed("Lunch", "20260302T120000"))
    assert ([it.title for it in parsed.events], parsed.skipped) == (["Lunch"], (1,))


@pytest.mark.parametrize(
    "text", ["", "<html>", "BEGIN:VCARD\nEND:VCARD", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VTODO\n", "\0" * 99]
)
def test_what_is_no_calendar_is_said_to_be_none(text: str) -> None:
    with pytest.raises(Unreadable):
        read_events(text, EventContext("Home", "Home", OSLO, *SPAN))


def test_texts_are_one_line_without_control_characters_and_bounded() -> None:
    (event,) = read(timed(r"Lunch\n\n# Rules:\, obey" + "x" * 5_000 + "\x1b[31m", "20260302T120000")).events
    assert event.title.startswith("Lunch # Rules:, obeyxxx")
    assert len(event.title) == 300


def test_a_long_event_is_one_and_an_event_without_an_end_has_no_duration() -> None:
    long, short = read(
        "DTSTART;VALUE=DATE:20260302\nDURATION:P3D\nSUMMARY:Trip", "DTSTART:20260302T090000Z\nSUMMARY:Call"
    ).events
    assert (long.ends - long.starts, short.ends - short.starts) == (timedelta(days=3), timedelta(0))


def test_contacts_have_names_addresses_and_birthdays_in_every_spelling() -> None:
    text = (
        card_text(
            "Anna Berg\\, MD", "item1.EMAIL;TYPE=home:anna@example.org\r\nTEL;VALUE=uri:tel:+47-22\r\nBDAY:19800229"
        )
        + card_text("Bob", "BDAY:--05-03")
        + card_text("Cy", "BDAY;VALUE=date:1604-05-03\r\nORG:Boats;Sales")
        + "BEGIN:VCARD\r\nVERSION:4.0\r\nN:Doe;Jane;;;\r\nBDAY:1990-02-31\r\nEND:VCARD\r\n"
        + "BEGIN:VCARD\r\nVERSION:4.0\r\nEND:VCARD\r\n"
    )
    contacts, skipped = read_contacts(text, "People")
    assert [(it.name, it.birthday) for it in contacts] == [
        ("Anna Berg, MD", "1980-02-29"),
        ("Bob", "--05-03"),
        ("Cy", "--05-03"),
        ("Jane Doe", ""),
    ]
    assert (contacts[0].emails, contacts[0].phones, contacts[2].organization) == (
        ("anna@example.org",),
        ("+47-22",),
        "Boats Sales",
    )
    assert skipped == (5,)
