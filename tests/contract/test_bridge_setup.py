"""Bridges as settings ask for them: made anew when they are told to, and told of where they cannot be made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from keyring.backends.fail import Keyring as NoKeyring

from assistant.bridges.configured import ConfiguredBridges, check_account, settings_with_answers, unavailable_reason
from assistant.core.bridge_api import Bridge
from assistant.core.errors import BridgeError, StoreError
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.store.home.config_file import HomeSecretStore
from tests.strict.telegram import StrictTelegram
from tests.support.keyring import InMemoryKeyring, use_keyring


class BridgeRegistry:
    """Where bridges are had."""

    def __init__(self) -> None:
        self.there: dict[str, Bridge] = {}

    async def put(self, name: str, bridge: Bridge) -> None:
        await self.drop(name)
        self.there[name] = bridge

    async def drop(self, name: str) -> None:
        if name in self.there:
            await self.there[name].aclose()
            await asyncio.sleep(0)
            del self.there[name]


@pytest.fixture
async def server() -> AsyncIterator[StrictTelegram]:
    async with StrictTelegram() as made:
        yield made


@pytest.fixture
def home(tmp_path: Path, server: StrictTelegram) -> Home:
    made = Home(tmp_path)
    made.config.write_text(f'[telegram]\nenabled = true\nbase_url = "{server.url}"\n')
    return made


@pytest.mark.parametrize("ring", [NoKeyring, InMemoryKeyring])
async def test_a_token_that_was_replaced_holds_once_the_bridge_is_reloaded(
    home: Home, server: StrictTelegram, ring: type[NoKeyring | InMemoryKeyring]
) -> None:
    lines = BridgeRegistry()
    with use_keyring(ring()):
        HomeSecretStore(home.secrets).put("telegram.token", "123456:the-one-before")
        networks = ConfiguredBridges(load_settings(home, {}), None)
        (bridge,) = networks.open_all().values()
        await lines.put("telegram", bridge)
        with pytest.raises(BridgeError, match="does not accept the bot's token"):
            await lines.there["telegram"].check()
        HomeSecretStore(home.secrets).put("telegram.token", server.token)
        await networks.reload("telegram", lines)
        assert await lines.there["telegram"].check() == "@nocturne_bot"
        home.config.write_text(home.config.read_text().replace("true", "false"))
        await networks.reload("telegram", lines)
    assert lines.there == {}


async def test_the_keyring_is_asked_again_whenever_a_bridge_is_made(home: Home, server: StrictTelegram) -> None:
    with use_keyring(InMemoryKeyring()):
        HomeSecretStore(home.secrets).put("telegram.token", "123456:the-one-before")
        networks = ConfiguredBridges(load_settings(home, {}), None)
        HomeSecretStore(home.secrets).put("telegram.token", server.token)
        assert await networks.open_one("telegram").check() == "@nocturne_bot"


async def test_settings_that_are_found_changed_meanwhile_are_taken_up_one_after_the_other(home: Home) -> None:
    lines, settings = BridgeRegistry(), load_settings(home, {})
    networks = ConfiguredBridges(settings, None)
    await networks.reload("telegram", lines)
    home.config.write_text("[telegram]\nenabled = false\n")
    changed = load_settings(home, {})
    await asyncio.gather(networks.apply_settings(changed, lines), networks.reload("telegram", lines))
    assert lines.there == {}


class RefusingRegistry(BridgeRegistry):
    """It refuses once, when the bridge of before is gone already."""

    refuses = True

    async def put(self, name: str, bridge: Bridge) -> None:
        await self.drop(name)
        if self.refuses:
            self.refuses = False
            raise StoreError("The disk is full.")
        await super().put(name, bridge)


async def test_f39_a_bridge_that_the_disk_refused_is_taken_up_later(home: Home, server: StrictTelegram) -> None:
    lines = RefusingRegistry()
    settings = load_settings(home, {"ASSISTANT_TELEGRAM__ENABLED": "false"})
    networks = ConfiguredBridges(settings, None)
    wanted = load_settings(home, {"ASSISTANT_TELEGRAM__TOKEN": server.token})
    await networks.apply_settings(wanted, lines)
    assert lines.there == {}
    await networks.retry_pending(lines)
    assert await lines.there["telegram"].check() == "@nocturne_bot"


async def test_what_was_typed_is_tried_without_being_kept(home: Home, server: StrictTelegram) -> None:
    settings = load_settings(home, {})
    assert (
        await check_account(settings_with_answers(settings, "telegram", {}, server.token), "telegram")
        == "@nocturne_bot"
    )
    with pytest.raises(BridgeError, match="No token is kept for telegram"):
        await check_account(settings, "telegram")
    assert not home.secrets.exists()


def test_packages_that_are_not_there_are_named_with_what_brings_them() -> None:
    told = unavailable_reason("matrix", ModuleNotFoundError("No module named 'nio'", name="nio"))
    assert "needs a package that is not installed (nio)" in told
    assert "`pipx install --force './[matrix]'`" in told and "`uv tool install './[matrix]'`" in told
