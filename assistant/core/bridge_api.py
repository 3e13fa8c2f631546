"""Bridges: what comes in from a network, what goes out to it, the port between, and the state of a bridge and of what
was not delivered. Times are aware and in UTC.

A bridge decides nothing about who may talk (I10) and keeps nothing durable of its own: it hands what it receives to
the gateway, which returns once it is kept, and the position from which it goes on receiving is kept with it (I1).
What goes out comes in parts with a key each, one body for ever (I8). One bridge's failure is its own (F39): it
raises `BridgeError`, and is run again after a pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from assistant.core.messages import Media
from assistant.core.records import InboxReceipt, OutboxItem, OutboxState

# ---------------------------------------------------------------------------------------------------------- coming in


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """A message as it comes in from a bridge, before anybody asked who sent it. `sender` is what the network calls the
    account, `sender_name` what it calls itself; `room` is None between two. `addressed`: whether, in a room, it is for
    the assistant. A button that was pressed arrives as its command. `position`, where there is one, is where the bridge
    goes on receiving after this one."""

    bridge: str
    external_id: str
    sender: str
    content: str
    sender_name: str = ""
    media: tuple[Media, ...] = ()
    target: str = ""
    room: str | None = None
    room_name: str = ""
    addressed: bool = True
    position: str = ""


@dataclass(frozen=True, slots=True)
class MessageChange:
    """A message that was edited or deleted on the network after it had arrived. `external_id` is that of the message,
    `change_id` the network's own of the change; `content` is the new text, "" where it was deleted."""

    bridge: str
    external_id: str
    change_id: str
    kind: Literal["edit", "delete"]
    sender: str
    content: str = ""
    room: str | None = None
    position: str = ""


class InboundPort(Protocol):
    """Where a bridge hands in what it received. Every call is durable when it returns, and raises `StoreError` where it
    was not kept: the network is told nothing then, and asked again."""

    async def receive(self, arrival: InboundMessage) -> InboxReceipt | None:
        """Acknowledge to the network after this, never before. None: no answer of a model follows. The same pair of
        bridge and external_id is kept once."""
        ...

    def accepts_from(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        """Whether what they say there is kept: asked before a file is fetched, which strangers could send for ever."""
        ...

    async def receive_change(self, change: MessageChange) -> None:
        """Of a message that never was kept nothing is."""
        ...

    def load_position(self, bridge: str) -> str:
        """Where the bridge goes on receiving; "" where it never did."""
        ...

    def save_position(self, bridge: str, position: str) -> None:
        """It came this far with nothing to keep."""
        ...

    def mark_connected(self, bridge: str) -> None:
        """The network answers: its status is green, and what waits for it is sent."""
        ...


# ----------------------------------------------------------------------------------------------------------- going out


@dataclass(frozen=True, slots=True)
class BridgeCapabilities:
    """What a bridge can do.

    `edit`: what was sent can be changed, so that live text is shown in one message. `buttons`, `media`: it shows them;
    where not, a button's command stands in the text anyway, and a file is named. `max_length` bounds the text of one
    message, counted in `length_in`; longer ones come in parts. `dedupe_seconds`: for how long a resend under the same
    key is shown once (0: never). `terminals`: it shows sessions to whoever looks on, rather than places."""

    edit: bool = False
    typing: bool = False
    media: bool = False
    threads: bool = False
    buttons: bool = False
    max_length: int | None = None
    length_unit: Literal["characters", "utf-16", "utf-8"] = "characters"
    dedupe_seconds: float = 0
    shows_sessions: bool = False


@dataclass(frozen=True, slots=True)
class OutgoingPart:
    """One network message of something that goes out: `number` counts from 1. `text` is Markdown; buttons come with the
    last one. A file comes as a part of its own, `media`, with no text."""

    item: OutboxItem
    number: int
    text: str
    last: bool = True
    media: Media | None = None

    @property
    def key(self) -> str:
        """The same for the same part, for ever; another one for every other."""
        key = self.item.outgoing.key
        return key if self.number == 1 else f"{key}#{self.number}"


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """What happens while a turn runs; provisional, never durable. Kinds and their `data`:
    `turn` {state: "started"|"answered"|"failed"|"aborted", message_ids}, `delta` {text}, `tool` {name, state, call},
    `notice` {text}, `discard` {} (what was streamed so far is withdrawn: the call failed or turned to tools)."""

    kind: Literal["turn", "delta", "tool", "notice", "discard"]
    session: str
    turn: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Bridge(Protocol):
    """A way in and out."""

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> BridgeCapabilities: ...

    async def check(self) -> str:
        """Ask the network who we are there, as in "@nocturne_bot": for set-up and the doctor. Raises `BridgeError`."""
        ...

    async def run(self, inbound: InboundPort) -> None:
        """Receive until cancelled, telling `door` once connected. Raises `BridgeError` where it cannot go on; it is run
        again after a pause. May be run again after it was cancelled, too."""
        ...

    async def send(self, part: OutgoingPart) -> None:
        """Deliver under `part.key`. Returns once the network has it. Raises `BridgeError`, `ambiguous` where it may
        have arrived. Called for one part at a time, also before `run` and after it was cancelled."""
        ...

    def show(self, event: TurnEvent, target: str) -> None:
        """Provisional display at a target; must not block and must not raise. On the home's own terminals `target` is
        "": there it is shown to whoever looks on the session."""
        ...

    async def aclose(self) -> None:
        """Give back what was opened, after `run` was cancelled."""
        ...


# Set up in config.toml, each under its own section.
NETWORK_NAMES = ("telegram", "matrix")

BridgeState = Literal["connected", "connecting", "paused", "failing", "off"]


@dataclass(frozen=True, slots=True)
class BridgeStatus:
    """One bridge. `account` is who we are there, "" where nobody told yet; `since` is when it came into this state;
    `waiting` counts what is to go out there; `error` is the last trouble, "" where there is none."""

    name: str
    state: BridgeState
    account: str = ""
    since: datetime | None = None
    waiting: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class UndeliveredItem:
    """Something that goes out by itself no more: it may or may not have arrived (`ambiguous`), was refused (`failed`),
    or must not (`withheld`); or something that is still to go out (`pending`, `sending`), with an `error` where it was
    tried in vain. `parts_sent`: how many of its parts the network has for certain."""

    id: int
    state: OutboxState
    bridge: str
    target: str
    session: str
    scope: str
    body: str
    error: str
    parts_sent: int
    attempts: int
    created_at: datetime
    updated_at: datetime

    @property
    def is_sent_automatically(self) -> bool:
        """Whether it is sent without anybody's word."""
        return self.state in ("pending", "sending")


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """What became of one delivery."""

    state: OutboxState
    error: str


@dataclass(frozen=True, slots=True)
class RedirectResult:
    """What became of what waited for a bridge: so many deliveries of the owner's go to the terminal, so many for
    others still wait."""

    redirected: int
    still_waiting: int


@dataclass(frozen=True, slots=True)
class DeviceLogin:
    """A device of an account's, and what it shows to be let in."""

    user: str
    device: str
    token: str = field(repr=False)
