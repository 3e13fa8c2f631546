"""What somebody wants to know of the spending, gathered and told: for the command line and for `/usage`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol, cast, get_args

from assistant.core.caps import Standing
from assistant.core.errors import UsageError
from assistant.core.requests import Spent, UsageKey
from assistant.spending.report import Asked, lines

_DAYS = 31


class Told(Protocol):
    """What a ledger tells."""

    def by(self, key: UsageKey, since: datetime) -> list[tuple[str, Spent]]: ...
    def standing(self, now: datetime) -> Standing: ...


def ask(ledger: Told, by: UsageKey, days: int, now: datetime) -> Asked:
    """What was spent in the days before `now`, and how the budget stands."""
    since = now - timedelta(days=days)
    rows = ledger.by(by, since)
    return Asked(by, days, ledger.standing(now), rows, rows if by == "kind" else ledger.by("kind", since))


def usage_block(ledger: Told, by: str, now: datetime) -> str:
    """The last month as Markdown that keeps its columns. Raises `UsageError` for what is no key."""
    if by not in get_args(UsageKey):
        raise UsageError(f"Use /usage [{'|'.join(get_args(UsageKey))}]. Nothing was changed.")
    return "\n".join(["```", *lines(ask(ledger, cast(UsageKey, by), _DAYS, now)), "```"])
