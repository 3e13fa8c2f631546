"""Stores what each part of a prompt cost, per call, and sums it up for reports; also the cost of a token that stayed in
the view, which is what a compaction saved per removed token.

Invariant: the parts of a call add up to what the provider reported; a call without a report has no parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from assistant.context.economy import UNKNOWN_PRICES
from assistant.core.dataclass import dataclass
from assistant.core.messages import Usage
from assistant.core.model_api import PromptPart, SpendTotals
from assistant.store.database import Database
from assistant.store.rows import dump_json

NOT_REPORTED = "not reported"
"""The group of calls whose parts nobody reported."""

# Order as in `dump_parts`.
_INPUT, _OUTPUT, _CACHE_READ, _CACHE_WRITE, _USD = (f"p.value ->> {place}" for place in range(5))


def dump_parts(parts: Mapping[PromptPart, Usage]) -> str:
    """Return JSON `{part: [input, output, cache_read, cache_write, usd]}`, omitting empty parts; "" without parts."""
    listed = {
        part: [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cost_usd]
        for part, usage in parts.items()
        if usage.prompt or usage.output
    }
    return dump_json(listed) if listed else ""


def spent_by_part(db: Database, since: datetime) -> list[tuple[str, SpendTotals]]:
    """Return sums since a time by part, each with its number of calls; calls without parts are omitted."""
    rows = db.rows(
        f"SELECT p.key AS name, count(*) AS calls, sum({_INPUT}) AS input, sum({_OUTPUT}) AS output,"
        f" sum({_CACHE_READ}) AS cache_read, sum({_CACHE_WRITE}) AS cache_write, sum({_USD}) AS usd,"
        f" sum(iif({_USD} IS NULL, {_INPUT} + {_OUTPUT} + {_CACHE_READ} + {_CACHE_WRITE}, 0)) AS unpriced"
        " FROM usage, json_each(usage.parts) AS p WHERE usage.ts >= ? AND usage.parts <> ''"
        " GROUP BY name ORDER BY name",
        (since,),
    )
    sums = []
    for row in rows:
        usage = Usage(row["input"], row["output"], row["cache_read"], row["cache_write"], row["usd"])
        totals = SpendTotals(row["calls"], usage, row["usd"] or 0.0, usage.prompt + usage.output, row["unpriced"])
        sums.append((row["name"], totals))
    return sums


@dataclass(frozen=True, slots=True)
class CarriedTokens:
    """The total cost of one token that was in the view during a series of calls."""

    calls: int
    usd: float | None  # None if a price is unknown
    input_tokens: float  # the equivalent number of tokens at full price


def carried_tokens(db: Database, session: str, since: datetime, until: datetime) -> CarriedTokens:
    """Return what a token of summary and history cost, added up over the chat calls of a period (`since` excluded). A
    call bills its part of the prompt; that is divided by the tokens of the part."""
    rows = db.rows(
        f"SELECT sum({_INPUT}) AS input, sum({_CACHE_READ}) AS read, sum({_CACHE_WRITE}) AS written,"
        f" sum({_USD}) AS usd, count({_USD}) AS priced, count(*) AS parts"
        " FROM usage, json_each(usage.parts) AS p WHERE usage.session = ? AND usage.ts > ? AND usage.ts <= ?"
        " AND usage.parts <> '' AND usage.purpose IN ('chat', 'schedule') AND p.key IN ('summary', 'history')"
        " GROUP BY usage.id",
        (session, since, until),
    )
    usd, tokens, priced = 0.0, 0.0, True
    weights = UNKNOWN_PRICES  # in input tokens
    for row in rows:
        stood = row["input"] + row["read"] + row["written"]
        usd += (row["usd"] or 0.0) / stood
        tokens += (row["input"] + weights.cache_read * row["read"] + weights.cache_write * row["written"]) / stood
        priced = priced and row["priced"] == row["parts"]
    return CarriedTokens(len(rows), usd if priced else None, tokens)
