"""Opens all stores of a data folder and its archive; semantic memory is in `assistant.wire.memories`. Part of the
composition root (`assistant.wire.app`)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from assistant.agenda.attendance import AgendaWatch, find_agenda_problems, unattended_note
from assistant.agenda.calendar_days import CalendarDays
from assistant.agenda.catch_up import LatenessPolicy, parse_quiet_hours
from assistant.agenda.day import AgendaDays
from assistant.agenda.late_delivery import LateDelivery
from assistant.agenda.mentioned_dates import MentionedDates
from assistant.backup.scheduler import find_backup_problems
from assistant.calendars.service import find_calendar_problems
from assistant.context.tokens import TokenCounter, counter_for_model
from assistant.context.truncate import TruncationPolicy, truncate_for_view
from assistant.core.archives import LogRestoreResult, ObjectStore
from assistant.core.calendar import SleepSchedule, find_first_message_time, utc_now
from assistant.core.logger import get_logger
from assistant.core.messages import Message
from assistant.core.records import LogLocation
from assistant.core.sessions import SessionKind
from assistant.documents.folders import FileFolders, name_folders
from assistant.gateway.notices import find_model_problems
from assistant.health.problems import FindProblems, StatusSources
from assistant.health.status import build_stored_report
from assistant.health.unanswered import find_unanswered_problems
from assistant.memory.service import MemoryDeps
from assistant.service.presence import will_stay
from assistant.sessions.listing import SessionReader
from assistant.sessions.scheduler import ResetPolicies, SessionResetPolicy, find_reset_problems
from assistant.settings.prompts import find_prompt_problems
from assistant.settings.sections import DEFAULT_MODEL_NAMES, ToolSettings
from assistant.settings.settings import Settings
from assistant.spending.notices import render_notice
from assistant.store.archive.archive import StoredArchive
from assistant.store.archive.restore import restore_to_log
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.restore import finish_interrupted_restore
from assistant.store.calendars import CalendarReader
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.character.profiles import StoredProfiles
from assistant.store.character.todos import StoredTodos
from assistant.store.database import Database
from assistant.store.erasure.store import ErasureStore
from assistant.store.files import make_directory, sync_file
from assistant.store.home.guard import HomeGuard
from assistant.store.home.inventory import StoreRecorder
from assistant.store.home.skills import Skills
from assistant.store.home.transfer import HomeTransfer
from assistant.store.home.workspace import WorkspaceFiles
from assistant.store.log.writer import MessageLog
from assistant.store.script.approvals import StoredApprovals
from assistant.store.script.clock_steps import ClockSteps
from assistant.store.script.conversation import StoredConversation
from assistant.store.script.dated_texts import StoredDatedTexts
from assistant.store.script.edits import MessageEdits
from assistant.store.script.generations import StoredGenerations, StoredResets
from assistant.store.script.imports import StoredImports
from assistant.store.script.inbox import BridgeStates, SlashCommandQueue, StoredVoiceMessages
from assistant.store.script.index import UnreadMessages
from assistant.store.script.jobs import Jobs
from assistant.store.script.ledger import Ledger
from assistant.store.script.mcp_tools import StoredMcpTools
from assistant.store.script.notices import StoredOutages
from assistant.store.script.outbox import StoredOutbox, StuckItems, TurnFiles
from assistant.store.script.people import ConversationRoutes, Pairings, People
from assistant.store.script.pushes import StoredPushes
from assistant.store.script.spending_periods import SpendingCarrier
from assistant.store.script.turns import Delegations, Pins, UserRequests
from assistant.store.script.usage import CircuitBreakers, ModelFacts
from assistant.store.verify.verifier import Verifier
from assistant.wire.home_databases import check_home, inventory_errors_logged, open_databases
from assistant.wire.memories import open_memories
from assistant.wire.search import open_files, open_history, open_memory_search
from assistant.wire.setting_names import problems_of_next_start
from sleep.rules.classifier import classify_request

log = get_logger()


def open_archive(settings: Settings) -> StoredArchive:
    """Open nothing before it is used. Uses its own database connections, for worker threads."""
    return StoredArchive(settings.home.path, partial(_open_object_store, settings))


def restore_archived_session(settings: Settings, session: str, generation: int) -> LogRestoreResult:
    """Restore lost log records from an archive; the caller holds the lock of the data folder. Raises `UsageError`,
    `ArchiveUnavailable`, `StoreError`."""
    return restore_to_log(open_archive(settings), settings.home.path, session, generation)


def _open_object_store(settings: Settings) -> ObjectStore:
    # Remote file systems are slow to import and used at most once a day.
    from assistant.archive.encryption import AgeEncryption
    from assistant.archive.object_store import FsspecObjectStore, LocalDurability

    chosen = settings.values.archive
    encryption = AgeEncryption(chosen.key.get_secret_value())
    durability = LocalDurability(make_directory, sync_file)
    return FsspecObjectStore(settings.home.path, chosen.url, encryption, chosen.timeout_seconds, durability)


class Stores:
    """All open stores of a data folder."""

    def __init__(self, settings: Settings, now: datetime, *, reading: bool = False) -> None:
        """Open the stores of the data folder, created and migrated as needed; `reading` opens them next to a running
        daemon. Raises `HomeError`, `NewerSchema`, `StoreError`."""
        home, zone, values = settings.home.path, settings.zone, settings.values
        if not reading and (finished := finish_interrupted_restore(home)):
            log.warning("a restore was cut off", what=finished)
        found = check_home(home, reading=reading)
        with ExitStack() as stack:
            script, character = open_databases(home, stack, now, reading=reading)
            message_log = stack.enter_context(closing(MessageLog(home)))
            self.history, self.message_index = open_history(home, zone, reading=reading)
            stack.callback(self.history.close)
            self.ledger = Ledger(script, values.budget, zone, render_notice, values.permissions())
            self.spending = SpendingCarrier(script, zone)
            self.memories = open_memories(settings, stack, now, self.ledger, reading=reading)
            memories = self.memories.read_locally
            self.memory_search, self.journal_index = open_memory_search(home, memories, zone, reading=reading)
            stack.callback(self.memory_search.close)
            self.folders = FileFolders(settings.home.workspace, home, name_folders(values.files.folders))
            self.file_search, self.file_finder = open_files(home, zone, reading=reading)
            stack.callback(self.file_search.close)
            # For the model in the settings, uncorrected.
            self.counter = build_token_counter(settings, values.model.name)
            self.conversation = StoredConversation(
                script,
                message_log,
                to_view_message=_view_truncation(values.tools, self.counter),
                count_tokens=self.counter.count_message,
                classify_request=classify_request,
                undo_kept=values.compaction.undo_kept,
            )
            self.conversation.inbox.reserve_ahead = self.ledger.ahead.reserve
            self._open_script(script, message_log)
            self._open_character(home, character, values.memory.file_max_tokens)
            self.calendars, self.calendar_settings = CalendarReader(home), values.calendar
            self._open_agenda_days(zone)
            self.archive = open_archive(settings)
            self.workspace, self.skills = WorkspaceFiles(settings.home.workspace), Skills(settings.home.workspace)
            self.backups = BackupFolder(home, values.backup.folder)
            self.home_guard = HomeGuard(home, (script, character))
            self.transfer = HomeTransfer(script, character, message_log, self.conversation.appender)
            self.verifier = Verifier(home, script, message_log, self.conversation)
            self.erasure = ErasureStore(
                home,
                script,
                character,
                message_log,
                self.conversation,
                self.message_index,
                self.journal_index,
                self.archive,
                (self.file_search.index, self.file_finder),
            )
            self.remarks, self._is_reading = found.remarks, reading
            self.inventory = StoreRecorder(home, (script, character), found)
            if not reading:
                self.ledger.ahead.release_after_crash()
                with inventory_errors_logged():
                    self.inventory.record_opened(now)
            self._opened = stack.pop_all()

    def _open_script(self, script: Database, message_log: MessageLog) -> None:
        self.outbox = StoredOutbox(script)
        self.bridge_states = BridgeStates(script)
        self.message_edits = MessageEdits(script, message_log, self.conversation.appender)
        self.turn_files = TurnFiles(script)
        self.approvals = StoredApprovals(script)
        self.mcp_tools = StoredMcpTools(script)
        self.deliveries = StuckItems(script)
        self.voice_messages = StoredVoiceMessages(script)
        self.pushes = StoredPushes(script)
        self.requests = UserRequests(script, message_log)
        self.jobs = Jobs(script, self.conversation.appender)
        self.dated_texts = StoredDatedTexts(script)
        self.clock_steps = ClockSteps(script)
        self.log_reader = UnreadMessages(script, message_log)
        self.imports = StoredImports(script, message_log, self.conversation.appender)
        self.generations = StoredGenerations(script, message_log)
        self.resets = StoredResets(script)
        self.breakers = CircuitBreakers(script)
        self.outages = StoredOutages(script)
        self.delegations = Delegations(script)
        self.model_facts = ModelFacts(script)
        self.people = People(script)
        self.pairings = Pairings(script)
        self.places = ConversationRoutes(script)
        self.typed_commands = SlashCommandQueue(script)

    def _open_agenda_days(self, zone: ZoneInfo) -> None:
        self.mentioned_dates = told = MentionedDates(self.history, self.journal, self.dated_texts, zone)
        calendar_days = CalendarDays(self.calendars, zone, lambda: self.calendar_settings)
        self.agenda_days = AgendaDays(self.jobs, self.todos, told, zone, calendar_days)

    def _open_character(self, home: Path, character: Database, file_max_tokens: int) -> None:
        self.todos = StoredTodos(character)
        self.pins = Pins(character)
        self.journal = StoredJournal(character)
        self.consolidations = StoredConsolidations(character)
        self.profiles = StoredProfiles(character)
        self.files = StoredMemoryFiles(
            home, character, count_tokens=self.counter.count_text, max_tokens=file_max_tokens
        )

    def close(self) -> None:
        """Record what the stores hold, then close them. A record that fails is logged: the next start checks all the
        same."""
        if not self._is_reading:
            self.ledger.ahead.release_all()
            with inventory_errors_logged():
                self.inventory.record_closing(utc_now())
        self._opened.close()
        if not self._is_reading:
            with inventory_errors_logged():
                self.inventory.record_closed()

    def record(self, now: datetime) -> None:
        """Record what the stores contain, if anything changed."""
        with inventory_errors_logged():
            self.inventory.record(now)


def build_memory_deps(stores: Stores) -> MemoryDeps:
    """Return what the memory services use."""
    return MemoryDeps(stores.memories, stores.consolidations, stores.journal, stores.memory_search, stores.history)


def _view_truncation(tools: ToolSettings, counter: TokenCounter) -> Callable[[Message, LogLocation], Message]:
    limit = tools.output_max_bytes if tools.output_policy == "bytes" else tools.output_max_tokens
    policy = TruncationPolicy(tools.output_policy, limit, tools.output_serialization_buffer, tools.output_split)
    return lambda message, place: truncate_for_view(message, place, policy, counter.count_text)


def build_token_counter(settings: Settings, model: str) -> TokenCounter:
    """Return the best token counter for a model available on this machine. Never uses the network."""
    return counter_for_model(model, settings.tiktoken_cache, settings.home.vocabularies)


def build_learned_counter(settings: Settings, facts: ModelFacts) -> TokenCounter:
    """Return the token counter of the configured model, with corrections the daemon learned from bills."""
    provider, name = settings.provider, settings.values.model.name
    if provider == "offline":
        name = provider
    # An OpenAI-compatible server may choose the model itself.
    name = name or DEFAULT_MODEL_NAMES.get(provider) or facts.last_calibrated() or ""
    counter, calibration = build_token_counter(settings, name), facts.calibration(name)
    return counter.with_calibration(calibration) if calibration else counter


def stored_status(settings: Settings, stores: Stores, now: datetime) -> dict[str, Any]:
    """Return the report of a data folder without a running daemon."""
    tokens = build_learned_counter(settings, stores.model_facts).describe()
    return build_stored_report(settings, build_status_sources(settings, stores, is_served=False), tokens, now)


def build_status_sources(settings: Settings, stores: Stores, *, is_served: bool) -> StatusSources:
    """Return what the status is made of; `is_served`: in the daemon, which may be a little late without a problem."""
    return StatusSources(
        stores.conversation,
        stores.outbox,
        stores.ledger,
        stores.breakers,
        stores.journal,
        stores.consolidations,
        stores.erasure,
        stores.memories,
        stores.backups,
        stores.jobs,
        stores.approvals,
        partial(unattended_note, stores.jobs, partial(will_stay, settings.home.path), settings.zone),
        (
            lambda _: stores.files.find_problems(),
            # A running assistant has read them.
            *([] if is_served else [lambda _: find_prompt_problems(settings.home)]),
            *([] if is_served else [lambda _: problems_of_next_start(settings)]),
            backup_problems(settings, stores),
            partial(find_model_problems, stores.outages, settings.zone),
            partial(find_unanswered_problems, stores.requests, stores.outages, settings.zone),
            partial(
                find_reset_problems,
                stores.conversation,
                stores.generations,
                stores.resets,
                build_reset_policies(settings),
            ),
            partial(find_calendar_problems, stores.calendars, lambda: stores.calendar_settings.sources, settings.zone),
            partial(
                find_agenda_problems,
                stores.jobs,
                AgendaWatch(
                    build_lateness_policy(settings), settings.values.daemon.watch_seconds, settings.zone, is_served
                ),
            ),
        ),
    )


def backup_problems(settings: Settings, stores: Stores) -> FindProblems:
    schedule = SleepSchedule(settings.values.backup.at, settings.zone)
    return partial(find_backup_problems, stores.backups, schedule, partial(first_message_at, stores))


def first_message_at(stores: Stores) -> datetime | None:
    """Return when the first message was said; None if there is none."""
    return find_first_message_time(stores.conversation.list_sessions())


def build_session_reader(settings: Settings, stores: Stores) -> SessionReader:
    policies = build_reset_policies(settings)
    return SessionReader(stores.conversation, stores.generations, stores.resets, stores.archive, policies)


def build_reset_policies(settings: Settings) -> ResetPolicies:
    reset = settings.values.reset
    by_kind: dict[SessionKind, SessionResetPolicy] = {
        "main": reset.main,
        "thread": reset.thread,
        "guest": reset.guest,
        "room": reset.room,
    }
    return ResetPolicies(by_kind, reset.at, timedelta(minutes=reset.idle_minutes), settings.zone)


def build_lateness_policy(settings: Settings) -> LatenessPolicy:
    agenda = settings.values.agenda
    return LatenessPolicy(timedelta(seconds=agenda.late_seconds), parse_quiet_hours(agenda.quiet, settings.zone))


def build_late_delivery(settings: Settings, stores: Stores) -> LateDelivery:
    return LateDelivery(stores.outbox, stores.jobs, build_lateness_policy(settings), settings.zone)
