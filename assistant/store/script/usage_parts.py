"""What each part of the prompts was billed: written with each call, added up for people, and what a token that stands
in view cost, which is what a compaction saved for each token that it removed.

What always holds: the parts of a call add up to what the provider reported; a call without such a report has none.
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

# As in `dump_parts`.
_INPUT, _OUTPUT, _CACHE_READ, _CACHE_WRITE, _USD = (f"p.value ->> {place}" for place in range(5))


def dump_parts(parts: Mapping[PromptPart, Usage]) -> str:
    """{part: [input, output, cache_read, cache_write, usd]}, those with nothing left out; "" where there is none."""
    listed = {
        part: [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cost_usd]
        for part, usage in parts.items()
        if usage.prompt or usage.output
    }
    return dump_json(listed) if listed else ""


def spent_by_part(db: Database, since: datetime) -> list[tuple[str, SpendTotals]]:
    """Sums since a moment by part, each with the calls that had it; calls without parts are left out."""
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
    """What a token that stood in view through all of some calls cost, in them together."""

    calls: int
    usd: float | None  # None where a price is not known
    input_tokens: float  # the same as so many tokens that are paid in full


def carried_tokens(db: Database, session: str, since: datetime, until: datetime) -> CarriedTokens:
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
