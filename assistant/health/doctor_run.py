"""The order of the checks of `assistant doctor`.

What always holds: no check depends on another one. A broken data folder, settings that cannot be understood and a
network that is away are findings.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import tzlocal

from assistant import __version__
from assistant.bridges.configured import ConfiguredBridges
from assistant.context.tokens import counter_for_model
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
from assistant.mem0.client import MemoryStoreSettings
from assistant.mem0.embedders import open_embedder
from assistant.settings.home import Home
from assistant.settings.network_sections import WebSettings
from assistant.settings.settings import Settings, load_settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.home.guard import (
    DATABASE_NAMES,
    check_database_pages,
    find_exposed_files,
    has_fts5,
    measure_sync_seconds,
    restrict_permissions,
    sqlite_version,
)
from assistant.store.script.conversation import StoredConversation
from assistant.store.verify.verifier import Verifier

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
    fix: bool = False  # repair what is safe to repair
    call_model: bool = False  # ask the model something, which costs


@dataclass(frozen=True, slots=True)
class CheckedStores:
    """The stores that are checked, open for reading."""

    conversation: StoredConversation
    verifier: Verifier
    backups: BackupFolder


@dataclass(frozen=True, slots=True)
class DoctorDeps:
    """What other rooms do for a check."""

    open_stores: Callable[[Settings], AbstractContextManager[CheckedStores]]
    ask_model: Callable[[Settings], str]
    memory_settings: Callable[[Settings], MemoryStoreSettings]
    check_port: Callable[[WebSettings], None]  # raises `HomeError` where the web API could not listen


def run_doctor(
    home: Home, serving: DaemonState, wish: DoctorOptions, deps: DoctorDeps, now: datetime
) -> Iterator[Finding]:
    """Finding after finding, as they come."""
    files = _files(home.path)
    # Before the settings are read, which warn of secrets that are open.
    permissions = list(_permissions(files, wish))
    settings, problems = _settings(home)
    yield from check_settings(problems, settings)
    yield check_home_exists(files)
    yield check_daemon(serving)
    yield from permissions
    if files.exists:
        yield from _check_home(files, serving, wish)
    # Without settings that are understood the stores can be checked all the same.
    yield from _check_stores(files, settings or _default_settings(home), deps, now)
    if settings is not None:
        yield from _check_others(settings, serving, wish, deps)
    yield from check_versions(_programs())


def _settings(home: Home) -> tuple[Settings | None, tuple[str, ...]]:
    try:
        return load_settings(home), ()
    except SettingsError as error:
        return None, error.problems


def _default_settings(home: Home) -> Settings:
    return replace(load_settings(Home(home.run / "nothing"), {}), home=home)


# ---------------------------------------------------------------------------------------------------------------- home


def _files(home: Path) -> HomeFiles:
    databases = {name: home / name for name in DATABASE_NAMES if (home / name).is_file()}
    return HomeFiles(
        path=str(home),
        exists=home.is_dir(),
        open_to_others=partial(find_exposed_files, home),
        close_to_others=partial(restrict_permissions, home),
        databases={name: partial(check_database_pages, path) for name, path in databases.items()},
        sync_seconds=partial(measure_sync_seconds, home),
        free=free_bytes(home),
    )


def _permissions(files: HomeFiles, wish: DoctorOptions) -> Iterator[Finding]:
    def permissions() -> Iterator[Finding]:
        yield check_permissions(files, fix=wish.fix)

    if files.exists:
        yield from run_check(
            "permissions", permissions, "Make the data folder yours: `chown -R` and `chmod -R go-rwx`."
        )


def _check_home(files: HomeFiles, serving: DaemonState, wish: DoctorOptions) -> Iterator[Finding]:
    def check_socket() -> Iterator[Finding]:
        finding = check_stale_socket(serving, fix=wish.fix)
        if finding is not None:
            yield finding

    yield from run_check("socket", check_socket, "Remove it manually.")
    yield from run_check("disk", partial(check_disk, files), "Make room, or make the data folder writable.")
    yield from check_databases(files)


def _check_stores(files: HomeFiles, settings: Settings, deps: DoctorDeps, now: datetime) -> Iterator[Finding]:
    if "script.db" not in files.databases:
        yield from check_clock(None, settings.zone.key, _zone_is_known(settings), now)
        return
    yield from run_check("home", partial(_check_opened_stores, settings, deps, now), _RESTORE)


def _check_opened_stores(settings: Settings, deps: DoctorDeps, now: datetime) -> Iterator[Finding]:
    with deps.open_stores(settings) as stores:
        yield check_log_chain(stores.verifier.verify_recent, _LAST_RECORDS)
        newest = max((info.last_at for info in stores.conversation.list_sessions() if info.last_at), default=None)
        yield from check_clock(newest, settings.zone.key, _zone_is_known(settings), now)
        yield from _backups(settings, stores, now)


def _backups(settings: Settings, stores: CheckedStores, now: datetime) -> Iterator[Finding]:
    problems = list(backup_problems(stores.backups, stores.conversation, settings, now))
    if problems:
        yield problem_finding("backups", problems[0], "")
        return
    backups = stores.backups.list_backups()
    if backups:
        ago = format_duration((now - backups[-1].made_at).total_seconds())
        yield ok_finding("backups", f"{len(backups)} in {stores.backups.path}, the last {ago} ago")
    elif settings.values.backup.at:
        yield note_finding("backups", "none yet", "The first is made tonight; `assistant backup create` makes one now.")
    else:
        yield note_finding(
            "backups", "none, and none is made automatically", '`assistant config set backup.at "04:30"` changes that.'
        )


def _zone_is_known(settings: Settings) -> bool:
    if settings.values.home.timezone:
        return True
    try:
        return bool(ZoneInfo(tzlocal.get_localzone_name() or ""))
    except (KeyError, ValueError, OSError):
        return False


# -------------------------------------------------------------------------------------------------------------- others


def _check_others(settings: Settings, serving: DaemonState, wish: DoctorOptions, deps: DoctorDeps) -> Iterator[Finding]:
    yield check_provider(settings)
    if wish.call_model and settings.provider != "offline":

        def call() -> Iterator[Finding]:
            yield check_provider_answer(partial(deps.ask_model, settings))

        yield from run_check("provider", call, "`assistant setup` sets it up again.")
    counter = counter_for_model(settings.values.model.name, settings.tiktoken_cache)
    yield check_tokenizer(counter.tier, counter.describe())
    memory = deps.memory_settings(settings)
    yield from run_check(
        "embedder", partial(_embedder, memory, wish), "`assistant config set memory.embedder wordllama`."
    )
    if settings.values.web.port and not serving.served:
        yield from run_check("web", partial(_web, settings.values.web, deps), "")
    yield from asyncio.run(check_bridges(ConfiguredBridges(settings, None).open_all(), _BRIDGE_SECONDS))


def _web(settings: WebSettings, deps: DoctorDeps) -> Iterator[Finding]:
    """Whether the web API could listen; a running daemon reports that in its status."""
    deps.check_port(settings)
    yield ok_finding("web", f"{settings.host}, port {settings.port}, is free")


def _embedder(settings: MemoryStoreSettings, wish: DoctorOptions) -> Iterator[Finding]:
    """One that is asked over a network, or downloads a model, is asked only with `call_model`."""
    chosen = settings.embedder
    named = f"{chosen.kind} {chosen.model}".strip()
    if chosen.kind == "wordllama" or (wish.call_model and chosen.kind in _LOCAL_EMBEDDERS):
        vectors = open_embedder(chosen, settings.home).embed(["hello"])
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
