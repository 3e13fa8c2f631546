"""The child process of semantic memory: `python -m assistant.wire.memory_worker_main`.

The first line of its input says where memories are and which embedder to use (`MemoryStoreSettings`). Mem0 reads the
environment and creates a directory when imported, so it is imported last.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from assistant.core.errors import AssistantError, CorruptStore, HomeError, MemoryUnavailable
from assistant.mem0.client import MEMORY_DB_UNREADABLE, unreadable_reason
from assistant.mem0.codec import EmbedderSettings
from assistant.mem0.embedders import open_embedder
from assistant.mem0.remote_embedders import EmbeddingMeter
from assistant.models.prices import is_hosted_by_openai
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import render_notice
from assistant.store.database import Database
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.schema.migrations import memory_migrations
from assistant.store.script.ledger import Ledger


def main() -> int:
    """Serve until the input ends; returns the exit code. A failed start is one line on standard error."""
    # Answers use a separate descriptor: anything printed meanwhile goes to standard error.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    told = json.loads(sys.stdin.buffer.readline())
    home = Path(told["home"])
    try:
        _serve(told, home, answers)
    except AssistantError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def _keep_at_home(home: Path, with_fastembed: bool) -> None:
    """Prevent writes outside of the data folder, and network access that was not configured."""
    os.chdir(home)
    os.umask(0o077)
    # Read by libraries when they are imported; not by our code.
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(home / "mem0"))
    # With spaCy Mem0 downloads a language model. fastembed brings a runtime that writes to the user's cache.
    absent = {"spacy"} if with_fastembed else {"spacy", "fastembed"}
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    if with_fastembed:
        os.environ.update(HOME=str(home / "models"), XDG_CACHE_HOME=str(home / "models"))


def _serve(told: Mapping[str, Any], home: Path, answers: BinaryIO) -> None:
    seconds = float(told["seconds"]) / 2
    embedder, path = EmbedderSettings(**told["embedder"]), home / "memory.db"
    try:
        db = Database.open(path, memory_migrations, datetime.now(UTC))
    except (CorruptStore, HomeError) as error:
        raise MemoryUnavailable(MEMORY_DB_UNREADABLE if path.is_dir() else unreadable_reason(error)) from error
    try:
        store = MemoryVectors(db)
        # The former embedder answers while memories are embedded again.
        answering = store.active_embedder()
        _keep_at_home(home, "fastembed" in (embedder.kind, answering and answering[1]["kind"]))
        # These import Mem0, which reads from the environment where it may write.
        from assistant.mem0.adapter import open_backend
        from assistant.mem0.service import Mem0Service, serve

        backend = open_backend(told["store"], told["store_url"], store, seconds=seconds)
        meters = _Meters(home, told)
        try:
            open_chosen = partial(open_embedder, home=home, seconds=seconds, meter_for=meters.meter_for)
            serve(Mem0Service(store, backend, embedder, open_chosen), sys.stdin.buffer, answers)
        finally:
            meters.close()
    finally:
        db.close()


class _Meters:
    """Counts requests to embedding providers in the ledger of the data folder, which is opened at first use. Without a
    budget nothing is counted."""

    def __init__(self, home: Path, told: Mapping[str, Any]) -> None:
        self._home = home
        self._told = told
        self._db: Database | None = None

    def meter_for(self, embedder: EmbedderSettings) -> EmbeddingMeter | None:
        if "budget" not in self._told:
            return None
        self._db = self._db or Database.open_unmigrated(self._home / "script.db")
        budget = BudgetSettings.from_values(self._told["budget"])
        ledger = Ledger(self._db, budget, ZoneInfo(self._told["zone"]), render_notice)
        known = self._told["prices"] if embedder.kind == "openai" and is_hosted_by_openai(embedder.url) else {}
        return EmbeddingMeter(ledger, embedder.kind, known.get, lambda: datetime.now(UTC))

    def close(self) -> None:
        if self._db is not None:
            self._db.close()


if __name__ == "__main__":
    sys.exit(main())
