"""Bridges: what comes in from a network, what goes out to it, and the port between.

What always holds: a bridge decides nothing about who may talk (I10) and keeps nothing durable of its own: what it
receives it hands through the `Door`, which returns once it is kept, and where it goes on receiving is kept with it
(I1). What goes out comes in parts with a key each, one body for ever (I8). One bridge's failure is its own (F39): it
says so with `BridgeError`, and is run again after a pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from assistant.core.messages import Media
from assistant.core.records import Accepted, OutboxItem

# ---------------------------------------------------------------------------------------------------------- coming in


@dataclass(frozen=True, slots=True)
class Arrival:
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
class Change:
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


class Door(Protocol):
    """Where a bridge hands in what it received. Every call is durable when it returns, and raises `StoreError` where it
    was not kept: the network is told nothing then, and asked again."""

    async def receive(self, arrival: Arrival) -> Accepted | None:
        """Acknowledge to the network after this, never before. None: no answer of a model follows. The same pair of
        bridge and external_id is kept once."""
        ...

    def expects(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        """Whether what they say there is kept: asked before a file is fetched, which strangers could send for ever."""
        ...

    async def change(self, change: Change) -> None:
        """Of a message that never was kept nothing is."""
        ...

    def position(self, bridge: str) -> str:
        """Where the bridge goes on receiving; "" where it never did."""
        ...

    def advance(self, bridge: str, position: str) -> None:
        """It came this far with nothing to keep."""
        ...

    def connected(self, bridge: str) -> None:
        """The network answers: its status is green, and what waits for it is sent."""
        ...


class States(Protocol):
    """How far each bridge has come, durably, and which the owner paused. Raises `StoreError`."""

    def position(self, bridge: str) -> str: ...
    def advance(self, bridge: str, position: str) -> None: ...
    def paused(self, bridge: str) -> bool: ...
    def pause(self, bridge: str, paused: bool) -> None: ...
    def forget(self, bridge: str) -> None: ...


# ----------------------------------------------------------------------------------------------------------- going out


@dataclass(frozen=True, slots=True)
class Capabilities:
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
    length_in: Literal["characters", "utf-16", "utf-8"] = "characters"
    dedupe_seconds: float = 0
    terminals: bool = False


@dataclass(frozen=True, slots=True)
class Part:
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
    def capabilities(self) -> Capabilities: ...

    async def check(self) -> str:
        """Ask the network who we are there, as in "@nocturne_bot": for set-up and the doctor. Raises `BridgeError`."""
        ...

    async def run(self, door: Door) -> None:
        """Receive until cancelled, telling `door` once connected. Raises `BridgeError` where it cannot go on; it is run
        again after a pause. May be run again after it was cancelled, too."""
        ...

    async def send(self, part: Part) -> None:
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
