"""People and rooms as the owner reads them: lines of Markdown, and plain JSON. Pure.

What always holds: a code that somebody waits with is never shown; names that strangers chose stay on their line.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from assistant.core.people import AccessRequest, KnownRoom, Pairing, Person
from assistant.core.records import Button


def people_lines(people: Sequence[Person], waiting: Sequence[Pairing], zone: tzinfo) -> list[str]:
    lines = [_person_line(person) for person in people]
    lines = lines or ["You are the only person so far. `/people link BRIDGE` links your account on a bridge."]
    if waiting:
        lines += ["", "Waiting for approval; ask them for their code, then `/pair CODE`, or `/pair allow NUMBER`:"]
        lines += [
            f"- {request.id}: {_who(request)}, since {_local(request.created_at, zone)}{_lock(request)}"
            for request in waiting
        ]
    return lines


def room_lines(rooms: Sequence[KnownRoom], zone: tzinfo) -> list[str]:
    lines = [
        f"- {strip_markdown(room.name) or '(no name)'}: {_verbatim(room.room)} on {room.bridge}, {room.state} since "
        f"{_local(room.decided_at, zone)}"
        for room in rooms
    ]
    return lines or ["No room is known. `/people allow room BRIDGE ID` approves one."]


def people_json(people: Sequence[Person], waiting: Sequence[Pairing]) -> dict[str, Any]:
    return {
        "people": [
            {
                "id": person.id,
                "name": person.name,
                "role": person.role,
                "state": person.state,
                "since": person.created_at.isoformat(),
                "identities": [{"bridge": one.bridge, "id": one.sender} for one in person.identities],
            }
            for person in people
        ],
        "waiting": [
            {
                "bridge": one.bridge,
                "id": one.sender,
                "room": one.room,
                "name": one.name,
                "since": one.created_at.isoformat(),
                "until": one.expires_at.isoformat(),
                "locked": one.locked,
            }
            for one in waiting
        ],
    }


def rooms_json(rooms: Sequence[KnownRoom]) -> list[dict[str, Any]]:
    return [
        {
            "bridge": room.bridge,
            "room": room.room,
            "name": room.name,
            "state": room.state,
            "since": room.decided_at.isoformat(),
        }
        for room in rooms
    ]


def strip_markdown(text: str) -> str:
    """Words of somebody else's on one line, without what would format it."""
    return "".join(" " if not letter.isprintable() or letter in "`*_[]<>|" else letter for letter in text).strip()


def _verbatim(name: str) -> str:
    """A name as a network has it, as Markdown that is shown as it is."""
    return "`" + "".join("?" if letter == "`" or not letter.isprintable() else letter for letter in name) + "`"


def _person_line(person: Person) -> str:
    accounts = (
        ", ".join(f"{_verbatim(identity.sender)} on {identity.bridge}" for identity in person.identities)
        or "no account"
    )
    denied = ", denied" if person.state == "denied" else ""
    return f"- #{person.id} {strip_markdown(person.name)} ({person.role}{denied}): {accounts}"


def access_request_notice(
    pairing: int, who: AccessRequest, until: datetime, zone: tzinfo
) -> tuple[str, tuple[Button, ...]]:
    """What the owner is asked about somebody who knocked, and what they may press."""
    allow, deny = f"/pair allow {pairing}", f"/pair deny {pairing}"
    body = (
        f"{_who(who)} asks to talk to me. They chose the name; the account is verified by the network. `{allow}` "
        f"approves them as a guest, until {until.astimezone(zone):%H:%M}; `{deny}` stops all answers to them."
    )
    return body[0].upper() + body[1:], (Button("Approve", allow), Button("Deny", deny))


def _who(pairing: Pairing | AccessRequest) -> str:
    name = strip_markdown(pairing.name)
    if pairing.room is not None:
        return f"the room {name or '(no name)'}, {_verbatim(pairing.room)} on {pairing.bridge}"
    return f"{name or '(no name)'}, {_verbatim(pairing.sender)} on {pairing.bridge}"


def _lock(pairing: Pairing) -> str:
    return " (locked after wrong codes)" if pairing.locked else ""


def _local(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"
