"""Every command of docs/setup.md does what the page says: run in order, in a home of its own, within this process."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from keyring.backends.fail import Keyring as NoKeyring

from tests.support.docs_pages import read_page, run_shell_line, shell_lines
from tests.support.keyring import use_keyring


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    lines = shell_lines(read_page("setup.md"))
    assert len(lines) >= 12
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        printed = {line: run_shell_line(line, home) for line in lines}
    assert printed["assistant config unset context.target"] == "context.target: 0.25 -> 0.3 (the default)\n"
    assert printed["assistant config get context.target"] == "0.3\n"
    assert "The settings are fine." in printed["assistant config check"]
    assert re.search(r"^archive\.key +secrets\.toml$", printed["assistant config secret list"], re.MULTILINE)
    assert "called Ada." in (home / "PERSONA.md").read_text()


@pytest.mark.parametrize("page", ["brief", "commands", "files", "health", "security", "spending", "telegram", "voice"])
def test_each_setting_that_a_page_changes_is_taken_in_the_order_of_the_page(page: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    lines = re.findall(r"^assistant config set .*$", read_page(f"{page}.md"), re.MULTILINE)
    assert lines
    for line in lines:
        assert "->" in run_shell_line(line, home)
