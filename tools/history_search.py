"""Searches the history for questions that a single ranked list answers badly: those about several messages, about the
last few times of something, or about a time given by an event.

Such a question changes the number and order of results; results of a plain search follow as far as they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

from assistant.context.event_time import (
    EventReference,
    asks_for_kinds,
    asks_for_order,
    asks_for_several,
    find_event_reference,
    last_times,
)
from assistant.core.dataclass import dataclass
from assistant.core.records import SearchHit
from tools.declaration import start_of_day

Search = Callable[[str, int, datetime | None, datetime | None], Sequence[SearchHit]]
"""The hits of (query, limit, after, before), best first."""

# How many times as many hits are shown for things in the plural, and for what surely needs several messages: there, a
# part of them is one a day, from further days.
_WIDER, _BEST, _FURTHER_DAYS = 2.0, 2.5, 0.5
_DEEPEST = 100
_MOST_OF_THE_WORDS = 0.5
_EVENTS_READ = 12


@dataclass(frozen=True, slots=True)
class HistoryResults:
    """The results a search shows."""

    hits: Sequence[SearchHit]  # the first ones are shown, as many as there is room for
    order: str  # how they are ordered, for people
    by_time: bool = False  # whether the ones shown are put in the order of time
    more: int | None = None  # how many others have most of the question's words; None if not counted
    note: str = ""  # how a time was understood


def find_messages(
    search: Search, query: str, limit: int, after: datetime | None, before: datetime | None, today: date, zone: ZoneInfo
) -> HistoryResults:
    """Return the results that suit the question: around an event it names, the newest where it asks for the last time,
    of many days where it asks for several, else the best. `after` and `before` leave the event out."""
    reference = find_event_reference(query) if after is None and before is None else None
    if reference is not None and (found := _around_event(search, query, reference, limit, today, zone)):
        return found
    times, asks_several = last_times(query), asks_for_several(query)
    if not times and not asks_several and not asks_for_kinds(query):
        return HistoryResults(search(query, limit, after, before), "best first")
    hits = search(query, _DEEPEST, after, before)
    if times:
        fitting = sorted(_fitting(hits), key=lambda hit: hit.ts, reverse=True)
        if fitting:
            rest = [hit for hit in hits if hit not in fitting[:limit]]
            return HistoryResults([*fitting, *rest][:limit], "newest first", more=max(0, len(fitting) - limit))
    shown = _with_further_days(hits, limit, zone) if asks_several else hits[: int(_WIDER * limit)]
    more = len([hit for hit in _fitting(hits) if hit not in shown])
    if asks_for_order(query):
        return HistoryResults(shown, "in the order of time", by_time=True, more=more)
    return HistoryResults(shown, "best first", more=more)


def _with_further_days(hits: Sequence[SearchHit], limit: int, zone: ZoneInfo) -> list[SearchHit]:
    """Return the best hits, then the best of each day that has none among them: what comes again and again is told on
    many days."""
    best = list(hits[: int(_BEST * limit)])
    days = {hit.ts.astimezone(zone).date() for hit in best}
    further: dict[date, SearchHit] = {}
    for hit in hits[len(best) :]:
        if (day := hit.ts.astimezone(zone).date()) not in days:
            further.setdefault(day, hit)
    return [*best, *list(further.values())[: int(_FURTHER_DAYS * limit)]]


def _around_event(
    search: Search, query: str, reference: EventReference, limit: int, today: date, zone: ZoneInfo
) -> HistoryResults | None:
    """Return messages from the time given by an event, followed by other results; None if the event is unknown."""
    day, source = reference.feast_day(today), ""
    if day is None:
        said = next(
            (
                hit
                for hit in search(reference.event, _EVENTS_READ, None, None)
                if hit.quality.share >= _MOST_OF_THE_WORDS and not hit.text.rstrip(' …"').endswith("?")
            ),
            None,
        )
        if said is None:
            return None
        day, source = said.ts.astimezone(zone).date(), f" (#{said.message_id})"
    first, last = reference.days_around(day)
    within = search(reference.rest, limit, start_of_day(first, zone), start_of_day(last, zone))
    known = {hit.message_id for hit in within}
    others = [hit for hit in search(query, limit, None, None) if hit.message_id not in known]
    time = " ".join(filter(None, [f"from {first}" if first else "", f"before {last}" if last else ""]))
    note = f"Event: {day.isoformat()}{source}; what was said {time} comes first."
    return HistoryResults([*within, *others][:limit], "best first", note=note)


def _fitting(hits: Sequence[SearchHit]) -> list[SearchHit]:
    """Return the hits that match about as much of the question as the best: "how many times" is in none of them."""
    least = _MOST_OF_THE_WORDS * max((hit.quality.share for hit in hits), default=0.0)
    return [hit for hit in hits if hit.quality.share >= least > 0]
