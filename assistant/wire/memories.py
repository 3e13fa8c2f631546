"""Opens semantic memory: the settings `[memory]`, memory.db, and the client of the child process that runs Mem0
(`assistant.wire.memory_worker_main`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from assistant.core.errors import CorruptStore, NewerSchema, StoreError
from assistant.core.logger import get_logger
from assistant.core.memories import MemoryStorageInfo
from assistant.mem0.client import (
    MEMORY_DB_UNREADABLE,
    LocalMemoryReader,
    Mem0Client,
    MemoryStoreSettings,
    unreadable_reason,
)
from assistant.mem0.codec import EmbedderSettings
from assistant.models.prices import MILLION, Prices, load_prices
from assistant.settings.settings import Settings, shipped_config_dir
from assistant.store.database import Database
from assistant.store.derived import MEMORY_DB, open_derived, set_aside
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.schema.migrations import memory_migrations
from assistant.store.script.ledger import Ledger
from assistant.wire.models import PRICES_FILE

log = get_logger()


# -P: do not import from the current directory; -B: do not write bytecode next to the code.
MEMORY_WORKER_COMMAND = (sys.executable, "-P", "-B", "-m", "assistant.wire.memory_worker_main")


def memory_store_settings(settings: Settings) -> MemoryStoreSettings:
    """Return the settings `[memory]`. An OpenAI-compatible embedder without a key of its own uses the model's."""
    chosen = settings.values.memory
    own = chosen.embedder_key.get_secret_value()
    key = own or (settings.openai_key.get_secret_value() if chosen.embedder == "openai" else "")
    return MemoryStoreSettings(
        settings.home.path,
        chosen.store,
        chosen.store_url,
        EmbedderSettings(chosen.embedder, chosen.embedder_model, chosen.embedder_url, key),
        chosen.timeout_seconds,
    )


def open_memory_db(settings: MemoryStoreSettings, now: datetime, *, reading: bool = False) -> Database:
    """Open memory.db of the data folder, created and migrated as needed; a damaged one is set aside and replaced.
    `reading` opens an existing one. Raises `NewerSchema`, `StoreError`."""
    path = settings.home / MEMORY_DB
    if reading:
        return Database.open_reader(path)
    try:
        db = open_derived(path, memory_migrations, now)
        try:
            MemoryVectors(db).require_readable()
        except CorruptStore:
            db.close()
            raise
        return db
    except CorruptStore as error:
        log.warning("memory.db was damaged and is made again from the journal", error=str(error))
        set_aside(path)
        return open_derived(path, memory_migrations, now)


def open_mem0_client(
    settings: MemoryStoreSettings,
    db: Database | None,
    command: Sequence[str] = MEMORY_WORKER_COMMAND,
    fault: str = "",
    spending: Callable[[], Mapping[str, Any]] = dict,
) -> Mem0Client:
    """Return the `Memories` client; it reads from `db` if the store is "local", and `fault` says why `db` is None. With
    `spending` (see `embedding_budget`), the child counts its calls to a provider."""
    if db is None or settings.store != "local":
        return Mem0Client(settings, command, None, fault if settings.store == "local" else "", spending)
    return Mem0Client(settings, command, LocalMemoryReader(MemoryVectors(db)), spending=spending)


def embedding_budget(ledger: Ledger, zone: ZoneInfo) -> Callable[[], Mapping[str, Any]]:
    """Return what the child needs for counting: the budget at its start, the time zone, and OpenAI's prices in US
    dollars per token. Raises `SettingsError` for an invalid price table."""
    table = load_prices(shipped_config_dir() / PRICES_FILE).get("openai", Prices()).models
    prices = {name: price.input / MILLION for name, price in table.items()}
    return lambda: {"budget": ledger.budget.as_json(), "zone": str(zone), "prices": prices}


def open_memories(settings: Settings, stack: ExitStack, now: datetime, ledger: Ledger, *, reading: bool) -> Mem0Client:
    """Open semantic memory over memory.db; it is empty before the first sleep cycle. A damaged one is rebuilt from the
    journal and does not stop the assistant."""
    chosen = memory_store_settings(settings)
    db: Database | None = None
    fault = ""
    if not reading or (settings.home.path / "memory.db").exists():
        try:
            db = open_memory_db(chosen, now, reading=reading)
            stack.callback(db.close)
        except NewerSchema:
            raise
        except StoreError as error:
            # Status, `memory rebuild` and the sleep report show it to people.
            fault = MEMORY_DB_UNREADABLE if (settings.home.path / "memory.db").is_dir() else unreadable_reason(error)
            if not reading:
                log.warning("memories cannot be read; the journal keeps everything", error=str(error))
    return open_mem0_client(chosen, db, fault=fault, spending=embedding_budget(ledger, settings.zone))


def memory_storage_info(settings: Settings) -> MemoryStorageInfo:
    """Return where memories are stored now."""
    chosen, file = settings.values.memory, settings.home.path / "memory.db"
    return MemoryStorageInfo(chosen.store, chosen.embedder, file.stat().st_size if file.exists() else None)
