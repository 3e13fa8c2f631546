"""`ports.Ledger`: no call outside of the budget (I9)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.core.errors import BudgetExceeded
from assistant.core.messages import Usage
from assistant.core.model_api import ModelCall, Reservation
from assistant.core.permissions import Permissions, RoleGrant
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import render_notice
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
from assistant.store.script import reserved_ahead
from assistant.store.script.ledger import Ledger
from tests.support.store_home import NOW, memory_backed_directory

OSLO = ZoneInfo("Europe/Oslo")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database.open(tmp_path / "script.db", script_migrations, NOW)
    yield db
    db.close()


def budget(daily: float = 0, monthly: float = 0, daily_tokens: int = 0, monthly_tokens: int = 0) -> BudgetSettings:
    return BudgetSettings(
        daily_usd=daily,
        monthly_usd=monthly,
        daily_tokens=daily_tokens,
        monthly_tokens=monthly_tokens,
        background_share=1.0,
        runaway_calls=5,
    )


def call(usd: float | None = 1.0, tokens: int = 100, **changes: object) -> ModelCall:
    return ModelCall("chat", "anthropic", "m", tokens, 0, usd, **changes)  # type: ignore[arg-type]


def test_a_reservation_counts_until_it_is_settled(db: Database) -> None:
    ledger = Ledger(db, budget(daily=2.5), OSLO, render_notice)
    first = ledger.reserve(call(), NOW)
    ledger.reserve(call(), NOW)
    with pytest.raises(BudgetExceeded, match=r"daily budget.*\$2\.00 of \$2\.50.*\$1\.00.*budget\.daily_usd.*next day"):
        ledger.reserve(call(), NOW)
    ledger.settle_reservation(first, Usage(10, 5, cost_usd=0.01), NOW)
    ledger.reserve(call(), NOW)


def test_a_refused_call_writes_nothing(db: Database) -> None:
    ledger = Ledger(db, budget(daily=0.5), OSLO, render_notice)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(call(), NOW)
    assert ledger.spent_by("day", NOW - timedelta(days=1)) == []
    assert db.rows("SELECT * FROM usage_totals") == []


def test_a_reservation_whose_end_a_crash_hid_counts_for_good(db: Database) -> None:
    Ledger(db, budget(daily=1.5), OSLO, render_notice).reserve(call(), NOW)
    with pytest.raises(BudgetExceeded):
        Ledger(db, budget(daily=1.5), OSLO, render_notice).reserve(call(), NOW)


def test_days_and_months_are_those_of_the_home(db: Database) -> None:
    ledger = Ledger(db, budget(daily=1, monthly=2), OSLO, render_notice)
    late = datetime(2026, 11, 20, 22, 59, tzinfo=UTC)
    ledger.reserve(call(), late)
    with pytest.raises(BudgetExceeded, match="daily"):
        ledger.reserve(call(), late)
    ledger.reserve(call(), late + timedelta(minutes=1))
    with pytest.raises(BudgetExceeded, match=r"monthly.*next month"):
        ledger.reserve(call(), late + timedelta(days=2))
    ledger.reserve(call(), late + timedelta(days=12))


def test_settling_after_midnight_settles_the_day_of_the_call(db: Database) -> None:
    ledger = Ledger(db, budget(daily=1), OSLO, render_notice)
    reservation = ledger.reserve(call(), datetime(2026, 11, 20, 22, 59, tzinfo=UTC))
    ledger.settle_reservation(reservation, Usage(1, 1, cost_usd=0.25), datetime(2026, 11, 20, 23, 1, tzinfo=UTC))
    totals = {row["period"]: row["usd"] for row in db.rows("SELECT period, usd FROM usage_totals")}
    assert totals == {"2026-11-20": 0.25, "2026-11": 0.25}


def test_settling_twice_settles_once(db: Database) -> None:
    ledger = Ledger(db, budget(daily=5), OSLO, render_notice)
    reservation = ledger.reserve(call(), NOW)
    for cost in (0.5, 0.9):
        ledger.settle_reservation(reservation, Usage(10, 10, cost_usd=cost), NOW)
    assert dict(ledger.spent_by("day", NOW))["2026-11-20"].usd == 0.5


def test_what_failed_before_it_was_billed_costs_nothing_and_is_no_call(db: Database) -> None:
    ledger = Ledger(db, budget(daily=1, daily_tokens=100), OSLO, render_notice)
    for usd in (1.0, None):
        ledger.settle_reservation(ledger.reserve(call(usd), NOW), Usage(), NOW)
        ledger.settle_reservation(ledger.reserve(call(usd), NOW), Usage(), NOW)
    spent = dict(ledger.spent_by("day", NOW))["2026-11-20"]
    assert (spent.calls, spent.failed, spent.usd, spent.tokens, spent.unpriced_tokens) == (0, 4, 0, 0, 0)


def test_where_no_price_is_known_tokens_are_capped(db: Database) -> None:
    ledger = Ledger(db, budget(daily=0.01, daily_tokens=250), OSLO, render_notice)
    ledger.reserve(call(None), NOW)
    ledger.settle_reservation(ledger.reserve(call(None), NOW), Usage(60, 40), NOW)
    with pytest.raises(BudgetExceeded, match=r"200 tokens of 250.*100 tokens.*budget\.daily_tokens"):
        ledger.reserve(call(None), NOW)
    ledger.reserve(call(0.001, tokens=10_000), NOW)


def test_without_caps_nothing_is_refused(db: Database) -> None:
    ledger = Ledger(db, budget(), OSLO, render_notice)
    for usd in (1e6, None, 1e6):
        ledger.reserve(call(usd, tokens=10**9), NOW)
    assert dict(ledger.spent_by("day", NOW))["2026-11-20"].calls == 3


def test_a_model_that_costs_nothing_answers_when_the_budget_is_used_up(db: Database) -> None:
    ledger = Ledger(db, budget(daily=1), OSLO, render_notice)
    ledger.settle_reservation(ledger.reserve(call(), NOW), Usage(1, 1, cost_usd=3.0), NOW)
    ledger.reserve(call(0.0), NOW)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(call(0.01), NOW)


def test_sums_by_day_model_kind_and_session(db: Database) -> None:
    everybody = Permissions({"guest": RoleGrant(frozenset(), frozenset(), False, 1.0)})
    ledger = Ledger(db, budget(), OSLO, render_notice, everybody)
    made = [
        (ModelCall("chat", "anthropic", "big", 10, 0, 1.0, "main"), NOW),
        (ModelCall("summary", "anthropic", "small", 10, 0, 1.0, "main"), NOW + timedelta(hours=13)),
        (ModelCall("chat", "openai", "local", 10, 0, None, "peer:x"), NOW + timedelta(hours=14)),
    ]
    costs = (0.5, 0.25, None)
    for (one, at), cost in zip(made, costs, strict=True):
        ledger.settle_reservation(ledger.reserve(one, at), Usage(7, 3, 20, 1, cost_usd=cost), at)
    since = NOW - timedelta(days=1)
    assert [(name, spent.calls, spent.usd) for name, spent in ledger.spent_by("day", since)] == [
        ("2026-11-20", 1, 0.5),
        ("2026-11-21", 2, 0.25),
    ]
    assert [(name, spent.usd) for name, spent in ledger.spent_by("kind", since)] == [("chat", 0.5), ("summary", 0.25)]
    assert [name for name, _ in ledger.spent_by("model", since)] == ["big", "local", "small"]
    local = dict(ledger.spent_by("model", since))["local"]
    assert (local.unpriced_tokens, local.usage) == (31, Usage(7, 3, 20, 1))
    mine = dict(ledger.spent_by("session", since))["main"]
    assert (mine.calls, mine.usd, mine.tokens, mine.usage.cost_usd) == (2, 0.75, 62, 0.75)
    assert [day for day, _ in ledger.spent_by("day", NOW + timedelta(seconds=1))] == ["2026-11-21"]


@settings(deadline=None, max_examples=50)
@given(
    steps=st.lists(
        st.tuples(st.booleans(), st.floats(0.01, 3), st.floats(0, 1), st.integers(0, 40)), min_size=1, max_size=30
    )
)
def test_i9_the_worst_case_never_passes_a_cap(steps: list[tuple[bool, float, float, int]]) -> None:
    with memory_backed_directory() as directory:
        db = Database.open(directory / "script.db", script_migrations, NOW)
        ledger = Ledger(db, budget(daily=5, monthly=12), OSLO, render_notice)
        open_ones: list[tuple[Reservation, datetime]] = []
        for reserve, usd, share, hours in steps:
            at = NOW + timedelta(hours=hours)
            if reserve or not open_ones:
                try:
                    open_ones.append((ledger.reserve(call(usd), at), at))
                except BudgetExceeded:
                    pass
            else:
                reservation, made = open_ones.pop(0)
                ledger.settle_reservation(reservation, Usage(1, 1, cost_usd=(reservation.usd or 0) * share), made)
            for row in db.rows("SELECT period, usd FROM usage_totals"):
                assert row["usd"] <= (5 if len(row["period"]) == 10 else 12) + 1e-9
        summed = db.rows("SELECT sum(iif(state = 'reserved', reserved_usd, usd)) FROM usage")[0][0] or 0.0
        months = db.rows("SELECT sum(usd) FROM usage_totals WHERE length(period) = 7")[0][0] or 0.0
        assert abs(summed - months) < 1e-6
        db.close()


# ------------------------------------------------------------------------------------------------------ reserved ahead


def accepted(db: Database, ledger: Ledger, characters: int = 40, now: datetime = NOW) -> None:
    with db.write():
        ledger.ahead.reserve("main", characters, now)


def answered(ledger: Ledger, usd: float | None = 1.0, tokens: int = 10_000, now: datetime = NOW) -> None:
    ledger.settle_reservation(ledger.reserve(call(usd, tokens, session="main"), now), Usage(10, 5, cost_usd=0.0), now)


def counted(db: Database) -> list[tuple[str, int, int, float]]:
    rows = db.rows("SELECT period, calls, tokens, round(usd, 6) AS usd FROM usage_totals ORDER BY period")
    return [tuple(row) for row in rows]  # type: ignore[misc]


def test_what_is_reserved_with_a_message_covers_its_call_which_then_waits_for_no_disk(db: Database) -> None:
    ledger = Ledger(db, budget(daily=5), OSLO, render_notice)
    answered(ledger)
    before = counted(db)
    accepted(db, ledger)
    assert [row[1] for row in counted(db)] == [2, 2]
    assert all(now[2] - was[2] > 11_000 for was, now in zip(before, counted(db), strict=True))
    waited = db.durable_commits
    second = ledger.reserve(call(1.1, 11_000, session="main", turn="t2"), NOW)
    assert db.durable_commits == waited
    assert [row[1:] for row in counted(db)] == [(2, before[0][2] + 11_000, 1.1)] * 2
    rows = db.rows("SELECT id, turn, reserved_usd FROM usage WHERE state = 'reserved'")
    assert [tuple(row) for row in rows] == [(second.id, "t2", 1.1)]


@pytest.mark.parametrize(
    ("usd", "tokens", "later"),
    [(1.5, 11_000, timedelta()), (1.0, 40_000, timedelta()), (None, 11_000, timedelta()), (1.0, 10_000, timedelta(1))],
    ids=["dearer", "longer", "without a price", "on the next day"],
)
def test_a_call_that_is_not_covered_waits_for_the_disk_and_counts_alone(
    db: Database, usd: float | None, tokens: int, later: timedelta
) -> None:
    ledger = Ledger(db, budget(), OSLO, render_notice)
    answered(ledger)
    accepted(db, ledger)
    waited = db.durable_commits
    ledger.reserve(call(usd, tokens, session="main"), NOW + later)
    assert db.durable_commits == waited + 1
    assert db.value("SELECT count(*) FROM usage WHERE state = 'reserved'") == 1
    assert counted(db)[-1][1:] == ((1, tokens, usd) if later else (2, 15 + tokens, usd or 0.0))


def test_nothing_is_reserved_ahead_past_a_cap_and_a_refused_call_frees_what_was(db: Database) -> None:
    ledger = Ledger(db, budget(daily=2.5), OSLO, render_notice)
    answered(ledger, usd=2.4)
    accepted(db, ledger)
    assert db.value("SELECT count(*) FROM usage WHERE state = 'reserved'") == 0
    answered(ledger, usd=1.0)
    accepted(db, ledger)
    assert db.value("SELECT count(*) FROM usage WHERE state = 'reserved'") == 1
    with pytest.raises(BudgetExceeded):
        ledger.reserve(call(3.0, session="main"), NOW)
    assert db.value("SELECT count(*) FROM usage WHERE state = 'reserved'") == 0
    ledger.reserve(call(2.4), NOW)


def test_what_no_call_follows_is_counted_no_longer(db: Database) -> None:
    ledger = Ledger(db, budget(), OSLO, render_notice)
    answered(ledger)
    before = counted(db)
    accepted(db, ledger)
    accepted(db, ledger)
    ledger.ahead.release("main")
    ledger.ahead.release("main")
    assert counted(db) == before


def test_a_message_that_is_not_stored_reserves_nothing(db: Database) -> None:
    ledger = Ledger(db, budget(), OSLO, render_notice)
    answered(ledger)
    before = counted(db)
    with pytest.raises(RuntimeError), db.write():
        ledger.ahead.reserve("main", 40, NOW)
        raise RuntimeError
    assert counted(db) == before
    accepted(db, ledger)
    assert db.value("SELECT count(*) FROM usage WHERE state = 'reserved'") == 1


def test_the_end_of_a_process_counts_what_no_call_followed_no_longer(db: Database) -> None:
    ledger = Ledger(db, budget(), OSLO, render_notice)
    answered(ledger)
    before = counted(db)
    accepted(db, ledger)
    ledger.ahead.keep_only(lambda: ["main"])
    assert counted(db) != before
    ledger.ahead.release_all()
    assert counted(db) == before


def test_a_session_in_which_nothing_waits_has_nothing_reserved(db: Database) -> None:
    ledger = Ledger(db, budget(), OSLO, render_notice)
    answered(ledger)
    before = counted(db)
    accepted(db, ledger)
    ledger.ahead.keep_only(lambda: ["peer:telegram:ada"])
    assert counted(db) == before and ledger.ahead.find("main") is None


def test_a_start_after_a_kill_counts_no_longer_what_no_call_followed_and_all_that_may_have_been_billed(
    db: Database,
) -> None:
    ledger = Ledger(db, budget(), OSLO, render_notice)
    answered(ledger)
    ledger.reserve(call(0.7, 300, session="main", turn="cut off"), NOW)
    before = counted(db)
    accepted(db, ledger)
    accepted(db, ledger, 80, NOW + timedelta(1))
    assert counted(db) != before
    restarted = Ledger(db, budget(), OSLO, render_notice)
    for _ in range(2):
        restarted.ahead.release_after_crash()
        assert counted(db) == before
    assert restarted.budget_status(NOW).day.calls == 2
    answered(restarted)
    assert restarted.budget_status(NOW).day.calls == 3


def test_a_start_after_a_power_cut_counts_what_was_reserved_ahead(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of the call that replaced it may have been on no disk."""
    ledger = Ledger(db, budget(), OSLO, render_notice)
    answered(ledger)
    accepted(db, ledger)
    before = counted(db)
    for boot in ("another", ""):
        (tmp_path / "boot_id").write_text(boot, encoding="utf-8")
        monkeypatch.setattr(reserved_ahead, "BOOT_ID_FILE", tmp_path / "boot_id")
        Ledger(db, budget(), OSLO, render_notice).ahead.release_after_crash()
        assert counted(db) == before
