"""The way from a terminal to the runtime: the same few calls, within this process or over the control socket.

Whatever the way, a message is told apart by its `external_id`: said again after a broken connection it is accepted
once, so nobody is answered twice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from assistant.core.errors import AssistantError
from assistant.core.ports import ControlPort
from assistant.core.records import InboxReceipt, IncomingMessage
from assistant.core.sessions import session_scope

# A name and its data: `hello`, the kinds of `records.TurnEvent`, and `deliver`.
Event = tuple[str, Mapping[str, Any]]


class LinkLost(AssistantError):
    """The assistant went away before it answered. What it accepted is kept and answered when it runs again."""


class Link(Protocol):
    """Every method raises `LinkLost` when the other end is gone, `AssistantError` with its words when it refuses."""

    async def say(self, text: str, external_id: str, session: str) -> InboxReceipt:
        """Returns once the message is durable."""
        ...

    def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[Event]:
        """What happens in the session from now on, after a `hello`, and the deliveries that wait; with `inbox_id`,
        only those that answer that message. Ends when the other end detaches us."""
        ...

    async def shown(self, key: str) -> None:
        """A delivery stands on the screen."""
        ...

    async def command(self, text: str, session: str) -> str: ...
    async def stop(self, session: str) -> bool: ...
    async def result(self, inbox_id: int) -> Mapping[str, Any]: ...
    async def status(self) -> Mapping[str, Any]: ...


class _Attached(Protocol):
    def events(self) -> AsyncIterator[Event]: ...


class Terminals(Protocol):
    """What a link within the process needs of the terminal bridge."""

    name: str

    def attach(self, session: str, inbox_id: int | None = None) -> AbstractContextManager[_Attached]: ...
    def acknowledge(self, key: str) -> bool: ...


class DirectLink:
    """A `Link` to the runtime of this very process."""

    def __init__(self, control: ControlPort, terminals: Terminals) -> None:
        self._control = control
        self._terminals = terminals

    async def say(self, text: str, external_id: str, session: str) -> InboxReceipt:
        return await self._control.accept(
            IncomingMessage(
                self._terminals.name,
                external_id,
                session,
                session_scope(session),
                "owner",
                "owner",
                text,
                target=session,
            )
        )

    async def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[Event]:
        with self._terminals.attach(session, inbox_id) as attached:
            async for event in attached.events():
                yield event

    async def shown(self, key: str) -> None:
        self._terminals.acknowledge(key)

    async def command(self, text: str, session: str) -> str:
        return await self._control.command(text, session, bridge=self._terminals.name)

    async def stop(self, session: str) -> bool:
        return await self._control.stop_turn(session)

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        return await self._control.result(inbox_id)

    async def status(self) -> Mapping[str, Any]:
        return self._control.status()
