"""Delegations in a list: the port `Delegations` where a database would only be in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from assistant.core.checkpoints import Delegation, DelegationState
from assistant.core.errors import StoreError


@dataclass
class ListedDelegations:
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

    def of(self, session: str, *, state: DelegationState | None = None, limit: int = 50) -> list[Delegation]:
        mine = [row for row in self.rows if row.session == session and state in (None, row.state)]
        return mine[::-1][:limit]

    def interrupt(self, now: datetime) -> list[Delegation]:
        cut_off = {row.id for row in self.rows if row.state == "running"}
        self.rows = [replace(row, state="interrupted", ended_at=now) if row.id in cut_off else row for row in self.rows]
        return [row for row in self.rows if row.id in cut_off]
