"""Every command of docs/archive.md does what the page says, run in order in a home with an archive."""

from __future__ import annotations

from pathlib import Path

from keyring.backends.fail import Keyring as NoKeyring

from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from tests.support.archive_storage import open_archive
from tests.support.docs_pages import read_page, run_shell_line, shell_lines
from tests.support.keyring import use_keyring
from tests.support.store_home import NOW, StoreHome


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = StoreHome(tmp_path / "home").open()
    home.say("the booking number is QX-7781", "noted")
    open_archive(home).store("main", 1, NOW, handover="", summary="", reason="manual")
    home.close()
    Database.open(home.path / "character.db", character_migrations, NOW).close()
    lines = shell_lines(read_page("archive.md"))
    assert len(lines) >= 7
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        printed = {line: run_shell_line(line, home.path) for line in lines}
    assert "QX-7781" in printed["assistant archive show main"]
    assert printed["assistant archive verify"].endswith("All is well.\n")
    assert printed["assistant archive restore main 1"].startswith("Nothing is missing")
