"""Orders that change what is there, and that were carried out otherwise than they say: what is not done stays open, an
hour at which something comes is no length, and what goes for good goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.utterances import find_faults, play

GROCERIES = ["add rice to the shopping list", "add honey to the shopping list"]
OPEN = {"todos": [{"text": ["honey"], "list": "shopping", "due": None}], "done": [["rice"]]}


def reminder(text: str, due: str, repeat: str | None = None) -> dict[str, Any]:
    return {"reminders": [{"text": [text], "due": due, "repeat": repeat}]}


def todo(text: str, name: str) -> dict[str, Any]:
    return {"todos": [{"text": [text], "list": name, "due": None}]}


def ends(text: str, due: str, until: str) -> dict[str, Any]:
    return {"reminders": [{"text": [text], "due": due, "repeat": "daily", "until": until}]}


def dated(text: str, name: str, due: str) -> dict[str, Any]:
    return {"todos": [{"text": [text], "list": name, "due": due}]}


PILL = "remind me every day at 8 am to take the pill"
MEETING = "remind me of the meeting on Monday at 6 pm"
CHOIR = "remind me of choir tomorrow at 7 pm"
BANK = "remind me to call the bank tomorrow at 9 am"
BIN = reminder("basura", "2026-03-11T18:00")
ALARM = "wake me up every weekday at 7 am"
PARCEL = reminder("paket", "2026-03-12T17:00")
ROWS = [
    # What is left out once still comes again and again.
    (
        "reminder_change",
        [ALARM],
        "i can sleep in tomorrow, skip the alarm just once",
        reminder("wake", "2026-03-13T07:00", "weekly:MO,TU,WE,TH,FR"),
    ),
    # What nobody has time for today is put off, not cancelled.
    (
        "reminder_change",
        ["erinnere mich heute um 17 Uhr an das Paket"],
        "das Paket schaff ich heute nicht mehr, erinner mich morgen",
        PARCEL,
    ),
    # More of a thing is still that thing.
    (
        "todo",
        ["añade leche a la lista de la compra"],
        "mejor dos litros de leche",
        todo("dos litros de leche", "compra"),
    ),
    # What a heading begins is put on the list, whatever it has in common with what is there.
    (
        "todo",
        ["à faire : peindre la clôture"],
        "à faire : peindre l'abri",
        {"todos": [{"text": [word], "list": None, "due": None} for word in ("clôture", "abri")]},
    ),
    # One order for two reminders sets both.
    (
        "reminder_set",
        [],
        "remind me of the bins at 7 tonight and of the recycling at 7 tomorrow night",
        {
            "reminders": [
                {"text": ["bins"], "due": "2026-03-11T19:00", "repeat": None},
                {"text": ["recycling"], "due": "2026-03-12T19:00", "repeat": None},
            ]
        },
    ),
    (
        "reminder_change",
        ["remind me of yoga every tuesday at 6 pm"],
        "yoga every tuesday except next week",
        reminder("yoga", "2026-03-24T18:00", "weekly:TU"),
    ),
    (
        "reminder_set",
        [],
        "remind me of yoga every tuesday at 6 pm except on march 24",
        {"reminders": [], "answer_has": ["nothing is set", "skip"]},
    ),
    ("todo", GROCERIES, "rice got, honey not", OPEN),
    ("todo", GROCERIES, "rice is bought, honey is missing", OPEN),
    ("todo", GROCERIES, "rice gekauft, honey fehlt", OPEN),
    (
        "reminder_change",
        ["remind me to thaw the fish at 2 pm"],
        "fish reminder should be 3 hours later",
        reminder("fish", "2026-03-11T17:00"),
    ),
    (
        "reminder_change",
        ["rappelle-moi le coiffeur jeudi à 15h"],
        "le coiffeur a décalé à 18h",
        reminder("coiffeur", "2026-03-12T18:00"),
    ),
    (
        "reminder_change",
        ["erinnere mich um 21 Uhr an den Hund"],
        "den hund erst um halb zehn",
        reminder("hund", "2026-03-11T21:30"),
    ),
    (
        "reminder_change",
        ["rappelle-moi la chorale tous les mardis à 19h"],
        "la chorale du mardi est annulée définitivement",
        {"reminders": []},
    ),
    (
        "reminder_change",
        ["remind me to call the dentist on Friday at 10"],
        "The dentist is cancelled",
        {"reminders": []},
    ),
    (
        "reminder_change",
        ["remind me to call the dentist on Friday at 10"],
        "The dentist is not closed",
        reminder("dentist", "2026-03-13T10:00"),
    ),
    (
        "reminder_change",
        ["recuérdame a las 18:00 sacar la basura", "recuérdame el viernes a las 17:00 la reunión con Marta"],
        "no, espera, es a las seis",
        {"reminders": [*BIN["reminders"], *reminder("reunión", "2026-03-13T18:00")["reminders"]]},
    ),
    (
        "reminder_change",
        ["remind me at 18:00 to take the bin out", "remind me of the meeting on Friday at 17:00"],
        "no wait, it's at six",
        {
            "reminders": [
                *reminder("bin", "2026-03-11T18:00")["reminders"],
                *reminder("meeting", "2026-03-13T18:00")["reminders"],
            ]
        },
    ),
    (
        "fact",
        ["rappelle-moi les pâtes à 18h", "j'ai rendez-vous chez le coiffeur samedi à 15h30"],
        "finalement c'est à 16h",
        reminder("pâtes", "2026-03-11T18:00"),
    ),
    ("reminder_set", [], "Eier kochen, 6 Minuten", reminder("", "2026-03-11T09:06")),
    ("reminder_set", [], "pâtes, 12 minutes", reminder("", "2026-03-11T09:12")),
    ("todo", [], "to do: call the plumber", {"todos": [{"text": ["plumber"], "list": None, "due": None}]}),
    (
        "todo",
        ["setze nägel auf die einkaufsliste"],
        "schieb die nägel auf die baumarktliste rüber",
        todo("nägel", "bau"),
    ),
    (
        "reminder_set",
        [],
        "put the dentist on my calendar for Tuesday at 10",
        {**reminder("dentist", "2026-03-17T10:00"), "answer_has": ['"dentist"']},
    ),
    ("todo", ["añade pan a la lista de la compra"], "pasa el pan a la lista de la panadería", todo("pan", "panaderia")),
    # What repeats ends on a day, and keeps its end when something else of it changes.
    ("reminder_change", [PILL], "stop the pill reminder after Sunday", ends("pill", "2026-03-12T08:00", "2026-03-15")),
    ("reminder_change", [PILL], "no more pill from Monday on", ends("pill", "2026-03-12T08:00", "2026-03-15")),
    (
        "reminder_change",
        ["erinnere mich jeden Tag um 8 an die Tabletten bis Freitag"],
        "die Tabletten lieber um 9",
        ends("Tabletten", "2026-03-12T09:00", "2026-03-13"),
    ),
    (
        "reminder_change",
        [PILL, "the pill only until 20 March"],
        "skip the pill tomorrow",
        ends("pill", "2026-03-13T08:00", "2026-03-20"),
    ),
    (
        "reminder_change",
        [PILL],
        "cancel the pill reminder from tomorrow",
        reminder("pill", "2026-03-13T08:00", "daily"),
    ),
    ("reminder_change", [PILL], "no more after Sunday", ends("pill", "2026-03-12T08:00", "2026-03-15")),
    (
        "reminder_set",
        [],
        "Erinnere mich die nächsten drei Tage um 20 Uhr an die Tropfen",
        ends("Tropfen", "2026-03-11T20:00", "2026-03-13"),
    ),
    ("reminder_change", [PILL], "pause the pill until Friday", reminder("pill", "2026-03-13T08:00", "daily")),
    # What is past is not set, whatever hour it names.
    ("reminder_set", [], "remind me yesterday at 5 to call Bob", {"reminders": []}),
    ("reminder_set", [], "recuérdame ayer a las 5 llamar a Bob", {"reminders": []}),
    (
        "reminder_set",
        [],
        "remind me at 5 pm about yesterday's report",
        {"reminders": [{"text": ["report"], "due": "2026-03-11T17:00", "repeat": None}]},
    ),
    (
        "reminder_set",
        [],
        "wake me at 7 and 7:30 and 8",
        {"reminders": [{"text": [], "due": f"2026-03-12T{at}", "repeat": None} for at in ("07:00", "07:30", "08:00")]},
    ),
    (
        "reminder_set",
        [],
        "remind me at 9 and 12 and 18 to drink water",
        {
            "reminders": [
                {"text": ["drink water"], "due": due, "repeat": None}
                for due in ("2026-03-12T09:00", "2026-03-11T12:00", "2026-03-11T18:00")
            ]
        },
    ),
    # "Las dos alarmas" are two alarms, and no hour.
    (
        "reminder_change",
        ["despiértame mañana a las 6", "despiértame mañana a las 6:30"],
        "quita las dos alarmas de mañana",
        {"reminders": []},
    ),
    (
        "reminder_change",
        [MEETING],
        "add 'bring the form' to the meeting reminder",
        reminder("bring the form", "2026-03-16T18:00"),
    ),
    (
        "reminder_change",
        ["rappelle-moi la bibliothèque vendredi à 17h"],
        "la bibliothèque, plutôt une semaine plus tard",
        reminder("bibliothèque", "2026-03-20T17:00"),
    ),
    (
        "todo",
        ["add two pints of milk to the shopping list"],
        "make it three pints of milk not two",
        todo("three pints", "shopping"),
    ),
    ("todo", [], "put batteries on the shopping list by Saturday", dated("batteries", "shopping", "2026-03-14")),
    # Of whole lists
    (
        "todo",
        ["add tent to the camping list by Friday"],
        "copy the camping list to the festival list",
        {
            "todos": [
                *dated("tent", "camping", "2026-03-13")["todos"],
                *dated("tent", "festival", "2026-03-13")["todos"],
            ]
        },
    ),
    (
        "todo",
        ["add cake to the party list", "add eggs to the shopping list"],
        "rename the party list to shopping",
        {"todos": [*todo("cake", "party")["todos"], *todo("eggs", "shopping")["todos"]]},
    ),
    (
        "cannot",
        ["add cake to the party list"],
        "merge the party list into the shopping list",
        {**todo("cake", "party"), "cannot": True},
    ),
    (
        "agenda",
        ["add cake to the party list"],
        "which lists do I have?",
        {"answer_has": ["You have 1 list", "party: 1 entry"]},
    ),
    # Days of a month, and hours of a day
    *(
        (
            "agenda",
            ["remind me of the fair on 5 June at 10", BANK],
            say,
            {"answer_has": ["fair"], "answer_lacks": ["bank"]},
        )
        for say in ("what do I have in June", "was hab ich im Juni", "j'ai quoi en juin ?", "¿qué tengo en junio?")
    ),
    ("agenda", [CHOIR, BANK], "anything on after 5 tomorrow?", {"answer_has": ["choir"], "answer_lacks": ["bank"]}),
    ("agenda", [CHOIR, BANK], "was steht morgen vor 12 Uhr an?", {"answer_has": ["bank"], "answer_lacks": ["choir"]}),
    ("agenda", ["j'ai une réunion demain à 10h"], "qu'est-ce que j'ai demain ?", {"answer_has": ["10:00", "réunion"]}),
]

MUM = "remind me to call mum on Friday at 10"
MUM_WAITS = reminder("call mum", "2026-03-13T10:00")
ABOUT_WHAT_WAS_SHOWN = [
    ["my dentist appointment is on Thursday at 3 pm", MUM, "what do I have on Thursday?", "move it to Monday"],
    ["mein Zahnarzttermin ist am Donnerstag um 15 Uhr", MUM, "was habe ich am Donnerstag?", "verschieb das auf Montag"],
    [MUM, "My doctor is Dr. Hansen", "who is my doctor?", "forget that"],
    [MUM, "My doctor is Dr. Hansen", "oublie ça"],
    ["my dentist appointment is on Thursday", MUM, "move it to Friday at 10", "no, I meant the dentist"],
    [MUM, "my mum is coming on Sunday", "delete what I said about mum"],
    [MUM, "lösch, was ich über mum gesagt habe"],
    [MUM, "efface ce que j'ai dit sur mum"],
    [MUM, "borra lo que dije de mum"],
]


@pytest.mark.parametrize("said", ABOUT_WHAT_WAS_SHOWN, ids=lambda said: said[-1])
async def test_what_is_about_something_else_takes_no_reminder_away(tmp_path: Path, said: list[str]) -> None:
    """ "It" is what was shown last, and words that were said are not a reminder."""
    row = {"kind": "reminder_change", "given": said[:-1], "say": said[-1], "then": MUM_WAITS}
    before, after = await play(tmp_path / "home", row)
    assert find_faults(row, before, after) == [], after.answer


EVERYTHING = [
    ("add milk to the shopping list", "remind me to call mum tomorrow at 10", "delete everything"),
    ("setz milch auf die einkaufsliste", "erinnere mich morgen um 10 an mama", "lösch alles"),
    ("ajoute du lait à la liste de courses", "rappelle-moi maman demain à 10h", "efface tout"),
    ("añade leche a la lista de la compra", "recuérdame mamá mañana a las 10", "borra todo"),
]


@pytest.mark.parametrize(("todo", "remind", "say"), EVERYTHING, ids=[row[2] for row in EVERYTHING])
async def test_what_would_take_everything_away_asks_of_which_kind(
    tmp_path: Path, todo: str, remind: str, say: str
) -> None:
    before, after = await play(tmp_path / "home", {"given": [todo, remind], "say": say})
    assert "1 reminder and 1 to-do" in after.answer
    assert (before.reminders, before.todos) == (after.reminders, after.todos)
    _, after = await play(tmp_path / "other", {"given": [todo, remind, say], "say": "delete all reminders"})
    assert after.reminders == ()
    assert len(after.todos) == 1


LEFT_OUT = [
    ("remind me every monday at 9 to water the plants", "skip next monday"),
    ("remind me every monday at 9 to water the plants", "skip it next week"),
    ("erinnere mich jeden montag um 9 an die blumen", "lass nächsten montag aus"),
    ("rappelle-moi tous les lundis à 9h d'arroser", "saute lundi prochain"),
    ("recuérdame cada lunes a las 9 regar las plantas", "sáltate el próximo lunes"),
]


@pytest.mark.parametrize(("given", "say"), LEFT_OUT, ids=[row[1] for row in LEFT_OUT])
async def test_what_comes_every_week_is_left_out_once(tmp_path: Path, given: str, say: str) -> None:
    row = {
        "kind": "reminder_change",
        "given": [given, "remind me to pay Ines on Monday at 8"],
        "say": say,
        "then": {
            "reminders": [
                {"text": [], "due": "2026-03-23T09:00", "repeat": "weekly:MO"},
                {"text": ["Ines"], "due": "2026-03-16T08:00", "repeat": None},
            ]
        },
    }
    before, after = await play(tmp_path / "home", row)
    assert find_faults(row, before, after) == [], after.answer


@pytest.mark.parametrize("say", ["delete it", "cancel that", "lösch das", "annule-le", "bórralo"])
async def test_it_is_the_reminder_that_was_shown(tmp_path: Path, say: str) -> None:
    given = [MUM, "what reminders do I have?"]
    row = {"kind": "reminder_change", "given": given, "say": say, "then": {"reminders": []}}
    before, after = await play(tmp_path / "home", row)
    assert find_faults(row, before, after) == [], after.answer


@pytest.mark.parametrize(("kind", "given", "say", "then"), ROWS, ids=[row[2] for row in ROWS])
async def test_it_does_what_was_said(
    tmp_path: Path, kind: str, given: list[str], say: str, then: dict[str, Any]
) -> None:
    row = {"kind": kind, "given": given, "say": say, "then": then}
    before, after = await play(tmp_path / "home", row)
    assert find_faults(row, before, after) == [], after.answer


async def test_what_was_taken_away_together_comes_back_together_and_repeats_as_before(tmp_path: Path) -> None:
    given = [
        "remind me to call Ines tomorrow at 9",
        "remind me to pay the rent every month on the 1st at 8",
        "move the rent to 10",
        "delete all my reminders",
    ]
    then = {
        "reminders": [
            {"text": ["Ines"], "due": "2026-03-12T09:00", "repeat": None},
            {"text": ["rent"], "due": "2026-04-01T10:00", "repeat": "monthly:1"},
        ]
    }
    row = {"kind": "reminder_change", "given": given, "say": "undo that", "then": then}
    before, after = await play(tmp_path / "home", row)
    assert before.reminders == ()
    assert find_faults(row, before, after) == [], after.answer
