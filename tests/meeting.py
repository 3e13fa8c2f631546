"""People who write to a house over a bridge, and what it answers them."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from assistant.core.records import InboxReceipt
from tests.scenario.test_runtime import Lived

OWNER, ANN, IVO, STRANGER = "100", "7", "8", "666"
ROOM = "-200"
_CODE = re.compile(r"\b[23456789A-HJKMNP-TV-Z]{8}\b")


@dataclass
class Meeting:
    """A house and its network, on which everybody writes under a number. `told` has what went to each place since the
    last look."""

    it: Lived
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    looked_at: int = 0

    async def write(self, text: str, sender: str, external_id: str = "", **about: Any) -> InboxReceipt | None:
        accepted = await self.it.bridge.bring(text, external_id or f"n{next(self.numbers)}", sender, **about)
        await self.settled()
        return accepted

    async def settled(self) -> None:
        await self.it.house.reception.idle()
        await self.it.answered()

    async def command(self, text: str) -> str:
        """Typed by the owner at the terminal."""
        return await self.it.house.commands.run(text, "main")

    async def know_everybody(self) -> None:
        """The owner, two guests and a room are let in."""
        for text in (f"link kept {OWNER}", f"allow kept {ANN}", f"allow kept {IVO}", f"allow room kept {ROOM}"):
            await self.command(f"/people {text}")

    def told(self) -> list[tuple[str, str]]:
        """(target, body) of everything that went out since the last look."""
        new = self.it.bridge.sent[self.looked_at :]
        self.looked_at += len(new)
        return [(item.outgoing.target, item.outgoing.body) for item in new]

    def code(self) -> str:
        """The code in the newest thing that went out."""
        found = _CODE.search(self.it.bridge.bodies[-1])
        assert found is not None
        return found[0]

    def sessions(self) -> list[str]:
        return sorted(info.key for info in self.it.house.stores.conversation.sessions())
