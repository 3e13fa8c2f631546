"""What it costs to count a call: reserving and settling it, and telling how the budget stands, over ledgers with years
of calls in them. Each reservation and each settlement is a transaction on the disk of its own."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.core.messages import Usage
from assistant.core.model_api import CallPurpose, ModelCall
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import render_notice
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.ledger import Ledger
from tests.bench.figures import Row

CALLS, FEW = 300, 1_000
# Over a ledger with few calls: what the noise of a disk is worth; and what is too little to speak of growth.
MOST_GROWTH, TRIFLE_SECONDS = 1.5, 0.00025
_NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_KINDS: tuple[CallPurpose, ...] = ("chat", "extraction")
_FILL = """
    INSERT INTO usage (ts, purpose, provider, model, session, state, reserved_tokens, reserved_usd, input, output, usd)
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
    SELECT strftime('%Y-%m-%dT%H:%M:%f', '2026-11-20', '-' || (i % 1800) || ' days') || 'Z',
        iif(i % 3, 'chat', 'scoring'), 'anthropic', 'm' || (i % 5), 'main', 'settled', 5000, 0.02, 3000, 500, 0.004
    FROM n
"""
_SUM_UP = """
    INSERT INTO usage_totals (period, usd, tokens, unpriced_tokens, calls)
    SELECT substr(ts, 1, ?) AS period, sum(usd), sum(input + output), 0, count(*) FROM usage GROUP BY period
"""


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    few: dict[str, float] = {}
    for size in dict.fromkeys((FEW, *sizes)):
        with tempfile.TemporaryDirectory() as directory:
            for what, seconds in _measured(Path(directory), size).items():
                first = few.setdefault(what, seconds)
                most = max(MOST_GROWTH * first, TRIFLE_SECONDS)
                target = "" if size == FEW else f"<= {1000 * most:.2f} ms"
                good = None if size == FEW else seconds <= most
                yield Row("spending", size, what, f"{1000 * seconds:.2f} ms", target, good)


def _measured(path: Path, size: int) -> dict[str, float]:
    """Medians in seconds."""
    db = Database.open(path / "script.db", script_migrations, _NOW)
    try:
        with db.write():
            db.execute(_FILL, (size,))
            for letters in (7, 10):
                db.execute(_SUM_UP, (letters,))
        budget = {"daily_usd": 1e9, "monthly_usd": 1e9, "daily_tokens": 0, "monthly_tokens": 0}
        settings = BudgetSettings.from_values({**budget, "background_share": 0.5, "runaway_calls": 5})
        ledger = Ledger(db, settings, ZoneInfo("Europe/Oslo"), render_notice)
        told = {f"reserve and settle ({kind})": _median(lambda n, kind=kind: _call(ledger, kind, n)) for kind in _KINDS}
        return {**told, "how the budget stands": _median(lambda n: ledger.budget_status(_NOW))}
    finally:
        db.close()


def _call(ledger: Ledger, kind: CallPurpose, number: int) -> None:
    at = _NOW + timedelta(seconds=number)
    same = f"{number}" if kind != "chat" else ""
    call = ModelCall(kind, "anthropic", "m1", 3000, 500, 0.02, "main", f"t{number}", same)
    ledger.settle_reservation(ledger.reserve(call, at), Usage(3000, 400, cost_usd=0.004), at)


def _median(once: Callable[[int], object]) -> float:
    seconds = []
    for number in range(CALLS):
        began = time.perf_counter()
        once(number)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)
