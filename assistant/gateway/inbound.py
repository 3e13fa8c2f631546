"""The one door for what comes in from bridges: who is it, may they talk, and in which conversation.

What always holds: who sent something is what the network says of the account, looked up in what the owner decided;
nothing in a message takes part in that (I10). The owner's accounts come into the owner's conversations, everybody else
into one of their own, a room into the room's, whoever speaks there. Of what somebody says who was not let in, nothing
is kept. A command is kept before it is acknowledged, run once, and answered once, across a crash too: one that was
running then is reported as cut off, never run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import structlog

from assistant.core.bridge_api import InboundMessage, MessageChange
from assistant.core.errors import AssistantError, StoreError, ToolError, UsageError
from assistant.core.people import Identity, Person, clean_display_name
from assistant.core.records import InboxReceipt, IncomingMessage, OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, peer_session_key, room_session_key, session_role, session_scope
from assistant.core.slash_commands import PendingCommand
from assistant.store.script.edits import MessageEdits
from assistant.store.script.inbox import SlashCommandQueue
from assistant.store.script.people import ConversationRoutes, People
from assistant.store.script.state import BridgeStates

log = structlog.get_logger()

COMMAND_INTERRUPTED = (
    "The assistant was stopped while it ran this command. Whether that took effect is not known: look before repeating."
)
COMMAND_FAILED = "That did not work, by no fault of yours. Try again later."


@dataclass(frozen=True, slots=True)
class InboundStores:
    """What is kept of those who write over bridges: who they are, where the owner's places lead, what they typed, how
    far each bridge has come, and what was edited."""

    people: People
    routes: ConversationRoutes
    pending_commands: SlashCommandQueue
    bridge_states: BridgeStates
    message_edits: MessageEdits


class InboundHandler:
    """Implements `bridge_ports.Door`."""

    def __init__(
        self,
        stores: InboundStores,
        unknown_senders: UnknownSenderPolicy,
        slash_commands: SlashCommandRunner,
        accept: Callable[[IncomingMessage], Awaitable[InboxReceipt]],
        bridges: BridgeSignals,
        answers_everything_in_rooms: Callable[[], bool],
        clock: Callable[[], datetime],
    ) -> None:
        """`accept` keeps a message that is to be answered; `everything` tells whether in a room what was not meant for
        the assistant is answered too."""
        self._people = stores.people
        self._places = stores.places
        self._typed = stores.typed_commands
        self._states = stores.bridge_states
        self._changes = stores.message_changes
        self._desk = unknown_senders
        self._slash = slash_commands
        self._accept = accept
        self._ways = bridges
        self._everything = answers_everything_in_rooms
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def recover_after_crash(self) -> None:
        """At start: commands that an earlier process did not answer."""
        for command in self._typed.list_open():
            if command.begun:
                self._answer(command, COMMAND_INTERRUPTED)
            else:
                self._run(command)

    async def stop(self) -> None:
        """Commands that still run are given up; the next start tells of them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def wait_until_idle(self) -> None:
        """Wait until every command is answered."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def load_position(self, bridge: str) -> str:
        return self._states.load_position(bridge)

    def save_position(self, bridge: str, position: str) -> None:
        self._states.save_position(bridge, position)

    def mark_connected(self, bridge: str) -> None:
        self._ways.mark_connected(bridge)

    async def receive_change(self, change: MessageChange) -> None:
        """See `bridge_ports.Door`. What somebody changes who is not let in, or not any more, is left as it was."""
        person = self._people.find_by_identity(Identity(change.bridge, change.sender))
        if not self.accepts_from(change.bridge, change.sender, change.room, addressed=True):
            self._states.save_position(change.bridge, change.position)
        else:
            owners = person is not None and person.role == "owner"
            words = change.content if owners else truncate_guest_text(change.content)
            self._changes.record_change(replace(change, content=words), self._clock())

    async def receive(self, arrival: InboundMessage) -> InboxReceipt | None:
        """See `bridge_ports.Door`."""
        incoming = self._let_in(arrival)
        if incoming is None:
            if arrival.position:
                self._states.save_position(arrival.bridge, arrival.position)
            return None
        if (text := self._command(incoming.content)) is not None:
            self._take(incoming, text, self._clock())
            return None
        return await self._accept(incoming)

    def accepts_from(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        """See `bridge_ports.Door`."""
        person = self._people.find_by_identity(Identity(bridge, sender))
        if not sender or (person is not None and person.state == "denied"):
            return False
        return person is not None if room is None else self._listens(bridge, room, addressed=addressed)

    def _listens(self, bridge: str, room: str, *, addressed: bool) -> bool:
        """Whether what is said in a room, to the assistant or not, is to be answered."""
        known = self._people.get_room(bridge, room)
        return known is not None and known.state == "allowed" and (addressed or self._everything())

    def _let_in(self, arrival: InboundMessage) -> IncomingMessage | None:
        """What is to be answered, as the message it is; None where nothing of it is kept."""
        if not arrival.sender or arrival.room == "" or not (arrival.content.strip() or arrival.media):
            return None
        now = self._clock()
        person = self._people.find_by_identity(Identity(arrival.bridge, arrival.sender))
        if person is not None and person.state == "denied":
            return None
        owners = person is not None and person.role == "owner"
        if not owners and self._desk.redeem_link_code(arrival, now):
            self._places.record_account(arrival.bridge, arrival.target, arrival.sender)
            self._ways.wake(arrival.bridge)
            return None
        session = self._session(arrival, person)
        if session is None:
            self._pass_over(arrival, now)
            return None
        words = arrival.content if owners else truncate_guest_text(arrival.content)
        return IncomingMessage(
            arrival.bridge,
            arrival.external_id,
            session,
            session_scope(session),
            arrival.sender,
            "owner" if owners else "guest",
            words,
            arrival.media,
            _name_in(arrival),
            arrival.target,
            arrival.position,
        )

    def _session(self, arrival: InboundMessage, person: Person | None) -> str | None:
        """Where this belongs; None where it is not to be answered."""
        if arrival.room is not None:
            listens = self._listens(arrival.bridge, arrival.room, addressed=arrival.addressed)
            return room_session_key(arrival.bridge, arrival.room) if listens else None
        if person is None:
            return None
        self._places.record_account(arrival.bridge, arrival.target, arrival.sender)
        if person.role == "owner":
            session = self._places.session_at(arrival.bridge, arrival.target)
            return session if session_role(session) == "owner" else MAIN_SESSION
        return peer_session_key(arrival.bridge, arrival.sender)

    def _pass_over(self, arrival: InboundMessage, now: datetime) -> None:
        """Who was let in but not addressed, or was denied, hears nothing; whoever nobody decided on may be told."""
        if arrival.room is not None:
            decided = self._people.get_room(arrival.bridge, arrival.room) is not None
            if decided or not arrival.addressed:
                return
        self._desk.handle_stranger(arrival, now)
        self._ways.wake()

    # --------------------------------------------------------------------------------------------------------- commands

    def _command(self, text: str) -> str | None:
        """`text` as a command; networks let people address one as in `/help@name`. None where it is a message."""
        if not text.lstrip().startswith("/"):
            return None
        name, *rest = text.strip().split(maxsplit=1)
        name = name.partition("@")[0].lower()
        return " ".join([name, *rest]) if name in self._slash.names() else None

    def _take(self, incoming: IncomingMessage, text: str, now: datetime) -> None:
        command = self._typed.accept(incoming, text, now)
        if command is not None:
            self._run(command)

    def _run(self, command: PendingCommand) -> None:
        task = asyncio.create_task(self._answered_by(command), name=f"command {command.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(partial(self._failed, command))

    async def _answered_by(self, command: PendingCommand) -> None:
        self._typed.mark_running(command)
        try:
            text = await self._slash.run(
                command.text, command.session, bridge=command.bridge, target=command.target, sender=command.sender
            )
        except (ToolError, UsageError) as error:
            text = str(error)
        except AssistantError as error:
            # What failed names files and sessions: that is for the owner.
            text = str(error) if session_role(command.session) == "owner" else COMMAND_FAILED
        self._answer(command, text)

    def _failed(self, command: PendingCommand, task: asyncio.Task[None]) -> None:
        """A fault of ours ends the command with a notice; one that cannot be written waits for the next start."""
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        log.error("command failed", command=command.id, error=type(error).__name__)
        if not isinstance(error, StoreError):
            self._answer(command, COMMAND_FAILED)

    def _answer(self, command: PendingCommand, text: str) -> None:
        outgoing = OutgoingMessage(
            f"command:{command.id}", command.session, command.scope, command.bridge, command.target, text, "notice"
        )
        self._typed.save_answer(command, outgoing, self._clock())
        self._ways.wake(command.bridge)


def _name_in(arrival: InboundMessage) -> str | None:
    """In a room it has to be seen who speaks."""
    return (
        None
        if arrival.room is None
        else clean_display_name(arrival.sender_name) or clean_display_name(arrival.sender) or None
    )


def truncate_guest_text(text: str) -> str:
    """What somebody else says, as far as it is taken."""
    if len(text) <= MAX_GUEST_CHARACTERS:
        return text
    return f"{text[:MAX_GUEST_CHARACTERS]}\n[{len(text) - MAX_GUEST_CHARACTERS:,} more characters were not taken.]"


MAX_GUEST_CHARACTERS = 8000
