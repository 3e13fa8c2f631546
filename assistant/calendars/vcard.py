"""Parses contacts of a vCard text (RFC 6350 and earlier versions): name, addresses, birthday.

An unreadable card is skipped and counted, without affecting others. Lines have the same format as in iCalendar. Runs
only in the child process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icalendar.parser import Contentline, Contentlines

from assistant.core.calendar_events import Contact
from assistant.core.text import lazy_regex

_ESCAPED = lazy_regex(r"\\([nN\\,;:])")
_BIRTHDAY = lazy_regex(r"(\d{4}|--)-?(\d{2})-?(\d{2})(?:T.*)?$")
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LONGEST, _MOST_OF_ONE = 200, 20


def read_contacts(text: str, source: str, url: str = "") -> tuple[list[Contact], tuple[int, ...]]:
    """Return the contacts, and the positions, from 1, of cards that could not be read. `url`: of the resource; without
    one, each card has its UID."""
    contacts: list[Contact] = []
    skipped: list[int] = []
    for number, card in enumerate(_cards(text)):
        try:
            contacts.append(_contact(card, source, url, number))
        except (ValueError, LookupError):
            skipped.append(number + 1)
    return contacts, tuple(skipped)


def _cards(text: str) -> Iterator[Sequence[Contentline]]:
    card: list[Contentline] | None = None
    for line in Contentlines.from_ical(text):  # type: ignore[no-untyped-call]
        word = line.strip().upper()
        if word == "BEGIN:VCARD":
            card = []
        elif word == "END:VCARD" and card is not None:
            yield card
            card = None
        elif card is not None and line.strip():
            card.append(line)


def _contact(card: Sequence[Contentline], source: str, url: str, number: int) -> Contact:
    values: dict[str, list[str]] = {}
    for line in card:
        name, _, value = line.parts()
        # "item1.EMAIL" is an e-mail address as well.
        values.setdefault(name.upper().rpartition(".")[2], []).append(value)
    named = _plain(values.get("FN", [""])[0]) or _name_of_parts(values.get("N", [""])[0])
    organization = _plain(values.get("ORG", [""])[0].replace(";", " "))
    emails = _several(values.get("EMAIL", []))
    if not (named or organization or emails):
        raise ValueError("nobody")
    return Contact(
        source,
        url or _plain(values.get("UID", [""])[0]) or f"card {number}",
        named or organization or emails[0],
        emails,
        _several([phone.removeprefix("tel:") for phone in values.get("TEL", [])]),
        organization,
        _birthday(values.get("BDAY", [""])[0]),
    )


def _several(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(_plain, values[:_MOST_OF_ONE])))


def _name_of_parts(value: str) -> str:
    family, given, *_ = [*value.split(";"), "", ""]
    return _plain(f"{given} {family}")


def _birthday(value: str) -> str:
    """Return "1980-02-29" or "--02-29"; "" for none, or an invalid one. Some programs use the year 1604 for an unknown
    year."""
    match = _BIRTHDAY.match(value.strip())
    if match is None or not 1 <= int(match[2]) <= 12 or not 1 <= int(match[3]) <= _MONTH_DAYS[int(match[2]) - 1]:
        return ""
    year = "-" if match[1] in ("--", "1604") else match[1]
    return f"{year}-{match[2]}-{match[3]}"


def _plain(value: str) -> str:
    text = _ESCAPED.sub(lambda match: " " if match[1] in "nN" else match[1], value)
    text = "".join(letter if letter.isprintable() else " " for letter in text[: _LONGEST * 4])
    return " ".join(text.encode("utf-8", "replace").decode().split())[:_LONGEST]
