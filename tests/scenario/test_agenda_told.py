"""Dated things that were told stand in the agenda: as the newest words have it, gone when they are taken back, and of
their scope alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.agenda.day_phrases import parse_days
from assistant.agenda.mentioned_dates import MentionedDates, find_dated_mentions
from assistant.core.memories import JournalEntry
from assistant.core.messages import ToolCall
from assistant.core.ports import ToolContext
from assistant.core.records import LogRecord
from assistant.models.offline.model import OfflineModel
from tests.support.agenda_home import BERLIN, GUEST
from tests.support.command_line import run_assistant, run_in_process
from tests.support.running_app import LiveApp, run_app

MONDAY = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)


def told(*texts: str, entries: Sequence[JournalEntry] = ()) -> list[tuple[str, str, str]]:
    """(text, day, hour) of what holds, each text said five minutes after the one before."""
    records = [
        LogRecord(n, n, MONDAY + timedelta(minutes=5 * n), "main", 1, "owner", "message", "user", text, "", "")
        for n, text in enumerate(texts, 1)
    ]
    return [(it.text, str(it.when.day), it.when.time) for it in find_dated_mentions(records, entries, BERLIN)]


CORRECTED = [
    (("I have the dentist on Tuesday at 10.", "No, it's Wednesday."), "2026-11-25", "10:00"),
    (("I have the dentist on Tuesday at 10.", "no wait, it's at 11:30"), "2026-11-24", "11:30"),
    (("The dentist is on Tuesday at 10.", "The dentist is now on Thursday at 9:15."), "2026-11-26", "09:15"),
    (("The exam is on 3 June.", "It snows.", "The exam was moved to 4 June."), "2027-06-04", ""),
    (("Zahnarzt am Dienstag um 10 Uhr.", "Nein, am Mittwoch."), "2026-11-25", "10:00"),
    (("Dentiste mardi à 10h.", "Non, mercredi."), "2026-11-25", "10:00"),
    (("Dentista el martes a las 10.", "No, el miércoles."), "2026-11-25", "10:00"),
    (("The dentist is on Tuesday at 10.", "The dentist is on Tuesday at 10!"), "2026-11-24", "10:00"),
    (("Exam on June 13th.", "no wait, it's June 14th"), "2027-06-14", ""),
    (("Rendez-vous vendredi à 14h", "En fait c'est samedi"), "2026-11-28", "14:00"),
    # What is over, in another sentence, hides no day that comes.
    (("My mother called. The dentist is on Tuesday.",), "2026-11-24", ""),
    (("The appointment was on Tuesday but is now on Wednesday at 8:30.",), "2026-11-25", "08:30"),
]


@pytest.mark.parametrize(("texts", "day", "hour"), CORRECTED)
def test_later_words_correct_earlier_ones(texts: Sequence[str], day: str, hour: str) -> None:
    assert [(at, time) for _, at, time in told(*texts)] == [(day, hour)]


@pytest.mark.parametrize(
    "texts",
    [
        ("The dentist is on Tuesday.", "The dentist is cancelled."),
        ("Zahnarzt am Dienstag.", "Der Zahnarzt ist abgesagt."),
        ("Is the dentist on Tuesday?",),
        ("What do I have tomorrow",),
        ("Remind me to call mum tomorrow at 9.",),
        ("Erinnere mich morgen um 9 an den Zahnarzt.",),
        ("Add milk to my list for Friday.",),
        ("I saw the dentist on Tuesday.",),
        ("If I had time on Tuesday I would go.",),
        ("> the meeting is on Tuesday",),
        ('He wrote: "see you on Tuesday, at 10"',),
        ("my monday please, reminders and tasks",),
        ("saturday afternoon am i free or what",),
        ("anything else on friday",),
        ("whats on the day after tomorrow",),
    ],
)
def test_what_is_off_asked_ordered_or_past_is_no_date(texts: Sequence[str]) -> None:
    assert told(*texts) == []


def test_days_in_a_row_that_were_told_are_shown_whole() -> None:
    things = told("Wir sind vom 3. bis 10. Dezember in Rom. Das wird schön.", "Am 3. und 4. Mai ist Markt.")
    assert [text for text, _, _ in things] == [
        "Wir sind vom 3. bis 10. Dezember in Rom.",
        "Am 3. und 4. Mai ist Markt.",
    ]


def test_two_things_of_a_day_are_two_and_a_correction_finds_the_one_it_names() -> None:
    things = told("Lunch with Ada on Tuesday.", "Choir on Tuesday at 20:00.", "Actually, lunch is on Friday.")
    assert sorted((day, time) for _, day, time in things) == [("2026-11-24", "20:00"), ("2026-11-27", "")]
    things = told(
        "Meeting with Bob on Thursday at 2pm.",
        "Meeting with Sue on Thursday at 4pm.",
        "Bob's meeting is now on Friday.",
    )
    assert [(day, time) for _, day, time in things] == [("2026-11-26", "16:00"), ("2026-11-27", "14:00")]


def test_what_differs_by_a_number_is_two_things() -> None:
    things = told("Meeting with team 1 on Tuesday at 10.", "Meeting with team 2 on Wednesday at 11.")
    assert [(day, time) for _, day, time in things] == [("2026-11-24", "10:00"), ("2026-11-25", "11:00")]


def test_birthdays_of_two_in_a_sentence_are_two() -> None:
    text = "My sister's birthday is on 14 February, my brother's on 2 March."
    things = find_dated_mentions(
        [LogRecord(1, 1, MONDAY, "main", 1, "owner", "message", "user", text, "", "")], [], BERLIN
    )
    assert [(it.when.day.strftime("%d %B"), it.when.repeats) for it in things if it.when.day] == [
        ("14 February", "every year"),
        ("02 March", "every year"),
    ]


def test_the_journal_has_what_older_messages_told_and_says_nothing_twice() -> None:
    def entry(content: str, days: int, source: int) -> JournalEntry:
        at = MONDAY - timedelta(days)
        return JournalEntry(f"k{source}", "owner", "main", 1, content, at, "extraction", sources=(source,))

    entries = [entry("Anna's birthday is 3 May.", 400, 900), entry("The dentist is on Tuesday at 10.", 0, 1)]
    things = told("The dentist is on Tuesday at 10.", entries=entries)
    assert [text for text, _, _ in things] == ["Anna's birthday is 3 May.", "The dentist is on Tuesday at 10."]


async def agenda(it: LiveApp, when: str, session: str = "main") -> str:
    return await it.app.commands.run(f"/agenda {when}", session)


async def test_everything_else_goes_on_while_many_messages_are_read(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok", ASSISTANT_HOME__TIMEZONE="Europe/Berlin") as it:
        for number in range(15):
            await it.say(f"I meet person {number} on Tuesday at 10:15.")
        await it.wait_idle()
        days = it.app.stores.agenda_days
        reading = asyncio.create_task(days.read("owner", parse_days("tuesday", BERLIN, it.clock.now), it.clock.now))
        steps = 0
        while not reading.done():
            await asyncio.sleep(0)
            steps += 1
        # Read on the loop, it would be over in the first step.
        assert reading.result().items and steps > 1


async def test_what_is_told_is_on_the_agenda_at_once_and_gone_when_it_is_taken_back(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok", "ok", "ok", ASSISTANT_HOME__TIMEZONE="Europe/Berlin") as it:
        await it.say("I have the dentist tomorrow at 10:15.")
        await it.wait_idle()
        assert '- 10:15 "I have the dentist tomorrow at 10:15." (told on ' in await agenda(it, "tomorrow")
        assert "dentist" not in await agenda(it, "today")
        context = ToolContext("main", "owner", "t", "k", it.clock.now)
        shown, _ = await it.app.toolbox.run(ToolCall("c", "show_agenda", {"when": "tomorrow"}), context, "owner")
        assert '10:15 "I have the dentist' in shown
        context = ToolContext(GUEST.session, GUEST.scope, "t", "k", it.clock.now)
        shown, _ = await it.app.toolbox.run(ToolCall("c", "show_agenda", {"when": "next 30 days"}), context, "guest")
        assert "dentist" not in shown
        await it.app.commands.run("/undo", "main")
        assert (await agenda(it, "tomorrow")).startswith("Nothing is planned for ")


async def test_what_is_forgotten_is_gone_from_the_agenda(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        await it.say("I have the dentist tomorrow at 10:15.")
        await it.wait_idle()
        await it.app.maintenance.index_new_messages()
        assert ["dentist" in mentions for mentions in it.app.stores.dated_texts.read("owner").values()] == [True]
        await it.app.commands.run_argv(["forget", "dentist", "--yes"], "main")
        assert it.app.stores.dated_texts.read("owner") == {}
        assert (await agenda(it, "tomorrow")).startswith("Nothing is planned for ")


async def test_what_a_text_mentions_is_kept_and_made_again_where_it_is_damaged_or_outdated(tmp_path: Path) -> None:
    async with run_app(tmp_path, *["ok"] * 3, ASSISTANT_HOME__TIMEZONE="Europe/Berlin") as it:
        for text in ("I have the dentist tomorrow at 10:15.", "Anna's birthday is 3 May.", "It snows."):
            await it.say(text)
            await it.wait_idle()
        kept, now = it.app.stores.dated_texts, it.clock.now
        dates, later = it.app.stores.mentioned_dates, now + timedelta(minutes=1)
        alone = await dates.read("owner", now)
        # Read once where several ask at once, and no text of it again in the next minute.
        first, second = await asyncio.gather(dates.read("owner", later), dates.read("owner", later))
        assert first is second and first is not alone
        assert [id(thing) for thing in first] == [id(thing) for thing in alone]
        await it.app.maintenance.index_new_messages()
        assert len(kept.read("owner")) == 3
        again = MentionedDates(it.app.stores.history, it.app.stores.journal, kept, BERLIN)
        assert alone == await again.read("owner", now) and len(alone) == 2
        with kept._db.write() as db:
            db.execute("UPDATE dated_texts SET mentions = replace(mentions, 'dentist', 'florist')")
        fresh = MentionedDates(it.app.stores.history, it.app.stores.journal, kept, BERLIN)
        assert alone == await fresh.read("owner", now)
        await it.app.maintenance.index_new_messages()
        assert "florist" not in str(kept.read("owner")) and len(kept.read("owner")) == 3
        # A text of long ago is in the journal.
        await fresh.keep_up("owner", now + timedelta(days=90))
        assert kept.read("owner") == {}


async def test_nothing_is_kept_of_texts_that_were_read_before_something_was_forgotten(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        await it.say("I have the dentist tomorrow at 10:15.")
        await it.wait_idle()
        kept = it.app.stores.dated_texts
        kept.begin("owner")
        await it.app.commands.run_argv(["forget", "dentist", "--yes"], "main")
        assert not kept.keep("owner", {b"made of it": "dentist"}) and kept.read("owner") == {}


def test_it_is_read_beside_nothing_by_a_command(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run_assistant(home, "chat", "-m", "Anna's birthday is 3 May, and I have the dentist tomorrow at 10:15.")
    (item,) = json.loads(run_in_process(home, "agenda", "tomorrow", "--json").out)["items"]
    assert (item["kind"], item["time"]) == ("told", "10:15")
    assert "nobody" not in run_in_process(home, "agenda", "3 May").out


def test_many_messages_are_read_within_a_limit() -> None:
    days = parse_days("next week", BERLIN, MONDAY)
    things = told(*(f"Meeting number {n} on Tuesday at 10:{n % 60:02} with person{n}." for n in range(300)))
    assert len(things) == 300 and days.first.isoformat() == "2026-11-30"


async def test_a_reminder_that_came_today_stands_in_todays_agenda(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        await it.app.commands.run("/remind call mum in 20 minutes", "main")
        it.clock.now += timedelta(minutes=21)
        await it.app.agenda_scheduler.fire_due()
        assert '"call mum" (reminder 1, came)' in await agenda(it, "today")
        assert "call mum" not in await agenda(it, "tomorrow")


@pytest.mark.parametrize(
    "said",
    [
        ("Dentist on Tuesday at 3pm, remind me",),
        ("I have the dentist on Tuesday at 3pm", "remind me of the dentist on Tuesday at 3pm"),
        ("I have to pay the rent by Tuesday, put it on my list",),
    ],
)
async def test_what_was_told_and_the_reminder_made_of_it_are_one_entry(tmp_path: Path, said: tuple[str, ...]) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        for text in said:
            await it.say(text)
            await it.wait_idle()
        await it.say("agenda tuesday")
        await it.wait_idle()
        lines = [line for line in it.bridge.bodies[-1].splitlines() if line.startswith("- ")]
    assert len(lines) == 1, lines
    assert "told on" not in lines[0]


async def test_a_time_that_was_told_stays_beside_a_reminder_of_another_time(tmp_path: Path) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        for text in (
            "I have the dentist on Tuesday at 3pm",
            "remind me of the dentist on Tuesday at 2pm",
            "agenda tuesday",
        ):
            await it.say(text)
            await it.wait_idle()
        answer = it.bridge.bodies[-1]
    assert '14:00 "dentist"' in answer
    assert "- 15:00" in answer
