"""A scenario of spending: a call by which a cap comes near, one that it refuses, and a request that repeats itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.core.errors import BudgetExceeded
from assistant.core.messages import Usage
from assistant.core.model_api import ModelCall
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import render_notice
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.ledger import Ledger
from tests.crash.pictures import rows
from tests.crash.scenario import Scenario, Snapshot

_NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
_BUDGET = BudgetSettings(
    daily_usd=10.0, monthly_usd=0.0, daily_tokens=0, monthly_tokens=0, background_share=0.5, runaway_calls=3
)


def _call(ledger: Ledger, usd: float, same: str = "") -> None:
    call = ModelCall("extraction" if same else "chat", "house", "m", 100, 0, usd, "main", fingerprint=same)
    ledger.settle_reservation(ledger.reserve(call, _NOW), Usage(100, cost_usd=usd), _NOW)


@contextlib.contextmanager
def _ledger(path: Path) -> Iterator[Ledger]:
    db = Database.open(path / "script.db", script_migrations, _NOW)
    try:
        yield Ledger(db, _BUDGET, ZoneInfo("UTC"), render_notice)
    finally:
        db.close()


def _prepare(path: Path) -> None:
    with _ledger(path) as ledger:
        _call(ledger, 7.9)


def _work(path: Path) -> None:
    """A call that a kill hid goes on counting: there is room for some before the cap."""
    with _ledger(path) as ledger:
        _call(ledger, 0.15)
        with contextlib.suppress(BudgetExceeded):
            _call(ledger, 5.0)
        for _ in range(_BUDGET.runaway_calls + 1):
            with contextlib.suppress(BudgetExceeded):
                _call(ledger, 0.001, "the same")


def _look(path: Path) -> Snapshot:
    file = path / "script.db"
    return {
        "notices": rows(file, "SELECT key, count(*) FROM outbox WHERE key LIKE 'budget:%' GROUP BY key ORDER BY key"),
        "without a notice": rows(
            file,
            "SELECT name FROM notice_marks WHERE name NOT IN (SELECT key FROM outbox) AND 'budget:' || name NOT IN"
            " (SELECT key FROM outbox)",
        ),
        "marks": rows(file, "SELECT name FROM notice_marks ORDER BY name"),
        "stopped": rows(file, "SELECT purpose, sent, stopped_until FROM repeated_requests"),
        "wrong totals": rows(
            file,
            """SELECT t.usd, sum(iif(u.state = 'reserved', u.reserved_usd, u.usd)) AS usd, t.calls, count(*) AS calls
            FROM usage u JOIN usage_totals t ON t.period = substr(u.ts, 1, 10) GROUP BY t.period
            HAVING abs(t.usd - sum(iif(u.state = 'reserved', u.reserved_usd, u.usd))) > 1e-9 OR t.calls <> count(*)""",
        ),
    }


SPENDING = Scenario("spending", "a cap comes near, is reached, and a request repeats itself", _prepare, _work, _look)
