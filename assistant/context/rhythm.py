"""The rhythm of a user's messages: gaps between them by hour of the day, learned from the inbox. Pure.

Shares are within 0 and 1 whatever the clock does (negative gaps and times in the future are ignored); with few
observations the prior dominates, and those of an hour are backed by those of the whole day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise

from assistant.core.dataclass import dataclass

LEARNING_PERIOD = timedelta(days=14)
# Prior for an unknown user: one in five messages comes after more than five minutes, one in ten after more than an
# hour, twenty per day. It weighs as much as this many observed gaps or days.
_PRIOR_GAPS, _PRIOR_DAYS = 8.0, 2.0
_PRIOR_CALLS_A_DAY = 20.0
_PRIOR_SECONDS, _PRIOR_SHARE, _PRIOR_EXPONENT = 300.0, 0.2, 0.28
# Adjacent hours are pooled.
_NEAR_HOURS = (-1, 0, 1)


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Gaps between messages: local hour at which each began, and its length in seconds."""

    gaps: tuple[tuple[int, float], ...] = ()
    days: float = 0.0  # observed time span

    @property
    def calls_a_day(self) -> float:
        """An estimate that begins at `_PRIOR_CALLS_A_DAY` and follows the person's calls the more days are known."""
        return (len(self.gaps) + _PRIOR_DAYS * _PRIOR_CALLS_A_DAY) / (self.days + _PRIOR_DAYS)

    def share_longer(self, seconds: float, *, hour: int | None = None, idle: float = 0.0) -> float:
        """Return the share of gaps longer than `seconds` among those longer than `idle`, around `hour`."""
        prior = min(1.0, _prior_share(seconds) / _prior_share(idle))
        everything = _share([gap for _, gap in self.gaps], seconds, idle, prior)
        if hour is None:
            return everything
        near = {(hour + beside) % 24 for beside in _NEAR_HOURS}
        return _share([gap for began, gap in self.gaps if began in near], seconds, idle, everything)


def learn_rhythm(times: Iterable[datetime], zone: tzinfo, now: datetime) -> Rhythm:
    """Learn the rhythm from message times, oldest first."""
    since = now - LEARNING_PERIOD
    recent = [at for at in times if since <= at <= now]
    gaps = [(a.astimezone(zone).hour, (b - a).total_seconds()) for a, b in pairwise(recent) if b >= a]
    days = (now - recent[0]) / timedelta(days=1) if recent else 0.0
    return Rhythm(tuple(gaps), days)


def _share(gaps: Sequence[float], seconds: float, idle: float, prior: float) -> float:
    lasting = [gap for gap in gaps if gap > idle]
    longer = sum(gap > max(seconds, idle) for gap in lasting)
    return (longer + _PRIOR_GAPS * prior) / (len(lasting) + _PRIOR_GAPS)


def _prior_share(seconds: float) -> float:
    return min(1.0, _PRIOR_SHARE * float((_PRIOR_SECONDS / max(seconds, 1.0)) ** _PRIOR_EXPONENT))
