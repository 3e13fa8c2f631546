"""Words that stand in every prompt: a message is pinned once, and what is removed is gone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.checkpoints import Pin
from assistant.core.errors import UsageError
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.store.script.turns import Pins
from tests.support.store_home import NOW

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "character.db"


@pytest.fixture
def pins(path: Path) -> Iterator[Pins]:
    db = Database.open(path, character_migrations, NOW)
    yield Pins(db)
    db.close()


def test_f21_pins_stand_until_they_are_removed(pins: Pins, path: Path) -> None:
    first = pins.add("main", "owner", "Never mail Karin.", "user", 7, NOW)
    second = pins.add("main", "owner", "We speak Norwegian.", "user", None, LATER)
    assert first == Pin(first.id, "main", "owner", "Never mail Karin.", "user", 7, NOW)
    reopened = Database.open(path, character_migrations, LATER)
    assert Pins(reopened).list_pins("main") == [first, second]
    assert Pins(reopened).remove("main", [first.id]) == [first]
    assert Pins(reopened).list_pins("main") == [second]
    reopened.close()


def test_a_message_is_pinned_once_and_keeps_its_pin(pins: Pins) -> None:
    first = pins.add("main", "owner", "as it was", "user", 7, NOW)
    assert pins.add("main", "owner", "edited", "assistant", 7, LATER) == first
    elsewhere = pins.add("branch:1", "owner", "as it was", "user", 7, LATER)
    assert (pins.list_pins("main"), pins.list_pins("branch:1")) == ([first], [elsewhere])


def test_a_text_is_pinned_as_often_as_somebody_pins_it(pins: Pins) -> None:
    assert len({pins.add("main", "owner", "a rule", "user", None, NOW).id for _ in range(2)}) == 2


def test_a_pin_of_another_session_is_out_of_reach(pins: Pins) -> None:
    mine = pins.add("main", "owner", "mine", "user", None, NOW)
    other = pins.add("peer:x:ann", "peer:x:ann", "theirs", "user", None, NOW)
    with pytest.raises(UsageError, match=f"no pin {mine.id}"):
        pins.remove("peer:x:ann", [other.id, mine.id])
    assert (pins.list_pins("main"), pins.list_pins("peer:x:ann")) == ([mine], [other])


def test_where_one_does_not_exist_none_is_removed(pins: Pins) -> None:
    kept = pins.add("main", "owner", "kept", "user", None, NOW)
    with pytest.raises(UsageError, match=r"no pin 98, 99 here\. Nothing was changed"):
        pins.remove("main", [98, kept.id, 99])
    assert pins.list_pins("main") == [kept]
    assert pins.remove("main", [kept.id, kept.id]) == [kept]
    assert pins.remove("main", []) == []


def test_a_number_is_never_given_twice(pins: Pins) -> None:
    gone = pins.add("main", "owner", "gone", "user", None, NOW)
    pins.remove("main", [gone.id])
    assert pins.add("main", "owner", "new", "user", None, NOW).id > gone.id


def test_broken_characters_are_mended(pins: Pins) -> None:
    pinned = pins.add("main", "owner", "half \ud83d", "user", None, NOW)
    assert (pinned.text, pins.list_pins("main")) == ("half \ufffd", [pinned])
