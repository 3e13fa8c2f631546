"""A machine without a folder for temporary files has settings and a data folder like any other."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from assistant.settings.settings import load_settings
from assistant.store.home.guard import remember_home


def test_a_machine_without_a_folder_for_temporary_files_has_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "missing")])
    assert load_settings(None, {"ASSISTANT_HOME": str(tmp_path)}).tiktoken_cache is None
    remember_home(tmp_path / "home", tmp_path / "list")


def test_no_test_makes_a_temporary_folder_that_nothing_removes() -> None:
    folder = Path(__file__).parents[1]
    # `TemporaryDirectory` is gone with its process. The homes of `make crash` are removed by its runner.
    allowed = {folder / "crash" / "homes.py", Path(__file__)}
    assert [path for path in folder.rglob("*.py") if path not in allowed and "mkdtemp" in path.read_text()] == []
