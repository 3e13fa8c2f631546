"""How a time zone is read from the settings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from zoneinfo import available_timezones

import pytest

from assistant.core.text import fold_text
from assistant.settings.home import Home
from assistant.settings.layers import parse_setting_text
from assistant.settings.settings import load_settings
from assistant.settings.validators import CITIES_FILE
from tests.unit.test_settings import refused


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize("written", ["europe/oslo", "EUROPE/OSLO", "Europe/Oslo"])
def test_a_time_zone_is_understood_in_any_case_and_spelled_as_the_database_does(home: Home, written: str) -> None:
    home.config.write_text(f'[home]\ntimezone = "{written}"\n')
    assert load_settings(home, {}).values.home.timezone == load_settings(home, {}).zone.key == "Europe/Oslo"
    assert parse_setting_text("home.timezone", written) == "Europe/Oslo"


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("oslo", '"Europe/Oslo"'),
        ("new york", '"America/New_York"'),
        ("Europ/Oslo", '"Europe/Oslo"'),
        ("Berln", '"Europe/Berlin"'),
        ("Munich", '"Europe/Berlin"'),
    ],
)
def test_a_time_zone_that_there_is_not_is_refused_with_the_names_that_are_nearest(
    home: Home, written: str, near: str
) -> None:
    told = refused(home, f'[home]\ntimezone = "{written}"\n').splitlines()[0]
    assert f'`home.timezone` is "{written}"; allowed: a time zone by a large city in it' in told
    assert near in told.partition("Did you mean ")[2]


def test_a_time_zone_that_is_like_none_is_refused_without_a_guess(home: Home) -> None:
    assert "Did you mean" not in refused(home, '[home]\ntimezone = "../../etc/passwd"\n')


def test_each_city_has_a_zone_of_the_database_and_only_one() -> None:
    zones = tomllib.loads(CITIES_FILE.read_text(encoding="utf-8"))
    assert zones.keys() <= available_timezones()
    cities = [city for names in zones.values() for city in names.split()]
    assert len(cities) == len(set(cities)) and all(city == fold_text(city) for city in cities)
