"""The day that a sentence names, in four languages."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from assistant.agenda.dated_phrases import find_day

SAID_ON = date(2026, 11, 23)  # a Monday

ONCE = [
    ("Dentist on Tuesday at 10", "2026-11-24", "10:00"),
    ("I have the dentist tomorrow at 3 in the afternoon", "2026-11-24", "15:00"),
    ("The exam is on 3 June 2027", "2027-06-03", ""),
    ("Mum lands on December 4th at 18:45.", "2026-12-04", "18:45"),
    ("The plumber comes next Friday at 8am", "2026-11-27", "08:00"),
    ("Dinner with Ada tonight at 7", "2026-11-23", "19:00"),
    ("Zahnarzt am Dienstag um 10 Uhr", "2026-11-24", "10:00"),
    ("Morgen um halb acht kommt der Klempner", "2026-11-24", "07:30"),
    ("Elternabend am 3. Dezember um 19:30 Uhr", "2026-12-03", "19:30"),
    ("Die Prüfung ist am 14.12.2026", "2026-12-14", ""),
    ("Freitagabend um 8 essen wir bei Anna", "2026-11-27", "20:00"),
    ("Übermorgen fahre ich nach Bonn", "2026-11-25", ""),
    ("J'ai rendez-vous chez le dentiste mardi à 10h", "2026-11-24", "10:00"),
    ("Le concert est le 12 décembre à 20h30", "2026-12-12", "20:30"),
    ("Demain je vois Paul", "2026-11-24", ""),
    ("Tengo dentista el martes a las 10", "2026-11-24", "10:00"),
    ("La reunión es el 3 de diciembre a las 16:00", "2026-12-03", "16:00"),
    ("Mañana viene Luis por la mañana", "2026-11-24", ""),
    ("The invoice is due on 2027-01-15", "2027-01-15", ""),
    ("The dentist (24 November 2026), on Tuesday at 10:15", "2026-11-24", "10:15"),
    ("Dinner on Monday", "2026-11-30", ""),
    ("They moved the exam to 3 June", "2027-06-03", ""),
]


@pytest.mark.parametrize(("sentence", "day", "time"), ONCE)
def test_a_day_and_its_hour_are_found(sentence: str, day: str, time: str) -> None:
    found = find_day(sentence, SAID_ON)
    assert (str(found.day), found.time, found.yearly) == (day, time, False)


SEVERAL = [
    ("I am away from 10 to 24 August", "2027-08-10", "2027-08-24"),
    ("I am away from the 10th to the 24th of August", "2027-08-10", "2027-08-24"),
    ("Rome, December 10 to 14", "2026-12-10", "2026-12-14"),
    ("We are in Rome between 10 and 14 December", "2026-12-10", "2026-12-14"),
    ("The fair is 30 November - 2 December", "2026-11-30", "2026-12-02"),
    ("Skiing from December 28th to January 3rd", "2026-12-28", "2027-01-03"),
    ("Holidays 2026-12-20 to 2027-01-06", "2026-12-20", "2027-01-06"),
    ("Ada stays from Thursday to Sunday", "2026-11-26", "2026-11-29"),
    ("Ada stays from tomorrow to Sunday", "2026-11-24", "2026-11-29"),
    ("Wir sind vom 3. bis 10. August in Rom", "2027-08-03", "2027-08-10"),
    ("Urlaub vom 3. bis zum 10. August", "2027-08-03", "2027-08-10"),
    ("Urlaub vom 20.12. bis 6.1.2027", "2026-12-20", "2027-01-06"),
    ("Von Donnerstag bis Sonntag ist Ada hier", "2026-11-26", "2026-11-29"),
    ("Zwischen dem 3. und dem 10. August ist zu", "2027-08-03", "2027-08-10"),
    ("Nous sommes à Rome du 3 au 10 août", "2027-08-03", "2027-08-10"),
    ("Estamos en Roma del 3 al 10 de agosto", "2027-08-03", "2027-08-10"),
]


@pytest.mark.parametrize(("sentence", "first", "last"), SEVERAL)
def test_several_days_in_a_row_are_all_of_them(sentence: str, first: str, last: str) -> None:
    found = find_day(sentence, SAID_ON)
    assert (str(found.day), str(found.until)) == (first, last)
    on = [day for day in range(400) if found.is_on(SAID_ON + timedelta(day), SAID_ON)]
    assert len(on) == (date.fromisoformat(last) - date.fromisoformat(first)).days + 1


@pytest.mark.parametrize(
    "sentence",
    [
        "Tuesday is my favourite day",
        "I hate Mondays",
        "I love Friday",
        "Thursday comes after Wednesday",
        "Dienstag ist mein Lieblingstag",
        "Ich mag Montage, ich hasse Dienstag",
        "Le mardi est mon jour préféré",
        "El martes es mi día favorito",
        "Me gustan los viernes",
    ],
)
def test_what_is_said_of_the_days_themselves_is_no_date(sentence: str) -> None:
    assert not find_day(sentence, SAID_ON).names_day


@pytest.mark.parametrize(
    "sentence",
    [
        "Anna's birthday is 3 May",
        "Our anniversary is on May 3rd",
        "Anna hat am 3. Mai Geburtstag",
        "L'anniversaire d'Anna est le 3 mai",
        "El cumpleaños de Anna es el 3 de mayo",
    ],
)
def test_birthdays_come_each_year(sentence: str) -> None:
    found = find_day(sentence, SAID_ON)
    assert [found.is_on(date(year, 5, 3), SAID_ON) for year in (2027, 2031)] == [True, True]
    assert not found.is_on(date(2027, 5, 4), SAID_ON)


def test_who_was_born_on_the_29th_of_february_has_a_birthday_each_year() -> None:
    found = find_day("Bo's birthday is 29 February", SAID_ON)
    assert [found.is_on(day, SAID_ON) for day in (date(2027, 2, 28), date(2028, 2, 28), date(2028, 2, 29))] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "The trash goes out every Tuesday",
        "I take the trash out on Tuesdays",
        "Der Müll kommt dienstags raus",
        "Jeden Dienstag ist Chor",
        "Les poubelles sortent tous les mardis",
        "La basura sale los martes",
    ],
)
def test_what_is_each_week_comes_each_week(sentence: str) -> None:
    found = find_day(sentence, SAID_ON)
    assert [day for day in range(23, 31) if found.is_on(date(2026, 11, day), SAID_ON)] == [24]


@pytest.mark.parametrize(
    "sentence",
    [
        "The rent is due on the 1st of each month",
        "Die Miete ist am 1. jeden Monats fällig",
        "Le loyer est dû le 1er de chaque mois",
        "El alquiler vence el 1 de cada mes",
    ],
)
def test_what_is_each_month_comes_each_month(sentence: str) -> None:
    found = find_day(sentence, SAID_ON)
    assert [found.is_on(date(2026, 12, day), SAID_ON) for day in (1, 2)] == [True, False]
    assert found.repeats == "every month"


@pytest.mark.parametrize(
    "sentence",
    [
        "I saw Anna on Tuesday",
        "Mum turned 70 on May 9",
        "Last Friday was fun",
        "Letzten Freitag",
        "Ich habe am Dienstag Anna besucht und viel gelacht, das hat gefreut",
        "Guten Morgen!",
        "El viernes pasado",
        "It costs 10.30 and has 4 doors",
        "I may come",
        "Yesterday at 10",
        "version 3.5.2",
        "x" * 20_000 + " 1",
        "12 " * 20_000,
    ],
)
def test_what_is_past_or_no_day_names_none(sentence: str) -> None:
    assert not find_day(sentence, SAID_ON).names_day


@pytest.mark.parametrize(
    ("sentence", "first", "last"),
    [
        ("Am 3. und 4. Mai ist Markt.", "2027-05-03", "2027-05-04"),
        ("We are in Rome on May 3rd and 4th.", "2027-05-03", "2027-05-04"),
        ("Je suis à Lyon les 3 et 4 mai.", "2027-05-03", "2027-05-04"),
        ("Estamos fuera el 3 y 4 de mayo.", "2027-05-03", "2027-05-04"),
    ],
)
def test_two_days_that_follow_each_other_are_both_meant(sentence: str, first: str, last: str) -> None:
    found = find_day(sentence, SAID_ON)
    assert (str(found.day), str(found.until)) == (first, last)
