"""Every command of docs/archive.md does what the page says, run in order in a home with an archive."""

from __future__ import annotations

from pathlib import Path

from keyring.backends.fail import Keyring as NoKeyring

from assistant.store.database import Database
from assistant.store.schema.character import character_migrations
from tests.archive_home import archive_of
from tests.kept_keyring import in_use
from tests.scenario.docs_pages import page, run, shell_lines
from tests.store_home import NOW, StoreHome


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = StoreHome(tmp_path / "home").open()
    home.say("the booking number is QX-7781", "noted")
    archive_of(home).store("main", 1, NOW, handover="", summary="", reason="manual")
    home.close()
    Database.open(home.path / "character.db", character_migrations, NOW).close()
    lines = shell_lines(page("archive.md"))
    assert len(lines) >= 7
    with in_use(NoKeyring()):  # type: ignore[no-untyped-call]
        printed = {line: run(line, home.path) for line in lines}
    assert "QX-7781" in printed["assistant archive show main"]
    assert printed["assistant archive verify"].endswith("All is well.\n")
    assert printed["assistant archive restore main 1"].startswith("Nothing is missing")
