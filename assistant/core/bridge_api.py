"""The bridge interface: inbound and outbound messages, the ports between bridge and gateway, and the state of bridges
and deliveries. Times are aware and in UTC.

A bridge makes no access decisions (I10) and persists nothing: it passes what it receives to the gateway, which returns
once the message and the bridge's position (resume token) are stored (I1). Outbound messages are sent in parts, each
with a key and an immutable body (I8). Bridges fail independently (F39): one that raises `BridgeError` is restarted
after a pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from assistant.core.dataclass import dataclass
from assistant.core.messages import Media
from assistant.core.records import InboxReceipt, OutboxItem, OutboxState
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import preview_line

# ---------------------------------------------------------------------------------------------------------- coming in


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """A message received by a bridge, before its sender is resolved. A pressed button arrives as its command."""

    bridge: str
    external_id: str
    sender: str  # the account, as the network names it
    content: str
    sender_name: str = ""  # as the account names itself
    media: tuple[Media, ...] = ()
    target: str = ""  # where the reply is sent
    room: str | None = None  # None in a direct chat
    room_name: str = ""
    addressed: bool = True  # in a room: whether the assistant is addressed
    position: str = ""  # where the bridge resumes receiving after this message


@dataclass(frozen=True, slots=True)
class MessageChange:
    """An edit or deletion of an earlier message."""

    bridge: str
    external_id: str  # of the message
    change_id: str  # the network's id of the change
    kind: Literal["edit", "delete"]
    sender: str  # "" if the network does not say who deleted it
    content: str = ""  # the new text; "" for a deletion
    room: str | None = None
    position: str = ""


class InboundPort(Protocol):
    """Where a bridge hands in what it received. Calls are durable when they return, and raise `StoreError` if nothing
    was stored: the bridge then must not acknowledge, and fetches again."""

    async def receive(self, arrival: InboundMessage) -> InboxReceipt | None:
        """Store a message, once per (bridge, external_id). Acknowledge to the network only after this returns. Returns
        None if no model reply will follow."""

    def accepts_from(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        """Return whether a message from this sender would be stored. Called before a file is downloaded, so that
        strangers cannot make us download without limit."""

    async def receive_change(self, change: MessageChange) -> None:
        """Apply an edit or deletion. Does nothing if the message was never stored."""

    def load_position(self, bridge: str) -> str:
        """Return the position at which the bridge resumes receiving, or "" if there is none."""

    def save_position(self, bridge: str, position: str) -> None:
        """Store a new position when there was no message to store."""

    def mark_connected(self, bridge: str) -> None:
        """Record that the network answers: the bridge is connected, and pending deliveries are sent."""


# ----------------------------------------------------------------------------------------------------------- going out


@dataclass(frozen=True, slots=True)
class BridgeCapabilities:
    """What a bridge supports."""

    edit: bool = False  # sent messages can be edited: streamed text is shown in one message
    typing: bool = False
    media: bool = False  # can send files; otherwise a file is only named
    buttons: bool = False  # otherwise the command of a button is in the text
    max_length: int | None = None  # of one message, in `length_unit`; longer texts are split
    length_unit: Literal["characters", "utf-16", "utf-8"] = "characters"
    dedupe_seconds: float = 0  # how long the network deduplicates resends by key; 0: never
    shows_key_once: bool = False  # whoever receives it shows a key once, whenever it comes again
    shows_sessions: bool = False  # shows whole sessions to all connected clients, not single targets


@dataclass(frozen=True, slots=True)
class OutgoingPart:
    """One network message of an outgoing message. Buttons are in the last one."""

    item: OutboxItem
    number: int  # from 1
    text: str  # Markdown; "" for a file
    last: bool = True
    media: Media | None = None  # a file is a part of its own

    @property
    def key(self) -> str:
        """The idempotency key of the part: stable across retries, unique per part."""
        key = self.item.outgoing.key
        return key if self.number == 1 else f"{key}#{self.number}"


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """Transient progress of a running turn; never stored. Kinds and their `data`:
    `turn` {state: "started"|"answered"|"failed"|"aborted", message_ids}, `delta` {text}, `tool` {name, state, call},
    `notice` {text}, `discard` {} (withdraws the text streamed so far: the call failed or returned tool calls). Of no
    turn: `changed` {} (what was said before was undone or forgotten).
    """

    kind: Literal["turn", "delta", "tool", "notice", "discard", "changed"]
    session: str
    turn: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Bridge(Protocol):
    """A connection to a chat network or client."""

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> BridgeCapabilities: ...

    async def check(self) -> str:
        """Return the bot's account name on the network, e.g. "@nocturne_bot"; used by set-up and the doctor. Raises
        `BridgeError`."""

    async def run(self, inbound: InboundPort) -> None:
        """Receive until cancelled; call `inbound.mark_connected` once connected. Raises `BridgeError` if it cannot
        continue; it is restarted after a pause, and may be restarted after cancellation."""

    async def send(self, part: OutgoingPart) -> None:
        """Deliver under `part.key`; returns once the network has it. Raises `BridgeError`, with `ambiguous` set if the
        part may have arrived. Called for one part at a time, also before `run` and after its cancellation."""

    def show(self, event: TurnEvent, target: str) -> None:
        """Show transient progress at a target; must not block or raise. For terminals `target` is "": all clients that
        watch the session see it."""

    async def aclose(self) -> None:
        """Close all resources, after `run` was cancelled."""


@runtime_checkable
class PollableBridge(Bridge, Protocol):
    """A bridge whose network can be asked whether anything waits: it need not run all the time."""

    async def has_news(self, position: str) -> bool:
        """Return whether `run` would receive anything after a stored position. Confirms nothing to the network, and is
        called while nobody runs the bridge. Raises `BridgeError`."""


# Each has a section in config.toml.
NETWORK_NAMES = ("telegram", "matrix", "discord", "slack", "mail")

BridgeState = Literal["connected", "connecting", "paused", "failing", "off"]


@dataclass(frozen=True, slots=True)
class BridgeStatus:
    """The state of one bridge."""

    name: str
    state: BridgeState
    account: str = ""  # the bot's account name; "" if not known yet
    since: datetime | None = None  # when it entered this state
    waiting: int = 0  # number of pending deliveries
    error: str = ""  # the latest; "" if none


@dataclass(frozen=True, slots=True)
class UndeliveredItem:
    """A message whose delivery is unfinished. Not sent automatically any more: `ambiguous` (may have arrived), `failed`
    (refused) and `withheld` (must not be sent). Still to be sent: `pending` and `sending`, with an `error` if an
    attempt failed."""

    id: int
    state: OutboxState
    bridge: str
    target: str
    session: str
    scope: str
    body: str
    error: str
    parts_sent: int  # parts that the network has confirmed
    attempts: int
    created_at: datetime
    updated_at: datetime

    @property
    def is_sent_automatically(self) -> bool:
        """Whether it is sent without a decision by the owner."""
        return self.state in ("pending", "sending")

    @property
    def preview(self) -> str:
        """Its beginning on one line; for anyone else's message, only whom it is for."""
        return preview_line(self.body) if self.scope == OWNER_SCOPE else f"(for {self.session})"


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """The result of one delivery."""

    state: OutboxState
    error: str


@dataclass(frozen=True, slots=True)
class RedirectResult:
    """What happened to the pending deliveries of a bridge."""

    redirected: int  # the owner's, redirected to the terminal
    still_waiting: int  # other people's


@dataclass(frozen=True, slots=True)
class DeviceLogin:
    """A device login of a Matrix account."""

    user: str
    device: str
    token: str = field(repr=False)
