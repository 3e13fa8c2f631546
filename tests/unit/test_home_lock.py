"""The lock of a data folder: what is left where there was no data folder, and who may hold it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from assistant.service.home_lock import home_lock, is_home_served


@pytest.mark.parametrize("is_there", [True, False], ids=["an empty folder", "no folder"])
def test_what_fails_where_nothing_was_leaves_nothing(tmp_path: Path, is_there: bool) -> None:
    home = tmp_path / "home"
    if is_there:
        home.mkdir()
    with pytest.raises(UsageError), home_lock(home):
        raise UsageError("There is nothing to do.")
    assert home.exists() == is_there
    assert not is_there or not list(home.iterdir())
    with home_lock(home):
        assert is_home_served(home)
    assert (home / "run" / "lock").exists()


def test_what_fails_where_something_was_or_was_made_keeps_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(UsageError), home_lock(home):
        (home / "config.toml").touch()
        raise UsageError("It failed later.")
    assert (home / "config.toml").exists()
    with home_lock(home):
        pass
    with pytest.raises(UsageError), home_lock(home):
        raise UsageError("It failed again.")
    assert (home / "run" / "lock").exists()
