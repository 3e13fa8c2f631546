"""History and delegations in memory, what guests and rooms are granted, and a person who talks to the offline
model over them.

The history here implements the port like any other; it finds messages by the beginnings of their words.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

from assistant.core.checkpoints import Delegation, DelegationState
from assistant.core.errors import StoreError
from assistant.core.messages import LogByteRange, Message, Role
from assistant.core.model_api import ModelReply, ModelRequest, TextDelta
from assistant.core.permissions import Permissions, RoleGrant
from assistant.core.ports import Tool, ToolContext
from assistant.core.records import LogLocation, LogRecord, SearchHit
from assistant.core.text import fold_text
from assistant.models.offline.model import OfflineModel
from assistant.runtime.tool_registry import ToolRegistry
from assistant.store.character.todos import StoredTodos
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.store.search.sources import indexed_text
from sleep.rules.statements import stem_word
from tools.toolbox import build_toolbox


def grant_others(
    tools: Iterable[str] = (), commands: Iterable[str] = (), *, memory: bool = True, share: float = 1.0
) -> Permissions:
    """The same for guests and rooms."""
    grant = RoleGrant(frozenset(tools), frozenset(commands), memory, share)
    return Permissions({"guest": grant, "room": grant})


def grant_all_tools(tools: Iterable[Tool]) -> Permissions:
    """Every tool that admits others at all."""
    return grant_others(tool.spec.name for tool in tools)


@dataclass
class InMemoryDelegations:
    """`fail_begin` and `fail_end` are raised by those calls, where they are set."""

    rows: list[Delegation] = field(default_factory=list)
    fail_begin: StoreError | None = None
    fail_end: StoreError | None = None

    def begin(
        self, key: str, turn: str, session: str, scope: str, tasks: Sequence[str], now: datetime
    ) -> list[Delegation]:
        if self.fail_begin:
            raise self.fail_begin
        if any(row.key == key for row in self.rows):
            again = {row.id for row in self.rows if row.key == key and row.state == "interrupted"}
            self.rows = [replace(row, state="running") if row.id in again else row for row in self.rows]
            return [row for row in self.rows if row.key == key]
        first = len(self.rows) + 1
        new = [
            Delegation(first + n, key, turn, session, scope, task, "running", "", now) for n, task in enumerate(tasks)
        ]
        self.rows += new
        return new

    def end(
        self, delegation_id: int, state: DelegationState, result: str, cost_usd: float | None, now: datetime
    ) -> None:
        if self.fail_end:
            raise self.fail_end
        self.rows = [
            replace(row, state=state, result=result, cost_usd=cost_usd, ended_at=now)
            if row.id == delegation_id
            else row
            for row in self.rows
        ]

    def list_for_session(
        self, session: str, *, state: DelegationState | None = None, limit: int = 50
    ) -> list[Delegation]:
        mine = [row for row in self.rows if row.session == session and state in (None, row.state)]
        return mine[::-1][:limit]

    def interrupt_running(self, now: datetime) -> list[Delegation]:
        cut_off = {row.id for row in self.rows if row.state == "running"}
        self.rows = [replace(row, state="interrupted", ended_at=now) if row.id in cut_off else row for row in self.rows]
        return [row for row in self.rows if row.id in cut_off]


START = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
OSLO = ZoneInfo("Europe/Oslo")


class InMemoryHistory:
    """`ports.History` over a list of records."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []

    def add(self, record: LogRecord) -> LogRecord:
        start = self.records[-1].span.end if self.records else 0
        placed = replace(record, span=LogByteRange(start, start + 100 + len(record.content.encode("utf-8", "replace"))))
        self.records.append(placed)
        return placed

    def search(
        self,
        query: str,
        scope: str,
        *,
        limit: int = 8,
        roles: Sequence[Role] = ("user", "assistant", "tool"),
        after: datetime | None = None,
        before: datetime | None = None,
        session: str | None = None,
    ) -> list[SearchHit]:
        wanted = _stems(query)
        hits = []
        for record in self.records:
            shared = len(wanted & _stems(indexed_text(record)))
            in_time = (after is None or record.ts >= after) and (before is None or record.ts < before)
            if shared and record.scope == scope and record.role in roles and in_time:
                hits.append(_hit(record, shared))
        return sorted(hits, key=lambda hit: (-hit.score, hit.message_id))[:limit]

    def read(self, message_id: int, scope: str, *, neighbours: int = 0) -> list[LogRecord]:
        mine = [record for record in self.records if record.scope == scope]
        place = next((n for n, record in enumerate(mine) if record.id == message_id), None)
        return [] if place is None else mine[max(0, place - neighbours) : place + neighbours + 1]

    def read_byte_range(self, session: str, start: int, end: int, scope: str) -> list[LogRecord]:
        inside = [r for r in self.records if r.span.start >= start and r.span.end <= end]
        return [record for record in inside if record.session == session and record.scope == scope]

    def recent(
        self, scope: str, *, session: str | None = None, limit: int = 50, before_id: int | None = None
    ) -> list[LogRecord]:
        mine = [r for r in self.records if r.scope == scope and (before_id is None or r.id < before_id)]
        return mine[::-1][:limit]


def new_todos() -> StoredTodos:
    """The real store over a database that goes with it."""
    folder = TemporaryDirectory()
    db = Database.open(Path(folder.name) / "character.db", character_migrations, START)
    todos = StoredTodos(db)
    weakref.finalize(todos, lambda: (db.close(), folder.cleanup()))
    return todos


@dataclass
class OfflineChat:
    """One session of one person. `window` is how many messages the model still sees."""

    workspace: Path
    role: str = "owner"
    scope: str = "owner"
    window: int = 1000
    history: InMemoryHistory = field(default_factory=InMemoryHistory)
    todos: StoredTodos = field(default_factory=new_todos)
    view: list[Message] = field(default_factory=list)
    now: datetime = START

    def __post_init__(self) -> None:
        self.model = OfflineModel()
        others = grant_others(["search_history", "read_history", "manage_todo_list", "current_time"])
        self.toolbox: ToolRegistry = build_toolbox(
            self.history, self.todos, workspace=self.workspace, zone=OSLO, authority=others
        )

    async def say(self, text: str) -> str:
        """What the model answers, after all the tools it calls have run."""
        self.now += timedelta(minutes=7)
        turn = f"t{len(self.history.records)}"
        self._record(Message("user", text), turn)
        for _ in range(6):
            reply = await self.reply()
            self._record(reply, turn)
            if not reply.tool_calls:
                return reply.content
            for call in reply.tool_calls:
                context = ToolContext("main", self.scope, turn, f"{turn}:{call.id}", self.now)
                result, _ok = await self.toolbox.run(call, context, self.role)
                self._record(Message("tool", result, tool_call_id=call.id, name=call.name), turn)
        raise AssertionError("the model did not come to an answer")

    async def reply(self) -> Message:
        request = ModelRequest((), tuple(self.view[-self.window :]), self.toolbox.specs(self.role))
        events = [event async for event in self.model.stream(request)]
        *deltas, last = events
        assert isinstance(last, ModelReply)
        streamed = "".join(event.text for event in deltas if isinstance(event, TextDelta))
        assert streamed == last.message.content
        return last.message

    def clear_view(self) -> None:
        """As a reset does: the model no longer sees what was said; the history keeps it."""
        self.view.clear()

    def _record(self, message: Message, turn: str) -> None:
        number = len(self.history.records) + 1
        self.history.add(
            LogRecord(
                number,
                number,
                self.now,
                "main",
                1,
                self.scope,
                "message",
                message.role,
                message.content,
                "",
                "",
                name=message.name,
                tool_calls=message.tool_calls,
                tool_call_id=message.tool_call_id,
                turn=turn,
            )
        )
        self.view.append(replace(message, id=number, ts=self.now, metadata={"turn": turn}))


def _hit(record: LogRecord, score: float) -> SearchHit:
    place = LogLocation(record.session, f"log/{record.session}/conversation.jsonl", record.span)
    return SearchHit(
        record.id,
        record.session,
        record.generation,
        record.role,
        record.name,
        record.ts,
        record.content[:400],
        score,
        place,
    )


def _stems(text: str) -> set[str]:
    return {stem_word(word)[:5] for word in re.findall(r"\w+", fold_text(text))}
