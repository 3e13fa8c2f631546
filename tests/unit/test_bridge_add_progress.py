"""What `assistant bridge add` says while a bridge connects and waits for its owner; the daemon's end is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from assistant.cli.bridge.command import wait_until_connected, wait_until_owner_known
from assistant.cli.link import LinkEvent
from assistant.commands.table import CommandResult
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError
from assistant.core.people import Identity
from assistant.core.records import InboxReceipt
from assistant.settings.settings import Settings, load_settings
from assistant.wire.services import build_pairing
from assistant.wire.stores import Stores

REFUSED = "Telegram does not accept the bot's token."


class BridgeSetupLink:
    """Tells these states of the bridge, one after the other, the last again and again; keeps what it was told."""

    def __init__(self, *states: tuple[str, str]) -> None:
        self._states = list(states)
        self.commands: list[str] = []

    async def status(self) -> Mapping[str, Any]:
        state, error = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        return {"bridges": {"telegram": {"state": state, "error": error}} if state else {}}

    async def run_command(self, text: str, session: str) -> str:
        raise AssertionError(text)

    async def run_argv(self, argv: Sequence[str], session: str, max_seconds: float) -> CommandResult:
        self.commands.append(" ".join(argv))
        return CommandResult("telegram is running again.", None)

    async def send_message(self, text: str, external_id: str, session: str, media: object = ()) -> InboxReceipt:
        return InboxReceipt(1, 1)

    async def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[LinkEvent]:
        yield "hello", {}

    async def acknowledge(self, key: str) -> None:
        """Nothing is delivered here."""

    async def stop(self, session: str) -> bool:
        return False

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        return {}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(None, {"ASSISTANT_HOME": str(tmp_path)})


@pytest.fixture
def stores(settings: Settings) -> Iterator[Stores]:
    made = Stores(settings, utc_now())
    yield made
    made.close()


async def test_what_hinders_it_is_told_once_until_the_network_answers(capsys: pytest.CaptureFixture[str]) -> None:
    link = BridgeSetupLink(("", ""), ("connecting", ""), ("failing", REFUSED), ("failing", REFUSED), ("connected", ""))
    await wait_until_connected(link, "telegram")
    assert capsys.readouterr().out == f"{REFUSED}\n"


async def test_one_that_is_paused_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    link = BridgeSetupLink(("paused", ""), ("connected", ""))
    await wait_until_connected(link, "telegram")
    assert link.commands == ["bridge resume telegram"]


async def test_one_that_does_not_connect_in_time_is_set_up_all_the_same() -> None:
    with pytest.raises(AssistantError, match=r"telegram is set up, but not connected yet.*continues from here"):
        await wait_until_connected(BridgeSetupLink(("failing", REFUSED)), "telegram", within=0)


async def test_a_code_that_others_locked_is_waited_for_no_longer(settings: Settings, stores: Stores) -> None:
    build_pairing(settings, stores).offer_link("telegram", utc_now())
    stores.pairings.record_wrong_code(stores.pairings.pending_pairings(utc_now()), limit=1)
    with pytest.raises(AssistantError, match="wrong codes, so your code is locked"):
        await wait_until_owner_known(BridgeSetupLink(("connected", "")), stores, "telegram", None)


async def test_it_ends_once_the_owner_has_written(stores: Stores) -> None:
    stores.people.link_owner(Identity("telegram", "42"), utc_now())
    stores.places.record_account("telegram", "chat-42", "42")
    await wait_until_owner_known(BridgeSetupLink(("connected", "")), stores, "telegram", None)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await wait_until_owner_known(BridgeSetupLink(("connected", "")), stores, "telegram", "chat-42")
    await wait_until_owner_known(BridgeSetupLink(("connected", "")), stores, "telegram", "chat-41")
