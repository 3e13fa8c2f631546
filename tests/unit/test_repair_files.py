"""Putting in place what a repair has made: what was damaged is kept, whenever it is cut off."""

from __future__ import annotations

import resource
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from assistant.store.home.repair_files import finish_interrupted_repair, made_databases, put_in_place

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder with a damaged database, and a rebuilt one that is yet to be put in place."""
    home = tmp_path / "home"
    made_databases(home).mkdir(parents=True)
    (home / "script.db").write_bytes(b"damaged")
    (made_databases(home) / "script.db").write_bytes(b"rebuilt")
    return home


def test_a_rebuilt_database_is_put_in_place_and_the_damaged_one_is_kept(home: Path) -> None:
    put_in_place(home, NOW)
    assert (home / "script.db").read_bytes() == b"rebuilt"
    assert (home / "before-repair-20260301T090000Z/script.db").read_bytes() == b"damaged"
    assert not finish_interrupted_repair(home)


def test_nothing_is_put_in_place_by_a_repair_that_was_cut_off_before_it_said_where_damaged_files_go(home: Path) -> None:
    """Its file was there and empty: the next start then replaced the damaged database and kept nothing of it."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, usual[1]))
    try:
        with pytest.raises(StoreError, match="was not repaired"):
            put_in_place(home, NOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert not finish_interrupted_repair(home)
    assert (home / "script.db").read_bytes() == b"damaged"
