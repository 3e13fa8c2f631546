"""I9, I10: all sessions of a role together spend no more than their share of each cap, and are told nothing of the
owner's money."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.core.errors import BudgetExceeded
from assistant.core.messages import Usage
from assistant.core.model_api import ModelCall
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import render_notice
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.ledger import Ledger
from tests.support.in_memory import grant_others

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
ANN, IVO, ROOM = "peer:a:ann", "peer:a:ivo", "room:a:club"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = Database.open(tmp_path / "script.db", script_migrations, NOW)
    yield database
    database.close()


def ledger_of(db: Database, share: float, **caps: float) -> Ledger:
    wanted = {"daily_usd": 0.0, "monthly_usd": 0.0, "daily_tokens": 0, "monthly_tokens": 0, **caps}
    wanted |= {"background_share": 1.0, "runaway_calls": 5}

    return Ledger(
        db, BudgetSettings.from_values(wanted), ZoneInfo("Europe/Oslo"), render_notice, grant_others(share=share)
    )


def call(session: str | None, usd: float | None = 1.0, tokens: int = 100) -> ModelCall:
    return ModelCall("chat", "anthropic", "claude", tokens, 0, usd, session)


def test_all_guests_together_pass_no_share_and_the_owner_goes_on(db: Database) -> None:
    ledger = ledger_of(db, 0.3, daily_usd=10.0)
    ledger.reserve(call(ANN, 2.0), NOW)
    ledger.reserve(call(IVO, 1.0), NOW)
    with pytest.raises(BudgetExceeded, match="The part of the daily budget that guests may use is used up") as refused:
        ledger.reserve(call(ANN, 0.01), NOW)
    assert not any(digit in str(refused.value) for digit in "0123456789$")
    notices = [row["key"] for row in db.rows("SELECT key FROM outbox")]
    assert notices == ["budget:share:guest:daily:2026-11-20"]
    ledger.reserve(call(ROOM, 3.0), NOW)
    ledger.reserve(call("main", 4.0), NOW)
    ledger.reserve(call(None, 0.0), NOW)
    ledger.reserve(call(ANN, 0.0), NOW)


def test_what_settles_for_less_is_there_again_and_a_new_day_is_new(db: Database) -> None:
    ledger = ledger_of(db, 0.3, daily_usd=10.0, monthly_usd=20.0)
    held = ledger.reserve(call(ANN, 3.0), NOW)
    with pytest.raises(BudgetExceeded, match="daily"):
        ledger.reserve(call(ANN, 0.5), NOW)
    ledger.settle_reservation(held, Usage(10, 10, cost_usd=2.5), NOW)
    ledger.settle_reservation(held, Usage(10, 10, cost_usd=2.5), NOW)
    ledger.reserve(call(ANN, 0.5), NOW)
    tomorrow = NOW + timedelta(days=1)
    ledger.reserve(call(ANN, 3.0), tomorrow)
    with pytest.raises(BudgetExceeded, match="monthly"):
        ledger.reserve(call(ANN, 0.5), tomorrow + timedelta(days=1))


def test_shares_hold_for_tokens_without_a_price(db: Database) -> None:
    ledger = ledger_of(db, 0.5, daily_tokens=1000)
    ledger.reserve(call(ROOM, None, 500), NOW)
    with pytest.raises(BudgetExceeded, match="rooms"):
        ledger.reserve(call(ROOM, None, 1), NOW)
    ledger.reserve(call(ANN, None, 500), NOW)


def test_a_share_of_nothing_admits_what_is_free_alone(db: Database) -> None:
    ledger = ledger_of(db, 0.0)
    ledger.reserve(call(ANN, 0.0), NOW)
    for usd in (0.01, None):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(call(ANN, usd), NOW)


def test_without_a_cap_a_share_is_no_cap(db: Database) -> None:
    ledger_of(db, 0.1).reserve(call(ANN, 1e6), NOW)
    assert len(db.rows("SELECT * FROM usage")) == 1


def test_a_refused_call_leaves_nothing_behind(db: Database) -> None:
    ledger = ledger_of(db, 0.1, daily_usd=1.0)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(call(ANN, 0.2), NOW)
    assert not db.rows("SELECT * FROM usage") and not db.rows("SELECT * FROM usage_by_role")


def test_a_guest_is_told_no_sums_when_the_whole_budget_is_used_up(db: Database) -> None:
    ledger = ledger_of(db, 1.0, daily_usd=1.0)
    ledger.reserve(call("main", 1.0), NOW)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(call(ANN, 0.5), NOW)
    assert str(refused.value) == "The daily budget is used up. Your message is kept; ask again tomorrow."
    with pytest.raises(BudgetExceeded, match=r"\$1\.00 of \$1\.00"):
        ledger.reserve(call("main", 0.5), NOW)
