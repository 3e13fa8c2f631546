"""What a command works on: who asks and where, the stores, and the running assistant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Literal

from assistant.core.errors import UsageError
from assistant.core.messages import Trust
from assistant.core.sessions import session_scope

if TYPE_CHECKING:  # a shell loads what its command needs, and no more
    from assistant.runtime.compaction_service import CompactionService
    from assistant.store.script.conversation import StoredConversation
    from assistant.store.script.requests import Pins, UserRequests
    from sleep.compaction.values import CachedPrompt

# Where a command was typed: "chat" is a conversation on any bridge, "shell" a command line or a program.
Surface = Literal["chat", "shell"]


@dataclass(frozen=True, slots=True)
class CommandStores:
    """What is kept, open for reading at least. Opening it reads nothing."""

    conversation: StoredConversation
    pins: Pins
    requests: UserRequests


@dataclass(frozen=True, slots=True)
class CommandServices:
    """The running assistant."""

    compaction: CompactionService
    cached_prompt: Callable[[str, datetime], CachedPrompt | None]  # of a session: what its provider still has
    pins_max_tokens: int  # of one conversation together
    count_tokens: Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """One use of a command."""

    session: str
    now: datetime
    zone: tzinfo
    stores: CommandStores
    running: CommandServices | None  # None where a command only reads
    surface: Surface = "chat"
    bridge: str = "terminal"
    target: str = ""  # where on the bridge an answer goes that comes later
    sender: str = "owner"
    trust: Trust = "owner"

    @property
    def scope(self) -> str:
        return session_scope(self.session)

    @property
    def services(self) -> CommandServices:
        """The running assistant; a command that only reads (`TableCommand.reads`) must do without."""
        if self.running is None:
            raise RuntimeError("a command that reads used the running assistant")
        return self.running

    def require_session(self) -> str:
        """The session; raises `UsageError` where nothing was ever said in it."""
        known = [info.key for info in self.stores.conversation.list_sessions()]
        if self.session not in known:
            names = ", ".join(sorted(known)) or "none yet"
            raise UsageError(f"There is no conversation {self.session!r}. Conversations: {names}. Nothing was changed.")
        return self.session
