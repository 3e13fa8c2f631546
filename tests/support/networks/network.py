"""What the conformance suite asks of a network, so that one suite runs over every bridge.

A `Network` is the outside of one bridge: the server that the bridge talks to (a strict loopback server, a real one, or
the control socket), and people who write and read there. It outlives the bridges made over it: a bridge that is made
anew over the same network and the same home is a restart.

What always holds:
- People act over the network's own protocol, as their apps would; nothing here calls the bridge.
- What the network cannot do it refuses with `Refused`, by what its server answered and not by a look at its `Facts`;
  the suite then asserts the fallback.
- Nothing waits by the clock: `until` is woken whenever something changed on the network.

A picture: one red dot, as a PNG.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from assistant.core.bridge_api import Bridge
from assistant.settings.settings import Settings
from assistant.wire.app import App

# The people of a network. The owner and the guest are let in by the suite, the stranger by nobody.
PersonKind = Literal["owner", "guest", "stranger"]
# Where something is said: "private" between one person and the assistant, "room" among all of them.
ConversationPlace = Literal["private", "room"]


class NetworkRefused(Exception):
    """The network has no such thing, or lets nobody in without being asked; its words."""


@dataclass(frozen=True, slots=True)
class NetworkAbilities:
    """What people can do on this network. What the bridge can do is told by its `capabilities`.

    `redelivers`: what was not acknowledged comes again by itself, so that the suite need not ask for it. `refuses`: the
    network may take no message, for a while or never. `outages`: it may be gone while the bridge stays (not so where
    the bridge is the server)."""

    strangers: bool = True
    rooms: bool = True
    threads: bool = False
    edits: bool = True
    deletes: bool = True
    pictures: bool = True
    files: bool = True
    redelivers: bool = True
    refuses: bool = True
    outages: bool = True


@dataclass(frozen=True, slots=True)
class VisibleMessage:
    """One message of the assistant as a person sees it now. `text` is what they read, marks rendered away (where the
    app renders nothing, the Markdown); `size` is its length as the network counts it. `drafts` are the texts that stood
    in this same message before, oldest first; `thread` is the id of the message whose thread it is in. `file` is what
    came as a file: its bytes, with `file_name`."""

    id: str
    text: str
    size: int = 0
    drafts: tuple[str, ...] = ()
    buttons: tuple[str, ...] = ()
    thread: str = ""
    file: bytes | None = None
    file_name: str = ""


class Network(Protocol):
    """One network with its people; made fresh for a test, closed after it (`networks.py` lists how)."""

    @property
    def name(self) -> str:
        """The name of the bridge: of the key in `bridges`, of `Bridge.name` and of what arrives."""
        ...

    @property
    def abilities(self) -> NetworkAbilities: ...

    # ------------------------------------------------------------------------------------------------ the bridge's side

    def bridge(self, settings: Settings, clock: Callable[[], datetime]) -> Bridge | None:
        """A bridge over this network for the home of `settings`, made as `wire` makes it; every call makes a new one.
        None where every app has it already (the terminal)."""
        ...

    def serve_app(self, app: App) -> AbstractAsyncContextManager[None]:
        """Called around an app that runs, for a network whose server is the app itself; others do nothing."""
        ...

    # ----------------------------------------------------------------------------------------------------- who is there

    def account(self, who: PersonKind) -> str:
        """What the bridge calls this person in `Arrival.sender`; "" where the network has no accounts."""
        ...

    @property
    def room(self) -> str:
        """What the bridge calls the room in `Arrival.room`; "" where there are no rooms."""
        ...

    # --------------------------------------------------------------------------------------------------- what people do

    async def say(
        self,
        who: PersonKind,
        text: str,
        *,
        where: ConversationPlace = "private",
        addressed: bool = True,
        thread: str = "",
    ) -> str:
        """Say something; the network's id of the message, that `edit`, `delete`, `again` and `Seen.thread` speak of.
        In a room `addressed` says it to the assistant (a mention or a reply, as the network has it); `thread` is the id
        of the message whose thread it is said in. Raises `Refused`."""
        ...

    async def edit(self, who: PersonKind, message: str, text: str) -> None:
        """Raises `Refused`."""
        ...

    async def delete(self, who: PersonKind, message: str) -> None:
        """Raises `Refused`."""
        ...

    async def press(self, who: PersonKind, message: str, label: str) -> None:
        """Press the button `label` below a message of the assistant. Raises `Refused`."""
        ...

    async def send_picture(self, who: PersonKind, data: bytes, caption: str = "") -> str:
        """A PNG. Raises `Refused`."""
        ...

    async def send_file(self, who: PersonKind, name: str, data: bytes, caption: str = "") -> str:
        """Raises `Refused`."""
        ...

    async def redeliver(self, message: str) -> None:
        """The network hands the same message to the bridge once more, under the same id, as networks do."""
        ...

    # -------------------------------------------------------------------------------------------------- what people see

    def visible_messages(self, who: PersonKind, where: ConversationPlace = "private") -> tuple[VisibleMessage, ...]:
        """The assistant's messages as this person sees them now, in their order; deleted ones are not among them."""
        ...

    def typing_count(self, who: PersonKind, where: ConversationPlace = "private") -> int:
        """How often it was shown so far that the assistant is typing."""
        ...

    @property
    def send_attempts(self) -> int:
        """How many messages (edits and typing apart) the bridge has tried to send so far, refused ones included."""
        ...

    async def wait_until(self, true: Callable[[], bool]) -> None:
        """Return once `true` holds; looked at again whenever something changed on the network. Never returns early; the
        suite bounds it."""
        ...

    # --------------------------------------------------------------------------------------------------------- troubles

    def refuse_sends(self, calls: int, retry_after: float | None) -> None:
        """The next `calls` messages that the bridge sends are not shown: the network takes none for `retry_after`
        seconds, or (None) never takes these."""
        ...

    def cut_connections(self, when: Literal["before", "after"], calls: int = 1) -> None:
        """The connection breaks before, or after, each of the next `calls` messages that the bridge sends took effect;
        the bridge gets no answer to them."""
        ...

    async def go_offline(self) -> None:
        """The network is gone: nothing connects, what was connected breaks. What people say meanwhile is kept there."""
        ...

    async def go_online(self) -> None: ...

    async def aclose(self) -> None: ...


RED_DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
