"""What `assistant doctor` looks at, put together: one part of the composition root (`assistant.wire.app`).

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
from assistant.bridges.configured import ConfiguredBridges
from assistant.context.tokens import choose_tier
from assistant.core.errors import MemoryUnavailable, SettingsError, install_hint
from assistant.core.text import format_duration
from assistant.health.doctor import (
    DaemonState,
    Finding,
    HomeFiles,
    InstalledPrograms,
    check_bridges,
    check_clock,
    check_daemon,
    check_databases,
    check_disk,
    check_home_exists,
    check_log_chain,
    check_permissions,
    check_provider,
    check_provider_answer,
    check_settings,
    check_stale_socket,
    check_tokenizer,
    check_versions,
    note_finding,
    ok_finding,
    problem_finding,
    run_check,
)
from assistant.health.problems import backup_problems
from assistant.health.status import free_bytes
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
from assistant.wire.checks import try_model
from assistant.wire.stores import Stores, memory_store_settings, open_stores, token_counter_for

_EXTRAS = {
    "tokens": "toksum",
    "pgvector": "psycopg",
    "qdrant": "qdrant_client",
    "fastembed": "fastembed",
    "keyring": "keyring",
    "matrix": "nio",
    "telemetry": "opentelemetry.sdk",
    "s3": "s3fs",
}
# Of each conversation; ten thousand records are read in a fraction of a second.
_LAST_RECORDS = 1000
_BRIDGE_SECONDS = 15.0
_RESTORE = "`assistant verify` looks closer; `assistant backup restore` brings back a backup."
_LOCAL_EMBEDDERS = ("wordllama", "ollama")


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """`fix`: mend what is safe to mend. `call`: ask the model something, which costs."""

    fix: bool = False
    call_model: bool = False


def run_doctor(
    home: Home, serving: DaemonState, wish: DoctorOptions, clock: Callable[[], datetime]
) -> Iterator[Finding]:
    """Finding after finding, as they come."""
    files = _files(home.path)
    # Before the settings are read, which warn of secrets that are open.
    closed = list(_permissions(files, wish))
    found, problems = _settings(home)
    yield from check_settings(problems, found)
    yield check_home_exists(files)
    yield check_daemon(serving)
    yield from closed
    if files.exists:
        yield from _check_home(files, serving, wish)
    # What is not understood is left out: what was said can be looked at all the same.
    yield from _check_stores(files, found or _as_if_nothing_were_set(home), clock())
    if found is not None:
        yield from _check_others(found, serving, wish, clock)
    yield from check_versions(_programs())


def _settings(home: Home) -> tuple[Settings | None, tuple[str, ...]]:
    try:
        return load_settings(home), ()
    except SettingsError as error:
        return None, error.problems


def _as_if_nothing_were_set(home: Home) -> Settings:
    return replace(load_settings(Home(home.run / "nothing"), {}), home=home)


# ---------------------------------------------------------------------------------------------------------------- home


def _files(home: Path) -> HomeFiles:
    there = {name: home / name for name in DATABASE_NAMES if (home / name).is_file()}
    return HomeFiles(
        path=str(home),
        exists=home.is_dir(),
        open_to_others=partial(find_exposed_files, home),
        close_to_others=partial(restrict_permissions, home),
        databases={name: partial(check_database_pages, path) for name, path in there.items()},
        sync_seconds=partial(measure_sync_seconds, home),
        free=free_bytes(home),
    )


def _permissions(files: HomeFiles, wish: DoctorOptions) -> Iterator[Finding]:
    def permissions() -> Iterator[Finding]:
        yield check_permissions(files, fix=wish.fix)

    if files.exists:
        yield from run_check("permissions", permissions, "Make the home yours: `chown -R` and `chmod -R go-rwx`.")


def _check_home(files: HomeFiles, serving: DaemonState, wish: DoctorOptions) -> Iterator[Finding]:
    def process_left() -> Iterator[Finding]:
        left = check_stale_socket(serving, fix=wish.fix)
        if left is not None:
            yield left

    yield from run_check("socket", process_left, "Remove it by hand.")
    yield from run_check("disk", partial(check_disk, files), "Make room, or the home writable.")
    yield from check_databases(files)


def _check_stores(files: HomeFiles, settings: Settings, now: datetime) -> Iterator[Finding]:
    if "script.db" not in files.databases:
        yield from check_clock(None, settings.zone.key, _zone_is_known(settings), now)
        return
    yield from run_check("home", partial(_check_opened_stores, settings, now), _RESTORE)


def _check_opened_stores(settings: Settings, now: datetime) -> Iterator[Finding]:
    stores = open_stores(settings, now, reading=True)
    with contextlib.closing(stores):
        yield check_log_chain(stores.verifier.verify_recent, _LAST_RECORDS)
        newest = max((info.last_at for info in stores.conversation.list_sessions() if info.last_at), default=None)
        yield from check_clock(newest, settings.zone.key, _zone_is_known(settings), now)
        yield from _backups(settings, stores, now)


def _backups(settings: Settings, stores: Stores, now: datetime) -> Iterator[Finding]:
    told = list(backup_problems(stores.backups, stores.conversation, settings, now))
    if told:
        yield problem_finding("backups", told[0], "")
        return
    kept = stores.backups.list_backups()
    if kept:
        ago = format_duration((now - kept[-1].made_at).total_seconds())
        yield ok_finding("backups", f"{len(kept)} in {stores.backups.path}, the last {ago} ago")
    elif settings.values.backup.at:
        yield note_finding("backups", "none yet", "The first is made tonight; `assistant backup create` makes one now.")
    else:
        yield note_finding(
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


def _check_others(
    settings: Settings, serving: DaemonState, wish: DoctorOptions, clock: Callable[[], datetime]
) -> Iterator[Finding]:
    yield check_provider(settings)
    if wish.call_model and settings.provider != "offline":
        answer = partial(try_model, settings, clock, served=serving.served)

        def call() -> Iterator[Finding]:
            yield check_provider_answer(answer)

        yield from run_check("provider", call, "`assistant setup` sets it up anew.")
    tier = choose_tier(settings.values.model.name, settings.tiktoken_cache, toksum=_installed("toksum"))
    yield check_tokenizer(tier, token_counter_for(settings, settings.values.model.name).describe())
    yield from run_check(
        "embedder", partial(_embedder, settings, wish), "`assistant config set memory.embedder wordllama`."
    )
    if settings.values.web.port and not serving.served:
        yield from run_check("web", partial(_web, settings), "")
    yield from asyncio.run(check_bridges(ConfiguredBridges(settings, None).open_all(), _BRIDGE_SECONDS))


def _web(settings: Settings) -> Iterator[Finding]:
    """Whether the web API could listen; whoever serves the home tells it in its status."""
    web = settings.values.web
    asyncio.run(listen_tcp(web.host, web.port)).close()
    yield ok_finding("web", f"{web.host}, port {web.port}, is free")


def _embedder(settings: Settings, wish: DoctorOptions) -> Iterator[Finding]:
    """One that is asked over a network, or loads a model from there, is asked only where calls are wished for."""
    chosen = memory_store_settings(settings).embedder
    named = f"{chosen.kind} {chosen.model}".strip()
    if chosen.kind == "wordllama" or (wish.call_model and chosen.kind in _LOCAL_EMBEDDERS):
        vectors = open_embedder(chosen, settings.home.path).embed(["hello"])
        yield ok_finding("embedder", f"{named}, {vectors.shape[1]} dimensions")
    elif chosen.kind == "fastembed" and not _installed("fastembed"):
        raise MemoryUnavailable(
            f"fastembed is not installed; {install_hint('fastembed')}. The journal keeps everything."
        )
    elif chosen.kind == "openai" and not chosen.key:
        yield problem_finding(
            "embedder", "openai has no key.", "`assistant config secret set memory.embedder_key` keeps one."
        )
    else:
        yield ok_finding("embedder", f"{named}; it is not asked here")


def _programs() -> InstalledPrograms:
    extras = {name: _installed(module) for name, module in _EXTRAS.items()}
    python = (sys.version_info.major, sys.version_info.minor, sys.version_info.micro)
    return InstalledPrograms(__version__, python, sqlite_version(), has_fts5(), extras)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
