"""Semantic memory, put together: part of the composition root (`assistant.wire.house`). Mem0 itself is in the child."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from assistant.mem0.embedder_settings import EmbedderSettings
from assistant.mem0.local_memories import LocalMemories
from assistant.mem0.worker import Mem0Memories, MemoryStoreSettings
from assistant.models.factory import PRICES_FILE
from assistant.models.prices import MILLION, Prices, load_prices
from assistant.settings.settings import Settings, shipped_config_dir
from assistant.store.database import Database
from assistant.store.memory.vectors import MemoryHistory, MemoryTransaction, MemoryVectors
from assistant.store.schema.indexes import memory_migrations
from assistant.store.script.ledger import Ledger

# -P: what lies in the directory the daemon was started in is not imported; -B: nothing is written beside the code.
CHILD = (sys.executable, "-P", "-B", "-m", "assistant.wire.mem0")


def store_settings(settings: Settings) -> MemoryStoreSettings:
    """What `[memory]` says. An OpenAI-compatible embedder without a key of its own takes the one of the model."""
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
    """memory.db of the home, made and migrated as needed; `reading` opens one that is there. Raises `HomeError`,
    `NewerSchema`, `StoreError`."""
    path = settings.home / "memory.db"
    return Database.reader(path) if reading else Database.open(path, memory_migrations, now)


def memories(
    settings: MemoryStoreSettings, db: Database | None, command: Sequence[str] = CHILD, fault: str = "",
    spending: Callable[[], Mapping[str, Any]] = dict,
) -> Mem0Memories:  # fmt: skip
    """The port `Memories`; reads come from `db` where the store is "local", and `fault` says why it is None. With
    `spending` (see `spending_of`) what the child asks of a provider is counted."""
    if db is None or settings.store != "local":
        return Mem0Memories(settings, command, None, fault if settings.store == "local" else "", spending)
    batch = MemoryTransaction(db)
    local = LocalMemories(MemoryVectors(batch), MemoryHistory(batch))
    return Mem0Memories(settings, command, local, spending=spending)


def spending_of(ledger: Ledger, zone: ZoneInfo) -> Callable[[], Mapping[str, Any]]:
    """What the child counts by: the budget as it is when the child starts, whose days it is of, and OpenAI's prices in
    US dollars a token. Raises `SettingsError` for an unusable table of prices."""
    table = load_prices(shipped_config_dir() / PRICES_FILE).get("openai", Prices()).models
    prices = {name: price.input / MILLION for name, price in table.items()}
    return lambda: {"budget": ledger.budget.model_dump(mode="json"), "zone": str(zone), "prices": prices}
