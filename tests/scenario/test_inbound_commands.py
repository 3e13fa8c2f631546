"""The door itself: what is noted of a command before it runs, so that a crash is told from one that never began."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.core.bridge_api import InboundMessage
from assistant.core.errors import StoreError
from assistant.core.records import InboxReceipt, IncomingMessage
from assistant.store.script.inbox import SlashCommandQueue
from assistant.wire.services import build_inbound
from tests.support.running_app import OWNER, BridgePeople, run_app


class RecordingCommands:
    """A command that looks at what is kept of itself while it runs."""

    def __init__(self, typed: SlashCommandQueue) -> None:
        self._typed = typed
        self.begun: list[bool] = []

    def names(self) -> list[str]:
        return ["/look"]

    async def run(self, text: str, session: str, *, bridge: str = "", target: str = "", sender: str = "") -> str:
        self.begun += [command.begun for command in self._typed.list_open()]
        return "done"


async def test_f36_a_command_is_noted_as_begun_before_it_takes_effect(tmp_path: Path) -> None:
    """A restart that finds it begun tells of it, and does not run it again."""
    async with run_app(tmp_path) as it:
        await BridgePeople(it).allow_everybody()
        app = it.app
        looking = RecordingCommands(app.stores.typed_commands)
        door = build_inbound(app.base, looking, app.runtime.accept, app.dispatcher)
        await door.receive(InboundMessage("kept", "looks", OWNER, "/look", target=OWNER))
        await door.wait_until_idle()
        assert (looking.begun, app.stores.typed_commands.list_open()) == ([True], [])


async def test_f35_a_position_goes_on_with_what_was_kept_and_stays_where_it_was_refused(tmp_path: Path) -> None:
    """A bridge acknowledges up to its position: one ahead of the inbox would lose what came before it (I1)."""
    async with run_app(tmp_path, "yes") as it:
        await BridgePeople(it).allow_everybody()
        app = it.app

        async def refuses(incoming: IncomingMessage) -> InboxReceipt:
            raise StoreError("The disk is full.")

        full = build_inbound(app.base, app.commands, refuses, app.dispatcher)
        said = InboundMessage("kept", "said", OWNER, "hello", target=OWNER, position="7")
        with pytest.raises(StoreError):
            await full.receive(said)
        assert full.load_position("kept") == ""
        assert await app.inbound.receive(said) is not None
        assert app.inbound.load_position("kept") == "7"
        await it.wait_idle()


async def test_f35_a_position_goes_on_with_a_command_and_stays_where_the_disk_refused_it(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        await BridgePeople(it).allow_everybody()
        door, script = it.app.inbound, tmp_path / "script.db"
        typed = InboundMessage("kept", "typed", OWNER, "/todo", target=OWNER, position="7")
        script.rename(tmp_path / "away.db")
        with pytest.raises(StoreError):
            await door.receive(typed)
        (tmp_path / "away.db").rename(script)
        assert door.load_position("kept") == ""
        await door.receive(typed)
        assert door.load_position("kept") == "7"
        await door.wait_until_idle()
