"""F43: what an embedder's provider is asked is counted like any call: reserved before, settled by what was billed, and
not asked at all over the budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.core.errors import MemoryUnavailable
from assistant.mem0.codec import EmbedderSettings
from assistant.mem0.embedders import open_embedder
from assistant.mem0.remote_embedders import EmbeddingMeter
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import render_notice
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.ledger import Ledger
from tests.support.semantic_memory import EmbedderServer, letter_counts, run_embedder_server

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
USD_A_TOKEN = 0.001


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = Database.open(tmp_path / "script.db", script_migrations, NOW)
    yield database
    database.close()


@pytest.fixture
def there() -> Iterator[EmbedderServer]:
    with run_embedder_server() as one:
        yield one


def ledger_of(db: Database, **changed: float) -> Ledger:
    wanted = {"daily_usd": 10.0, "monthly_usd": 0.0, "daily_tokens": 0, "monthly_tokens": 0, "background_share": 0.5}
    return Ledger(
        db, BudgetSettings.from_values({**wanted, "runaway_calls": 3, **changed}), ZoneInfo("UTC"), render_notice
    )


def embed(
    there: EmbedderServer, ledger: Ledger, *texts: str, kind: str = "openai", usd: float | None = USD_A_TOKEN
) -> None:
    def meter(settings: EmbedderSettings) -> EmbeddingMeter:
        return EmbeddingMeter(ledger, settings.kind, lambda model: usd, lambda: NOW)

    open_embedder(there.settings(kind), Path(), meter_for=meter).embed(texts)


def rows(db: Database) -> list[tuple[str, str, str, str, int, int, float | None]]:
    found = db.rows("SELECT * FROM usage ORDER BY id")
    return [
        (row["purpose"], row["provider"], row["model"], row["state"], row["reserved_tokens"], row["input"], row["usd"])
        for row in found
    ]


def billed(text: str, **usage: int) -> bytes:
    return json.dumps({"data": [{"index": 0, "embedding": letter_counts(text)}], "usage": usage}).encode()


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_f43_each_request_is_a_row_the_probe_for_dimensions_too(db: Database, there: EmbedderServer, kind: str) -> None:
    embed(there, ledger_of(db), *[f"text {number}" for number in range(100)], kind=kind)
    assert len(rows(db)) == len(there.request_bodies) == 3
    assert {row[:4] for row in rows(db)} == {("embedding", kind, "letters", "settled")}


def test_what_the_provider_bills_is_settled_else_a_quarter_of_the_letters(db: Database, there: EmbedderServer) -> None:
    there.next_answers = [billed("dimensions", prompt_tokens=2), billed("call mum", prompt_tokens=7)]
    embed(there, ledger_of(db), "call mum")
    assert [row[4:] for row in rows(db)] == [(10, 2, 0.002), (8, 7, 0.007)]
    embed(there, ledger_of(db), "feed the cat")
    assert [row[4:] for row in rows(db)][2:] == [(10, 3, 0.003), (12, 3, 0.003)]


def test_without_a_price_tokens_are_counted(db: Database, there: EmbedderServer) -> None:
    embed(there, ledger_of(db), "call mum", usd=None)
    assert ledger_of(db).budget_status(NOW).day.unpriced_tokens == 3 + 2


def test_a_request_that_was_refused_costs_nothing_and_one_that_broke_its_letters(
    db: Database, there: EmbedderServer
) -> None:
    for answer, cost in ((500, 0), (b"{no json", 3)):
        there.next_answers = [answer]
        with pytest.raises(MemoryUnavailable):
            embed(there, ledger_of(db), "call mum")
        assert rows(db)[-1][3:6] == ("settled", 10, cost)


def test_f43_over_the_budget_nobody_is_asked_and_the_journal_waits(db: Database, there: EmbedderServer) -> None:
    ledger = ledger_of(db, daily_usd=0.03, background_share=1.0)
    embed(there, ledger, "call mum")
    asked = len(there.request_bodies)
    with pytest.raises(MemoryUnavailable, match=r"daily budget has too little left.*The journal keeps everything"):
        embed(there, ledger, "x" * 100)
    # The probe of the new process still fitted.
    assert len(there.request_bodies) == asked + 1 and [row[3] for row in rows(db)] == ["settled"] * 3


def test_the_part_of_the_background_holds_for_embeddings(db: Database, there: EmbedderServer) -> None:
    with pytest.raises(MemoryUnavailable, match="work in the background"):
        embed(there, ledger_of(db, background_share=0.0), "call mum")
    assert there.request_bodies == []


def test_the_same_texts_again_and_again_are_stopped_and_the_probe_never_is(db: Database, there: EmbedderServer) -> None:
    for _ in range(3):
        embed(there, ledger_of(db), "call mum")
    with pytest.raises(MemoryUnavailable):
        embed(there, ledger_of(db), "call mum")
    embed(there, ledger_of(db), "another")
    assert ledger_of(db).budget_status(NOW + timedelta(minutes=1)).stopped[0].purpose == "embedding"
