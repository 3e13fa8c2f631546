"""Changes events on a server: add, move, cancel, and answer invitations.

A change describes the result, so that repeating it has no further effect: an added event has an id derived from the key
of the action, a move has the new time, a cancellation and an answer their result. A resource is only replaced if it is
unchanged since it was read (If-Match), so that concurrent changes are not lost, and its other content is kept. If a
request got no answer, the server is checked; if the outcome cannot be determined, it is reported as unknown. Runs only
in the child process.
"""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urljoin
from zoneinfo import ZoneInfo

import icalendar

from assistant.calendars.dav import DavAnswer, DavClient, DavError
from assistant.calendars.ical import mail_addresses, occurrence_name, parse_calendar
from assistant.core.calendar_events import CalendarChange

_NAMESPACE = uuid.UUID("6f0ef6b6-5d4c-4b0e-9d4e-0a1f6c9a2c55")
_TRIES = 3
_UNKNOWN = "Nobody knows whether the change was carried out: {why} Look into the calendar before you ask for it again."


class NoSuchEvent(DavError):
    """The event to change no longer exists."""


async def apply_change(
    client: DavClient, change: CalendarChange, zone: ZoneInfo, now: datetime, addresses: frozenset[str]
) -> str:
    """Make a change; return the address of the resource, "" if it is deleted. Raises `DavError`."""
    try:
        return await _apply(client, change, zone, now, addresses)
    except DavError as error:
        if not error.unsure:
            raise
        try:
            # A change that can be repeated is repeated once to determine the outcome.
            return await _apply(client, change, zone, now, addresses)
        except DavError:
            raise DavError(_UNKNOWN.format(why=error), unsure=True) from None


async def _apply(
    client: DavClient, change: CalendarChange, zone: ZoneInfo, now: datetime, addresses: frozenset[str]
) -> str:
    if change.action == "add":
        return await _add(client, change, zone, now)
    for _ in range(_TRIES):
        answer = await client.request("GET", change.url)
        if answer.status in (404, 410):
            if change.action == "cancel":
                return ""
            raise NoSuchEvent("The event is not in the calendar any more. Nothing was changed.")
        _require(answer, 200)
        calendar = parse_calendar(answer.text)
        own = mail_addresses([client.source.email, client.source.user]) | addresses
        if not _edit(calendar, change, zone, now, own):
            return change.url  # already done
        deletes = not list(calendar.walk("VEVENT")) or (change.action == "cancel" and not change.occurrence)
        if deletes:
            sent = await client.request("DELETE", change.url, headers=_matching(answer))
        else:
            sent = await _put(client, change.url, calendar, _matching(answer))
        if sent.status != 412:
            _require(sent, 200, 201, 204, 404)
            return "" if deletes else change.url
    raise DavError("The event is being changed by others all the time. Nothing was changed; try again later.")


async def _add(client: DavClient, change: CalendarChange, zone: ZoneInfo, now: datetime) -> str:
    uid = uid_of(change)
    url = urljoin(change.collection, f"{uid}.ics")
    event = icalendar.Event()
    event.add("UID", uid)
    event.add("DTSTAMP", now.astimezone(UTC))
    event.add("DTSTART", _moment(change.starts, zone))
    event.add("DTEND", _moment(change.ends, zone))
    event.add("SUMMARY", change.title)
    for name, text in (("LOCATION", change.place), ("DESCRIPTION", change.notes)):
        if text:
            event.add(name, text)
    calendar = icalendar.Calendar()
    calendar.add("VERSION", "2.0")
    calendar.add("PRODID", "-//Nocturne//EN")
    calendar.add_component(event)
    calendar.add_missing_timezones()
    sent = await _put(client, url, calendar, {"If-None-Match": "*"})
    if sent.status == 412:
        return url  # already added, under the same key
    _require(sent, 200, 201, 204)
    return url


def uid_of(change: CalendarChange) -> str:
    """Return the UID of the event that a change makes: the same each time it is tried."""
    return str(uuid.uuid5(_NAMESPACE, change.key))


def _edit(calendar: Any, change: CalendarChange, zone: ZoneInfo, now: datetime, own: frozenset[str]) -> bool:
    """Edit the text; return whether there was anything to change. Raises `NoSuchEvent`."""
    components = [it for it in calendar.walk("VEVENT") if str(it.get("UID")) == change.uid]
    master = next((it for it in components if "RECURRENCE-ID" not in it), None)
    target = master
    if change.occurrence:
        overrides = [it for it in components if "RECURRENCE-ID" in it]
        target = next((it for it in overrides if occurrence_name(it, zone) == change.occurrence), None)
        if target is None and master is not None and change.action != "cancel":
            target = _new_override(calendar, master, change.occurrence, zone)
    elif target is None:
        raise NoSuchEvent("The event is not in the calendar any more. Nothing was changed.")
    if change.action == "move":
        return target is not None and _move(target, change, zone, now)
    if change.action == "answer":
        components = [target] if change.occurrence and target is not None else components
        answered = [_answer(it, change.answer, own, now) for it in components]
        return any(answered)
    if not change.occurrence:
        return True
    if target is not None:
        calendar.subcomponents.remove(target)
    if master is None:
        return target is not None
    return _exclude(master, change.occurrence, zone, now) or target is not None


def _new_override(calendar: Any, master: Any, occurrence: str, zone: ZoneInfo) -> Any:
    """Return a new component for one occurrence of a series, to be changed separately."""
    override = icalendar.Event.from_ical(master.to_ical().decode())
    for name in ("RRULE", "RDATE", "EXDATE", "EXRULE"):
        override.pop(name, None)
    start = _occurrence_start(master, occurrence, zone)
    duration = master.end - master.start
    _set(override, "RECURRENCE-ID", start)
    _set(override, "DTSTART", start)
    override.pop("DURATION", None)
    _set(override, "DTEND", start + duration)
    calendar.add_component(override)
    return override


def _occurrence_start(master: Any, occurrence: str, zone: ZoneInfo) -> date | datetime:
    """Return the start of the occurrence in the format of the series."""
    if "T" not in occurrence:
        return datetime.strptime(occurrence, "%Y%m%d").date()  # noqa: DTZ007 - a day
    at = datetime.strptime(occurrence, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    first = master.start
    if not isinstance(first, datetime):
        return at.astimezone(zone).date()
    return at.astimezone(first.tzinfo) if first.tzinfo else at.astimezone(zone).replace(tzinfo=None)


def _move(target: Any, change: CalendarChange, zone: ZoneInfo, now: datetime) -> bool:
    starts, ends = _moment(change.starts, zone), _moment(change.ends, zone)
    if (target.start, target.end) == (starts, ends):
        return False
    _set(target, "DTSTART", starts)
    target.pop("DURATION", None)
    _set(target, "DTEND", ends)
    _touch(target, now)
    return True


def _answer(target: Any, answer: str, own: frozenset[str], now: datetime) -> bool:
    """Raises `DavError` if the owner was not invited."""
    attendees = target.get("ATTENDEE") or []
    mine = [it for it in (attendees if isinstance(attendees, list) else [attendees]) if str(it).lower() in own]
    if not mine:
        raise DavError("Nobody invited you there by an address that is known as yours. Nothing was changed.")
    if all(str(it.params.get("PARTSTAT", "")).lower() == answer for it in mine):
        return False
    for it in mine:
        it.params["PARTSTAT"] = answer.upper()
        it.params.pop("RSVP", None)
    _set(target, "DTSTAMP", now.astimezone(UTC))
    return True


def _exclude(master: Any, occurrence: str, zone: ZoneInfo, now: datetime) -> bool:
    start = _occurrence_start(master, occurrence, zone)
    there = master.get("EXDATE") or []
    excluded = [value.dt for part in (there if isinstance(there, list) else [there]) for value in part.dts]
    if start in excluded:
        return False
    master.add("EXDATE", start)
    _touch(master, now)
    return True


def _touch(component: Any, now: datetime) -> None:
    """Update the fields that tell other programs about a change."""
    _set(component, "SEQUENCE", int(component.get("SEQUENCE", 0)) + 1)
    for name in ("DTSTAMP", "LAST-MODIFIED"):
        _set(component, name, now.astimezone(UTC))


def _set(component: Any, name: str, value: Any) -> None:
    component.pop(name, None)
    component.add(name, value)


def _moment(text: str, zone: ZoneInfo) -> date | datetime:
    """Parse a date such as "2026-03-01", or a time such as "2026-03-01T09:00" in the zone of the data folder."""
    return datetime.fromisoformat(text).replace(tzinfo=zone) if "T" in text else date.fromisoformat(text)


def _matching(answer: DavAnswer) -> dict[str, str]:
    tag = answer.headers.get("etag", "")
    return {"If-Match": tag} if tag and not tag.startswith("W/") else {}


async def _put(client: DavClient, url: str, calendar: Any, headers: dict[str, str]) -> DavAnswer:
    text = calendar.to_ical().decode()
    return await client.request("PUT", url, text, {"Content-Type": "text/calendar; charset=utf-8", **headers})


def _require(answer: DavAnswer, *statuses: int) -> None:
    if answer.status == 401:
        raise DavError("The calendar's server refuses the user or the password. Nothing was changed.")
    if answer.status == 403:
        raise DavError("The calendar's server does not allow that. Nothing was changed.")
    if answer.status not in statuses:
        text = f"The calendar's server answers {answer.status}."
        raise DavError(text if answer.status >= 500 else f"{text} Nothing was changed.", unsure=answer.status >= 500)
