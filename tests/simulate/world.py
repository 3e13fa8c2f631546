"""The program in a simulated life: the real app over a data folder in memory, started, stopped, killed and started
again, with what stands between it and its surroundings replaced: the adapter of the model's provider, the networks, the
clock, and the two child processes (semantic memory, backups), which work in this process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from assistant.backup import process as backup_process
from assistant.core.backups import BackupKind, BackupResult
from assistant.core.errors import MemoryUnavailable
from assistant.daemon import shut_down
from assistant.mem0.client import MemoryProcess, MemoryStoreSettings
from assistant.mem0.codec import EmbedderSettings
from assistant.mem0.embedders import open_embedder
from assistant.mem0.vectors import Embedder
from assistant.models.prices import load_prices
from assistant.service.clock import SteadyClock
from assistant.settings.home import Home
from assistant.settings.settings import load_settings, shipped_config_dir
from assistant.store.backup import tarball
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.make import BackupRequest, make_backup
from assistant.store.database import Database
from assistant.store.files import WriteThrottle
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.schema.migrations import memory_migrations
from assistant.wire import models as wire_models
from assistant.wire.app import App, build_app
from tests.simulate.clock import Machine
from tests.simulate.model import LifeModel, Provider
from tests.simulate.network import LifeBridge, Network

_DRAIN_SECONDS = 20.0
_LONGEST_LOOK = 6 * 3600.0


@lru_cache(maxsize=1)
def _open_embedder(home: Path, settings: EmbedderSettings) -> Embedder:
    """Loaded once: each process of semantic memory would read the same files."""
    return open_embedder(settings, home, seconds=60.0)


class MemoryInProcess(MemoryProcess):
    """The child of semantic memory, without a process of its own: opened when it is first asked, gone when it is
    closed."""

    def __init__(self, home: Path, world: World) -> None:
        super().__init__((), {}, seconds=60.0)
        self._home = home
        self._world = world
        self._opened: tuple[Database, Any] | None = None

    async def ask(self, step: str, **question: Any) -> Any:
        async with self._turn:
            await asyncio.sleep(0.2)
            if self._world.is_memory_down:
                await self._kill()
                raise MemoryUnavailable("The memory store's process ended. The journal keeps everything.")
            from assistant.mem0.service import _STEPS
            from assistant.store.rows import dump_json

            return json.loads(dump_json(_STEPS[step](self._service(), **json.loads(dump_json(question)))))

    def _service(self) -> Any:
        if self._opened is None:
            from assistant.mem0.adapter import open_backend
            from assistant.mem0.service import Mem0Service

            db = Database.open(self._home / "memory.db", memory_migrations, self._world.machine.wall())
            settings, store = MemoryStoreSettings(self._home), MemoryVectors(db)
            backend = open_backend("local", "", store, seconds=60.0)
            open_chosen = partial(_open_embedder, self._home)
            self._opened = db, Mem0Service(store, backend, settings.embedder, open_chosen)
        return self._opened[1]

    async def _kill(self) -> None:
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None


class World:
    """One data folder and everything around it. `app` is there while the assistant runs."""

    def __init__(self, folder: Path, seed: int, machine: Machine, networks: list[Network]) -> None:
        self.home = folder / "home"
        self.seed = seed
        self.machine = machine
        self.networks = {network.name: network for network in networks}
        self.settings: dict[str, str] = {}
        self.is_memory_down = False
        self.lives = 0
        self.app: App | None = None
        self._worker: asyncio.Task[None] | None = None
        self._bridges: list[LifeBridge] = []

    @property
    def running(self) -> App:
        assert self.app is not None
        return self.app

    def read_value(self, database: str, sql: str, *values: Any) -> Any:
        """One value out of a database of the data folder, past the program."""
        with closing(sqlite3.connect(f"file:{self.home / database}?mode=ro", uri=True)) as db:
            row = db.execute(sql, values).fetchone()
        return None if row is None else row[0]

    async def start(self) -> None:
        """A new process. Raises `AssistantError` where it cannot start."""
        self.lives += 1
        self.home.mkdir(exist_ok=True)
        luck = Random(f"{self.seed} life {self.lives}")
        self._bridges = [LifeBridge(network, luck) for network in self.networks.values()]
        clock = SteadyClock(self.machine.wall, self.machine.elapsed)
        read = partial(load_settings, Home(self.home), self._environment(), ring=None)
        self.app = app = build_app(read(), clock, bridges={b.name: b for b in self._bridges}, reread=read)
        app.stores.memories.child = MemoryInProcess(self.home, self)
        # Whoever sets the clock, and every look at it, asks for what is due at once.
        app.agenda_scheduler._longest_wait = _LONGEST_LOOK
        try:
            await app.start()
        except BaseException:
            await self.abandon()
            raise
        self._worker = asyncio.create_task(app.runtime.run(), name="runtime")
        app.agenda_scheduler.start()
        app.check_due()
        await app.warm()

    async def stop(self) -> None:
        """As a service manager stops it."""
        app = self.running
        assert self._worker is not None
        await shut_down(app, self._worker, _DRAIN_SECONDS)
        self._worker.cancel()
        await app.stores.memories.aclose()
        app.close()
        self.app = None

    async def crash(self) -> None:
        """As a power cut that loses nothing written: what it was at is gone, and what it had written is there."""
        snapshot = self.home.with_name("snapshot")
        shutil.copytree(self.home, snapshot, symlinks=True)
        await self.abandon()
        shutil.rmtree(self.home)
        snapshot.rename(self.home)

    async def abandon(self) -> None:
        """It is gone, without an end of its own."""
        for bridge in self._bridges:
            bridge.alive = False
        mine = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not mine]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=60)
        with suppress(Exception):
            await self.running.stores.memories.aclose()
        self.running.close()
        self.app = None

    def _environment(self) -> dict[str, str]:
        fixed = {
            "ASSISTANT_HOME": str(self.home),
            "ASSISTANT_WEB__PORT": "0",
            "ASSISTANT_HOME__TIMEZONE": "Europe/Oslo",
            "ASSISTANT_BACKUP__KEEP": "2",
            "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "16000",
            "ANTHROPIC_API_KEY": "sk-ant-simulated",
            "TIKTOKEN_CACHE_DIR": "",
        }
        return fixed | {f"ASSISTANT_{name}": value for name, value in self.settings.items()}


@contextmanager
def surroundings(models: Provider) -> Iterator[Path]:
    """A folder in memory; what leaves this process is replaced while it is open."""
    prices = load_prices(shipped_config_dir() / wire_models.PRICES_FILE)

    def adapter(provider: str, name: str, *_: Any) -> tuple[LifeModel, Any]:
        return LifeModel(name, models), prices[provider]

    async def back_up(folder: BackupFolder, workspace: bool, kind: BackupKind, now: datetime) -> BackupResult:
        await asyncio.sleep(3.0)
        return make_backup(folder, BackupRequest(kind, now, workspace), WriteThrottle(throttled=False))

    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    sys.modules.update(dict.fromkeys(("spacy", "fastembed")))  # type: ignore[arg-type]
    with TemporaryDirectory(prefix="assistant-life-", dir=place) as folder:
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=f"{folder}/mem0", XDG_STATE_HOME=f"{folder}/state")
        random.seed(0)
        # Mem0 logs what it is given; its own process is silent, too.
        logging.disable(logging.CRITICAL)
        with (
            patch.object(wire_models, "_build_adapter", adapter),
            patch.object(backup_process, "make_in_child", back_up),
            # Packed without compression: that took a tenth of a year.
            patch.object(tarball, "_LEVEL", 0),
        ):
            yield Path(folder)
