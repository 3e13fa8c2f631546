"""Every command of docs/security.md does what the page says. That the tests it names exist is checked with the names of
all pages (`docs/check_names.py`)."""

from __future__ import annotations

import re
from pathlib import Path

from keyring.backends.fail import Keyring as NoKeyring

from assistant.settings.home import Home
from assistant.settings.settings import settings_problems
from tests.support.docs_pages import read_page, run_shell_line, shell_lines
from tests.support.keyring import use_keyring

PAGE = read_page("security.md")


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    lines = shell_lines(PAGE)
    assert len(lines) >= 11
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        run_shell_line('assistant chat -m "the booking number is QX-7781"', home.path)
        printed = {line: run_shell_line(line, home.path) for line in lines}
    assert "All is well." in printed["assistant doctor"]
    assert printed["assistant verify"].endswith("All is well.\n")
    assert settings_problems(home, home.config.read_text(encoding="utf-8")) == ()


def test_every_row_of_what_leaves_names_a_setting() -> None:
    table = PAGE.partition("| What | Where to |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(table) >= 9
    # The owner's other programs ask: it is set up in theirs.
    for row in (row for row in table if "assistant mcp serve" not in row):
        assert re.search(r"`[a-z_]+\.[a-z_]+`", row.rsplit("|", 2)[1]), row
