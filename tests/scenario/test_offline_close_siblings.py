"""What a table of close siblings and one of longer voices showed that offline mode misread, each by its class."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.utterances import after, listed, waiting


@pytest.mark.parametrize(
    ("given", "say", "due"),
    [
        ("add: book the flights", "flights by the end of the week", "2026-03-15"),
        ("add: book the flights by friday", "flights need doing today", "2026-03-11"),
        ("ajoute : réserver les vols", "les vols pour vendredi", "2026-03-13"),
        ("ajoute : réserver les vols pour vendredi", "les vols faut les faire aujourd'hui", "2026-03-11"),
    ],
)
async def test_by_when_a_to_do_is_to_be_done_does_not_tick_it_off(
    tmp_path: Path, given: str, say: str, due: str
) -> None:
    [(_, _, until, done)] = listed(await after(tmp_path, given, say))
    assert (until, done) == (due, False)


@pytest.mark.parametrize("say", ["l'alarme à 6h20", "mon alarme à 6h20", "le réveil à 6h20"])
async def test_the_alarm_that_is_there_is_moved_and_no_other_set(tmp_path: Path, say: str) -> None:
    outcome = await after(tmp_path, "mets une alarme demain à 6h", say)
    assert [due for _, due in waiting(outcome)] == ["2026-03-12T06:20"]


@pytest.mark.parametrize("say", ["les deux une heure plus tard", "both an hour later"])
async def test_both_are_so_much_later(tmp_path: Path, say: str) -> None:
    given = ("rappelle-moi le véto demain à 15h", "rappelle-moi le kiné demain à 16h")
    assert [due[11:] for _, due in waiting(await after(tmp_path, *given, say))] == ["17:00", "16:00"]


async def test_an_hour_and_a_half_is_no_half_past(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "rappelle-moi le cours jeudi à 19h", "repousse le cours d'une heure et demie")
    assert waiting(outcome) == [("cours", "2026-03-12T20:30")]


async def test_a_part_of_the_day_keeps_the_hour_that_is_within_it(tmp_path: Path) -> None:
    given = "remind me every tuesday at 8 pm to put the bins out"
    outcome = await after(tmp_path, given, "the bins are on monday evening now")
    assert waiting(outcome) == [("put the bins out", "2026-03-16T20:00")]


async def test_tea_and_maize_are_things_without_their_accents(tmp_path: Path) -> None:
    outcome = await after(tmp_path / "tea", "rappelle-moi d'acheter du thé demain à 8h")
    assert waiting(outcome) == [("acheter du thé", "2026-03-12T08:00")]
    given = ("ajoute maïs à la liste de courses", "ajoute riz à la liste de courses")
    outcome = await after(tmp_path / "maize", *given, "j'ai tout pris sauf le maïs")
    assert listed(outcome) == [("maïs", "courses", "", False), ("riz", "courses", "", True)]


async def test_a_list_may_be_called_like_a_verb(tmp_path: Path) -> None:
    assert listed(await after(tmp_path, "ajoute du vernis à ma liste atelier")) == [("vernis", "atelier", "", False)]


async def test_what_is_kept_does_not_come_in_the_place_of_what_goes(tmp_path: Path) -> None:
    given = ("remind me to let the sweep in on monday at 8 am", "remind me to pay the decorator on monday at 10 am")
    outcome = await after(tmp_path, *given, "don't bother with the sweep, but the decorator stays")
    assert waiting(outcome) == [("pay the decorator", "2026-03-16T10:00")]


async def test_why_a_list_goes_is_not_put_on_it(tmp_path: Path) -> None:
    given = ("add goggles to my packing list", "add fins to my packing list")
    assert listed(await after(tmp_path, *given, "trip's cancelled, get rid of the packing list")) == []


async def test_hay_behind_an_english_article_is_a_thing(tmp_path: Path) -> None:
    given = ("remind me to turn the hay on saturday at 10 am", "remind me to fetch the saddle on saturday at 3 pm")
    outcome = await after(tmp_path, *given, "move the hay to monday at 8 am")
    assert waiting(outcome) == [("fetch the saddle", "2026-03-14T15:00"), ("turn the hay", "2026-03-16T08:00")]


async def test_a_habit_that_is_named_by_its_day_ends(tmp_path: Path) -> None:
    given = "rappelle-moi de noter mes heures tous les vendredis à 16h"
    assert waiting(await after(tmp_path, given, "plus la peine de me rappeler mes heures le vendredi")) == []


async def test_no_date_for_a_thing_does_not_take_it_away(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "ajoute : réparer le toit pour dimanche", "plus de date limite pour le toit")
    assert listed(outcome) == [("réparer le toit", "", "", False)]
