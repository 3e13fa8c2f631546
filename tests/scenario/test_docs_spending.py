"""Every command of docs/spending.md does what the page says, and the page knows every kind of call and every share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

from keyring.backends.fail import Keyring as NoKeyring

from assistant.core.model_api import BACKGROUND_PURPOSES, CallPurpose
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from tests.support.docs_pages import read_page, run_shell_line, shell_lines
from tests.support.keyring import use_keyring
from tests.support.store_home import NOW, StoreHome

PAGE = read_page("spending.md")


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    StoreHome(home).open().close()
    Database.open(home / "character.db", character_migrations, NOW).close()
    lines = shell_lines(PAGE)
    assert len(lines) >= 8
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        printed = {line: run_shell_line(line, home) for line in lines}
    assert printed["assistant config set budget.daily_usd 3"].endswith(" -> 3\n")
    assert "of $3.00" in printed["assistant usage"] and "of $40.00" in printed["assistant usage"]
    told = json.loads(printed["assistant usage --by session --json"])
    assert [cap["most"] for cap in told["background_caps"]] == [1.2, 16.0]


def test_the_page_lists_every_kind_and_which_ones_are_the_background() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (yes)? ?\|$", PAGE, re.MULTILINE)
    assert dict(rows) == {kind: "yes" if kind in BACKGROUND_PURPOSES else "" for kind in get_args(CallPurpose)}
