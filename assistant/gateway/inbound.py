"""Handles everything received from bridges: identifies the sender, checks access, and selects the session.

The network identifies the account, and the owner's decisions identify the person; message content is never considered
(I10). The owner's accounts write to the owner's sessions, other people to their own, rooms to the room's. Messages of
people without access are not stored. A command is persisted before it is acknowledged, and runs and is answered once,
even across a crash: an interrupted one is reported and not run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import field, replace
from datetime import datetime
from functools import partial

from assistant.core.bridge_api import InboundMessage, MessageChange
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, StoreError, ToolError, UsageError
from assistant.core.logger import get_logger
from assistant.core.notices import NoticeKind
from assistant.core.people import Identity, Person, clean_display_name
from assistant.core.ports import Barrier
from assistant.core.records import InboxReceipt, IncomingMessage, PendingCommand
from assistant.core.sessions import MAIN_SESSION, peer_session_key, room_session_key, session_role, session_scope
from assistant.gateway.dispatcher import Dispatcher
from assistant.store.script.edits import MessageEdits
from assistant.store.script.inbox import BridgeStates, SlashCommandQueue
from assistant.store.script.people import ConversationRoutes, People

log = get_logger()

MAX_GUEST_CHARACTERS = 8000
COMMAND_INTERRUPTED = (
    "The assistant was stopped while it ran this command. It may have taken effect: check before you repeat it."
)
COMMAND_FAILED = "That did not work, through no fault of yours. Try again later."


@dataclass(slots=True)
class InboundHandler:
    """The daemon's `InboundPort`.

    - `people`: known people and rooms.
    - `routes`: the session of each of the owner's reply targets.
    - `pending_commands`: queued commands.
    - `bridge_states`: receive positions.
    - `message_edits`: edits of earlier messages.
    - `accept`: stores a message to be answered.
    - `handle_stranger`, `redeem_link_code`: handle people without access.
    - `command_name`: returns the name of a typed command, "" for a message.
    - `command_names`, `run_command`: the slash commands.
    - `answers_everything_in_rooms`: whether to answer messages in rooms that are not addressed to the assistant.
    - `barrier`: waits until another machine has what was stored; None where there is none.
    """

    people: People
    routes: ConversationRoutes
    pending_commands: SlashCommandQueue
    bridge_states: BridgeStates
    message_edits: MessageEdits
    accept: Callable[[IncomingMessage], Awaitable[InboxReceipt]]
    handle_stranger: Callable[[InboundMessage, datetime], None]
    redeem_link_code: Callable[[InboundMessage, datetime], bool]
    command_name: Callable[[str], str]
    command_names: Callable[[], Collection[str]]
    run_command: Callable[[PendingCommand], Awaitable[str]]
    dispatcher: Dispatcher
    answers_everything_in_rooms: bool
    clock: Callable[[], datetime]
    barrier: Barrier | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def recover_after_crash(self) -> None:
        """At start-up, answer commands that an earlier process did not answer."""
        for command in self.pending_commands.list_open():
            if command.begun:
                self._save_answer(command, COMMAND_INTERRUPTED)
            else:
                self._start_command(command)

    async def stop(self) -> None:
        """Cancel running commands; the next start reports them as interrupted."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def is_running(self) -> bool:
        """Return whether a command is being run."""
        return bool(self._tasks)

    async def wait_until_idle(self) -> None:
        """Wait until every command is answered."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def load_position(self, bridge: str) -> str:
        return self.bridge_states.load_position(bridge)

    def save_position(self, bridge: str, position: str) -> None:
        self.bridge_states.save_position(bridge, position)

    def mark_connected(self, bridge: str) -> None:
        self.dispatcher.mark_connected(bridge)

    async def receive_change(self, change: MessageChange) -> None:
        """Record an edit or deletion; changes by people without access are ignored. If the network does not say who
        deleted a message, its sender is assumed."""
        if change.kind == "delete" and not change.sender:
            change = replace(change, sender=self.message_edits.find_sender(change.bridge, change.external_id))
        if not self.accepts_from(change.bridge, change.sender, change.room, addressed=True):
            self.bridge_states.save_position(change.bridge, change.position)
            return
        person = self.people.find_by_identity(Identity(change.bridge, change.sender))
        owners = person is not None and person.role == "owner"
        words = change.content if owners else truncate_guest_text(change.content)
        self.message_edits.record_change(replace(change, content=words), self.clock())
        await self._keep()

    async def _keep(self) -> None:
        """Before the network may forget what was received."""
        if self.barrier is not None:
            await self.barrier(0)

    async def receive(self, arrival: InboundMessage) -> InboxReceipt | None:
        incoming = self._authorize(arrival)
        if incoming is None:
            if arrival.position:
                self.bridge_states.save_position(arrival.bridge, arrival.position)
            return None
        if self._is_command(arrival):
            self._accept_command(incoming, incoming.content.strip(), self.clock())
            await self._keep()
            return None
        return await self.accept(incoming)

    def accepts_from(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        person = self.people.find_by_identity(Identity(bridge, sender))
        if not sender or (person is not None and person.state == "denied"):
            return False
        return person is not None if room is None else self._listens(bridge, room, addressed=addressed)

    def _listens(self, bridge: str, room: str, *, addressed: bool) -> bool:
        """Return whether to answer messages in a room."""
        decided_room = self.people.get_room(bridge, room)
        return (
            decided_room is not None
            and decided_room.state == "allowed"
            and (addressed or self.answers_everything_in_rooms)
        )

    def _authorize(self, arrival: InboundMessage) -> IncomingMessage | None:
        """Return the message to store, or None."""
        if not arrival.sender or arrival.room == "" or not (arrival.content.strip() or arrival.media):
            return None
        now = self.clock()
        person = self.people.find_by_identity(Identity(arrival.bridge, arrival.sender))
        if person is not None and person.state == "denied":
            return None
        owners = person is not None and person.role == "owner"
        if not owners and self.redeem_link_code(arrival, now):
            self.routes.record_account(arrival.bridge, arrival.target, arrival.sender)
            self.dispatcher.wake(arrival.bridge)
            return None
        session = self._session_for(arrival, person)
        if session is None:
            self._handle_unanswered(arrival, now)
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
            _room_speaker_name(arrival),
            arrival.target,
            arrival.position,
        )

    def _session_for(self, arrival: InboundMessage, person: Person | None) -> str | None:
        """Return the session of a message, or None if it is not to be answered."""
        if arrival.room is not None:
            listens = self._listens(arrival.bridge, arrival.room, addressed=arrival.addressed)
            return room_session_key(arrival.bridge, arrival.room) if listens else None
        if person is None:
            return None
        self.routes.record_account(arrival.bridge, arrival.target, arrival.sender)
        if person.role == "owner":
            session = self.routes.session_at(arrival.bridge, arrival.target)
            return session if session_role(session) == "owner" else MAIN_SESSION
        return peer_session_key(arrival.bridge, arrival.sender)

    def _handle_unanswered(self, arrival: InboundMessage, now: datetime) -> None:
        """Handle a message that is not answered: an undecided person may get a notice; known people and rooms get
        nothing."""
        if arrival.room is not None and (not arrival.addressed or self.people.get_room(arrival.bridge, arrival.room)):
            return
        self.handle_stranger(arrival, now)
        self.dispatcher.wake()

    # --------------------------------------------------------------------------------------------------------- commands

    def _is_command(self, arrival: InboundMessage) -> bool:
        """Return whether a message is a command. In a room, an unknown command may be for another bot, unless it is
        addressed to us."""
        name = self.command_name(arrival.content)
        return bool(name) and (arrival.room is None or arrival.addressed or f"/{name}" in self.command_names())

    def _accept_command(self, incoming: IncomingMessage, text: str, now: datetime) -> None:
        command = self.pending_commands.accept(incoming, text, now)
        if command is not None:
            self._start_command(command)

    def _start_command(self, command: PendingCommand) -> None:
        task = asyncio.create_task(self._answer_command(command), name=f"command {command.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(partial(self._on_command_ended, command))

    async def _answer_command(self, command: PendingCommand) -> None:
        self.pending_commands.mark_running(command)
        try:
            text = await self.run_command(command)
        except (ToolError, UsageError) as error:
            text = str(error)
        except AssistantError as error:
            # The error text may name files and sessions, which only the owner may see.
            text = str(error) if session_role(command.session) == "owner" else COMMAND_FAILED
        self._save_answer(command, text)

    def _on_command_ended(self, command: PendingCommand, task: asyncio.Task[None]) -> None:
        """After an unexpected error, answer with a notice; if it cannot be stored, the next start answers."""
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        log.error("command failed", command=command.id, error=type(error).__name__)
        if not isinstance(error, StoreError):
            self._save_answer(command, COMMAND_FAILED)

    def _save_answer(self, command: PendingCommand, text: str) -> None:
        outgoing = NoticeKind.COMMAND_ANSWER.fill(text=text).to_message(
            f"command:{command.id}", command.session, command.scope, command.bridge, command.target
        )
        self.pending_commands.save_answer(command, outgoing, self.clock())
        self.dispatcher.wake(command.bridge)


def _room_speaker_name(arrival: InboundMessage) -> str | None:
    """Return the speaker's name for the model if the message is from a room."""
    if arrival.room is None:
        return None
    return clean_display_name(arrival.sender_name) or clean_display_name(arrival.sender) or None


def truncate_guest_text(text: str) -> str:
    """Truncate another person's text to `MAX_GUEST_CHARACTERS`."""
    if len(text) <= MAX_GUEST_CHARACTERS:
        return text
    return f"{text[:MAX_GUEST_CHARACTERS]}\n[{len(text) - MAX_GUEST_CHARACTERS:,} more characters were left out.]"
