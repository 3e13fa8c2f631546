"""Everything durable of a home, opened: one part of the composition root (`assistant.wire.house`)."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog

from assistant.context.tokens import Encode, Tier, TokenCounter, best_tier, open_counter
from assistant.context.truncate import Policy, for_view
from assistant.core.errors import HomeError, NewerSchema, StoreError
from assistant.core.memories import MemoryStorageInfo
from assistant.core.messages import Message
from assistant.core.people import Permissions, RoleGrant
from assistant.core.records import LogLocation
from assistant.mem0.local_memories import UNREADABLE, told
from assistant.mem0.worker import Mem0Memories
from assistant.memory.commands import MemoryStores
from assistant.search.finder import SourceFinder
from assistant.settings.sections import RoleSettings, ToolSettings
from assistant.settings.settings import Settings
from assistant.spending.notices import share_notice
from assistant.store.archive.archive import StoredArchive
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.restore import finish_interrupted_restore, is_restore_interrupted
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.character.profiles import StoredProfiles
from assistant.store.character.todos import StoredTodos
from assistant.store.database import Database
from assistant.store.erasure.store import ErasureStore
from assistant.store.home.guard import HomeGuard
from assistant.store.home.workspace import WorkspaceFiles
from assistant.store.log.writer import MessageLog
from assistant.store.memory.search import StoredMemorySearch
from assistant.store.schema.character import character_migrations
from assistant.store.schema.script import script_migrations
from assistant.store.script.conversation import StoredConversation
from assistant.store.script.edits import MessageEdits
from assistant.store.script.generations import StoredGenerations, StoredResets
from assistant.store.script.inbox import SlashCommandQueue
from assistant.store.script.jobs import Jobs
from assistant.store.script.ledger import Ledger, RoleBudgets
from assistant.store.script.outbox import StoredOutbox, StuckItems, TurnFiles
from assistant.store.script.people import ConversationRoutes, Pairings, People
from assistant.store.script.requests import Pins, UserRequests
from assistant.store.script.state import BridgeStates, CircuitBreakers, ModelFacts
from assistant.store.script.turns import Delegations
from assistant.store.script.unread import UnreadMessages
from assistant.store.search.history import StoredHistory
from assistant.store.verify.verifier import Verifier
from assistant.wire.archive import open_archive
from assistant.wire.memory import memories as semantic_memory
from assistant.wire.memory import open_memory_db, spending_of, store_settings
from assistant.wire.search import open_history, open_memory_search
from sleep.rules.intents import classify_request

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything durable of a home, open."""

    conversation: StoredConversation
    outbox: StoredOutbox
    bridge_states: BridgeStates
    changes: MessageEdits
    turn_files: TurnFiles
    workspace: WorkspaceFiles
    deliveries: StuckItems
    history: StoredHistory
    finder: SourceFinder
    todos: StoredTodos
    requests: UserRequests
    pins: Pins
    jobs: Jobs
    journal: StoredJournal
    consolidations: StoredConsolidations
    profiles: StoredProfiles
    files: StoredMemoryFiles
    memories: Mem0Memories
    memory_search: StoredMemorySearch
    entry_finder: SourceFinder
    unread: UnreadMessages
    generations: StoredGenerations
    resets: StoredResets
    breakers: CircuitBreakers
    delegations: Delegations
    ledger: Ledger
    facts: ModelFacts
    verifier: Verifier
    forgetting: ErasureStore
    archive: StoredArchive
    people: People
    pairings: Pairings
    places: ConversationRoutes
    typed: SlashCommandQueue
    backups: BackupFolder
    ground: HomeGuard
    closing: ExitStack

    def close(self) -> None:
        self.closing.close()


def open_stores(settings: Settings, now: datetime, *, reading: bool = False) -> Stores:
    """Open (and make, or migrate) the stores of the home; `reading` opens them beside a running daemon.

    Raises `HomeError`, `NewerSchema`, `StoreError`."""
    home = settings.home.path
    if not reading:
        _settle_restore(home)
    with ExitStack() as stack:
        db, people = _databases(home, stack, now, reading=reading)
        log = MessageLog(home)
        stack.callback(log.close)
        history, finder = open_history(home, settings.zone, reading=reading)
        stack.callback(history.close)
        ledger = Ledger(db, settings.values.budget, settings.zone, _shares(settings, db))
        memories = memories_of(settings, stack, now, ledger, reading=reading)
        memory_search, entry_finder = open_memory_search(home, memories.at_hand, settings.zone, reading=reading)
        stack.callback(memory_search.close)
        counter = counter_for(settings, settings.values.model.name)
        conversation = conversation_of(settings, db, log)
        archive = open_archive(settings)
        return Stores(
            conversation=conversation,
            outbox=StoredOutbox(db),
            bridge_states=BridgeStates(db),
            changes=MessageEdits(db, log, conversation.appender),
            turn_files=TurnFiles(db),
            workspace=WorkspaceFiles(settings.home.workspace),
            deliveries=StuckItems(db),
            history=history,
            finder=finder,
            todos=StoredTodos(people),
            requests=UserRequests(db, log),
            pins=Pins(people),
            jobs=Jobs(db, conversation.appender),
            journal=StoredJournal(people),
            consolidations=StoredConsolidations(people),
            profiles=StoredProfiles(people),
            files=StoredMemoryFiles(
                home, people, count=counter.count_text, most=settings.values.memory.file_max_tokens
            ),
            memories=memories,
            memory_search=memory_search,
            entry_finder=entry_finder,
            unread=UnreadMessages(db, log),
            generations=StoredGenerations(db, log),
            resets=StoredResets(db),
            breakers=CircuitBreakers(db),
            delegations=Delegations(db),
            ledger=ledger,
            facts=ModelFacts(db),
            verifier=Verifier(home, db, log, conversation),
            forgetting=ErasureStore(home, db, people, log, conversation, finder, entry_finder, archive),
            archive=archive,
            people=People(db),
            pairings=Pairings(db),
            places=ConversationRoutes(db),
            typed=SlashCommandQueue(db),
            backups=BackupFolder(home, settings.values.backup.folder),
            ground=HomeGuard(home, (db, people)),
            closing=stack.pop_all(),
        )


def _databases(home: Path, stack: ExitStack, now: datetime, *, reading: bool) -> tuple[Database, Database]:
    """script.db and character.db, closed with the stack."""
    if reading:
        db, people = Database.reader(home / "script.db"), Database.reader(home / "character.db")
    else:
        db = Database.open(home / "script.db", script_migrations, now)
        people = Database.open(home / "character.db", character_migrations, now)
    stack.callback(people.close)
    stack.callback(db.close)
    for one, migrations in ((db, script_migrations), (people, character_migrations)) if reading else ():
        one.must_have(migrations)
    return db, people


def is_between_homes(home: Path) -> bool:
    """Whether a restore was cut off, so that there is neither the old home nor the new one before it is finished."""
    return is_restore_interrupted(home)


def _settle_restore(home: Path) -> None:
    if finished := finish_interrupted_restore(home):
        log.warning("a restore was cut off", what=finished)


def conversation_of(settings: Settings, db: Database, log: MessageLog) -> StoredConversation:
    """What was said, over a script.db and the logs beside it."""
    counter = counter_for(settings, settings.values.model.name)
    return StoredConversation(
        db, log, as_viewed=_as_viewed(settings.values.tools, counter), count=counter.count_message,
        asked=classify_request, undo_kept=settings.values.compaction.undo_kept,
    )  # fmt: skip


@contextmanager
def journal_beside(home: Path) -> Iterator[StoredJournal]:
    """The journal alone, for reading beside whoever serves the home. Raises `NewerSchema`, `StoreError`."""
    people = Database.reader(home / "character.db")
    try:
        yield StoredJournal(people)
    finally:
        people.close()


def memories_of(settings: Settings, stack: ExitStack, now: datetime, ledger: Ledger, *, reading: bool) -> Mem0Memories:
    """Semantic memory over memory.db; a home that never slept has none to read. One that is damaged is made of the
    journal, which has everything: it keeps nobody from answering."""
    chosen = store_settings(settings)
    db: Database | None = None
    fault = ""
    if not reading or (settings.home.path / "memory.db").exists():
        try:
            db = open_memory_db(chosen, now, reading=reading)
            stack.callback(db.close)
        except NewerSchema:
            raise
        except (HomeError, StoreError) as error:
            # Status, `memory rebuild` and the report of a sleep say it to people.
            fault = UNREADABLE if (settings.home.path / "memory.db").is_dir() else told(error)
            if not reading:
                log.warning("memories cannot be read; the journal keeps everything", error=str(error))
    return semantic_memory(chosen, db, fault=fault, spending=spending_of(ledger, settings.zone))


def memory_stores(stores: Stores) -> MemoryStores:
    """Those of memories."""
    return MemoryStores(stores.memories, stores.consolidations, stores.journal, stores.memory_search, stores.history)


def memory_place(settings: Settings) -> MemoryStorageInfo:
    """Where the home has its memories, looked at now."""
    chosen, file = settings.values.memory, settings.home.path / "memory.db"
    return MemoryStorageInfo(chosen.store, chosen.embedder, file.stat().st_size if file.exists() else None)


def authority_of(settings: Settings) -> Permissions:
    """Who may do what, as the settings say."""

    def grant(section: RoleSettings) -> RoleGrant:
        return RoleGrant(frozenset(section.tools), frozenset(section.commands), section.memory, section.budget_share)

    return Permissions({"guest": grant(settings.values.guest), "room": grant(settings.values.room)})


def _shares(settings: Settings, db: Database) -> RoleBudgets:
    outbox = StoredOutbox(db)

    def told(role: str, cap: str, now: datetime) -> None:
        outbox.push(share_notice(role, cap, now.astimezone(settings.zone).date().isoformat()), now)

    return RoleBudgets(db, authority_of(settings), told)


def _as_viewed(tools: ToolSettings, counter: TokenCounter) -> Callable[[Message, LogLocation], Message]:
    limit = tools.output_max_bytes if tools.output_policy == "bytes" else tools.output_max_tokens
    policy = Policy(tools.output_policy, limit, tools.output_serialization_buffer, tools.output_split)
    return lambda message, place: for_view(message, place, policy, counter.count_text)


def counter_for(settings: Settings, model: str) -> TokenCounter:
    """The best way of counting for a model that this machine has. Never waits for a network."""
    tier = best_tier(model, settings.tiktoken_cache, toksum=importlib.util.find_spec("toksum") is not None)
    return open_counter(tier, {"tiktoken": _tiktoken_encoder, "toksum": _toksum_encoder})


def _tiktoken_encoder(tier: Tier) -> Encode:
    from assistant.context.vocabulary import encoder  # its vocabulary takes 80 MB

    return encoder(tier)


def _toksum_encoder(tier: Tier) -> Encode:
    from assistant.context.toksum_tier import encoder  # toksum is an extra and takes seconds to import

    return encoder(tier)
