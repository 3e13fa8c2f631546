"""The part of the budget that others than the owner may use, all sessions of a role together (I9, I10), and
what work in the background has used of its own.

What always holds: what a role has used of a day and a month is one row, kept with the reservation it comes from; a
share of nothing admits only what is free. What those others are told names no sums of the owner's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from assistant.core.budget import PeriodSpend, exceeds_cap
from assistant.core.errors import BudgetExceeded
from assistant.core.people import OWNER_ONLY_PERMISSIONS, Permissions
from assistant.core.sessions import session_role
from assistant.store.database import Database

_NAMES = {"guest": "guests", "room": "rooms"}

# Told the role, the name of the cap ("daily", "monthly") and the time when a call was refused for its role's share.
ShareUsed = Callable[[str, str, datetime], None]


def untold(role: str, cap: str, now: datetime) -> None:
    """Nobody is told."""


class ShareExceeded(BudgetExceeded):
    """The share of a role is used up."""

    def __init__(self, role: str, cap: str, unit: str) -> None:
        super().__init__(
            f"The part of the {cap} budget that {_NAMES.get(role, role)} may use is used up. Your message is kept; ask "
            f"again next {unit}."
        )
        self.role = role
        self.cap = cap


def role(session: str | None) -> str:
    """Whose call it is that was made for a session; the house's own are the owner's."""
    return "owner" if session is None else session_role(session)


class Shares:
    """`share_used` is called outside of any transaction."""

    def __init__(
        self, db: Database, authority: Permissions = OWNER_ONLY_PERMISSIONS, share_used: ShareUsed = untold
    ) -> None:
        self._db = db
        self.authority = authority
        self.share_used = share_used

    def check(self, of: str, cap: tuple[str, str, str], most: tuple[float, int], usd: float, unpriced: int) -> None:
        """Inside the transaction that reserves: whether a call of this worst case (US dollars, tokens without a price)
        fits the share of role `of` in a cap (name, unit, period) of `most` (dollars, tokens; 0 is none).

        Raises `ShareExceeded`."""
        if of == "owner":
            return
        name, unit, period = cap
        share = self.authority.share(of)
        sums = self.used(of, period)
        used = (sums.usd, sums.unpriced_tokens)
        for asked, already, whole in zip((usd, unpriced), used, most, strict=True):
            if asked and (share == 0 or (whole and exceeds_cap(already, asked, whole * share))):
                raise ShareExceeded(of, name, unit)

    def used(self, of: str, period: str) -> PeriodSpend:
        """What a role has used of a period, in US dollars and tokens without a price."""
        row = self._db.row(
            "SELECT usd, unpriced_tokens FROM usage_by_role WHERE role = ? AND period = ?", (of, period)
        )  # fmt: skip
        return PeriodSpend() if row is None else PeriodSpend(usd=row["usd"], unpriced_tokens=row["unpriced_tokens"])

    def add(self, of: str, period: str, usd: float, unpriced: int) -> None:
        """Inside a transaction."""
        if of != "owner":
            self._db.execute(
                "INSERT INTO usage_by_role (role, period, usd, unpriced_tokens) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (role, period) DO UPDATE SET usd = usd + excluded.usd,"
                " unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens",
                (of, period, usd, unpriced),
            )
