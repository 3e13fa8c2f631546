"""What was spent, as people read it in a terminal and as programs do."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.commands.catalog import command_root
from assistant.commands.table import parse_command
from assistant.commands.usage import (
    USAGE_WIDTH,
    UsageAnswer,
    UsageReport,
    draw_bar,
    draw_gauge,
    format_count,
    load_usage,
    render_usage,
    usage_lines,
)
from assistant.core.budget import BlockedRequest, BudgetStatus, CapUsage, PeriodSpend
from assistant.core.errors import UsageError
from assistant.core.messages import Usage
from assistant.core.model_api import SpendTotals, UsageKey

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CAPS = (CapUsage("daily_usd", "2026-11-20", 4.5, 5.0), CapUsage("monthly_usd", "2026-11", 12.4, 50.0))
PART = (CapUsage("daily_usd", "2026-11-20", 2.5, 2.5, reached=True), CapUsage("monthly_usd", "2026-11", 0.0, 25.0))
STANDING = BudgetStatus(
    "2026-11-20", PeriodSpend(4.5, 90_000, 0, 12), PeriodSpend(12.4, 400_000, 0, 70), CAPS, PART, 18.6
)


def spent(usd: float = 1.0, calls: int = 3, tokens: int = 1500, unpriced: int = 0) -> SpendTotals:
    return SpendTotals(calls, Usage(1000, 500, 3000, 0, usd), usd, tokens, unpriced)


KINDS = [("chat", spent(3.0)), ("extraction", spent(1.0)), ("summary", spent(0.0))]


def asked(by: UsageKey, rows: list[tuple[str, SpendTotals]], standing: BudgetStatus = STANDING) -> UsageReport:
    return UsageReport(by, 31, standing, rows, KINDS)


def test_the_caps_stand_first_as_gauges_with_the_forecast() -> None:
    told = usage_lines(asked("model", [("claude", spent())]))
    assert told[:5] == [
        "Today        $4.50 of $5.00              ██████████████████░░  90%",
        "This month   $12.40 of $50.00            █████░░░░░░░░░░░░░░░  25%",
        "Background   $2.50 of $2.50              ████████████████████ 100%  used up",
        "Forecast     about $18.60 this month, at this rate",
        "",
    ]
    assert told[5] == "Last 31 days: $4.00, 4.5k tokens, 9 calls; 75% answers, 25% background"


def test_large_sums_stand_apart_from_their_gauges_and_all_gauges_below_each_other() -> None:
    large = CapUsage("daily_tokens", "2026-11-20", 1_034_295.0, 1_044_000.0)
    bare = BudgetStatus("2026-11-20", PeriodSpend(4.5), PeriodSpend(2.0), (CAPS[0], large))
    money, tokens = usage_lines(asked("model", [], bare))[:2]
    assert "1,044,000 tokens  █" in tokens and money.index("█") == tokens.index("█")
    assert max(len(money), len(tokens)) <= USAGE_WIDTH


def test_without_caps_the_sums_are_told() -> None:
    bare = BudgetStatus("2026-11-20", PeriodSpend(1.0), PeriodSpend(2.0))
    assert usage_lines(asked("model", [], bare)) == [
        "Today        $1.00 (no cap)",
        "This month   $2.00 (no cap)",
        "",
        "No model was called in the last 31 days.",
    ]


def test_days_are_in_order_with_a_gap_for_those_without_a_call() -> None:
    told = usage_lines(asked("day", [("2026-11-17", spent(2.0)), ("2026-11-19", spent(1.0))]))[7:]
    assert [line[:10].strip() for line in told] == ["day", *(f"2026-11-{day}" for day in (17, 18, 19, 20))]
    assert told[1].count("█") == 28 and told[3].count("█") == 14
    assert told[2].split() == ["2026-11-18", "-"]
    assert {line.index("█") for line in told if "█" in line} == {20}


def test_others_stand_dearest_first_and_tokens_are_drawn_where_nothing_has_a_price() -> None:
    told = usage_lines(asked("session", [("main", spent(1.0)), ("", spent(3.0))]))[7:]
    assert [line.split("  ")[0] for line in told[1:]] == ["(no conversation)", "main"]
    local = usage_lines(
        asked("model", [("llama", spent(0.0, tokens=900, unpriced=900)), ("phi", spent(0.0, tokens=450))])
    )[7:]
    assert local[0].split()[:2] == ["model", "tokens"] and local[1].count("█") == 2 * local[2].count("█")


def test_what_has_no_price_has_a_column_of_its_own() -> None:
    told = usage_lines(asked("model", [("claude", spent(1.0)), ("llama", spent(0.0, unpriced=34_000))]))[7:]
    assert told[0].endswith("no price") and told[2].endswith("34k")


@given(
    st.lists(
        st.tuples(
            st.text(max_size=60),
            st.builds(
                SpendTotals,
                st.integers(0, 10**9),
                st.builds(Usage, st.integers(0, 10**12), st.integers(0, 10**12)),
                st.floats(0, 1e6),
                st.integers(0, 10**12),
                st.integers(0, 10**12),
            ),
        ),
        max_size=5,
    ),
    st.sampled_from(["model", "kind", "session"]),
)
def test_no_line_is_wider_than_a_terminal_nor_has_control_characters(
    rows: list[tuple[str, SpendTotals]], by: UsageKey
) -> None:
    for line in usage_lines(asked(by, rows)):
        assert len(line) <= USAGE_WIDTH and line == line.rstrip()
        assert not any(unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") for letter in line)


def test_json_has_rows_split_caps_forecast_and_what_is_stopped() -> None:
    standing = BudgetStatus(
        "2026-11-20", PeriodSpend(1.0), PeriodSpend(2.0), CAPS, PART, None, (BlockedRequest("scoring", 5, NOW),)
    )
    told = UsageAnswer.model_validate(asked("model", [("claude", spent())], standing)).model_dump(mode="json")
    assert told["rows"] == [
        {
            "model": "claude",
            "calls": 3,
            "input": 1000,
            "output": 500,
            "cache_read": 3000,
            "cache_write": 0,
            "tokens": 1500,
            "usd": 1.0,
            "unpriced_tokens": 0,
            "failed": 0,
        }
    ]
    assert (told["split"]["answering"]["usd"], told["split"]["background"]["usd"]) == (3.0, 1.0)
    assert told["caps"][0] == {
        "setting": "daily_usd",
        "period": "2026-11-20",
        "used": 4.5,
        "most": 5.0,
        "share": 0.9,
        "used_up": False,
    }
    assert told["background_caps"][0]["used_up"] and told["forecast_usd"] is None
    assert told["stopped"] == [{"kind": "scoring", "times": 5, "until": "2026-11-20T12:00:00Z"}]
    assert (told["today"]["usd"], told["month"]["usd"], told["by"], told["days"]) == (1.0, 2.0, "model", 31)


@given(st.floats(0, 2), st.integers(1, 60))
def test_bars_keep_their_width_and_show_the_least(share: float, width: int) -> None:
    assert len(draw_bar(share, width)) <= width and bool(draw_bar(share, width)) is (share > 0)
    assert len(draw_gauge(share, width)) == width and ("░" not in draw_gauge(share, width)) is (share >= 1)


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (9940, "9.9k"),
        (9950, "10k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (1_200_000, "1.2M"),
        (2_500_000_000, "2.5G"),
        (10**13, "10,000G"),
    ],
)
def test_numbers_are_short(count: int, told: str) -> None:
    assert format_count(count) == told


class LedgerStub:
    """A ledger that knows this much."""

    def spent_by(self, key: UsageKey, since: datetime) -> list[tuple[str, SpendTotals]]:
        return KINDS if key == "kind" else [("claude", spent())]

    def budget_status(self, now: datetime) -> BudgetStatus:
        return STANDING


def test_as_a_command_it_keeps_its_columns_and_knows_its_keys() -> None:
    told = render_usage(load_usage(LedgerStub(), "kind", 31, NOW), UTC)
    assert told.startswith("```\nToday") and told.endswith("\n```") and "extraction" in told
    with pytest.raises(UsageError, match="'week' is not one of"):
        parse_command(command_root(), ["usage", "week"])


def test_attempts_that_no_model_answered_are_told_apart_from_calls() -> None:
    rows = [("chat", SpendTotals(2, Usage(700, 56, 0, 0, 0.0), 0.0, 756, 756, failed=3))]
    told = "\n".join(usage_lines(UsageReport("kind", 31, STANDING, rows, rows)))
    assert "756 tokens, 2 calls and 3 failed attempts; 100% answers" in told
    assert "failed" not in "\n".join(usage_lines(asked("kind", KINDS)))


def test_tokens_that_nobody_reported_are_named() -> None:
    cut_off = [("chat", SpendTotals(2, Usage(700, 56, 0, 0, 0.0), 0.0, 20_000, 20_000))]
    assert "19k of these tokens are of calls that were cut off" in "\n".join(
        usage_lines(UsageReport("kind", 31, STANDING, cut_off, cut_off))
    )
    reported = [("chat", SpendTotals(2, Usage(700, 56, 0, 0, 0.0), 0.0, 756, 756))]
    assert "cut off" not in "\n".join(usage_lines(UsageReport("kind", 31, STANDING, reported, reported)))
