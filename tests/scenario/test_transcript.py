"""The conversation in README.md is what the program says."""

from __future__ import annotations

from pathlib import Path

from docs.transcript import conversation, shown, undated


def test_the_readme_shows_what_the_program_says(tmp_path: Path) -> None:
    assert undated(shown()) == undated(conversation(tmp_path / "home"))
