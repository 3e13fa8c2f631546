"""The way from a terminal to the runtime: the same few calls, within this process or over the control socket.

A message is told apart by its `external_id`: said again after a broken connection it is accepted once, so nobody is
answered twice. The HTTP client (`cli.client`) and the daemon are loaded where they are needed, and only then.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from assistant.core.errors import AssistantError
from assistant.core.messages import Media
from assistant.core.records import InboxReceipt, IncomingMessage
from assistant.core.sessions import session_scope

if TYPE_CHECKING:  # the daemon is loaded only where this process serves the home
    from assistant.bridges.terminal.bridge import TerminalBridge
    from assistant.commands.table import CommandResult
    from assistant.web.deps import DaemonControl

# A name and its data: `hello`, the kinds of `records.TurnEvent`, and `deliver`.
LinkEvent = tuple[str, Mapping[str, Any]]


class LinkLost(AssistantError):
    """The assistant stopped before it answered. What it accepted is kept and answered when it runs again."""


class Link(Protocol):
    """Every method raises `LinkLost` when the other end is gone, `AssistantError` with its words when it refuses."""

    async def send_message(
        self, text: str, external_id: str, session: str, media: Sequence[Media] = ()
    ) -> InboxReceipt:
        """Returns once the message is durable."""
        ...

    def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[LinkEvent]:
        """What happens in the session from now on, after a `hello`, and the deliveries that wait; with `inbox_id`,
        only those that answer that message. Ends when the other end detaches us."""
        ...

    async def acknowledge(self, key: str) -> None:
        """A delivery stands on the screen."""
        ...

    async def run_command(self, text: str, session: str) -> str:
        """A slash command as typed; its answer is Markdown."""
        ...

    async def run_argv(self, argv: Sequence[str], session: str, max_seconds: float) -> CommandResult:
        """A command of the table, as typed in a shell."""
        ...

    async def stop(self, session: str) -> bool:
        """Stop the session's running turn; returns whether there was one."""

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        """The state of an accepted message and, once it is answered, the reply: the fields of `GET /v1/results/ID`."""

    async def status(self) -> Mapping[str, Any]:
        """What `assistant status --json` shows of the running assistant."""

    async def unattended(self) -> str:
        """What waits while nothing will run, once this process has ended; "" where something will."""


class InProcessLink:
    """A `Link` to the runtime of this very process."""

    def __init__(self, control: DaemonControl, terminals: TerminalBridge) -> None:
        self._control = control
        self._terminals = terminals

    async def send_message(
        self, text: str, external_id: str, session: str, media: Sequence[Media] = ()
    ) -> InboxReceipt:
        bridge, scope = self._terminals.name, session_scope(session)
        message = IncomingMessage(
            bridge, external_id, session, scope, "owner", "owner", text, tuple(media), target=session
        )
        return await self._control.accept(message)

    async def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[LinkEvent]:
        with self._terminals.attach(session, inbox_id) as attached:
            async for event in attached.events():
                yield event

    async def acknowledge(self, key: str) -> None:
        self._terminals.acknowledge(key)

    async def run_command(self, text: str, session: str) -> str:
        return await self._control.command(text, session, bridge=self._terminals.name)

    async def run_argv(self, argv: Sequence[str], session: str, max_seconds: float) -> CommandResult:
        return await self._control.run_argv(argv, session, bridge=self._terminals.name)

    async def stop(self, session: str) -> bool:
        return await self._control.stop_turn(session)

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        return await self._control.result(inbox_id)

    async def status(self) -> Mapping[str, Any]:
        return self._control.status()

    async def unattended(self) -> str:
        return self._control.health.unattended()
