"""The table of prices and what is worked out with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.core.errors import SettingsError
from assistant.core.messages import Usage
from assistant.models.prices import Price, load_prices
from assistant.settings.settings import shipped_config_dir

SHIPPED = shipped_config_dir() / "prices.toml"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(
        "as_of = 2026-11-10\n[house]\n"
        "small = { input = 1.0, output = 5.0, cache_read = 0.1, cache_write = 1.25 }\n"
        "small-plus = { input = 2.0, output = 9.0, cache_read = 0.2, cache_write = 2.5 }\n"
        "[house.long]\ninput = 1.0\noutput = 5.0\ncache_read = 0.1\ncache_write = 1.25\n"
        "long = { above = 1000, input = 4.0, output = 8.0, cache_read = 0.4, cache_write = 5.0 }\n"
    )
    return path


def price(table: Path, name: str) -> Price:
    found = load_prices(table)["house"].price_for_model(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["small", "small-20251001", "small-2026-04-01", "small-latest"])
def test_a_dated_name_has_the_price_of_the_name_before_the_date(table: Path, name: str) -> None:
    assert price(table, name).input == 1.0


@pytest.mark.parametrize("name", ["smaller", "small-minus", "small-5", "", "small-20251"])
def test_a_name_that_only_begins_alike_has_no_price(table: Path, name: str) -> None:
    assert load_prices(table)["house"].price_for_model(name) is None


def test_the_longest_name_wins(table: Path) -> None:
    assert price(table, "small-plus-20260101").input == 2.0


def test_a_bill_counts_each_kind_of_token_at_its_rate(table: Path) -> None:
    usage = Usage(input=1_000_000, output=1_000_000, cache_read=1_000_000, cache_write=1_000_000)
    assert price(table, "small").cost_of_call(usage) == pytest.approx(1.0 + 5.0 + 0.1 + 1.25)


def test_the_worst_case_writes_the_whole_prompt_to_the_cache_and_answers_at_full_length(table: Path) -> None:
    assert price(table, "small").worst_case(1_000_000, 100_000) == pytest.approx(1.25 + 0.5)


def test_a_long_prompt_makes_the_whole_request_dearer(table: Path) -> None:
    long = price(table, "long")
    assert long.cost_of_call(Usage(input=1000, output=1000)) == pytest.approx((1000 * 1 + 1000 * 5) / 1e6)
    assert long.cost_of_call(Usage(input=900, cache_read=101, output=1000)) == pytest.approx(
        (900 * 4 + 101 * 0.4 + 1000 * 8) / 1e6
    )
    assert long.worst_case(1001, 10) == pytest.approx((1001 * 5 + 10 * 8) / 1e6)


def test_the_shipped_table_is_dated_and_plausible() -> None:
    tables = load_prices(SHIPPED)
    assert tables["anthropic"].as_of is not None
    for prices in tables.values():
        for name, entry in prices.models.items():
            if "embedding" in name:
                assert (entry.output, entry.cache_read, entry.cache_write) == (
                    0,
                    entry.input,
                    entry.input,
                ) and entry.input
                continue
            assert entry.cache_read < entry.input <= entry.cache_write < entry.output, name
            if entry.long:
                assert entry.long.input > entry.input, name


def test_the_default_model_has_a_price() -> None:
    assert load_prices(SHIPPED)["anthropic"].price_for_model("claude-sonnet-5-5") is not None


@pytest.mark.parametrize(
    "text",
    [
        "no toml",
        "[house]\nx = { input = 1.0 }",
        "as_of = 2026-01-01\nhouse = 3",
        "as_of = 2026-01-01\n[house]\nx = { input = -1.0, output = 1.0, cache_read = 1.0, cache_write = 1.0 }",
        "as_of = 2026-01-01\n[house]\nx = { input = 1.0, output = 1.0, cache_read = 1.0, cache_write = 1.0, y = 1 }",
    ],
)
def test_a_table_that_cannot_be_read_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=r"prices\.toml cannot be used"):
        load_prices(path)


def test_a_table_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be used"):
        load_prices(tmp_path / "none.toml")
