"""Builds what commands need without the daemon: the doctor, a test question to the configured model, restoring
backups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from assistant.backup.repair import HomeRepairer
from assistant.backup.restore import BackupRestorer, UnpackedStores
from assistant.bridges.configured import ConfiguredBridges
from assistant.context.tokens import VOCABULARY_URL, VocabularyError, own_vocabulary_file, require_vocabulary
from assistant.core.errors import AssistantError, StoreError
from assistant.core.records import CountingTier
from assistant.health.doctor import CheckedStores, DoctorDeps
from assistant.models.offline.model import OfflineModel
from assistant.settings.home import Home
from assistant.settings.settings import Settings
from assistant.spending.notices import render_notice
from assistant.store.backup.folder import BackupFolder
from assistant.store.database import Database
from assistant.store.files import make_directory, write_file
from assistant.store.script.ledger import Ledger
from assistant.store.script.usage import ModelFacts
from assistant.web.tcp_listener import listen_tcp
from assistant.wire.memories import memory_store_settings
from assistant.wire.models import ModelDeps, ask_test_question
from assistant.wire.sandbox import build_command_sandbox
from assistant.wire.setting_names import setting_name_problems
from assistant.wire.stores import Stores, backup_problems, build_learned_counter, build_token_counter

Clock = Callable[[], datetime]

_ROUGH_TOKENS = 100


def try_model(settings: Settings, clock: Clock, *, served: bool) -> str:
    """Ask the configured model a real question, once and within the budget. Without a daemon, the caller holds the lock
    of the data folder. Raises `ModelError`, `HomeError`, `StoreError`."""
    with _metering(settings, clock, served=served) as (ledger, facts):
        deps = ModelDeps(ledger, facts, lambda request, name: _ROUGH_TOKENS, clock, OfflineModel)
        return asyncio.run(ask_test_question(settings, deps))


@contextmanager
def _metering(settings: Settings, clock: Clock, *, served: bool) -> Iterator[tuple[Ledger, ModelFacts]]:
    """Yield what counts the call; next to a daemon nothing else is opened."""
    with ExitStack() as stack:
        if served:
            db = stack.enter_context(closing(Database.open_unmigrated(settings.home.path / "script.db")))
            yield Ledger(db, settings.values.budget, settings.zone, render_notice), ModelFacts(db)
        else:
            stores = stack.enter_context(closing(Stores(settings, clock())))
            yield stores.ledger, stores.model_facts


def build_restorer(settings: Settings) -> BackupRestorer:
    folder = BackupFolder(settings.home.path, settings.values.backup.folder)
    return BackupRestorer(folder, partial(_open_unpacked, settings))


def build_repairer(settings: Settings) -> HomeRepairer:
    folder = BackupFolder(settings.home.path, settings.values.backup.folder)
    return HomeRepairer(settings.home.path, folder, partial(_open_unpacked, settings))


@contextmanager
def _open_unpacked(settings: Settings, home: Path, now: datetime) -> Iterator[UnpackedStores]:
    with closing(Stores(replace(settings, home=Home(home)), now)) as stores:

        def make_indexes() -> None:
            for index in (stores.message_index, stores.journal_index):
                while index.index_next_batch():
                    continue

        yield UnpackedStores(stores.conversation, stores.verifier, stores.archive, make_indexes)


def build_doctor_deps(clock: Clock, *, served: bool, vocabulary_url: str = VOCABULARY_URL) -> DoctorDeps:
    """`served`: a daemon runs, so that its stores are not opened here; `vocabulary_url` is where a missing tokenizer
    vocabulary is loaded from."""
    return DoctorDeps(
        setting_name_problems,
        open_stores=partial(_open_checked, clock),
        ask_model=partial(try_model, clock=clock, served=served),
        counting=_describe_counting,
        install_vocabulary=partial(install_vocabulary, url=vocabulary_url),
        memory_settings=memory_store_settings,
        check_port=lambda web: asyncio.run(listen_tcp(web.host, web.port)).close(),
        open_bridges=lambda settings: ConfiguredBridges(settings, None).open_all(),
        command_sandbox=build_command_sandbox,
    )


_DOWNLOAD_SECONDS = 60.0


def install_vocabulary(settings: Settings, encoding: str, *, url: str = VOCABULARY_URL) -> None:
    """Download the vocabulary of an encoding from its publisher into the data folder, for use without a network. It is
    verified before it is stored. Raises `AssistantError`."""
    import httpx2  # only for downloads

    address = url.format(encoding)
    try:
        answer = httpx2.get(address, timeout=_DOWNLOAD_SECONDS, follow_redirects=True).raise_for_status()
        require_vocabulary(encoding, answer.content, f"What {address} gave")
    except (httpx2.HTTPError, VocabularyError) as error:
        raise AssistantError(f"The vocabulary {encoding} could not be downloaded: {error}. Nothing was kept.") from None
    folder = settings.home.vocabularies
    try:
        make_directory(folder)
        write_file(own_vocabulary_file(encoding, folder), answer.content)
    except OSError as error:
        raise AssistantError(f"{folder} cannot be written: {error.strerror}. Nothing was kept.") from None


def _describe_counting(settings: Settings) -> tuple[CountingTier, str]:
    counter = build_token_counter(settings, settings.values.model.name)
    with suppress(StoreError), closing(Database.open_reader(settings.home.path / "script.db")) as script:
        counter = build_learned_counter(settings, ModelFacts(script))
    return counter.tier, counter.describe()


@contextmanager
def _open_checked(clock: Clock, settings: Settings) -> Iterator[CheckedStores]:
    with closing(Stores(settings, clock(), reading=True)) as stores:
        problems = backup_problems(settings, stores)
        yield CheckedStores(stores.conversation, stores.verifier, stores.backups, problems)
