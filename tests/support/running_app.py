"""The whole app in this process, with real stores, tools and delivery, a scripted model and a bridge that records; and
people who write to it over that bridge, with what it answers them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from assistant.core.ports import Model, ModelPair
from assistant.core.records import InboxItem, InboxReceipt
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from tests.support.scripted import RecordingBridge, ScriptedModel, SteppingClock, owner_message

OWNER, ANN, IVO, STRANGER = "100", "7", "8", "666"
ROOM = "-200"
_CODE = re.compile(r"\b[23456789A-HJKMNP-TV-Z]{8}\b")


@dataclass
class BridgePeople:
    """An app and its network, on which everybody writes under a number. `told` has what went to each place since the
    last look."""

    running: LiveApp
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    shown_count: int = 0

    async def write(self, text: str, sender: str, external_id: str = "", **about: Any) -> InboxReceipt | None:
        accepted = await self.running.bridge.receive_message(
            text, external_id or f"n{next(self.numbers)}", sender, **about
        )
        await self.wait_idle()
        return accepted

    async def wait_idle(self) -> None:
        await self.running.app.inbound.wait_until_idle()
        await self.running.wait_idle()

    async def command(self, text: str) -> str:
        """Typed by the owner at the terminal."""
        return await self.running.app.commands.run(text, "main")

    async def allow_everybody(self) -> None:
        """The owner, two guests and a room are let in."""
        for text in (f"link kept {OWNER}", f"allow kept {ANN}", f"allow kept {IVO}", f"allow room kept {ROOM}"):
            await self.command(f"/people {text}")

    def sent_since_last(self) -> list[tuple[str, str]]:
        """(target, body) of everything that went out since the last look."""
        new = self.running.bridge.sent[self.shown_count :]
        self.shown_count += len(new)
        return [(item.outgoing.target, item.outgoing.body) for item in new]

    def pairing_code(self) -> str:
        """The code in the newest thing that went out."""
        found = _CODE.search(self.running.bridge.bodies[-1])
        assert found is not None
        return found[0]

    def sessions(self) -> list[str]:
        return sorted(info.key for info in self.running.app.stores.conversation.list_sessions())


@dataclass
class LiveApp:
    app: App
    model: ScriptedModel
    bridge: RecordingBridge
    clock: SteppingClock
    accepted: list[int]

    async def say(self, text: str, external_id: str | None = None) -> int:
        number = len(self.accepted)
        got = await self.app.runtime.accept(owner_message(text, external_id=external_id or f"m{number}"))
        self.accepted.append(got.inbox_id)
        return got.inbox_id

    async def wait_idle(self) -> None:
        """As `wait_answered`, and what follows a turn is done."""
        await self.wait_answered()
        await self.app.background_compaction.wait_until_idle()
        await self.app.dispatcher.flush()

    async def wait_answered(self) -> None:
        """Everything is answered, and all that may go out now went out."""
        await self.app.runtime.wait_until_idle()
        await self.app.dispatcher.flush()

    def inbox_item(self, inbox_id: int) -> InboxItem:
        found = self.app.stores.conversation.inbox_item(inbox_id)
        assert found is not None
        return found

    def view_contents(self, session: str = "main") -> list[tuple[str, str]]:
        return [(m.role, m.content) for m in self.app.stores.conversation.load_view(session).messages]


@asynccontextmanager
async def run_app(
    home: Path,
    *script: object,
    model: ScriptedModel | None = None,
    writer: Model | None = None,
    now: Callable[[], datetime] | None = None,
    **environ: str,
) -> AsyncIterator[LiveApp]:
    """`now` gives the time instead of the clock that steps."""
    environment = {"ASSISTANT_HOME": str(home), **environ}
    settings = load_settings(None, environment)
    bridge, clock = RecordingBridge(), SteppingClock()
    model = model or ScriptedModel(*script)  # type: ignore[arg-type]
    app = build_app(settings, now or clock, bridges={"kept": bridge}, model=model, writer=writer)
    try:
        await app.start()
        yield LiveApp(app, model, bridge, clock, [])
        assert app.stores.verifier.verify().ok
    finally:
        await app.stop(5)
        app.close()


def use_model(app: App, model: Model) -> None:
    """Have another model answer from the next turn on."""
    app.models.replace(ModelPair(model, app.models.writing))


def files_with_words(home: Path, words: str) -> list[str]:
    """Files of the home that hold these words."""
    return [path.name for path in home.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]
