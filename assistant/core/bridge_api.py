"""Bridges: what comes in from a network, what goes out to it, the port between, and the state of a bridge and of what
was not delivered. Times are aware and in UTC.

A bridge decides nothing about who may talk (I10) and stores nothing of its own: it hands what it receives to the
gateway, which returns once it is stored, together with the position from which the bridge continues receiving (I1).
What goes out comes in parts with a key each, one body for ever (I8). One bridge's failure is its own (F39): it raises
`BridgeError`, and is run again after a pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, Protocol

from assistant.core.dataclass import dataclass
from assistant.core.messages import Media
from assistant.core.records import InboxReceipt, OutboxItem, OutboxState
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import preview_line

# ---------------------------------------------------------------------------------------------------------- coming in


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """A message as it comes in from a bridge, before its sender is looked up. A button that was pressed arrives as its
    command."""

    bridge: str
    external_id: str
    sender: str  # the account, as the network names it
    content: str
    sender_name: str = ""  # as the account names itself
    media: tuple[Media, ...] = ()
    target: str = ""  # where an answer goes
    room: str | None = None  # None between two
    room_name: str = ""
    addressed: bool = True  # in a room: whether it is for the assistant
    position: str = ""  # from where the bridge continues receiving after this message


@dataclass(frozen=True, slots=True)
class MessageChange:
    """A message that was edited or deleted on the network after it had arrived."""

    bridge: str
    external_id: str  # of the message
    change_id: str  # the network's own, of the change
    kind: Literal["edit", "delete"]
    sender: str  # "" where a network does not say who deleted it
    content: str = ""  # the new text; "" where it was deleted
    room: str | None = None
    position: str = ""


class InboundPort(Protocol):
    """Where a bridge hands in what it received. Every call is durable when it returns, and raises `StoreError` where
    nothing was stored: the bridge then acknowledges nothing, and asks the network again."""

    async def receive(self, arrival: InboundMessage) -> InboxReceipt | None:
        """Acknowledge to the network after this, never before. None: no answer of a model follows. The same pair of
        bridge and external_id is kept once."""

    def accepts_from(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        """Whether a message from there is stored: asked before a file is fetched, which anybody could send for ever."""

    async def receive_change(self, change: MessageChange) -> None:
        """A change of a message that was never stored has no effect."""

    def load_position(self, bridge: str) -> str:
        """From where the bridge continues receiving; "" where it never did."""

    def save_position(self, bridge: str, position: str) -> None:
        """The bridge came this far, and there was nothing to store."""

    def mark_connected(self, bridge: str) -> None:
        """The network answers: its status is green, and what waits for it is sent."""


# ----------------------------------------------------------------------------------------------------------- going out


@dataclass(frozen=True, slots=True)
class BridgeCapabilities:
    """What a bridge can do."""

    edit: bool = False  # sent messages can be changed: live text is shown in one message
    typing: bool = False
    media: bool = False  # it sends files; without it a file is only named
    buttons: bool = False  # without it the text has the command of a button
    max_length: int | None = None  # of one message, in `length_unit`; longer texts come in parts
    length_unit: Literal["characters", "utf-16", "utf-8"] = "characters"
    dedupe_seconds: float = 0  # for how long a resend under the same key is shown once; 0: never
    shows_sessions: bool = False  # it shows sessions to everybody who looks at them, rather than places


@dataclass(frozen=True, slots=True)
class OutgoingPart:
    """One network message of an outgoing message. Buttons come with the last one."""

    item: OutboxItem
    number: int  # from 1
    text: str  # Markdown; "" for a file
    last: bool = True
    media: Media | None = None  # a file is a part of its own

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

    async def run(self, inbound: InboundPort) -> None:
        """Receive until cancelled; call `inbound.mark_connected` once connected. Raises `BridgeError` where it cannot
        go on; it is run again after a pause. May be run again after it was cancelled, too."""

    async def send(self, part: OutgoingPart) -> None:
        """Deliver under `part.key`. Returns once the network has it. Raises `BridgeError`, `ambiguous` where it may
        have arrived. Called for one part at a time, also before `run` and after it was cancelled."""

    def show(self, event: TurnEvent, target: str) -> None:
        """Provisional display at a target; must not block and must not raise. For terminals `target` is "": there it is
        shown to everybody who looks at the session."""

    async def aclose(self) -> None:
        """Close what was opened, after `run` was cancelled."""


# Each has a section in config.toml.
NETWORK_NAMES = ("telegram", "matrix", "discord", "slack", "mail")

BridgeState = Literal["connected", "connecting", "paused", "failing", "off"]


@dataclass(frozen=True, slots=True)
class BridgeStatus:
    """One bridge."""

    name: str
    state: BridgeState
    account: str = ""  # who we are there; "" where that is not known yet
    since: datetime | None = None  # when it came into this state
    waiting: int = 0  # how many messages are to be sent there
    error: str = ""  # the last one; "" where there is none


@dataclass(frozen=True, slots=True)
class UndeliveredItem:
    """A message that is not sent automatically any more: it may or may not have arrived (`ambiguous`), was refused
    (`failed`), or must not be sent (`withheld`); or one that is still to be sent (`pending`, `sending`), with an
    `error` where a try failed."""

    id: int
    state: OutboxState
    bridge: str
    target: str
    session: str
    scope: str
    body: str
    error: str
    parts_sent: int  # how many of its parts the network has for certain
    attempts: int
    created_at: datetime
    updated_at: datetime

    @property
    def is_sent_automatically(self) -> bool:
        """Whether it is sent without a decision of the owner."""
        return self.state in ("pending", "sending")

    @property
    def preview(self) -> str:
        """Its beginning on one line; of words for others than the owner only for whom they are."""
        return preview_line(self.body) if self.scope == OWNER_SCOPE else f"(for {self.session})"


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """What became of one delivery."""

    state: OutboxState
    error: str


@dataclass(frozen=True, slots=True)
class RedirectResult:
    """What became of the deliveries that waited for a bridge."""

    redirected: int  # the owner's, which go to the terminal
    still_waiting: int  # those for others


@dataclass(frozen=True, slots=True)
class DeviceLogin:
    """A device of a Matrix account."""

    user: str
    device: str
    token: str = field(repr=False)
