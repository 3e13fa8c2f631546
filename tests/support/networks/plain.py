"""Two networks in memory, with the plainest bridge there can be over each: one that can do everything, and one that
shows nothing but short texts, where whatever it is sent appears, so that every fallback of the app is seen too."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from assistant.core.bridge_api import (
    Bridge,
    BridgeCapabilities,
    InboundMessage,
    InboundPort,
    MessageChange,
    OutgoingPart,
    TurnEvent,
)
from assistant.core.errors import BridgeError
from assistant.core.messages import Media
from assistant.settings.settings import Settings
from assistant.wire.app import App
from tests.support.networks.network import (
    ConversationPlace,
    NetworkAbilities,
    NetworkRefused,
    PersonKind,
    VisibleMessage,
)

_EVERYTHING = BridgeCapabilities(edit=True, typing=True, media=True, buttons=True, max_length=500, dedupe_seconds=3600)
_TEXT = BridgeCapabilities(max_length=160, length_unit="utf-8")
ROOM = "the-room"


@dataclass(frozen=True, slots=True)
class _Event:
    """Something that people did, as the network hands it to the bridge: under `number`, again and again until the
    bridge asks for what comes after it."""

    number: int
    kind: Literal["say", "edit", "delete", "press"]
    id: str
    who: PersonKind
    text: str = ""
    where: ConversationPlace = "private"
    addressed: bool = True
    thread: str = ""
    media: tuple[Media, ...] = ()


@dataclass(slots=True)
class _Shown:
    seen: VisibleMessage
    place: str
    commands: dict[str, str] = field(default_factory=dict)
    final: bool = True


class PlainNetwork:
    def __init__(self, *, able: bool) -> None:
        self.name = "able" if able else "plain"
        self.capabilities = _EVERYTHING if able else _TEXT
        self.abilities = NetworkAbilities(threads=able, edits=able, deletes=able, pictures=able, files=able)
        self.room = ROOM
        self.send_attempts = 0
        self._events: list[_Event] = []
        self._shown: list[_Shown] = []
        self._known: dict[str, datetime] = {}
        self._typing: dict[str, int] = {}
        self._refusals: list[float | None] = []
        self._cuts: list[Literal["before", "after"]] = []
        self._gone = False
        self._changed = asyncio.Event()

    # ------------------------------------------------------------------------------------------------ the bridge's side

    def bridge(self, settings: Settings, clock: Callable[[], datetime]) -> Bridge:
        return PlainBridge(self, clock)

    def serve_app(self, app: App) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def after(self, number: int) -> list[_Event]:
        """Long polling: what happened after `number`, once there is something. Raises `BridgeError`."""
        while True:
            self.answer()
            if found := [event for event in self._events if event.number > number]:
                return found
            await self._moved()

    def answer(self) -> None:
        """Raises `BridgeError` where the network is gone."""
        if self._gone:
            raise BridgeError(f"{self.name} does not answer.")

    def accept_message(
        self, key: str, place: str, seen: VisibleMessage, commands: dict[str, str], now: datetime
    ) -> None:
        """Show a message; one under a key that the network has known for less than its window is not shown again."""
        self.send_attempts += 1
        self._move()
        self.answer()
        if self._refusals:
            wait = self._refusals.pop(0)
            raise BridgeError("This network does not take it.", retry_after=wait, refused=wait is None)
        cut = self._cuts.pop(0) if self._cuts else None
        if cut == "before":
            raise BridgeError("The connection broke.", ambiguous=True)
        window = timedelta(seconds=self.capabilities.dedupe_seconds)
        if key not in self._known or now - self._known[key] >= window:
            self._known[key] = now
            self._show(place, seen, commands)
        if cut == "after":
            raise BridgeError("The connection broke.", ambiguous=True)

    def _show(self, place: str, seen: VisibleMessage, commands: dict[str, str]) -> None:
        draft = next((shown for shown in self._shown if not shown.final and shown.place == place), None)
        if draft is None or seen.file is not None:
            draft = _Shown(replace(seen, id=f"a{len(self._shown) + 1}"), place)
            self._shown.append(draft)
        else:
            drafts = (*draft.seen.drafts, draft.seen.text)
            draft.seen = replace(seen, id=draft.seen.id, drafts=drafts)
        draft.final, draft.commands = True, commands
        self._move()

    def draft(self, place: str, text: str) -> None:
        """Live text: in one message that changes; "" takes it away."""
        found = next((shown for shown in self._shown if not shown.final and shown.place == place), None)
        if not text:
            self._shown = [shown for shown in self._shown if shown is not found]
        elif found is None:
            self._shown.append(_Shown(VisibleMessage(f"a{len(self._shown) + 1}", text), place, final=False))
        else:
            found.seen = replace(found.seen, text=text, drafts=(*found.seen.drafts, found.seen.text))
        self._move()

    def type(self, place: str) -> None:
        self._typing[place] = self._typing.get(place, 0) + 1
        self._move()

    # ----------------------------------------------------------------------------------------------------------- people

    def account(self, who: PersonKind) -> str:
        return f"{who}-7"

    async def say(
        self,
        who: PersonKind,
        text: str,
        *,
        where: ConversationPlace = "private",
        addressed: bool = True,
        thread: str = "",
    ) -> str:
        if thread and not self.abilities.threads:
            raise NetworkRefused("There are no threads here.")
        number = len(self._events) + 1
        return self._happened(_Event(number, "say", f"m{number}", who, text, where, addressed, thread))

    async def edit(self, who: PersonKind, message: str, text: str) -> None:
        if not self.abilities.edits:
            raise NetworkRefused("What was said stays.")
        said = self._said(message)
        self._happened(replace(said, number=len(self._events) + 1, kind="edit", who=who, text=text))

    async def delete(self, who: PersonKind, message: str) -> None:
        if not self.abilities.deletes:
            raise NetworkRefused("What was said stays.")
        said = self._said(message)
        self._happened(replace(said, number=len(self._events) + 1, kind="delete", who=who, text=""))

    async def press(self, who: PersonKind, message: str, label: str) -> None:
        shown = next(shown for shown in self._shown if shown.seen.id == message)
        if label not in shown.commands:
            raise NetworkRefused("There is no such button.")
        number = len(self._events) + 1
        self._happened(_Event(number, "press", f"m{number}", who, shown.commands[label]))

    async def send_picture(self, who: PersonKind, data: bytes, caption: str = "") -> str:
        return self._send(who, Media("image", "image/png", "picture.png", len(data), _base64(data)), caption)

    async def send_file(self, who: PersonKind, name: str, data: bytes, caption: str = "") -> str:
        return self._send(who, Media("file", "text/plain", name, len(data), _base64(data)), caption)

    def _send(self, who: PersonKind, media: Media, caption: str) -> str:
        if not self.abilities.files:
            raise NetworkRefused("Text alone.")
        number = len(self._events) + 1
        return self._happened(_Event(number, "say", f"m{number}", who, caption, media=(media,)))

    async def redeliver(self, message: str) -> None:
        self._happened(replace(self._said(message), number=len(self._events) + 1))

    def _said(self, message: str) -> _Event:
        return next(event for event in self._events if event.id == message and event.kind == "say")

    def _happened(self, event: _Event) -> str:
        self._events.append(event)
        self._move()
        return event.id

    def visible_messages(self, who: PersonKind, where: ConversationPlace = "private") -> tuple[VisibleMessage, ...]:
        place = self.place(who, where)
        return tuple(shown.seen for shown in self._shown if shown.place.partition("/")[0] == place)

    def typing_count(self, who: PersonKind, where: ConversationPlace = "private") -> int:
        return self._typing.get(self.place(who, where), 0)

    def place(self, who: PersonKind, where: ConversationPlace) -> str:
        return self.account(who) if where == "private" else ROOM

    async def wait_until(self, true: Callable[[], bool]) -> None:
        while not true():
            await self._moved()

    # --------------------------------------------------------------------------------------------------------- troubles

    def refuse_sends(self, calls: int, retry_after: float | None) -> None:
        self._refusals += [retry_after] * calls

    def cut_connections(self, when: Literal["before", "after"], calls: int = 1) -> None:
        self._cuts += [when] * calls

    async def go_offline(self) -> None:
        self._gone = True
        self._move()

    async def go_online(self) -> None:
        self._gone = False
        self._move()

    async def aclose(self) -> None:
        return None

    def _move(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _moved(self) -> None:
        await self._changed.wait()


class PlainBridge:
    def __init__(self, network: PlainNetwork, clock: Callable[[], datetime]) -> None:
        self._network = network
        self._clock = clock
        self.name = network.name
        self.capabilities = network.capabilities
        self._texts: dict[str, str] = {}

    async def check(self) -> str:
        self._network.answer()
        return f"@{self.name}"

    async def run(self, inbound: InboundPort) -> None:
        self._network.answer()
        inbound.mark_connected(self.name)
        number = int(inbound.load_position(self.name) or 0)
        while True:
            for event in await self._network.after(number):
                await self._hand_in(inbound, event)
                number = event.number

    async def _hand_in(self, door: InboundPort, event: _Event) -> None:
        sender, position = self._network.account(event.who), str(event.number)
        room = ROOM if event.where == "room" else None
        if event.kind in ("edit", "delete"):
            kind: Literal["edit", "delete"] = "edit" if event.kind == "edit" else "delete"
            await door.receive_change(
                MessageChange(self.name, event.id, f"c{event.number}", kind, sender, event.text, room, position)
            )
            return
        target = self._network.place(event.who, event.where) + (f"/{event.thread}" if event.thread else "")
        await door.receive(
            InboundMessage(
                self.name,
                event.id,
                sender,
                event.text,
                media=event.media,
                target=target,
                room=room,
                addressed=event.addressed,
                position=position,
            )
        )

    async def send(self, part: OutgoingPart) -> None:
        outgoing = part.item.outgoing
        buttons = outgoing.buttons if part.last and self.capabilities.buttons else ()
        text = part.text
        seen = VisibleMessage("", text, len(text.encode()), buttons=tuple(button.label for button in buttons))
        if part.media is not None:
            seen = replace(seen, file=base64.b64decode(part.media.data or ""), file_name=part.media.name)
        seen = replace(seen, thread=outgoing.target.partition("/")[2])
        commands = {button.label: button.command for button in buttons}
        self._network.accept_message(part.key, outgoing.target, seen, commands, self._clock())

    def show(self, event: TurnEvent, target: str) -> None:
        if self.capabilities.typing and event.kind == "turn" and event.data["state"] == "started":
            self._network.type(target)
        if not self.capabilities.edit:
            return
        if event.kind == "delta":
            self._texts[target] = self._texts.get(target, "") + event.data["text"]
            self._network.draft(target, self._texts[target])
        elif event.kind == "discard":
            self._network.draft(target, "")
        if event.kind in ("turn", "discard"):
            self._texts.pop(target, None)

    async def aclose(self) -> None:
        return None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
