"""The daemon's side of `ports.Control`: what a person's tools may ask of it while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assistant.commands.registry import CommandRegistry
from assistant.core.errors import UsageError
from assistant.core.records import InboxReceipt, IncomingMessage
from assistant.core.sessions import session_role
from assistant.core.store_ports import Conversation
from assistant.runtime.runtime import Runtime


class DaemonControl:
    """Implements `ports.Control` over a runtime, its commands and its status."""

    def __init__(
        self,
        runtime: Runtime,
        commands: CommandRegistry,
        conversation: Conversation,
        status: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._runtime = runtime
        self._commands = commands
        self._conversation = conversation
        self._status = status

    async def accept(self, incoming: IncomingMessage) -> InboxReceipt:
        return await self._runtime.accept(incoming)

    async def command(self, text: str, session: str, *, bridge: str = "terminal") -> str:
        if session_role(session) != "owner":
            known = [info.key for info in self._conversation.sessions()]
            if session not in known:
                raise UsageError(f"There is no session {session!r}. Sessions: {', '.join(known)}. Nothing was changed.")
            raise UsageError("Commands from here act in the owner's conversations alone. Nothing was changed.")
        return await self._commands.run(text, session, bridge=bridge, target=session)

    async def stop_turn(self, session: str) -> bool:
        return await self._runtime.stop_turn(session)

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        item = self._conversation.inbox_item(inbox_id)
        if item is None:
            raise UsageError(f"There is no message {inbox_id} in the inbox.")
        return self._runtime.result(item)

    def status(self) -> Mapping[str, Any]:
        return self._status()
