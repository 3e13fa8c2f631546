"""The door itself: what is noted of a command before it runs, so that a crash is told from one that never began."""

from __future__ import annotations

from pathlib import Path

from assistant.bridge_ports import Arrival
from assistant.store.typed_commands import TypedCommands
from assistant.wire.people import reception
from tests.meeting import OWNER, Meeting
from tests.scenario.test_runtime import lived


class Looking:
    """A command that looks at what is kept of itself while it runs."""

    def __init__(self, typed: TypedCommands) -> None:
        self._typed = typed
        self.begun: list[bool] = []

    def names(self) -> list[str]:
        return ["/look"]

    async def run(self, text: str, session: str, *, bridge: str = "", target: str = "", sender: str = "") -> str:
        self.begun += [command.begun for command in self._typed.open()]
        return "done"


async def test_f36_a_command_is_noted_as_begun_before_it_takes_effect(tmp_path: Path) -> None:
    """A restart that finds it begun tells of it, and does not run it again."""
    async with lived(tmp_path) as it:
        await Meeting(it).know_everybody()
        house = it.house
        looking = Looking(house.stores.typed)
        door = reception(house.settings, house.stores, looking, house.runtime.accept, house.delivery, it.clock)
        await door.receive(Arrival("kept", "looks", OWNER, "/look", target=OWNER))
        await door.idle()
        assert (looking.begun, house.stores.typed.open()) == ([True], [])
