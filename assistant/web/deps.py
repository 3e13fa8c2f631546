"""What the web API uses: control of the running daemon, read access to the owner's data, and the access rules for TCP.
All reads have the owner's scope, and change nothing (I10).

No web framework is imported here, since none is needed before a client connects.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.commands.registry import CommandRegistry
from assistant.commands.table import CommandResult
from assistant.core.checkpoints import Checkpoint
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError, UsageError
from assistant.core.memories import MemoryHit, MemoryListPage, SleepReport
from assistant.core.messages import Media
from assistant.core.model_api import UsageKey
from assistant.core.records import InboxItem, InboxReceipt, IncomingMessage, LogRecord, SearchHit, spoken_key
from assistant.core.sessions import OWNER_SCOPE, session_role
from assistant.core.store_ports import Conversation, Journal, Outbox
from assistant.gateway.attachments import load_outgoing_file
from assistant.health.status import DaemonStatus
from assistant.memory.service import MemoryService
from assistant.notify.browser_push import PushKey
from assistant.runtime.runtime import Runtime
from assistant.sessions.listing import SessionReader, SessionRow
from assistant.store.home.browser_sessions import BrowserSessions
from assistant.store.home.workspace import WorkspaceFiles
from assistant.store.script.ledger import Ledger
from assistant.store.search.history import StoredHistory
from assistant.web.shell_commands import ShellCommands

if TYPE_CHECKING:  # what a command says is only loaded where somebody asks
    from assistant.commands.usage import UsageReport


@dataclass(frozen=True, slots=True)
class DaemonControl:
    """What clients may do with the running daemon."""

    runtime: Runtime
    commands: CommandRegistry
    conversation: Conversation
    health: DaemonStatus
    shell: ShellCommands

    async def accept(self, incoming: IncomingMessage) -> InboxReceipt:
        return await self.runtime.accept(incoming)

    async def command(self, text: str, session: str, *, bridge: str = "terminal") -> str:
        """Run a slash command (`/status`, `/undo`, ...) and return the answer as Markdown. Raises `UsageError`."""
        self._require_own(session)
        answer = await self.commands.run(text, session, bridge=bridge, target=session)
        await self._keep()
        return answer

    async def _keep(self) -> None:
        """Before the answer is given to somebody who relies on it. Raises `ReplicaUnavailable`."""
        if self.runtime.barrier is not None:
            await self.runtime.barrier(0)

    async def run_argv(
        self, argv: Sequence[str], session: str, *, bridge: str = "terminal", typed: str = ""
    ) -> CommandResult:
        """Run a command as in a shell, including those only a shell has, which read `typed` as their input. Raises
        `UsageError` for an unknown or invalid command."""
        self._require_own(session)
        if self.shell.includes(argv):
            done = await self.shell.run(argv, typed)
        else:
            done = await self.commands.run_argv(argv, session, bridge=bridge)
        await self._keep()
        return done

    def _require_own(self, session: str) -> None:
        if session_role(session) != "owner":
            names = [info.key for info in self.conversation.list_sessions()]
            if session not in names:
                raise UsageError(f"There is no session {session!r}. Sessions: {', '.join(names)}. Nothing was changed.")
            raise UsageError("Commands from here work only in the owner's conversations. Nothing was changed.")

    async def stop_turn(self, session: str) -> bool:
        """Abort the running turn of a session; False if none runs."""
        return await self.runtime.stop_turn(session)

    def find_message(self, message_id: int) -> InboxItem | None:
        """Return the owner's message that was accepted under this id."""
        item = self.conversation.inbox_item_of(message_id)
        return item if item is not None and session_role(item.incoming.session) == "owner" else None

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        """Return the outcome of an accepted message of the owner's: `state` (inbox state), `reply`, `error`,
        `exit_code`, `session`, `turn`, `model`, `fallback`, `fallback_reason`, `notices`, `usage` {input, output,
        cache_read, cache_write, cost_usd}, `pressure`."""
        item = self.conversation.inbox_item(inbox_id)
        if item is None or session_role(item.incoming.session) != "owner":
            raise UsageError(f"There is no message {inbox_id} with this number.")
        return self.runtime.result(item)

    def status(self) -> Mapping[str, Any]:
        """Return the status as plain JSON; `ok` is False if anything needs a person (I11)."""
        return self.health.report()


@dataclass(frozen=True, slots=True)
class OwnerReadApi:
    """What the owner may read over the web API. A missing object raises `UsageError`; every method may raise
    `StoreError`."""

    conversation: Conversation
    history: StoredHistory
    journal: Journal
    ledger: Ledger
    session_reader: SessionReader
    memory: MemoryService
    files: WorkspaceFiles
    outbox: Outbox
    clock: Callable[[], datetime]
    zone: ZoneInfo

    # ---------------------------------------------------------------------------------------------------- conversations

    def sessions(self, limit: int) -> Sequence[SessionRow]:
        """Return sessions, most recently active first, with at most so many generations each, newest first."""
        keys = [info.key for info in self.conversation.list_sessions() if session_role(info.key) == "owner"]
        return [row for key in keys for row in islice(self.session_reader.list_generations_of(key), limit)]

    def session(self, session: str, number: int | None) -> tuple[SessionRow, str, str]:
        """Return a generation, the current one by default, its handover note and its newest summary; "" if there is
        none."""
        row = self.session_reader.get_generation(session, number)
        generation = row.generation
        if session_role(generation.session) != "owner":
            raise UsageError(f"There is no session {session!r} of yours.")
        summaries = [
            checkpoint.summary
            for checkpoint in self.conversation.checkpoints(generation.session, "live")
            if checkpoint.generation == generation.number and checkpoint.summary
        ]
        return row, self.session_reader.handover_note(generation), summaries[-1] if summaries else ""

    # ------------------------------------------------------------------------------------------------------------- said

    async def recent_messages(self, session: str, *, limit: int, before_id: int | None = None) -> Sequence[LogRecord]:
        """Return the newest messages of a session with ids below `before_id`, oldest first."""
        recent = partial(self.history.recent, OWNER_SCOPE, session=session)
        return await asyncio.to_thread(recent, limit=limit, before_id=before_id)

    async def search(
        self, text: str, after: datetime | None, before: datetime | None, *, session: str | None, limit: int
    ) -> Sequence[SearchHit]:
        """Return hits, best first, said from `after` until before `before`."""
        search = partial(self.history.search, text, OWNER_SCOPE, limit=limit, session=session)
        return await asyncio.to_thread(search, after=after, before=before)

    async def read_around(self, message_id: int, neighbours: int) -> Sequence[LogRecord]:
        """Return a message and its neighbours, oldest first."""
        records = await asyncio.to_thread(self.history.read, message_id, OWNER_SCOPE, neighbours=neighbours)
        if not records:
            raise UsageError(f"There is no message {message_id} in your conversations.")
        return records

    async def read_file(self, message_id: int, number: int) -> tuple[Media, bytes]:
        """Return a file of a message, and its bytes."""
        (record,) = await self.read_around(message_id, 0)
        if number >= len(record.media):
            raise UsageError(f"Message {message_id} has no file {number}.")
        medium = record.media[number]
        if medium.data is None and medium.path is None:
            raise UsageError("Of this file only the name was kept.")
        try:
            loaded = await asyncio.to_thread(load_outgoing_file, self.files, medium)
        except BridgeError as error:
            raise UsageError(f"This file cannot be read: {error}") from None
        return medium, base64.b64decode(loaded.data or "")

    def spoken_among(self, records: Sequence[LogRecord]) -> frozenset[int]:
        """Return the ids of the answers that were spoken."""
        ids = {spoken_key(record.id): record.id for record in records if record.role == "assistant"}
        return frozenset(ids[key] for key in self.outbox.stored_keys(list(ids), OWNER_SCOPE))

    async def read_recording(self, message_id: int) -> bytes:
        """Return the recording of an answer that was spoken, as Ogg."""
        media = await asyncio.to_thread(self.outbox.list_media, spoken_key(message_id), OWNER_SCOPE)
        if not media or not media[0].data:
            raise UsageError(f"Message {message_id} was not spoken.")
        return base64.b64decode(media[0].data)

    # ------------------------------------------------------------------------------------------------------- remembered

    async def memories(self, limit: int, *, former: bool, before: str) -> MemoryListPage:
        """Raises `UsageError` if `before` does not exist."""
        return await self.memory.list_page(OWNER_SCOPE, limit=limit, include_former=former, before_reference=before)

    async def recall(
        self, text: str, after: datetime | None, before: datetime | None, *, limit: int, as_of: datetime | None = None
    ) -> Sequence[MemoryHit]:
        """Return hits, best first; with `as_of`, as known then."""
        search = partial(self.memory.search, text, OWNER_SCOPE, limit=limit, as_of=as_of)
        return await asyncio.to_thread(search, after=after, before=before)

    # ------------------------------------------------------------------------------------------------------------- done

    def list_sleeps(self, limit: int) -> Sequence[SleepReport]:
        """Return sleep cycles, newest first."""
        return self.journal.list_cycles(limit=limit)

    def render_cycle_report(self, cycle: SleepReport) -> str:
        """Return the report of a sleep cycle for people, as Markdown."""
        from assistant.commands.sleep import render_sleep_report

        return render_sleep_report(cycle, self.zone, self.clock())

    def compactions(self, session: str, limit: int) -> Sequence[Checkpoint]:
        """Return compactions, newest first."""
        return self.conversation.newest_checkpoints(session, limit)

    def usage(self, by: UsageKey, days: int) -> UsageReport:
        """Return the cost of models in the last so many days, and the state of the budget."""
        from assistant.commands.usage import load_usage

        return load_usage(self.ledger, by, days, self.clock())


@dataclass(frozen=True, slots=True)
class ApiDeps:
    """The running daemon."""

    control: DaemonControl
    read_api: OwnerReadApi
    terminal: TerminalBridge
    status: DaemonStatus
    browsers: BrowserSessions
    push_key: PushKey


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who may connect over TCP."""

    token: Callable[[], str]  # returns the currently valid token; "" admits nobody
    hosts: frozenset[str] = frozenset()  # names of this assistant in addition to the loopback ones
    behind_proxy: bool = False  # trust the last X-Forwarded-For, which the proxy wrote
    browsers: BrowserSessions | None = None  # browser logins, which need no token; None for none
