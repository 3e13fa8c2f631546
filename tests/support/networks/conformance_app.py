"""An app that lives over a network: started, lived in, stopped, and started again over the same home."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from assistant.core.bridge_api import Bridge, BridgeCapabilities
from assistant.core.model_api import ModelRequest
from assistant.core.people import Identity
from assistant.core.ports import Model
from assistant.core.records import Button, OutboxItem, OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, peer_session_key, room_session_key, session_scope
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.wire.app import App, build_app
from tests.support.networks.network import ConversationPlace, Network, PersonKind, VisibleMessage
from tests.support.networks.probed_bridge import BridgeProbe, ProbedBridge
from tests.support.outboxes import recent_items
from tests.support.scripted import ScriptedModel, SteppingClock

_LONGEST_WAIT = 20.0
_QUIET = {"ASSISTANT_PEOPLE__UNKNOWN": "ignore", "ASSISTANT_SLEEP__AT": "", "ASSISTANT_HOME__TIMEZONE": "UTC"}


def last_user_text(request: ModelRequest) -> str:
    """What somebody said last, without what the app notes beside it."""
    said = [message.content for message in request.messages if message.role == "user"]
    return said[-1].rpartition("</runtime-note>\n\n")[2]


def echo(request: ModelRequest) -> str:
    return f"You said: {last_user_text(request)}"


@dataclass(frozen=True)
class AppParts:
    """What an app is made of besides its network. With `configured` the models of the settings answer, not `model`."""

    model: ScriptedModel = field(default_factory=lambda: ScriptedModel(echo))
    writer: Model | None = None
    configured: bool = False
    clock: Callable[[], datetime] = field(default_factory=SteppingClock)
    lets_room_in: bool = True


class ConformanceApp:
    """One network, one home, one model; apps come and go. `others` are networks that the same app is on too."""

    def __init__(self, network: Network, home: Path, parts: AppParts, environ: Mapping[str, str]) -> None:
        self.network = network
        self.home = home
        self._parts = parts
        self.model = parts.model
        self.clock: Any = parts.clock
        self.watch = BridgeProbe()
        self.others: list[Network] = []
        self.environ = dict(environ)  # of the next start
        self._open, self._running = AsyncExitStack(), AsyncExitStack()
        self._notices = itertools.count(1)
        self.app: App

    # ------------------------------------------------------------------------------------------------------- life cycle

    async def start(self) -> None:
        settings = self._read_settings()
        bridges = {one.name: bridge for one in [self.network, *self.others] if (bridge := self._bridge(one, settings))}
        model = None if self._parts.configured else self.model
        self.app = build_app(
            settings,
            self.clock,
            bridges=bridges,
            model=model,
            writer=self._parts.writer,
            reread=self._read_settings,
        )
        self._open.callback(self.app.close)
        self._open.push_async_callback(self.app.models.aclose)
        for network in [self.network, *self.others]:
            self._let_in(network)
        await self.app.start()
        self._running.push_async_callback(_ended, asyncio.create_task(self.app.runtime.run()))
        self._running.push_async_callback(self.app.stop, 5)
        self._running.push_async_callback(self.app.inbound.stop)
        for network in [self.network, *self.others]:
            await self._open.enter_async_context(network.serve_app(self.app))

    def _read_settings(self) -> Settings:
        return load_settings(Home(self.home), {**_QUIET, **self.environ}, ring=None)

    async def stop(self) -> None:
        await self._running.aclose()
        await self._open.aclose()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def renew_bridge(self) -> None:
        """The bridge is cancelled where it stands, and made anew over the same home."""
        self.watch.crashed = False
        bridge = self._bridge(self.network, self.app.settings)
        assert bridge is not None
        await self.app.dispatcher.put(self.network.name, bridge)

    def _bridge(self, network: Network, settings: Settings) -> Bridge | None:
        bridge = network.bridge(settings, self.clock)
        return bridge if bridge is None or network is not self.network else ProbedBridge(bridge, self.watch)

    def _let_in(self, network: Network) -> None:
        """The owner, a guest and the room; nobody else."""
        people, now = self.app.stores.people, self.clock()
        if network.account("owner"):
            people.link_owner(Identity(network.name, network.account("owner")), now)
        if network.account("guest"):
            people.admit_guest(Identity(network.name, network.account("guest")), "Ann", "allowed", now)
        if network.room and self._parts.lets_room_in:
            people.decide_room(network.name, network.room, "The room", "allowed", now)

    # ------------------------------------------------------------------------------------------------------ looking on

    @property
    def capabilities(self) -> BridgeCapabilities:
        return self.app.dispatcher.bridges[self.network.name].capabilities

    def bridge_status(self, network: Network | None = None) -> Mapping[str, Any]:
        """Of the bridge, as the status tells it."""
        condition: Mapping[str, Any] = self.app.dispatcher.bridge_states()[(network or self.network).name]
        return condition

    def session(self, who: PersonKind, where: ConversationPlace = "private") -> str:
        if where == "room":
            return room_session_key(self.network.name, self.network.room)
        return MAIN_SESSION if who == "owner" else peer_session_key(self.network.name, self.network.account(who))

    def texts(self, who: PersonKind = "owner", where: ConversationPlace = "private") -> list[str]:
        return [seen.text for seen in self.network.visible_messages(who, where)]

    def visible_with(
        self, text: str, who: PersonKind = "owner", where: ConversationPlace = "private"
    ) -> list[VisibleMessage]:
        """What was shown with these words in it."""
        return [seen for seen in self.network.visible_messages(who, where) if text in seen.text]

    def model_user_texts(self) -> list[str]:
        """What people said in the requests that the model got, one by one."""
        return [last_user_text(request) for request in self.model.requests]

    def logged_user_texts(self, session: str = MAIN_SESSION) -> list[str]:
        """What people said in a conversation, as the log has it."""
        found = self.app.stores.history.recent(session if session.startswith(("peer", "room")) else "owner")
        return [record.content for record in found if record.role == "user"]

    def accepted_count(self) -> int:
        """How many messages the inbox has taken in."""
        has = self.app.stores.conversation.inbox_item
        return sum(1 for _ in itertools.takewhile(lambda number: has(number) is not None, itertools.count(1)))

    async def wait_until(self, true: Callable[[], bool]) -> None:
        """Once it is true of the network, or of the door."""
        waits = [
            asyncio.ensure_future(self.network.wait_until(true)),
            asyncio.ensure_future(self.watch.changed.wait_until(true)),
        ]
        waits += [asyncio.ensure_future(network.wait_until(true)) for network in self.others]
        try:
            done, _ = await asyncio.wait(waits, timeout=_LONGEST_WAIT, return_when=asyncio.FIRST_COMPLETED)
            assert done, f"it did not come to that; seen: {self.texts()}; {self.app.dispatcher.bridge_states()}"
            done.pop().result()
        finally:
            for wait in waits:
                wait.cancel()

    async def wait_for_answer(
        self, text: str, who: PersonKind = "owner", where: ConversationPlace = "private"
    ) -> VisibleMessage:
        """The message with these words, once it is there for good."""
        await self.wait_until(lambda: bool(self.visible_with(text, who, where)))
        await self.wait_idle()
        return self.visible_with(text, who, where)[0]

    async def wait_idle(self) -> None:
        """What came in is answered, and all that may go out now went out."""
        await self.app.inbound.wait_until_idle()
        await self.app.runtime.wait_until_idle()
        await self.app.dispatcher.flush(self.network.name)

    # ----------------------------------------------------------------------------------------------------------- acting

    async def advance_clock(self, seconds: float) -> None:
        """So much later, what is due then is done."""
        await self.wait_idle()
        self.clock.now += timedelta(seconds=seconds)
        await self.wait_idle()

    def push_notice(self, body: str, who: PersonKind = "owner", *, buttons: tuple[Button, ...] = ()) -> str:
        """Put something that is to go out into the outbox: its key. They were answered before."""
        key, session = f"notice:{next(self._notices)}", self.session(who)
        target = self.outbox(who)[0].outgoing.target
        outgoing = OutgoingMessage(
            key, session, session_scope(session), self.network.name, target, body, "notice", buttons=buttons
        )
        self.app.stores.outbox.push(outgoing, self.clock())
        self.app.dispatcher.wake(self.network.name)
        return key

    def item(self, key: str) -> OutboxItem:
        return next(item for item in self.outbox() if item.outgoing.key == key)

    def outbox(self, who: PersonKind = "owner") -> list[OutboxItem]:
        """What went out, or is to go out, in the order in which it came."""
        return sorted(recent_items(self.app.stores.outbox, self.session(who)), key=lambda item: item.id)


async def _ended(running: asyncio.Task[None]) -> None:
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


@asynccontextmanager
async def run_conformance_app(
    network: Network,
    home: Path,
    *script: Any,
    others: tuple[Network, ...] = (),
    parts: AppParts | None = None,
    **environ: str,
) -> AsyncIterator[ConformanceApp]:
    """An app that runs over `network`; `script` is what the model answers, what it was told where there is none."""
    it = ConformanceApp(network, home, parts or AppParts(ScriptedModel(*(script or [echo]))), environ)
    it.others = list(others)
    try:
        await it.start()
        yield it
        assert it.app.stores.verifier.verify().ok
    finally:
        await it.stop()
