"""Runs the checks of `assistant doctor`, in order.

Checks are independent: a damaged data folder, invalid settings or an unreachable network are findings, and do not stop
other checks.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from assistant.context.tokens import openai_encoding
from assistant.core.bridge_api import Bridge
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, MemoryUnavailable, SettingsError, install_hint
from assistant.core.records import CountingTier
from assistant.core.text import format_duration
from assistant.health.doctor_checks import (
    DaemonState,
    Finding,
    check_bridges,
    check_clock,
    check_command_sandbox,
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
    is_installed,
    run_check,
)
from assistant.health.problems import FindProblems, free_bytes
from assistant.mem0.client import MemoryStoreSettings
from assistant.sandbox.command import CommandSandbox
from assistant.settings.home import Home
from assistant.settings.sections import WEB_PORT_KEY, SettingsValues, WebSettings
from assistant.settings.settings import DEFAULTS_ORIGIN, Settings, load_settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.home.guard import has_fts5, measure_sync_seconds, sqlite_version
from assistant.store.script.conversation import StoredConversation
from assistant.store.verify.verifier import Verifier

# Per conversation; ten thousand records are read in a fraction of a second.
_LAST_RECORDS = 1000
_BRIDGE_SECONDS = 15.0
_LOCAL_EMBEDDERS = ("wordllama", "ollama")


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    fix: bool = False  # repair what is safe to repair
    call_model: bool = False  # ask the model a question, which costs money


@dataclass(frozen=True, slots=True)
class CheckedStores:
    """The stores to check, open for reading."""

    conversation: StoredConversation
    verifier: Verifier
    backups: BackupFolder
    find_backup_problems: FindProblems


@dataclass(frozen=True, slots=True)
class DoctorDeps:
    """Functions of other packages that checks use."""

    setting_name_problems: Callable[[SettingsValues], Sequence[str]]
    open_stores: Callable[[Settings], AbstractContextManager[CheckedStores]]
    ask_model: Callable[[Settings], str]
    counting: Callable[[Settings], tuple[CountingTier, str]]  # how tokens are counted, and a description for people
    install_vocabulary: Callable[[Settings, str], None]  # of an encoding; raises `AssistantError`
    memory_settings: Callable[[Settings], MemoryStoreSettings]
    check_port: Callable[[WebSettings], None]  # raises `HomeError` if the web API could not listen
    open_bridges: Callable[[Settings], Mapping[str, Bridge]]
    command_sandbox: Callable[[Settings], CommandSandbox | None]


def run_doctor(
    home: Home, serving: DaemonState, options: DoctorOptions, deps: DoctorDeps, now: datetime
) -> Iterator[Finding]:
    """Yield findings as they are made."""
    exists = home.path.is_dir()
    # Before the settings are read, which warn about readable secrets.
    permissions = list(_permissions(home.path, fix=options.fix)) if exists else []
    settings: Settings | None = None
    try:
        settings = load_settings(home)
        yield from check_settings(deps.setting_name_problems(settings.values), settings)
    except SettingsError as error:
        yield from check_settings(error.problems, None)
    yield check_home_exists(home.path, home.folder_list)
    yield check_daemon(serving)
    yield from permissions
    if exists:
        yield from run_check("socket", partial(check_stale_socket, serving, fix=options.fix), "Remove it manually.")
        disk = partial(check_disk, str(home.path), free_bytes(home.path), partial(measure_sync_seconds, home.path))
        yield from run_check("disk", disk, "Make room, or make the data folder writable.")
        yield from check_databases(home.path)
    # The stores can be checked even if the settings are invalid.
    yield from _check_stores(settings or replace(load_settings(Home(home.run / "nothing"), {}), home=home), deps, now)
    if settings is not None:
        yield from _check_others(settings, serving, options, deps)
    python = (sys.version_info.major, sys.version_info.minor, sys.version_info.micro)
    yield from check_versions(python, sqlite_version(), full_text=has_fts5())


def _permissions(home: Path, *, fix: bool) -> Iterator[Finding]:
    check = partial(check_permissions, home, fix=fix)
    return run_check("permissions", check, "Make the data folder yours: `chown -R` and `chmod -R go-rwx`.")


def _check_stores(settings: Settings, deps: DoctorDeps, now: datetime) -> Iterator[Finding]:
    if not (settings.home.path / "script.db").is_file():
        return check_clock(None, settings, now)
    to_do = "`assistant verify` looks closer; `assistant backup restore` brings back a backup."
    return run_check("data folder", partial(_check_opened_stores, settings, deps, now), to_do)


def _check_opened_stores(settings: Settings, deps: DoctorDeps, now: datetime) -> Iterator[Finding]:
    with deps.open_stores(settings) as stores:
        yield check_log_chain(stores.verifier.verify_recent, _LAST_RECORDS)
        newest = max((info.last_at for info in stores.conversation.list_sessions() if info.last_at), default=None)
        yield from check_clock(newest, settings, now)
        yield _check_backups(settings, stores, now)


def _check_backups(settings: Settings, stores: CheckedStores, now: datetime) -> Finding:
    problem = next(iter(stores.find_backup_problems(now)), None)
    if problem is not None:
        return Finding("backups", "problem", problem)
    backups = stores.backups.list_backups()
    if backups:
        ago = format_duration((now - backups[-1].made_at).total_seconds())
        return Finding("backups", "ok", f"{len(backups)} in {stores.backups.path}, the last {ago} ago")
    if settings.values.backup.at:
        first = "The first is made in the next night that the assistant runs; `assistant backup create` makes one now."
        return Finding("backups", "note", "none yet", first)
    change = '`assistant config set backup.at "04:30"` changes that.'
    return Finding("backups", "note", "none, and none is made automatically", change)


def _check_others(
    settings: Settings, serving: DaemonState, options: DoctorOptions, deps: DoctorDeps
) -> Iterator[Finding]:
    yield check_provider(settings)
    if options.call_model and settings.provider != "offline":
        call = partial(check_provider_answer, partial(deps.ask_model, settings))
        yield from run_check("provider", call, "`assistant setup` sets it up again.")
    yield _check_tokenizer(settings, deps, fix=options.fix)
    embedder = partial(_check_embedder, deps.memory_settings(settings), options)
    yield from run_check("embedder", embedder, "`assistant config set memory.embedder wordllama`.")
    # A running daemon reports in its status whether it could listen; an automatically chosen port may differ.
    is_chosen = settings.origins[WEB_PORT_KEY] != DEFAULTS_ORIGIN
    if is_chosen and settings.values.web.port and not serving.served:
        yield from run_check("web", partial(_check_port, settings.values.web, deps), "")
    yield from asyncio.run(check_command_sandbox(deps.command_sandbox(settings)))
    yield from asyncio.run(check_bridges(deps.open_bridges(settings), _BRIDGE_SECONDS))


def _check_tokenizer(settings: Settings, deps: DoctorDeps, *, fix: bool) -> Finding:
    """Check the tokenizer. The vocabulary of an OpenAI model is public, and downloaded on request."""
    finding = check_tokenizer(*(counting := deps.counting(settings)))
    encoding = openai_encoding(counting[0].model)
    if encoding is None or finding.verdict == "ok":
        return finding
    if not fix:
        to_do = "`assistant doctor --fix` downloads the model's vocabulary (2 to 4 MB), so that counts are exact."
        return replace(finding, to_do=to_do)
    try:
        deps.install_vocabulary(settings, encoding)
    except AssistantError as error:
        return replace(finding, fixed=str(error), to_do=f"Try again later, or {install_hint('vocabulary')}.")
    fixed = "Downloaded the model's vocabulary and checked it; it is used from the next start on."
    return replace(check_tokenizer(*deps.counting(settings)), fixed=fixed)


def _check_embedder(settings: MemoryStoreSettings, options: DoctorOptions) -> Iterator[Finding]:
    """Check the embedder. One that uses the network, or downloads a model, is only tried with `call_model`."""
    chosen = settings.embedder
    name = f"{chosen.kind} {chosen.model}".strip()
    if chosen.kind == "wordllama" or (options.call_model and chosen.kind in _LOCAL_EMBEDDERS):
        from assistant.mem0.embedders import open_embedder  # it loads numpy, which `status` does without

        vectors = open_embedder(chosen, settings.home).embed(["hello"])
        yield Finding("embedder", "ok", f"{name}, {vectors.shape[1]} dimensions")
    elif chosen.kind == "fastembed" and not is_installed("fastembed"):
        hint = install_hint("fastembed")
        raise MemoryUnavailable(f"fastembed is not installed; {hint}. The journal keeps everything.")
    elif chosen.kind == "openai" and not chosen.key:
        to_do = "`assistant config secret set memory.embedder_key` keeps one."
        yield Finding("embedder", "problem", "openai has no key.", to_do)
    else:
        yield Finding("embedder", "ok", f"{name}; it is not asked here")


def _check_port(settings: WebSettings, deps: DoctorDeps) -> Iterator[Finding]:
    deps.check_port(settings)
    yield Finding("web", "ok", f"{settings.host}, port {settings.port}, is free")
