"""Reminders that are said by what they come before: "a week before grandma's birthday", "am Tag vor dem Flug packen".

When that is was told once, or is a reminder. What is not known is said to be so, and nothing is set: a day that was
only guessed would come too late or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from assistant.core.dataclass import dataclass
from assistant.core.quoting import QuotedMessage, parse_quotes, quote_text
from assistant.core.text import fold_text, lazy_regex
from assistant.core.time_pieces import FoundTimes, find_times
from assistant.core.time_readers import TimePiece
from assistant.core.time_resolve import add_months, resolve_times
from assistant.models.offline.cues import fold
from assistant.models.offline.lists import order_subject
from assistant.models.offline.matching import read_reminders
from assistant.models.offline.order_signs import asks_for_reminder
from assistant.models.offline.plans import MOMENT, Plan, PlanContext, ToolStep, call_tool
from assistant.models.offline.ranking import content_words, has_words, query_words
from sleep.rules.sentences import split_sentences

_NEEDED = {"list_reminders", "search_history", "set_reminder"}
_SEARCH_LIMIT = 20
# "On the day of the party", "on grandma's birthday", "an Omas Geburtstag"
_YEARLY = r"(?:birthday|bday|anniversary|geburtstag|hochzeitstag|jahrestag|anniversaire|cumple(?:anos)?|aniversario)"
_ON = lazy_regex(
    rf"\b(?:on the day of (?P<of>.+)|on (?P<en>(?:[\w'’-]+ ){{0,3}}{_YEARLY}\b.*)"
    rf"|an (?P<de>(?:\w+ ){{0,3}}{_YEARLY}\b.*)|(?:pour|a) (?P<fr>l'{_YEARLY} .+)|(?:en|para) (?P<es>el {_YEARLY} .+))"
)
# What is to be done, behind the event: "*to* order flowers", "*d'*acheter un gâteau", "Blumen *zu* bestellen".
# A place or a person may follow the same words, as in "the trip to Rome": so something done has to follow.
_TO_DO = lazy_regex(
    r"^(?:to (?P<en>.+)|(?:de |d'|pour )(?P<fr>\w+(?:er|ir|re)\b.*)|(?:an|ans|zum) (?P<de>\w+en\b.*)"
    r"|(?P<zu>(?:(?:de[nmrs]|die|das|ein\w*|mein\w*|unser\w*) )?(?:\w+ )?(?:zu \w+en|\w+zu\w+en))"
    r"|(?:para |que )?(?P<es>\w+[aei]r(?:l[aeo]s?|me|se)?\b.*))$"
)
_GOES_TO = lazy_regex(
    r"\b(?:trip|flight|journey|move|drive|train|bus|visit|travel\w*|fly\w*|go|goes|going|driving|ride|return\w*)$"
)
# What is no event that has a day of its own.
_NO_EVENT = lazy_regex(
    r".*\d.*|(?:that|then|it|hand|bed|bedtime|work|breakfast|lunch|dinner|noon|school|midnight|davon|das|dem essen|ca"
    r"|eso)"
)
_ARTICLE = lazy_regex(r"(?:(?:of|the|an?|am|von|vom|dem|der|den|die|das|de|du|des|del|el|la|le|les|los)\s+|d'|l')+")
_WHEN = lazy_regex(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?")


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be remembered, how long before which event, and the hour, where one is said."""

    what: str
    event: str
    before: TimePiece | None  # None: on the day
    hour: str


def remind_before_event(text: str, context: PlanContext) -> Generator[ToolStep, str, str | None]:
    """The answer; None where no such reminder is asked for, or it is the event's own that comes earlier."""
    wishes = _read_wishes(text)
    if not wishes or context.now is None or not context.tools >= _NEEDED:
        return None
    items = read_reminders((yield from call_tool("list_reminders")))
    words = query_words(content_words(wishes[0].event))
    found = yield from call_tool("search_history", query=" ".join(words), role="user", limit=_SEARCH_LIMIT)
    quotes = sorted(parse_quotes(found), key=lambda quote: quote.message_id, reverse=True)
    for wish in wishes:
        own = [item for item in items if has_words(item.text, content_words(wish.event))]
        if len(own) == 1 and own[0].due:
            # The reminder of the event itself is moved, as everywhere.
            return (yield from _set(wish, own[0].due, context.now)) if wish.what else None
        for quote in quotes:
            if (when := _day_told(wish.event, quote, context.now)) is not None:
                return (yield from _set(wish, when, context.now))
    event = quote_text(wishes[0].event)
    return f"I don't know when {event} is, so nothing is set. Tell me the day first, or say when to remind you."


def _read_wishes(text: str) -> list[_Wish]:
    """The ways in which a sentence may be read, the likeliest first."""
    times = find_times(text)
    if not asks_for_reminder(text) or times.of_kind("day", "repeat", "delta", "span"):
        return []
    clocks = times.of_kind("clock")
    hour = " ".join(times.text[piece.start : piece.end] for piece in clocks)
    before = next(iter(times.of_kind("before")), None)
    if before is not None:
        lead, event = times.text[: before.start], times.text[before.end :]
    elif match := _ON.search(fold(times.text)):
        start = next(match.start(name) for name, said in match.groupdict().items() if said)
        lead, event = times.text[: match.start()], times.text[start:]
    else:
        return []
    for piece in clocks:
        event = event.replace(times.text[piece.start : piece.end], " ")
        lead = lead.replace(times.text[piece.start : piece.end], " ")
    words, what = event.strip(" .!?,").split(), order_subject(lead)
    readings = [(" ".join(words), what if content_words(what) else "")]
    if not readings[0][1]:
        ends = range(len(words) - 1, 0, -1)
        readings += [(" ".join(words[:end]), todo) for end in ends if (todo := _to_do(words, end))]
    wishes = [_Wish(what, _without_article(event), before, hour) for event, what in readings if content_words(event)]
    return [] if any(_NO_EVENT.fullmatch(fold(wish.event)) for wish in wishes) else wishes


def _to_do(words: Sequence[str], end: int) -> str:
    """What the words from `end` on say is to be done; "" if they may be of the event."""
    match = _TO_DO.match(fold(" ".join(words[end:])))
    if match is None or (match["en"] and (" to " in match["en"] or _GOES_TO.search(fold(" ".join(words[:end]))))):
        return ""
    start = next(match.start(name) for name, said in match.groupdict().items() if said)
    return " ".join(words[end:])[start:]


def _without_article(event: str) -> str:
    article = _ARTICLE.match(fold(event))
    return event[article.end() :] if article else event


def _day_told(event: str, quote: QuotedMessage, now: datetime) -> datetime | None:
    """When an event is that was told; at midnight where no hour was. None where it is past, or not what was told."""
    said = _WHEN.search(quote.when)
    words = content_words(event)
    if said is None or asks_for_reminder(quote.text):
        return None
    for sentence in split_sentences(quote.text):
        if sentence.is_question or sentence.has_question_mark or not has_words(sentence.text, words):
            continue
        times = find_times(sentence.text)
        pieces = tuple(times.of_kind("day", "delta"))
        day = resolve_times(replace(times, pieces=pieces), datetime.fromisoformat(said[0])) if pieces else None
        if day is None:
            continue
        when = datetime.combine(day.at.date(), datetime.min.time()) + _clock_of(times)
        while when.date() < now.date() and re.search(_YEARLY, fold_text(quote.text)):
            when = datetime.combine(add_months(when.date(), 12), when.time())
        return when if when.date() >= now.date() else None
    return None


def _clock_of(times: FoundTimes) -> timedelta:
    clocks = times.of_kind("clock")
    return timedelta(minutes=clocks[0].minutes) if len(clocks) == 1 else timedelta()


def _set(wish: _Wish, event: datetime, now: datetime) -> Plan:
    before = wish.before
    due = event
    if before is not None:
        due -= timedelta(days=before.days, minutes=before.minutes)
        due = datetime.combine(add_months(due.date(), -before.months), due.time())
    when = due.strftime(MOMENT)
    if before is None or not before.minutes:
        part = "in the evening" if before and before.part else "09:00"
        when = f"{due:%Y-%m-%d} {wish.hour or part}"
    elif not (event.hour or event.minute):
        return f"I don't know at what time {quote_text(wish.event)} is, so nothing is set. Say when to remind you."
    if due.date() < now.date():
        return f"That would have been on {due:%Y-%m-%d}, which is past, so nothing is set."
    return (yield from call_tool("set_reminder", text=wish.what or wish.event, when=when))
