"""Outgoing messages at the end of a turn: one for every place that asked (I8). Pure."""

from __future__ import annotations

from typing import Any

from assistant.core.records import SCHEDULE_SENDER_PREFIX, Button, OutgoingMessage, Turn


def schedule_heading(turn: Turn) -> str:
    """Return the heading above an answer that only schedules requested, else ""."""
    senders = {item.incoming.sender for item in turn.items}
    if not senders or not all(sender.startswith(SCHEDULE_SENDER_PREFIX) for sender in senders):
        return ""
    names = sorted(sender.removeprefix(SCHEDULE_SENDER_PREFIX) for sender in senders)
    return f"Scheduled: {', '.join(names)}\n\n"


def deliveries_of_turn(turn: Turn, body: str, kind: Any, buttons: tuple[Button, ...] = ()) -> list[OutgoingMessage]:
    """Return one delivery per place that asked in this turn; the first one's key is the turn's own. A scheduled turn's
    deliveries belong to no inbox item."""
    places: dict[tuple[str, str], OutgoingMessage] = {}
    for item in turn.items:
        place = (item.incoming.bridge, item.incoming.target)
        key = f"{kind}:{turn.id}:{len(places)}" if places else f"{kind}:{turn.id}"
        inbox_id = None if schedule_heading(turn) else item.id
        message = OutgoingMessage(key, turn.session, turn.scope, *place, body, kind, inbox_id=inbox_id, buttons=buttons)
        places.setdefault(place, message)
    return list(places.values())
