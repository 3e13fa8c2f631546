"""What is said of somebody, of a list and of a day that comes later, where the rules of offline mode once changed
something that was not meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.utterances import after, listed, waiting

PILL = "remind me every day at 9 pm to take the pill"


@pytest.mark.parametrize(
    ("given", "say", "there"),
    [
        (
            "remind me to visit Marek on friday at 3 pm",
            "Marek now works fridays at the bakery until three",
            [("visit Marek", "2026-03-13T15:00")],
        ),
        (
            "remind me to ring Aunt Ruth on saturday at 11 am",
            "Aunt Ruth volunteers on saturdays until four now",
            [("ring Aunt Ruth", "2026-03-14T11:00")],
        ),
        (
            "Erinnere mich am Freitag um 15 Uhr an Marek",
            "Marek arbeitet jetzt freitags bis drei in der Bäckerei",
            [("Marek", "2026-03-13T15:00")],
        ),
        (
            "rappelle-moi d'appeler Marc vendredi à 15h",
            "Marc travaille maintenant le vendredi jusqu'à 17h",
            [("appeler Marc", "2026-03-13T15:00")],
        ),
        (
            "recuérdame llamar a Marta el viernes a las 15:00",
            "Marta trabaja ahora los viernes hasta las tres",
            [("llamar a Marta", "2026-03-13T15:00")],
        ),
    ],
)
async def test_when_somebody_works_moves_no_reminder_that_names_them(
    tmp_path: Path, given: str, say: str, there: list[tuple[str, str]]
) -> None:
    outcome = await after(tmp_path, given, say)
    assert waiting(outcome) == there
    assert "is changed" not in outcome.answer


@pytest.mark.parametrize(
    ("given", "say", "text"),
    [
        (
            "remind me to take in the washing today at 4 pm",
            "looks like rain, so tell me about the washing at 2 already",
            "take in the washing",
        ),
        (
            "Erinnere mich heute um 16 Uhr an die Wäsche",
            "sieht nach Regen aus, also sag mir schon um 14 Uhr wegen der Wäsche Bescheid",
            "Wäsche",
        ),
    ],
)
async def test_what_is_to_be_told_already_at_another_hour_is_moved(
    tmp_path: Path, given: str, say: str, text: str
) -> None:
    assert waiting(await after(tmp_path, given, say)) == [(text, "2026-03-11T14:00")]


@pytest.mark.parametrize(
    ("given", "say", "thing"),
    [
        ("add socks to my packing list", "packing list, what's on there so far", "socks"),
        ("add socks to my packing list", "my packing list: what have we got", "socks"),
        ("Setz Kerzen auf die Partyliste", "Partyliste, was steht da drauf", "Kerzen"),
        ("ajoute des bougies à la liste fête", "liste fête, y a quoi dessus", "bougies"),
    ],
)
async def test_a_list_that_is_named_before_a_question_is_shown(
    tmp_path: Path, given: str, say: str, thing: str
) -> None:
    outcome = await after(tmp_path, given, say)
    assert len(outcome.todos) == 1 and thing in outcome.answer


@pytest.mark.parametrize("given", [(), ("add order the cake to my to-do list",)])
@pytest.mark.parametrize(
    "say",
    [
        "Sue offered to order the cake, one less thing on my list",
        "Sue's ordered the cake for me, that's one thing less for my list",
    ],
)
async def test_one_thing_less_on_a_list_adds_nothing(tmp_path: Path, given: tuple[str, ...], say: str) -> None:
    assert len((await after(tmp_path, *given, say)).todos) == len(given)


@pytest.mark.parametrize(
    ("given", "say", "text"),
    [
        (PILL, "skip tomorrow's pill", "take the pill"),
        (PILL, "no pill tomorrow", "take the pill"),
        ("rappelle-moi tous les jours à 21h de prendre le cachet", "saute le cachet de demain", "prendre le cachet"),
    ],
)
async def test_tomorrows_time_is_left_out_and_todays_stays(tmp_path: Path, given: str, say: str, text: str) -> None:
    outcome = await after(tmp_path, given, say)
    assert waiting(outcome) == [(text, "2026-03-11T21:00"), (text, "2026-03-13T21:00")]
    assert [
        job.spec is not None and "DAILY" in str(job.spec) for job in sorted(outcome.reminders, key=lambda j: j.id)
    ] == [
        True,
        False,
    ]


async def test_a_time_that_was_left_out_comes_again_when_that_is_taken_back(tmp_path: Path) -> None:
    outcome = await after(tmp_path, PILL, "skip tomorrow's pill", "undo that")
    assert waiting(outcome) == [("take the pill", "2026-03-11T21:00")]
    assert "DAILY" in str(outcome.reminders[0].spec)


async def test_a_weekly_time_after_the_next_is_left_out(tmp_path: Path) -> None:
    given = "remind me every friday at 6 pm to put the bins out"
    outcome = await after(tmp_path, given, "skip the bins on friday 20 march")
    assert waiting(outcome) == [("put the bins out", "2026-03-13T18:00"), ("put the bins out", "2026-03-27T18:00")]


@pytest.mark.parametrize(
    ("say", "text"),
    [
        ("gran's tablets run out on the 19th, so on the 17th at ten tell me to ring the chemist", "ring the chemist"),
        (
            "les cachets de mamie finissent le 19, donc le 17 à 10h dis-moi d'appeler la pharmacie",
            "appeler la pharmacie",
        ),
    ],
)
async def test_the_time_before_the_verb_of_the_order_is_that_of_the_reminder(
    tmp_path: Path, say: str, text: str
) -> None:
    assert waiting(await after(tmp_path, say)) == [(text, "2026-03-17T10:00")]


@pytest.mark.parametrize(
    ("given", "say"),
    [
        (("almonds", "cornflour"), "we're fine for cornflour after all, cross it off"),
        (("almonds", "oats"), "turns out we've got plenty of oats, tick it off the shopping"),
    ],
)
async def test_what_there_is_enough_of_comes_off_its_list_and_is_not_done(
    tmp_path: Path, given: tuple[str, ...], say: str
) -> None:
    outcome = await after(tmp_path, *(f"add {thing} to my shopping list" for thing in given), say)
    assert listed(outcome) == [("almonds", "shopping", "", False)]


async def test_what_there_is_hardly_any_of_is_put_on_the_list(tmp_path: Path) -> None:
    say = "we've run out of foil and there's hardly any rice left, both on the shopping list please"
    assert [todo.text for todo in (await after(tmp_path, say)).todos] == ["foil", "rice"]


@pytest.mark.parametrize(
    ("given", "say", "there"),
    [
        (
            "remind me to call the vet on Friday at 9 am",
            "vet's shut fridays it turns out, i'll call thursday instead, same time",
            [("call the vet", "2026-03-12T09:00")],
        ),
        (
            "remind me every Saturday at 9 am to clean the fish tank",
            "we're away this weekend so no fish tank",
            [("clean the fish tank", "2026-03-21T09:00")],
        ),
        (
            "remind me to collect Nan on Friday at 3 pm",
            "nan's train gets in an hour later than i thought, shift her pick-up to four",
            [("collect Nan", "2026-03-13T16:00")],
        ),
        (
            "remind me about the allotment meeting on Thursday at 7 pm",
            "the allotment meeting's been put back to the following thursday, same time",
            [("allotment meeting", "2026-03-19T19:00")],
        ),
        (
            "rappelle-moi tous les jours à 21h de prendre mon fer",
            "le médecin dit que le fer c'est mieux le matin, donc 7h30",
            [("prendre mon fer", "2026-03-12T07:30")],
        ),
        (
            "remind me every day at 8 am to do my knee exercises",
            "give the knee exercises a rest till monday",
            [("do my knee exercises", "2026-03-16T08:00")],
        ),
    ],
)
async def test_a_reminder_is_moved_by_what_is_said_beside_its_reason(
    tmp_path: Path, given: str, say: str, there: list[tuple[str, str]]
) -> None:
    assert waiting(await after(tmp_path, given, say)) == there


@pytest.mark.parametrize(
    ("given", "say"),
    [
        (
            ("add order the hinges to my to-do list", "mark order the hinges as done"),
            "spoke too soon about the hinges, they still need ordering",
        ),
        (
            ("ajoute commander les charnières à ma liste de tâches", "marque commander les charnières comme fait"),
            "les charnières sont jamais arrivées, remets-les dans les choses à faire",
        ),
    ],
)
async def test_what_was_ticked_off_too_soon_is_open_again(tmp_path: Path, given: tuple[str, ...], say: str) -> None:
    assert [done for *_, done in listed(await after(tmp_path, *given, say))] == [False]


async def test_one_more_for_my_list_is_put_there(tmp_path: Path) -> None:
    say = "got to have the tax form in by the 31st so that's one for my to-dos"
    assert listed(await after(tmp_path, say)) == [("have the tax form in", "", "2026-03-31", False)]


async def test_jobs_that_nobody_got_round_to_are_shown(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "add ring the bank to my to-do list", "which jobs haven't I got round to yet")
    assert "ring the bank" in outcome.answer


async def test_what_was_still_not_done_is_neither_ticked_off_nor_renamed(tmp_path: Path) -> None:
    given = ("add call the registrar to my to-do list", "add pick a font to my to-do list")
    outcome = await after(tmp_path, *given, "still haven't called the registrar but I have picked a font")
    assert listed(outcome) == [("call the registrar", "", "", False), ("pick a font", "", "", True)]


async def test_how_many_things_follow_is_no_thing_and_no_list(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "deux trucs pour le marché : du miel et des noix, sur la liste de courses")
    assert [(text, name) for text, name, *_ in listed(outcome)] == [("miel", "courses"), ("noix", "courses")]


@pytest.mark.parametrize(
    ("given", "say", "there"),
    [
        (
            "remind me about the market on Saturday at 7 am",
            "seven is a bit keen for the market, eight will do",
            "2026-03-14T08:00",
        ),
        (
            "remind me about book club on Thursday at 7 pm",
            "could you swap thursday's book club to the week after",
            "2026-03-19T19:00",
        ),
    ],
)
async def test_an_hour_that_will_do_and_the_week_after_are_the_new_time(
    tmp_path: Path, given: str, say: str, there: str
) -> None:
    assert [due for _, due in waiting(await after(tmp_path, given, say))] == [there]


@pytest.mark.parametrize(
    ("say", "moved_to"),
    [
        ("all my Thursday meetings have been moved to Saturday", "2026-03-14"),
        ("move both of Thursday's appointments to Friday", "2026-03-13"),
        ("die beiden Termine am Donnerstag werden auf Freitag verschoben", "2026-03-13"),
        ("verschieb bitte alle Termine vom Donnerstag auf Samstag", "2026-03-14"),
        ("les deux rendez-vous de jeudi sont décalés à vendredi", "2026-03-13"),
        ("pasa todas las citas del jueves al viernes", "2026-03-13"),
    ],
)
async def test_all_appointments_of_a_day_are_moved_together(tmp_path: Path, say: str, moved_to: str) -> None:
    given = "remind me of the dentist on Thursday at 10 and of the vet on Thursday at 3 pm"
    outcome = await after(tmp_path, given, "remind me of the bins on Wednesday at 7 pm", say)
    assert waiting(outcome) == [
        ("bins", "2026-03-11T19:00"),
        ("dentist", f"{moved_to}T10:00"),
        ("vet", f"{moved_to}T15:00"),
    ]


async def test_what_there_is_to_be_more_of_is_not_taken_away_with_something_else(tmp_path: Path) -> None:
    given = "add tomatoes and basil to my shopping list"
    outcome = await after(tmp_path, given, "grab more tomatoes and lose the basil")
    assert [text for text, *_ in listed(outcome)] == ["tomatoes"]
    assert 'I don\'t understand "grab more tomatoes"' in outcome.answer


@pytest.mark.parametrize("say", ["more tomatoes, no basil", "swap basil for tomatoes", "it's tomatoes not basil"])
async def test_what_is_replaced_by_something_that_is_there_goes(tmp_path: Path, say: str) -> None:
    outcome = await after(tmp_path, "add tomatoes and basil to my shopping list", say)
    assert [text for text, *_ in listed(outcome)] == ["tomatoes"]


async def test_what_is_to_be_kept_stays_where_something_else_goes(tmp_path: Path) -> None:
    outcome = await after(
        tmp_path, "add tomatoes and basil to my shopping list", "keep the tomatoes and lose the basil"
    )
    assert [text for text, *_ in listed(outcome)] == ["tomatoes"]
    assert "understand" not in outcome.answer
