"""What a person configures, put together: the files of the home that settings and secrets are in, the watch over them,
and a first call to the model that was chosen. One part of the composition root (`assistant.wire.app`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import structlog

from assistant.core.errors import StoreError, UsageError
from assistant.core.messages import Message
from assistant.core.model_api import ModelReply, ModelRequest, SystemBlock
from assistant.models.factory import DEFAULT_MODEL_NAMES, ModelDeps, build_model_chain
from assistant.models.offline.model import OfflineModel
from assistant.settings.home import Home, file_stamp
from assistant.settings.settings import SYSTEM_KEYRING, Settings, load_settings
from assistant.settings.system_keyring import SystemKeyring
from assistant.settings.watch import SettingsWatch
from assistant.spending.turn_guard import TurnGuard
from assistant.store.database import Database
from assistant.store.home.config_file import ConfigFile, write_copy
from assistant.store.script.ledger import Ledger
from assistant.store.script.state import ModelFacts
from assistant.wire.stores import open_stores

if TYPE_CHECKING:
    from assistant.store.home.secrets import HomeSecretStore

_GREETING = "Say hello in one short sentence."
_GREETER = "You are being set up as somebody's personal assistant."
# Some models think before they greet.
_MOST_ANSWER = 512
_ROUGH_TOKENS = 100


def config_file(home: Home) -> ConfigFile:
    return ConfigFile(home.config)


def persona_file(home: Home) -> ConfigFile:
    return ConfigFile(home.persona)


def secret_store(home: Home, ring: SystemKeyring | None = SYSTEM_KEYRING) -> HomeSecretStore:
    from assistant.store.home.secrets import HomeSecretStore  # writes TOML, which few need

    return HomeSecretStore(home.secrets, ring)


def build_settings_watch(
    settings: Settings, ledger: Ledger, take_over: Callable[[Settings], None], read: Callable[[], Settings] | None
) -> SettingsWatch:
    """`read` reads the settings again; without it, as they were read at the start. Each time they are understood, what
    config.toml says is kept for the commands that look (`Home.understood`)."""
    read_again = read or partial(load_settings, settings.home, ring=None)

    def understood() -> Settings:
        found = read_again()
        _keep_understood(found)
        return found

    def taken(found: Settings) -> None:
        ledger.budget = found.values.budget
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(found.values.log.level))
        take_over(found)

    _keep_understood(settings)
    watch = SettingsWatch(settings, understood, taken)
    # A cap that was raised holds for the call that it would have refused.
    ledger.reload_budget = watch.check_files
    return watch


def _keep_understood(settings: Settings) -> None:
    """Unless the file became another since it was read: then the next look reads it, and keeps it if it can."""
    with suppress(StoreError):
        text = config_file(settings.home).read()
        if file_stamp(settings.home.config) == settings.file_stamps[0]:
            write_copy(text, settings.home.last_valid_config)


def build_turn_guard(settings: Settings, ledger: Ledger) -> TurnGuard:
    """`budget.runaway_calls` holds as it is set now."""
    notices = ledger.notices
    return TurnGuard(settings.zone, lambda: ledger.budget.runaway_calls, notices.was_sent, notices.mark_sent)


def default_model_name(provider: str) -> str:
    """What answers where no name is set; "" where the provider's list is asked."""
    return DEFAULT_MODEL_NAMES.get(provider, "")


def settings_with_model(settings: Settings, choice: str) -> Settings:
    """The settings with `provider` or `provider:name` answering. Raises `UsageError`."""
    provider, _, name = choice.partition(":")
    if provider not in ("anthropic", "openai", "offline"):
        raise UsageError("Choose anthropic, openai or offline, as in `/model openai:llama3`. Nothing was changed.")
    if provider == "anthropic" and not settings.anthropic_key.get_secret_value():
        raise UsageError("ANTHROPIC_API_KEY is not set. Nothing was changed.")
    chosen = settings.values.model.model_copy(update={"provider": provider, "name": name})
    return replace(settings, values=settings.values.model_copy(update={"model": chosen}))


def ask_test_question(settings: Settings, clock: Callable[[], datetime], *, served: bool) -> str:
    """A real answer of the model that is configured, asked once and within the budget. Where nobody serves the home,
    the caller holds its lock. Raises `ModelError`, `HomeError`, `StoreError`."""
    with _metering(settings, clock, served=served) as (ledger, facts):
        return asyncio.run(_greeting(settings, clock, ledger, facts))


async def _greeting(settings: Settings, clock: Callable[[], datetime], ledger: Ledger, facts: ModelFacts) -> str:
    wanted = settings.values.model.model_copy(update={"fallback": (), "retries": 0, "thinking": "off"})
    alone = replace(settings, values=settings.values.model_copy(update={"model": wanted}))
    model = build_model_chain(alone, ModelDeps(ledger, facts, lambda request, name: _ROUGH_TOKENS, clock, OfflineModel))
    request = ModelRequest((SystemBlock(_GREETER),), (Message("user", _GREETING),), max_output_tokens=_MOST_ANSWER)
    answer = ""
    try:
        async with aclosing(model.stream(request, "check")) as events:
            async for event in events:
                answer = event.message.content if isinstance(event, ModelReply) else answer
    finally:
        await model.aclose()
    return answer


@contextmanager
def _metering(
    settings: Settings, clock: Callable[[], datetime], *, served: bool
) -> Iterator[tuple[Ledger, ModelFacts]]:
    """What a call needs to be counted; beside a process that serves the home only what that needs."""
    with ExitStack() as stack:
        if served:
            db = Database.open_unmigrated(settings.home.path / "script.db")
            stack.callback(db.close)
            yield Ledger(db, settings.values.budget, settings.zone), ModelFacts(db)
        else:
            stores = open_stores(settings, clock())
            stack.callback(stores.close)
            yield stores.ledger, stores.model_facts
