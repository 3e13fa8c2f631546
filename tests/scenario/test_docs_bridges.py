"""Every command of docs/bridges.md does what the page says: run in order, in one home, beside a strict Bot API."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from keyring.backends.fail import Keyring as NoKeyring

from assistant.core.calendar import utc_now
from assistant.core.records import OutgoingMessage
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.wire.stores import Stores
from tests.support.command_line import ROOT, TELEGRAM_SET_UP, run_bridge_command, run_in_process
from tests.support.keyring import use_keyring
from tests.support.synapse import Synapse
from tests.support.telegram_bridge import ThreadedTelegram

PAGE = ROOT / "docs" / "bridges.md"
BLOCK = re.compile(r"^```\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture
def desk() -> Iterator[ThreadedTelegram]:
    with ThreadedTelegram() as made, use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        yield made


def stuck(home: Home) -> int:
    """The number of a delivery that may or may not have arrived."""
    stores = Stores(load_settings(home, {}), utc_now())
    try:
        item = stores.outbox.push(
            OutgoingMessage(str(uuid4()), "main", "owner", "telegram", "1001", "words"), utc_now()
        )
        stores.outbox.set_state(item.id, "ambiguous", utc_now(), error="it broke off")
        return item.id
    finally:
        stores.close()


def typed(line: str, home: Home, desk: ThreadedTelegram, server: Synapse) -> tuple[list[str], str]:
    """The words of a line after `assistant`, and what a person, or the pipe, gives it."""
    words = shlex.split(line.rpartition(" | ")[2])[1:]
    if words == ["bridge", "add", "matrix"]:
        bot, password = server.register("bot")
        return [*words, "--no-wait"], f"{bot}\n{server.url}\n@ada:test.example\npassword\n{password}\n"
    if words[:1] == ["deliveries"] and words[2:]:
        words[2] = str(stuck(home))
    return words, f"{desk.token}\n"


def test_every_command_of_the_page_works(tmp_path: Path, desk: ThreadedTelegram, homeserver: Synapse) -> None:
    home = Home(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    home.config.write_text(f'[telegram]\nbase_url = "{desk.url}"\n[model]\nprovider = "offline"\n')
    assert run_in_process(home.path, "people", "link", "telegram", "1001", **TELEGRAM_SET_UP).returncode == 0
    desk.say("hello")
    lines = [line for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")) for line in block.splitlines()]
    assert len(lines) >= 12
    for line in lines:
        words, said = typed(line, home, desk, homeserver)
        done = run_bridge_command(home, *words, said=said)
        assert done.returncode == 0, f"{line}: {done.out}{done.err}"
        assert ("Invite @bot" in done.out) is ("matrix" in words)
    assert "telegram" not in home.config.read_text().replace("[telegram]", "")
