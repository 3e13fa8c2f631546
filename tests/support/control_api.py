"""A daemon's outside for tests: the control API on a real Unix socket, with a scripted runtime behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2

from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.cli.client import SocketLink, open_socket_link
from assistant.commands.table import CommandResult
from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import UsageError
from assistant.core.memories import MemoryHit, MemoryListPage, SleepReport
from assistant.core.model_api import SpendTotals, UsageKey
from assistant.core.records import InboxReceipt, IncomingMessage, LogRecord, SearchHit
from assistant.core.telemetry import Metrics
from assistant.notify.browser_push import PushKey
from assistant.service.home_lock import short_address
from assistant.sessions.listing import SessionRow
from assistant.store.database import Database
from assistant.store.home.browser_sessions import BrowserSessions
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.outbox import StoredOutbox
from assistant.web.app import build_web_app
from assistant.web.deps import ApiDeps
from assistant.web.server import serve_with_uvicorn
from assistant.web.servers import serve_control

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class ScriptedControl:
    """A `DaemonControl` that keeps what it accepted, and fails as it is told."""

    def __init__(self) -> None:
        self.accepted: dict[str, IncomingMessage] = {}
        self.failure: Exception | None = None
        self.stopped: list[str] = []

    async def accept(self, incoming: IncomingMessage) -> InboxReceipt:
        if self.failure is not None:
            raise self.failure
        known = list(self.accepted)
        duplicate = incoming.external_id in known
        if not duplicate:
            self.accepted[incoming.external_id] = incoming
        number = list(self.accepted).index(incoming.external_id) + 1
        return InboxReceipt(number, 100 + number, duplicate)

    async def command(self, text: str, session: str, *, bridge: str = "terminal") -> str:
        if text == "/nonsense":
            raise UsageError("There is no command /nonsense.\nNothing was changed.")
        return f"**{text}** in {session} from {bridge}"

    async def run_argv(
        self, argv: Sequence[str], session: str, *, bridge: str = "terminal", typed: str = ""
    ) -> CommandResult:
        return CommandResult(" ".join(argv), {"session": session}, remark="Some were left out.")

    async def stop_turn(self, session: str) -> bool:
        self.stopped.append(session)
        return len(self.stopped) == 1

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        if inbox_id > len(self.accepted):
            raise UsageError(f"There is no message {inbox_id} with this number.")
        return {
            "state": "answered",
            "reply": "yes",
            "error": "",
            "exit_code": 0,
            "session": "main",
            "turn": "t1",
            "model": "scripted",
            "usage": None,
            "fallback": False,
            "fallback_reason": "",
            "notices": [],
            "pressure": 0.1,
        }

    def status(self) -> Mapping[str, Any]:
        return {"ok": True, "problems": []}


class EmptyReadApi:
    """An `OwnerReadApi` of a home in which nothing was said yet."""

    def sessions(self, limit: int) -> Sequence[SessionRow]:
        return []

    def session(self, session: str, number: int | None) -> tuple[SessionRow, str, str]:
        raise UsageError(f"There is no session {session!r}. Sessions: none yet.")

    async def recent_messages(self, session: str, *, limit: int, before_id: int | None = None) -> Sequence[LogRecord]:
        return []

    async def search(
        self, text: str, after: datetime | None, before: datetime | None, *, session: str | None, limit: int
    ) -> Sequence[SearchHit]:
        return []

    async def read_around(self, message_id: int, neighbours: int) -> Sequence[LogRecord]:
        raise UsageError(f"There is no message {message_id} in your conversations.")

    def spoken_among(self, records: Sequence[LogRecord]) -> frozenset[int]:
        return frozenset()

    async def read_recording(self, message_id: int) -> bytes:
        raise UsageError(f"Message {message_id} was not spoken.")

    async def memories(self, limit: int, *, former: bool, before: str) -> MemoryListPage:
        return MemoryListPage((), False)

    async def recall(
        self, text: str, after: datetime | None, before: datetime | None, *, limit: int, as_of: datetime | None = None
    ) -> Sequence[MemoryHit]:
        return []

    def list_sleeps(self, limit: int) -> Sequence[SleepReport]:
        return []

    def render_cycle_report(self, cycle: SleepReport) -> str:
        return ""

    def compactions(self, session: str, limit: int) -> Sequence[Checkpoint]:
        return []

    def usage(self, by: UsageKey, days: int) -> Sequence[tuple[str, SpendTotals]]:
        return []


class StubHealth:
    """A `DaemonStatus`, as a test says."""

    started_at = NOW

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.stall_text = ""
        self.missing: list[str] = []

    def stall_reason(self) -> str:
        return self.stall_text

    def readiness_problems(self) -> Sequence[str]:
        return self.missing

    def report(self) -> dict[str, Any]:
        return {"ok": True, "problems": []}


def control_deps(control: ScriptedControl, terminal: TerminalBridge) -> ApiDeps:
    browsers = BrowserSessions(Path("/nowhere/browsers.json"), lambda: NOW)
    return ApiDeps(control, EmptyReadApi(), terminal, StubHealth(), browsers, PushKey(Path("push-key.pem")))  # type: ignore[arg-type]


@contextmanager
def open_terminal(**options: Any) -> Iterator[TerminalBridge]:
    """A terminal bridge over an outbox in which nothing is."""
    with TemporaryDirectory() as folder:
        db = Database.open(Path(folder) / "script.db", script_migrations, NOW)
        try:
            yield TerminalBridge(StoredOutbox(db), **options)
        finally:
            db.close()


class ControlServer:
    """A daemon's outside: the socket, and what lies behind it."""

    def __init__(self, path: Path, control: ScriptedControl, terminal: TerminalBridge, link: SocketLink) -> None:
        self.path = path
        self.control = control
        self.terminal = terminal
        self.link = link

    async def request(self, method: str, address: str, **request: Any) -> httpx2.Response:
        with short_address(self.path) as short:
            async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=short), timeout=60) as client:
                return await client.request(method, f"http://assistant/v1{address}", **request)


@asynccontextmanager
async def serve_control_api(path: Path, **terminal_options: Any) -> AsyncIterator[ControlServer]:
    control = ScriptedControl()
    with open_terminal(**terminal_options) as terminal:
        async with (
            serve_control(lambda: serve_with_uvicorn(build_web_app(control_deps(control, terminal))), path),
            open_socket_link(path) as link,
        ):
            try:
                yield ControlServer(path, control, terminal, link)
            finally:
                await terminal.aclose()
