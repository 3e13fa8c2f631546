"""I9, F43: what work in the background may spend, what the owner is told of the caps, and requests that repeat
themselves, over the real ledger."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest

from assistant.core.errors import BudgetExceeded, RepeatedRequestBlocked, StoreError
from assistant.core.messages import Usage
from assistant.core.model_api import BACKGROUND_PURPOSES, CallPurpose, ModelCall
from assistant.core.notices import NoticeKind
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import budget_problems, render_notice
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.ledger import Ledger
from assistant.store.script.outbox import StoredOutbox
from tests.support.in_memory import grant_others
from tests.support.outboxes import recent_items

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
OSLO = ZoneInfo("Europe/Oslo")
TOMORROW = datetime(2026, 11, 20, 23, 0, tzinfo=UTC)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = Database.open(tmp_path / "script.db", script_migrations, NOW)
    yield database
    database.close()


def budget(**changed: Any) -> BudgetSettings:
    wanted = {"daily_usd": 10.0, "monthly_usd": 0.0, "daily_tokens": 0, "monthly_tokens": 0, "background_share": 0.5}
    return BudgetSettings.from_values({**wanted, "runaway_calls": 3, **changed})


def ledger_of(db: Database, **changed: Any) -> Ledger:
    return Ledger(db, budget(**changed), OSLO, render_notice, grant_others(share=0.2))


def call(
    purpose: CallPurpose = "chat", usd: float | None = 1.0, session: str | None = "main", same: str = ""
) -> ModelCall:
    return ModelCall(purpose, "anthropic", "claude", 100, 0, usd, session, fingerprint=same)


def spend(ledger: Ledger, usd: float, purpose: CallPurpose = "chat", at: datetime = NOW) -> None:
    ledger.settle_reservation(ledger.reserve(call(purpose, usd), at), Usage(10, 10, cost_usd=usd), at)


def told(db: Database) -> list[str]:
    return [item.outgoing.body for item in recent_items(StoredOutbox(db), "main", limit=100)]


# ----------------------------------------------------------------------------------------------------------- background


@pytest.mark.parametrize("purpose", get_args(CallPurpose))
def test_f43_the_background_uses_its_part_and_no_more_and_answers_the_rest(db: Database, purpose: CallPurpose) -> None:
    ledger = ledger_of(db)
    for _ in range(5):
        ledger.reserve(call(purpose), NOW)
    if purpose in BACKGROUND_PURPOSES:
        with pytest.raises(BudgetExceeded, match=r"work in the background.*\$5\.00 of \$5\.00"):
            ledger.reserve(call(purpose, 0.01), NOW)
    for _ in range(5):
        ledger.reserve(call("chat"), NOW)
    with pytest.raises(BudgetExceeded, match=r"^The daily budget is used up: \$10\.00 of \$10\.00"):
        ledger.reserve(call("chat", 0.01), NOW)


def test_answers_take_nothing_from_the_part_of_the_background(db: Database) -> None:
    ledger = ledger_of(db)
    spend(ledger, 5.0, "summary")
    spend(ledger, 4.9, "sleep_summary")
    assert [cap.used for cap in ledger.budget_status(NOW).background] == [4.9]


def test_what_settles_for_less_is_there_for_the_background_again(db: Database) -> None:
    ledger = ledger_of(db)
    held = ledger.reserve(call("extraction", 5.0), NOW)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(call("scoring", 0.5), NOW)
    ledger.settle_reservation(held, Usage(10, 10, cost_usd=1.0), NOW)
    ledger.settle_reservation(held, Usage(10, 10, cost_usd=1.0), NOW)
    ledger.reserve(call("scoring", 4.0), NOW)


def test_the_part_holds_for_tokens_and_for_the_month(db: Database) -> None:
    ledger = ledger_of(db, daily_usd=0.0, daily_tokens=1000)
    for _ in range(5):
        ledger.reserve(call("embedding", None), NOW)
    with pytest.raises(BudgetExceeded, match=r"daily.*500 tokens of 500 tokens"):
        ledger.reserve(call("embedding", None), NOW)
    ledger.budget = budget(daily_usd=0.0, monthly_usd=2.0)
    ledger.reserve(call("extraction", 1.0), NOW)
    with pytest.raises(BudgetExceeded, match="monthly"):
        ledger.reserve(call("extraction", 0.1), NOW + timedelta(days=3))


def test_a_part_of_nothing_lets_the_background_do_what_is_free_alone(db: Database) -> None:
    ledger = ledger_of(db, background_share=0.0)
    ledger.reserve(call("extraction", 0.0), NOW)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(call("extraction", 0.01), NOW)
    assert told(db) == []
    ledger.budget = budget(daily_usd=0.0, background_share=0.1)
    ledger.reserve(call("extraction", 1e6), NOW)


def test_what_a_guests_day_teaches_counts_against_both_parts_and_names_no_sums(db: Database) -> None:
    ledger = ledger_of(db, background_share=0.1)
    ledger.reserve(call("extraction", 1.0, "peer:a:ann"), NOW)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(call("extraction", 0.1, "peer:a:ann"), NOW)
    assert not any(digit in str(refused.value) for digit in "0123456789$")
    assert db.value("SELECT usd FROM usage_by_role WHERE role = 'guest' AND period = '2026-11-20'") == 1.0


# -------------------------------------------------------------------------------------------------------------- notices


@pytest.mark.parametrize(("most", "each"), [(1.0, 0.1), (0.3, 0.1), (5.0, 0.5), (0.7, 0.07)])
def test_f43_a_cap_takes_what_just_fits_is_near_at_80_percent_and_used_up_to_the_cent(
    db: Database, most: float, each: float
) -> None:
    ledger, times = ledger_of(db, daily_usd=most), round(most / each)
    for number in range(1, times + 1):
        spend(ledger, each)
        (cap,) = ledger.budget_status(NOW).caps
        assert (cap.is_near_limit, cap.is_used_up) == (number * 10 >= times * 8, number == times)
    assert told(db)[-1].startswith("The daily budget is used up")
    with pytest.raises(BudgetExceeded):
        ledger.reserve(call(usd=0.000_001), NOW)
    ledger.reserve(call(usd=0.0), NOW)


def test_what_just_fits_the_share_of_guests_is_theirs(db: Database) -> None:
    ledger = ledger_of(db, daily_usd=1.2)
    for _ in range(6):
        ledger.reserve(call(usd=0.04, session="peer:a:ann"), NOW)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(call(usd=0.000_001, session="peer:a:ann"), NOW)


def test_f43_the_owner_is_warned_once_at_80_percent_and_once_at_the_cap_over_restarts(db: Database) -> None:
    spend(ledger_of(db), 7.9)
    assert told(db) == []
    spend(ledger_of(db), 0.2)
    (near,) = told(db)
    assert near.startswith("81% of the daily budget is used: $8.10 of $10.00.") and "`budget.daily_usd`" in near
    spend(ledger_of(db), 0.2)
    assert told(db) == [near]
    for _ in range(3):
        with pytest.raises(BudgetExceeded):
            ledger_of(db).reserve(call("schedule", usd=5.0), NOW)
    assert len(told(db)) == 2
    too_little = (
        "The daily budget has too little left for a call: $8.30 of $10.00 is used. Nothing is lost. No call that"
    )
    assert told(db)[1].startswith(too_little) and "assistant config set budget.daily_usd" in told(db)[1]


def test_a_cap_that_refused_a_large_call_is_no_problem_once_a_call_was_made_again(db: Database) -> None:
    """What calls at the same time may cost was held back; it is free again, and nobody reads that no model is asked."""
    ledger = ledger_of(db)
    held = ledger.reserve(call(usd=6.0), NOW)
    with pytest.raises(
        BudgetExceeded, match=r"too little left for a call: \$6\.00 of \$10\.00 is used, and .* \$5\.00"
    ):
        ledger.reserve(call(usd=5.0), NOW)
    (problem,) = budget_problems(ledger.budget_status(NOW), OSLO)
    assert "No call that may cost more than the rest is made before the next day." in problem
    ledger.settle_reservation(held, Usage(10, 10, cost_usd=0.5), NOW)
    # Neither what costs nothing, nor work in the background, shows that a person is answered again.
    for free in (call(usd=0.0), call("extraction", 0.1), call(usd=None)):
        ledger.reserve(free, NOW)
        assert budget_problems(ledger.budget_status(NOW), OSLO) == [problem.replace("$6.00", f"${_used(ledger)}")]
    spend(ledger, 1.0)
    assert budget_problems(ledger.budget_status(NOW), OSLO) == []


def test_what_nights_and_naps_do_over_the_budget_is_told_once_where_the_person_wrote_last(db: Database) -> None:
    ledger = ledger_of(db, daily_usd=0.004)
    for purpose in ("extraction", "summary", "extraction"):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(call(purpose, usd=5.0), NOW)
    (notice,) = told(db)
    assert "sleep and naps work by rules" in notice and "`assistant config set budget.daily_usd NUMBER`" in notice
    assert NoticeKind.CAP_REACHED.form.place == "recent"


def test_a_refused_answer_to_the_owner_says_why_itself_and_no_notice_says_it_again(db: Database) -> None:
    ledger = ledger_of(db, daily_usd=0.004)
    for purpose in ("chat", "schedule"):
        with pytest.raises(BudgetExceeded, match=r"\$0\.00 of \$0\.0040 is used, and this call may cost \$5\.00"):
            ledger.reserve(call(purpose, usd=5.0), NOW)
    assert told(db) == []
    with pytest.raises(BudgetExceeded):
        ledger.reserve(call(usd=5.0, session="peer:a:ann"), TOMORROW)
    (notice,) = told(db)
    assert notice.startswith("The daily budget has too little left for a call: $0.00 of $0.0040 is used.")


def _used(ledger: Ledger) -> str:
    return f"{ledger.budget_status(NOW).day.usd:.2f}"


def test_a_new_day_a_new_month_and_another_cap_are_told_anew(db: Database) -> None:
    ledger = ledger_of(db, daily_usd=10.0, monthly_usd=20.0)
    spend(ledger, 9.0)
    spend(ledger, 9.0, at=TOMORROW)
    assert [body.split(":")[0] for body in told(db)] == [
        "90% of the daily budget is used",
        "90% of the daily budget is used",
        "90% of the monthly budget is used",
    ]
    ledger.budget = budget(daily_usd=11.0, monthly_usd=0.0)
    spend(ledger, 0.5, at=TOMORROW)
    assert told(db)[3].startswith("86% of the daily budget is used: $9.50 of $11.00")


def test_that_the_background_has_used_its_part_is_told_once_and_not_as_the_end_of_answers(db: Database) -> None:
    ledger = ledger_of(db)
    spend(ledger, 5.0, "extraction")
    for _ in range(3):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(call("scoring"), NOW)
    (notice,) = told(db)
    assert notice.startswith("The part of the daily budget for work in the background is used up")
    assert "sleep works by rules" in notice and "you are answered as before" in notice
    standing = ledger.budget_status(NOW)
    assert [cap.is_used_up for cap in standing.caps] == [False]
    assert [cap.is_used_up for cap in standing.background] == [True]


def test_a_notice_and_its_mark_are_stored_together_or_not_at_all(db: Database) -> None:
    ledger = ledger_of(db)
    held = ledger.reserve(call(usd=9.0), NOW)
    # The disk takes no notice.
    db.connection.execute("CREATE TRIGGER no_room BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises((StoreError, sqlite3.Error)):
        ledger.settle_reservation(held, Usage(10, 10, cost_usd=9.0), NOW)
    assert db.rows("SELECT * FROM notice_marks") == []
    db.connection.execute("DROP TRIGGER no_room")
    ledger.settle_reservation(held, Usage(10, 10, cost_usd=9.0), NOW)
    assert len(told(db)) == 1


# ------------------------------------------------------------------------------------------------------ the caps change


def test_f43_a_raised_cap_holds_for_the_call_that_the_old_one_would_have_refused(db: Database) -> None:
    ledger = ledger_of(db, daily_usd=1.0)
    spend(ledger, 0.7)
    looked: list[int] = []

    def look() -> None:
        looked.append(1)
        ledger.budget = budget(daily_usd=2.0)

    ledger.reload_budget = look
    ledger.reserve(call(usd=0.5), NOW)
    assert looked == [1] and told(db) == []
    with pytest.raises(BudgetExceeded, match=r"of \$2\.00"):
        ledger.reserve(call("schedule", usd=5.0), NOW)
    assert len(told(db)) == 1


# ----------------------------------------------------------------------------------------------------------- repetition


def test_f43_the_same_background_request_is_stopped_until_the_next_day_over_restarts(db: Database) -> None:
    for minutes in range(3):
        ledger = ledger_of(db)
        at = NOW + timedelta(minutes=minutes)
        ledger.settle_reservation(
            ledger.reserve(call("extraction", 0.1, same="a"), at), Usage(10, 10, cost_usd=0.1), at
        )
    for hours in (0, 5, 12):
        with pytest.raises(RepeatedRequestBlocked):
            ledger_of(db).reserve(call("extraction", 0.1, same="a"), NOW + timedelta(minutes=3, hours=hours))
    (notice,) = told(db)
    assert "The same request (extraction) was sent 3 times within an hour" in notice and "2026-11-21 00:00" in notice
    (stopped,) = ledger_of(db).budget_status(NOW + timedelta(hours=1)).stopped
    assert (stopped.purpose, stopped.times, stopped.until) == ("extraction", 3, TOMORROW)
    ledger_of(db).reserve(call("extraction", 0.1, same="b"), NOW)
    ledger_of(db).reserve(call("extraction", 0.1, same="a"), TOMORROW)
    assert ledger_of(db).budget_status(TOMORROW).stopped == ()


def test_what_is_sent_now_and_then_is_no_repetition_and_leaves_nothing_behind(db: Database) -> None:
    ledger = ledger_of(db, daily_usd=0.0)
    for hours in range(12):
        ledger.reserve(call("extraction", 0.1, same="a"), NOW + timedelta(hours=hours))
        ledger.reserve(call("extraction", 0.1, same=f"once {hours}"), NOW + timedelta(hours=hours))
    assert len(db.rows("SELECT * FROM repeated_requests")) <= 4


@pytest.mark.parametrize("times", [2, 4])
def test_what_a_wrong_clock_counted_or_stopped_in_the_future_holds_nothing_up_once_it_is_right(
    db: Database, times: int
) -> None:
    ledger, wrong = ledger_of(db), NOW.replace(year=2099)
    for number in range(times):
        with pytest.raises(RepeatedRequestBlocked) if number == 3 else contextlib.nullcontext():
            ledger.reserve(call("extraction", 0.1, same="a"), wrong)
    assert len(ledger.budget_status(wrong).stopped) == times // 4
    assert ledger.budget_status(NOW).stopped == ()
    for _ in range(3):
        ledger.reserve(call("extraction", 0.1, same="a"), NOW)
    with pytest.raises(RepeatedRequestBlocked):
        ledger.reserve(call("extraction", 0.1, same="a"), NOW)


def test_an_attempt_that_cost_nothing_is_none_of_a_loop(db: Database) -> None:
    ledger = ledger_of(db)
    for _ in range(20):
        ledger.settle_reservation(ledger.reserve(call("extraction", 0.1, same="a"), NOW), Usage(), NOW)
    # A crash before the end of one is counted: it may have been paid for.
    for _ in range(3):
        ledger.reserve(call("extraction", 0.1, same="a"), NOW)
    with pytest.raises(RepeatedRequestBlocked):
        ledger.reserve(call("extraction", 0.1, same="a"), NOW)


def test_a_call_that_the_budget_refuses_is_not_counted_as_sent(db: Database) -> None:
    ledger = ledger_of(db, background_share=0.0)
    for _ in range(10):
        with pytest.raises(BudgetExceeded) as refused:
            ledger.reserve(call("extraction", 0.1, same="a"), NOW)
        assert not isinstance(refused.value, RepeatedRequestBlocked)


# ------------------------------------------------------------------------------------------------------------- standing


def test_the_standing_is_that_of_the_homes_day_and_month_and_forecasts_from_its_first_day(db: Database) -> None:
    ledger = ledger_of(db, monthly_usd=100.0)
    assert ledger.budget_status(NOW).forecast_usd is None
    spend(ledger, 2.0, at=datetime(2026, 11, 10, 23, 0, tzinfo=UTC))
    at = datetime(2026, 11, 20, 23, 0, tzinfo=UTC)
    spend(ledger, 3.0, at=at)
    standing = ledger.budget_status(at)
    assert (standing.today, standing.day.usd, standing.month.usd) == ("2026-11-21", 3.0, 5.0)
    assert [(cap.setting, cap.describe()) for cap in standing.caps] == [
        ("daily_usd", "$3.00 of $10.00"),
        ("monthly_usd", "$5.00 of $100.00"),
    ]
    # Ten of the twenty days from the 11th of November on.
    assert standing.forecast_usd == pytest.approx(10.0)
