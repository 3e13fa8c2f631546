"""The composition root: from settings to a house that can be lived in. The only module that knows every adapter.

What is heavy (provider SDKs, the web framework, vocabularies) is imported by the adapter that needs it, and those
adapters are loaded here, when they are first used.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from assistant import commands, health
from assistant.bridges.terminal import TerminalBridge
from assistant.commands import Commands
from assistant.context.truncate import Policy, for_view
from assistant.context.volatile import volatile_block
from assistant.control import DaemonControl
from assistant.delivery import Delivery
from assistant.errors import SettingsError, StoreError, UsageError
from assistant.messages import Message
from assistant.models.chain import build_chain
from assistant.models.offline.model import OfflineModel
from assistant.ports import Bridge, Model, Toolbox
from assistant.records import LogPlace
from assistant.requests import Request
from assistant.runtime import Runtime
from assistant.settings import Settings, ToolSettings, config_dir
from assistant.store.character_schema import character
from assistant.store.conversation import Conversation
from assistant.store.database import Database
from assistant.store.facts import ModelFacts
from assistant.store.ledger import Ledger
from assistant.store.log import MasterLog
from assistant.store.outbox import Outbox
from assistant.store.script_schema import script
from assistant.store.search import StoredHistory
from assistant.store.todos import Todos
from assistant.store.verify import Verifier
from assistant.tokens import Encode, Tier, TokenCounter, best_tier, open_counter
from assistant.turn import Turns
from assistant.web.listener import Serving, serve_control
from assistant.working_context import WorkingContext
from tools.toolbox import RESULT_BYTES, build_toolbox

Clock = Callable[[], datetime]

# Quoted words in most scripts take more bytes a token than this.
_PAGE_BYTES_A_TOKEN = 2.4


# --------------------------------------------------------------------------------------------------------------- stores


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything durable of a home, open."""

    conversation: Conversation
    outbox: Outbox
    history: StoredHistory
    todos: Todos
    ledger: Ledger
    facts: ModelFacts
    verifier: Verifier
    closing: ExitStack

    def close(self) -> None:
        self.closing.close()


def open_stores(settings: Settings, now: datetime, *, reading: bool = False) -> Stores:
    """Open (and make, or migrate) the stores of the home; `reading` opens them beside a running daemon.

    Raises `HomeError`, `NewerSchema`, `StoreError`."""
    home = settings.home.path
    with ExitStack() as stack:
        if reading:
            db, people = Database.reader(home / "script.db"), Database.reader(home / "character.db")
        else:
            db = Database.open(home / "script.db", script, now)
            people = Database.open(home / "character.db", character, now)
        stack.callback(people.close)
        stack.callback(db.close)
        log = MasterLog(home)
        stack.callback(log.close)
        history = StoredHistory.open(home)
        stack.callback(history.close)
        counter = counter_for(settings, settings.values.model.name)
        conversation = Conversation(
            db, log, as_viewed=_as_viewed(settings.values.tools, counter), count=counter.count_message
        )
        ledger = Ledger(db, settings.values.budget, settings.zone)
        verifier = Verifier(home, db, log, conversation)
        return Stores(
            conversation, Outbox(db), history, Todos(people), ledger, ModelFacts(db), verifier, stack.pop_all()
        )


def _as_viewed(tools: ToolSettings, counter: TokenCounter) -> Callable[[Message, LogPlace], Message]:
    limit = tools.output_max_bytes if tools.output_policy == "bytes" else tools.output_max_tokens
    policy = Policy(tools.output_policy, limit, tools.output_serialization_buffer, tools.output_split)
    return lambda message, place: for_view(message, place, policy, counter.count_text)


def _page_bytes(tools: ToolSettings) -> int:
    """How long a page of quoted words may be so that it is not cut when it enters the working context."""
    if tools.output_policy == "bytes":
        return min(RESULT_BYTES, tools.output_max_bytes // 2)
    return min(RESULT_BYTES, int(tools.output_max_tokens * _PAGE_BYTES_A_TOKEN))


# --------------------------------------------------------------------------------------------------------------- tokens


def counter_for(settings: Settings, model: str) -> TokenCounter:
    """The best way of counting for a model that this machine has. Never waits for a network."""
    tier = best_tier(model, settings.tiktoken_cache, toksum=importlib.util.find_spec("toksum") is not None)
    return open_counter(tier, {"tiktoken": partial(_encoder, "vocabulary"), "toksum": partial(_encoder, "toksum_tier")})


def _encoder(module: str, tier: Tier) -> Encode:
    encoder: Callable[[Tier], Encode] = importlib.import_module(f"assistant.{module}").encoder
    return encoder(tier)


def _tokens_of(context: Callable[[], WorkingContext], request: Request, model: str) -> int:
    return context().request_tokens(request, model)


# ---------------------------------------------------------------------------------------------------------------- house


class House:
    """A home with everybody in it: what the daemon serves and the commands change."""

    def __init__(
        self, settings: Settings, stores: Stores, clock: Clock, bridges: Mapping[str, Bridge], model: Model | None
    ) -> None:
        self.settings = settings
        self.stores = stores
        self._clock = clock
        self.terminal = TerminalBridge()
        self.toolbox: Toolbox = build_toolbox(
            stores.history,
            stores.todos,
            workspace=settings.home.workspace,
            zone=settings.zone,
            timeout_seconds=settings.values.tools.timeout_seconds,
            result_bytes=_page_bytes(settings.values.tools),
        )
        self.delivery = Delivery(stores.outbox, {self.terminal.name: self.terminal, **bridges}, clock)
        self.terminal.on_attach = partial(self.delivery.attached, self.terminal.name)
        self.context = _working_context(settings, stores, self.toolbox)
        self.turns = Turns(
            stores.conversation,
            model or self._chain(settings),
            self.toolbox,
            self.context,
            settings.values.turn,
            self.delivery.show,
            clock,
        )
        self.runtime = Runtime(
            stores.conversation, self.turns, self.delivery, lambda now: volatile_block(now, settings.zone), clock
        )
        open_to_commands = commands.Stores(stores.conversation, stores.outbox, stores.todos, stores.ledger)
        self.commands = Commands(self, open_to_commands, self.toolbox, clock)
        self.control = DaemonControl(self.runtime, self.commands, stores.conversation, self.status)
        self.accept, self.stop_turn = self.runtime.accept, self.runtime.stop_turn
        self.is_running = self.runtime.is_running

    def serve(self) -> AbstractAsyncContextManager[None]:
        """The control socket, served while the context is open."""
        return serve_control(self._control_server, self.settings.home.socket)

    def _control_server(self) -> Serving:
        serving: Serving = importlib.import_module("assistant.web.server").control_server(self.control, self.terminal)
        return serving

    def upkeep(self) -> None:
        """Small, regular work on the stores; left for later while a turn runs, or when the disk refuses."""
        if not self.runtime.busy:
            with contextlib.suppress(StoreError):
                self.stores.conversation.upkeep()

    async def warm(self) -> None:
        """Load what is heavy and was not needed to be ready: the provider's SDK, the model's limits."""
        await self.turns.model.limits()

    async def close_model(self) -> None:
        await self.turns.model.aclose()

    def close(self) -> None:
        self.stores.close()

    # ------------------------------------------------------------------------------------------------------------ model

    def _chain(self, settings: Settings) -> Model:
        return build_chain(
            settings,
            ledger=self.stores.ledger,
            facts=self.stores.facts,
            tokens_of=partial(_tokens_of, lambda: self.context),
            clock=self._clock,
            offline=OfflineModel,
        )

    def describe_model(self) -> str:
        model = self.turns.model
        return f"{model.provider} {model.name}; tokens: {self.context.describe_counting(model.name)}"

    def choose_model(self, choice: str) -> str:
        """Have `provider` or `provider:name` answer until the daemon is restarted. Raises `UsageError`."""
        provider, _, name = choice.partition(":")
        if provider not in ("anthropic", "openai", "offline"):
            raise UsageError("Choose anthropic, openai or offline, as in `/model openai:llama3`. Nothing was changed.")
        if provider == "anthropic" and not self.settings.anthropic_key.get_secret_value():
            raise UsageError("ANTHROPIC_API_KEY is not set. Nothing was changed.")
        values = self.settings.values
        changed = values.model_copy(
            update={"model": values.model.model_copy(update={"provider": provider, "name": name})}
        )
        self.turns.model = self._chain(replace(self.settings, values=changed))
        return f"From now on: {self.describe_model()}"

    # ----------------------------------------------------------------------------------------------------------- status

    def status(self) -> Mapping[str, Any]:
        model = self.turns.model
        counting = self.context.describe_counting(model.name)
        report = stored_status(self.settings, self.stores, self._clock(), counting)
        name = f"{model.provider} {model.name}" if model.provider != model.name else model.name
        return health.with_daemon(report, self.runtime.status(), self.delivery.status(), name)


def stored_status(settings: Settings, stores: Stores, now: datetime, tokens: str = "") -> dict[str, Any]:
    """What the stores alone say of the home; `tokens` tells how a running daemon counts them."""
    report = health.stored(settings, stores.conversation, stores.outbox, stores.ledger, now)
    return {**report, "tokens": tokens or counter_for(settings, settings.values.model.name).describe()}


def build(
    settings: Settings, clock: Clock, *, bridges: Mapping[str, Bridge] | None = None, model: Model | None = None
) -> House:
    """Open the home and wire everything; `model` answers instead of the configured one.

    Raises `HomeError`, `StoreError`, `SettingsError`."""
    stores = open_stores(settings, clock())
    try:
        return House(settings, stores, clock, bridges or {}, model)
    except BaseException:
        stores.close()
        raise


def _working_context(settings: Settings, stores: Stores, toolbox: Toolbox) -> WorkingContext:
    persona = settings.home.persona
    own = persona if persona.is_file() else config_dir() / "prompts" / "persona.md"
    try:
        rules = (config_dir() / "prompts" / "system.md").read_text(encoding="utf-8")
        words = own.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{own} cannot be read: {error}. Nothing was started.") from None
    return WorkingContext(
        stores.conversation,
        stores.facts,
        toolbox,
        partial(counter_for, settings),
        settings.values.context,
        rules=rules,
        persona=words,
        max_output_tokens=settings.values.model.max_output_tokens,
    )
