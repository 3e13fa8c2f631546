"""What `assistant doctor` looks at, put together: one part of the composition root (`assistant.wire.house`).

What always holds: no look needs another one to have gone well. A home that is broken, settings that are nonsense and a
network that is away are findings.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import tzlocal

from assistant import __version__
from assistant.context.tokens import best_tier
from assistant.core.errors import MemoryUnavailable, SettingsError, install_hint
from assistant.core.text import format_duration
from assistant.health import home as at_home
from assistant.health import process, surroundings
from assistant.health.home import Files, looked
from assistant.health.problems import backup_problems
from assistant.health.process import Serving
from assistant.health.report import free_bytes
from assistant.health.surroundings import Programs
from assistant.health.values import Finding, note, ok, problem
from assistant.mem0.embedders import open_embedder
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.store.home.guard import (
    DATABASE_NAMES,
    check_database_pages,
    find_exposed_files,
    has_fts5,
    measure_sync_seconds,
    restrict_permissions,
    sqlite_version,
)
from assistant.web.listeners import listen_tcp
from assistant.wire.bridges import Networks
from assistant.wire.memory import store_settings
from assistant.wire.settings import first_answer
from assistant.wire.stores import Stores, counter_for, open_stores

_EXTRAS = {
    "tokens": "toksum", "pgvector": "psycopg", "qdrant": "qdrant_client", "fastembed": "fastembed",
    "keyring": "keyring", "matrix": "nio", "telemetry": "opentelemetry.sdk", "s3": "s3fs",
}  # fmt: skip
# Of each conversation; ten thousand records are read in a fraction of a second.
_LAST_RECORDS = 1000
_BRIDGE_SECONDS = 15.0
_RESTORE = "`assistant verify` looks closer; `assistant backup restore` brings back a backup."
_LOCAL_EMBEDDERS = ("wordllama", "ollama")


@dataclass(frozen=True, slots=True)
class Wish:
    """`fix`: mend what is safe to mend. `call`: ask the model something, which costs."""

    fix: bool = False
    call: bool = False


def examine(home: Home, serving: Serving, wish: Wish, clock: Callable[[], datetime]) -> Iterator[Finding]:
    """Finding after finding, as they come."""
    files = _files(home.path)
    # Before the settings are read, which warn of secrets that are open.
    closed = list(_permissions(files, wish))
    found, problems = _settings(home)
    yield from surroundings.settings(problems, found)
    yield at_home.there(files)
    yield process.daemon(serving)
    yield from closed
    if files.exists:
        yield from _of_home(files, serving, wish)
    # What is not understood is left out: what was said can be looked at all the same.
    yield from _of_stores(files, found or _as_if_nothing_were_set(home), clock())
    if found is not None:
        yield from _of_others(found, serving, wish, clock)
    yield from surroundings.versions(_programs())


def _settings(home: Home) -> tuple[Settings | None, tuple[str, ...]]:
    try:
        return load_settings(home), ()
    except SettingsError as error:
        return None, error.problems


def _as_if_nothing_were_set(home: Home) -> Settings:
    return replace(load_settings(Home(home.run / "nothing"), {}), home=home)


# ---------------------------------------------------------------------------------------------------------------- home


def _files(home: Path) -> Files:
    there = {name: home / name for name in DATABASE_NAMES if (home / name).is_file()}
    return Files(
        path=str(home),
        exists=home.is_dir(),
        opened=partial(find_exposed_files, home),
        close=partial(restrict_permissions, home),
        databases={name: partial(check_database_pages, path) for name, path in there.items()},
        sync_seconds=partial(measure_sync_seconds, home),
        free=free_bytes(home),
    )


def _permissions(files: Files, wish: Wish) -> Iterator[Finding]:
    def permissions() -> Iterator[Finding]:
        yield at_home.permissions(files, fix=wish.fix)

    if files.exists:
        yield from looked("permissions", permissions, "Make the home yours: `chown -R` and `chmod -R go-rwx`.")


def _of_home(files: Files, serving: Serving, wish: Wish) -> Iterator[Finding]:
    def process_left() -> Iterator[Finding]:
        left = process.stale_socket(serving, fix=wish.fix)
        if left is not None:
            yield left

    yield from looked("socket", process_left, "Remove it by hand.")
    yield from looked("disk", partial(at_home.disk, files), "Make room, or the home writable.")
    yield from at_home.databases(files)


def _of_stores(files: Files, settings: Settings, now: datetime) -> Iterator[Finding]:
    if "script.db" not in files.databases:
        yield from at_home.clock(None, settings.zone.key, _zone_is_known(settings), now)
        return
    yield from looked("home", partial(_opened, settings, now), _RESTORE)


def _opened(settings: Settings, now: datetime) -> Iterator[Finding]:
    stores = open_stores(settings, now, reading=True)
    with contextlib.closing(stores):
        yield at_home.log_chain(stores.verifier.recent, _LAST_RECORDS)
        newest = max((info.last_at for info in stores.conversation.sessions() if info.last_at), default=None)
        yield from at_home.clock(newest, settings.zone.key, _zone_is_known(settings), now)
        yield from _backups(settings, stores, now)


def _backups(settings: Settings, stores: Stores, now: datetime) -> Iterator[Finding]:
    told = list(backup_problems(stores.backups, stores.conversation, settings, now))
    if told:
        yield problem("backups", told[0], "")
        return
    kept = stores.backups.all()
    if kept:
        ago = format_duration((now - kept[-1].made_at).total_seconds())
        yield ok("backups", f"{len(kept)} in {stores.backups.path}, the last {ago} ago")
    elif settings.values.backup.at:
        yield note("backups", "none yet", "The first is made tonight; `assistant backup create` makes one now.")
    else:
        yield note(
            "backups", "none, and none is made by itself", '`assistant config set backup.at "04:30"` changes that.'
        )


def _zone_is_known(settings: Settings) -> bool:
    if settings.values.home.timezone:
        return True
    try:
        return bool(ZoneInfo(tzlocal.get_localzone_name() or ""))
    except (KeyError, ValueError, OSError):
        return False


# -------------------------------------------------------------------------------------------------------------- others


def _of_others(settings: Settings, serving: Serving, wish: Wish, clock: Callable[[], datetime]) -> Iterator[Finding]:
    yield surroundings.provider(settings)
    if wish.call and settings.provider != "offline":
        answer = partial(first_answer, settings, clock, served=serving.served)

        def call() -> Iterator[Finding]:
            yield surroundings.called(answer)

        yield from looked("provider", call, "`assistant setup` sets it up anew.")
    tier = best_tier(settings.values.model.name, settings.tiktoken_cache, toksum=_installed("toksum"))
    yield surroundings.tokenizer(tier, counter_for(settings, settings.values.model.name).describe())
    yield from looked(
        "embedder", partial(_embedder, settings, wish), "`assistant config set memory.embedder wordllama`."
    )
    if settings.values.web.port and not serving.served:
        yield from looked("web", partial(_web, settings), "")
    yield from asyncio.run(surroundings.bridges(Networks(settings, None).bridges(), _BRIDGE_SECONDS))


def _web(settings: Settings) -> Iterator[Finding]:
    """Whether the web API could listen; whoever serves the home tells it in its status."""
    web = settings.values.web
    asyncio.run(listen_tcp(web.host, web.port)).close()
    yield ok("web", f"{web.host}, port {web.port}, is free")


def _embedder(settings: Settings, wish: Wish) -> Iterator[Finding]:
    """One that is asked over a network, or loads a model from there, is asked only where calls are wished for."""
    chosen = store_settings(settings).embedder
    named = f"{chosen.kind} {chosen.model}".strip()
    if chosen.kind == "wordllama" or (wish.call and chosen.kind in _LOCAL_EMBEDDERS):
        vectors = open_embedder(chosen, settings.home.path).embed(["hello"])
        yield ok("embedder", f"{named}, {vectors.shape[1]} dimensions")
    elif chosen.kind == "fastembed" and not _installed("fastembed"):
        raise MemoryUnavailable(
            f"fastembed is not installed; {install_hint('fastembed')}. The journal keeps everything."
        )
    elif chosen.kind == "openai" and not chosen.key:
        yield problem("embedder", "openai has no key.", "`assistant config secret set memory.embedder_key` keeps one.")
    else:
        yield ok("embedder", f"{named}; it is not asked here")


def _programs() -> Programs:
    extras = {name: _installed(module) for name, module in _EXTRAS.items()}
    python = (sys.version_info.major, sys.version_info.minor, sys.version_info.micro)
    return Programs(__version__, python, sqlite_version(), has_fts5(), extras)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
