"""Local times of a zone and the moments they stand for. Pure.

What always holds: each local time is one moment. One that comes twice in autumn is the first of the two; one that
spring leaves out is the moment at which the clocks were put forward.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo


def moment_of(local: datetime, zone: tzinfo) -> datetime:
    """The moment, in UTC, that a local (naive) time stands for."""
    first = local.replace(tzinfo=zone, fold=0)
    at = first.astimezone(UTC)
    if local_of(at, zone) == local:
        return at
    return _jump(first.replace(fold=1).astimezone(UTC), at, zone)


def local_of(at: datetime, zone: tzinfo) -> datetime:
    """What the clocks of the zone show, naive."""
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def key_of(local: datetime) -> str:
    """The name of a slot."""
    return local.isoformat(timespec="seconds" if local.second else "minutes")


def _jump(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first moment, to the second, at which the clocks of the zone are as they are `after`."""
    offset = after.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = (before + (after - before) / 2).replace(microsecond=0)
        if middle <= before:
            break
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after
