"""What a command works on: who asks and where, the stores, and the running assistant."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Literal

from assistant.core.dataclass import dataclass
from assistant.core.errors import NothingYet, UsageError
from assistant.core.messages import Trust
from assistant.core.plain_files import FileRefused
from assistant.core.sessions import MAIN_SESSION, NOTHING_SAID, session_name, session_scope

if TYPE_CHECKING:  # a shell loads what its command needs, and no more
    from assistant.agenda.day import AgendaDays
    from assistant.agenda.service import AgendaService
    from assistant.backup.scheduler import BackupScheduler
    from assistant.calendars.service import CalendarService
    from assistant.core.memories import SleepReport
    from assistant.core.messages import ToolCall
    from assistant.core.ports import ToolContext
    from assistant.core.records import InboxReceipt, IncomingMessage
    from assistant.erasure.service import ErasureService
    from assistant.gateway.bridge_operations import BridgeOperations
    from assistant.mcp.servers import McpServers
    from assistant.memory.service import MemoryService
    from assistant.notify.notifier import Notifier
    from assistant.people.pairing import PairingService
    from assistant.runtime.approvals import ApprovalService
    from assistant.runtime.compaction_service import CompactionService
    from assistant.runtime.context_parts import ContextParts
    from assistant.runtime.current_models import ModelChoice
    from assistant.runtime.file_indexer import FileIndexer
    from assistant.sessions.listing import SessionReader
    from assistant.sessions.scheduler import ResetScheduler
    from assistant.settings.calendar_sources import CalendarSource
    from assistant.store.archive.archive import StoredArchive
    from assistant.store.backup.folder import BackupFolder
    from assistant.store.calendars import CalendarReader
    from assistant.store.character.consolidations import StoredConsolidations
    from assistant.store.character.journal import StoredJournal
    from assistant.store.character.memory_files import StoredMemoryFiles
    from assistant.store.character.profiles import StoredProfiles
    from assistant.store.character.todos import StoredTodos
    from assistant.store.home.browser_sessions import BrowserSessions
    from assistant.store.home.skills import Skills
    from assistant.store.home.workspace import WorkspaceFiles
    from assistant.store.script.approvals import StoredApprovals
    from assistant.store.script.conversation import StoredConversation
    from assistant.store.script.imports import StoredImports
    from assistant.store.script.ledger import Ledger
    from assistant.store.script.outbox import StoredOutbox, StuckItems
    from assistant.store.script.people import ConversationRoutes, People
    from assistant.store.script.turns import Pins, UserRequests
    from assistant.store.search.files import StoredFileSearch
    from assistant.store.search.history import StoredHistory
    from sleep.compaction.values import CachedPrompt
    from sleep.cycle.dry_run import SleepDryRun
    from sleep.cycle.undo import SleepUndo

_LONGEST_NAME = 200
# Where a command was typed: "chat" is a conversation on any bridge, "shell" a command line or a program.
Surface = Literal["chat", "shell"]


@dataclass(frozen=True, slots=True)
class CommandStores:
    """What is kept, open for reading at least. Opening it reads nothing."""

    conversation: StoredConversation
    pins: Pins
    requests: UserRequests
    sessions: SessionReader
    places: ConversationRoutes
    archive: StoredArchive
    history: StoredHistory
    journal: StoredJournal
    agenda: AgendaService
    days: AgendaDays
    outbox: StoredOutbox
    deliveries: StuckItems
    backups: BackupFolder
    memory: MemoryService
    consolidations: StoredConsolidations
    profiles: StoredProfiles
    files: StoredMemoryFiles
    people: People
    todos: StoredTodos
    ledger: Ledger
    pairing: PairingService
    approvals: StoredApprovals
    workspace: WorkspaceFiles
    imports: StoredImports
    calendars: CalendarReader
    calendar_sources: Callable[[], Sequence[CalendarSource]]  # those in the settings
    skills: Skills
    mcp: McpServers
    file_search: StoredFileSearch


@dataclass(frozen=True, slots=True)
class CommandServices:
    """The running assistant."""

    compaction: CompactionService
    cached_prompt: Callable[[str, datetime], CachedPrompt | None]  # of a session: what its provider still has
    pins_max_tokens: int  # of one conversation together
    count_tokens: Callable[[str], int]
    resets: ResetScheduler
    sleep_now: Callable[[str, str], Awaitable[SleepReport | None]]  # for a trigger, in one phase or with "" in all
    sleep_dry_run: SleepDryRun
    sleep_undo: SleepUndo
    keep_awake: Callable[[], AbstractAsyncContextManager[None]]  # raises `UsageError` during a sleep
    bridges: BridgeOperations
    backups: BackupScheduler
    models: ModelChoice
    accept: Callable[[IncomingMessage], Awaitable[InboxReceipt]]
    stop_turn: Callable[[str], Awaitable[bool]]
    is_running: Callable[[str], bool]  # whether an answer is being written in a session
    show_changed: Callable[[str], None]  # to clients that have a session open: what was said there was undone
    status: Callable[[], Mapping[str, Any]]
    status_lines: Callable[[Mapping[str, Any]], Sequence[str]]  # a report as people read it
    tool_changes: Callable[[ToolCall, ToolContext], bool]  # whether a call does more than read
    terminal: str  # the bridge of the terminals on this machine
    erasure: ErasureService
    approvals: ApprovalService
    bridge_names: Callable[[], Sequence[str]]  # to networks
    wake: Callable[[], None]  # something waits to be answered
    browsers: BrowserSessions
    context_parts: ContextParts
    calendars: CalendarService
    mcp: McpServers
    file_indexer: FileIndexer
    save_page: Callable[[str, datetime], Awaitable[str]]  # of an address, in the workspace; raises `ToolError`
    notifier: Notifier
    page_url: Callable[[], str]  # where the page is served; "" while it is not


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command, or a short form of one, as `/help` tells of it."""

    name: str  # as typed, with the slash: "/pin", "/pins add"
    subject: str  # the heading that it stands under
    usage: str
    about: str  # in a line
    more: str
    examples: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """One use of a command."""

    session: str
    now: datetime
    zone: tzinfo
    stores: CommandStores
    running: CommandServices | None  # None where a command only reads
    surface: Surface = "chat"
    bridge: str = "terminal"
    target: str = ""  # where on the bridge an answer goes that comes later
    sender: str = "owner"
    trust: Trust = "owner"
    list_commands: Callable[[], Sequence[CommandEntry]] = tuple  # those that may be used here, in the order of `/help`

    @property
    def scope(self) -> str:
        return session_scope(self.session)

    @property
    def services(self) -> CommandServices:
        """The running assistant; a command that only reads (`TableCommand.reads`) must do without."""
        if self.running is None:
            raise RuntimeError("a command that reads used the running assistant")
        return self.running

    async def read_file(self, name: str, max_bytes: int) -> str:
        """The text of a file that a command from anywhere named, inside the workspace. Raises `UsageError`."""
        try:
            return await asyncio.to_thread(self.stores.workspace.read_text, name, max_bytes)
        except FileRefused as error:
            raise UsageError(
                f"{name[:_LONGEST_NAME]!r} {error}. From here only files in the workspace folder are read; "
                "`assistant` in a shell reads any of your files. Nothing was changed."
            ) from None

    def require_session(self, wanted: str = "") -> None:
        """Raises `UsageError` if nothing was ever said in the session, in which `wanted` ("message 12") was named."""
        known = [info.key for info in self.stores.conversation.list_sessions()]
        if self.session not in known:
            if self.session == MAIN_SESSION and wanted:
                raise UsageError(f"There is no {wanted}. {NOTHING_SAID}")
            if self.session == MAIN_SESSION:
                raise NothingYet(NOTHING_SAID)
            names = ", ".join(sorted(map(session_name, known))) or "none yet"
            name = session_name(self.session)
            raise UsageError(f"There is no conversation {name!r}. Conversations: {names}. Nothing was changed.")
