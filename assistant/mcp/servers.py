"""The owner's MCP servers: lists their tools, and calls them.

- A server is started in a child process (`session_main`) when a tool is first called or listed; its failures only
  affect the waiting call, which has a time limit.
- After each start its tools are compared with those the owner approved. Differences are reported, and changed tools are
  not offered or called until they are approved again.
- A failed server is restarted only after a delay, which grows.
- Its answers and secrets are not logged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from assistant.core.calendar import is_still_ahead
from assistant.core.dataclass import dataclass
from assistant.core.errors import OutcomeUnknown, ToolError, UsageError, install_hint
from assistant.core.logger import get_logger
from assistant.core.mcp import McpToolDefinition, McpToolPin, approval_code
from assistant.core.quoting import quote_text
from assistant.service.child_process import ChildFault, ChildProcess
from assistant.settings.mcp import McpServerSettings
from assistant.store.script.mcp_tools import StoredMcpTools

log = get_logger()

# -P: do not import from the current directory; -B: do not write bytecode next to the code.
SESSION_COMMAND = (sys.executable, "-P", "-B", "-m", "assistant.mcp.session_main")
MAX_DEFINITION = 16_000
"""Characters that a tool may say of itself: all of it is shown to the owner, and to the model when it finds it."""

_SECONDS_BESIDE = 10.0  # to start and to end a process
_ANSWER_ROOM = 1 << 25
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)
_UNKNOWN = "Whether it did what it was asked is not known: look before you repeat it."


@dataclass(frozen=True, slots=True)
class McpServer:
    """A configured server. `secrets` are passed as environment variables or headers."""

    name: str
    settings: McpServerSettings
    secrets: Mapping[str, str]

    @property
    def first_line(self) -> Mapping[str, Any]:
        """What the child process is told first. It has secrets, so it is never logged."""
        it = self.settings
        return {
            "name": self.name,
            "command": it.command,
            "args": it.args,
            "env": {**it.env, **self.secrets} if it.command else {},
            "url": it.url,
            "headers": {**it.headers, **self.secrets} if it.url else {},
            "timeout_seconds": it.timeout_seconds,
            "result_bytes": it.result_bytes,
        }

    def uses(self, tool: str) -> bool:
        """Return whether the settings select the tool, by name or by a pattern such as `read_*`."""
        return any(fnmatchcase(tool, pattern) for pattern in self.settings.tools)

    def only_reads(self, tool: str) -> bool:
        """Return whether the owner's settings say that a tool only reads; the server's own claims are ignored."""
        return any(fnmatchcase(tool, pattern) for pattern in self.settings.read_only)


class _Session(ChildProcess):
    """`changed`: whether its tools were compared since it was started."""

    def __init__(self, server: McpServer, command: Sequence[str]) -> None:
        super().__init__(
            command,
            server.first_line,
            seconds=server.settings.timeout_seconds + _SECONDS_BESIDE,
            max_answer_bytes=_ANSWER_ROOM,
            own_group=True,
        )
        self._server = server
        self.compared_pid: int | None = None
        self.failures = 0
        self.paused_until: datetime | None = None

    def failure(self, fault: ChildFault, detail: str) -> ToolError:
        name = self._server.name
        if fault == "refused":
            return ToolError(f"the MCP server {name} refused: {quote_text(detail)}.")
        self.failures += 1
        if "No module named 'mcp'" in detail:
            return ToolError(f"the SDK of MCP is not installed: {install_hint('mcp')}. Nothing was done.")
        if fault == "silent":
            return ToolError(f"the MCP server {name} did not answer within {self.seconds:g} s.")
        why = f": {quote_text(detail)}" if detail else ""
        return ToolError(f"the MCP server {name} does not answer{why}.")


class McpServers:
    def __init__(
        self,
        servers: Sequence[McpServer],
        stored: StoredMcpTools,
        clock: Callable[[], datetime],
        tell_changed: Callable[[str, Sequence[McpToolPin]], None] = lambda server, pins: None,
        command: Sequence[str] = SESSION_COMMAND,
    ) -> None:
        """`tell_changed` is called with the differences from what was approved."""
        self._servers = {server.name: server for server in servers}
        self._stored = stored
        self._clock = clock
        self._tell_changed = tell_changed
        self._sessions = {server.name: _Session(server, command) for server in servers}
        self._offered: list[tuple[McpServer, McpToolDefinition]] | None = None
        self.on_change: Callable[[], None] = lambda: None

    def list_servers(self) -> list[McpServer]:
        return list(self._servers.values())

    def list_offered(self) -> list[tuple[McpServer, McpToolDefinition]]:
        """Return the tools that may be offered to the model: approved, unchanged as far as is known, and used."""
        if self._offered is None:  # only this changes what is stored
            self._offered = [
                (server, pin.approved)
                for pin in (self._stored.list_tools() if self._servers else [])
                if (server := self._servers.get(pin.server)) and server.uses(pin.name)
                if pin.state == "approved" and pin.approved is not None
            ]
        return self._offered

    def list_pins(self, name: str) -> list[McpToolPin]:
        """Return the used tools that a server was last seen to have. Raises `UsageError`."""
        server = self._find(name)
        return [pin for pin in self._stored.list_tools(name) if server.uses(pin.name)]

    async def refresh_tools(self, name: str) -> list[McpToolPin]:
        """Ask a server for its tools. Raises `UsageError` if it is not configured, `ToolError` if it does not
        answer."""
        self._find(name)
        session = self._sessions[name]
        session.paused_until = None
        await self._compare(name, session)
        return self.list_pins(name)

    def approve(self, name: str, code: str) -> list[McpToolPin]:
        """Approve the last seen tools if `code` belongs to exactly these. Raises `UsageError`."""
        pins = self.list_pins(name)
        if not pins:
            raise UsageError(f"Nothing is known of {name} yet. Nothing was changed; `/mcp test {name}` asks it.")
        if code != approval_code(pins):
            raise UsageError(
                f"The tools of {name} are not those that were shown with {code[:20]!r}. Nothing was changed; "
                f"`/mcp show {name}` shows them as they are now."
            )
        self._stored.approve(name, [pin.name for pin in pins], self._clock())
        self._note_change()
        return self.list_pins(name)

    def remove(self, name: str) -> int:
        """Delete all approvals of a server; its settings stay. Raises `UsageError` if there are none."""
        count = self._stored.remove(name)
        if not count:
            raise UsageError(f"Nothing of {name[:64]!r} is approved or known. Nothing was changed.")
        self._note_change()
        return count

    async def call(self, name: str, tool: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Return a tool's answer, and whether it failed. Raises `ToolError`."""
        session = self._sessions[name]
        self._check_pause(name, session)
        if session.pid is None or session.compared_pid != session.pid:
            await self._compare(name, session)
        if tool not in [definition.name for server, definition in self.list_offered() if server.name == name]:
            raise ToolError(f"{tool} of the MCP server {name} is not what the owner approved. Nothing was done.")
        failures = session.failures
        try:
            answer = await self._ask(session, "call", name=tool, arguments=arguments)
        except ToolError as error:
            raise OutcomeUnknown(f"{error} {_UNKNOWN}") if session.failures > failures else error from None
        return str(answer["text"]), bool(answer["failed"])

    async def aclose(self) -> None:
        for session in self._sessions.values():
            await session.aclose()

    async def _compare(self, name: str, session: _Session) -> None:
        """Ask for the server's tools, store them, and report differences from what was approved."""
        answer = await self._ask(session, "list")
        session.compared_pid = session.pid
        definitions = [McpToolDefinition(**it) for it in answer]
        before = self._stored.list_tools(name)
        self._stored.record(name, {it.name: it for it in definitions if it.size <= MAX_DEFINITION}.values())
        known = {pin.name for pin in before if pin.state == "changed"}
        changed = [pin for pin in self.list_pins(name) if pin.state == "changed" and pin.name not in known]
        if changed:
            log.warning("an MCP server says otherwise of its tools than was approved", server=name, tools=len(changed))
            self._tell_changed(name, changed)
        self._note_change()

    async def _ask(self, session: _Session, step: str, **question: Any) -> Any:
        before = session.failures
        try:
            answer = await session.ask(step, **question)
        except ToolError:
            if session.failures > before:
                session.paused_until = self._clock() + min(_FIRST_PAUSE * 2 ** (session.failures - 1), _LONGEST_PAUSE)
            raise
        session.failures, session.paused_until = 0, None
        return answer

    def _check_pause(self, name: str, session: _Session) -> None:
        until, now = session.paused_until, self._clock()
        if until is not None and is_still_ahead(until, now, _LONGEST_PAUSE):
            left = until - now
            raise ToolError(
                f"the MCP server {name} failed just now, and is started again in {left.total_seconds():.0f} s at the "
                "earliest. Nothing was done."
            )

    def _note_change(self) -> None:
        self._offered = None
        self.on_change()

    def _find(self, name: str) -> McpServer:
        if name not in self._servers:
            names = ", ".join(self._servers) or "none"
            raise UsageError(
                f"The assistant knows no MCP server {name[:64]!r}, only: {names}. Nothing was changed; one that you "
                "added to config.toml since it was started is known after a restart."
            )
        return self._servers[name]
