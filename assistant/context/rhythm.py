"""When a person writes: gaps between their messages, by the hour of the day, learnt from the inbox. Pure.

What always holds: shares lie within 0 and 1, whatever the clock did (a gap that is negative, or that began in the
future, says nothing); few observations are answered mostly by a prior, and those of one hour by those of the day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise

from assistant.core.dataclass import dataclass

LEARNING_PERIOD = timedelta(days=14)
# What is believed of a person nobody knows yet: of five messages one comes after more than five minutes, of ten one
# after more than an hour, and there are twenty a day. It weighs as much as so many gaps, or days, that were seen.
_PRIOR_GAPS, _PRIOR_DAYS = 8.0, 2.0
_PRIOR_CALLS_A_DAY = 20.0
_PRIOR_SECONDS, _PRIOR_SHARE, _PRIOR_EXPONENT = 300.0, 0.2, 0.28
# Of the hours beside the one that is asked for, one on each side counts as the same.
_NEAR_HOURS = (-1, 0, 1)


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Gaps between messages: the hour of the day at which each began, by the home's clock, and its seconds."""

    gaps: tuple[tuple[int, float], ...] = ()
    days: float = 0.0  # how long was looked at

    @property
    def calls_a_day(self) -> float:
        return (len(self.gaps) + _PRIOR_DAYS * _PRIOR_CALLS_A_DAY) / (self.days + _PRIOR_DAYS)

    def share_longer(self, seconds: float, *, hour: int | None = None, idle: float = 0.0) -> float:
        """Of gaps that last longer than `idle` seconds, the share that lasts longer than `seconds`, about `hour`."""
        prior = min(1.0, _prior_share(seconds) / _prior_share(idle))
        everything = _share([gap for _, gap in self.gaps], seconds, idle, prior)
        if hour is None:
            return everything
        near = {(hour + beside) % 24 for beside in _NEAR_HOURS}
        return _share([gap for began, gap in self.gaps if began in near], seconds, idle, everything)


def learn_rhythm(times: Iterable[datetime], zone: tzinfo, now: datetime) -> Rhythm:
    """The rhythm of messages that came at `times`, oldest first."""
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
