"""Notices to the owner about a delivery that may have arrived, or was refused. Pure.

There is no notice about a notice. A message for somebody else than the owner is not quoted; the notice says only for
whom it was.
"""

from __future__ import annotations

from assistant.core.records import Button, OutboxItem, OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE, session_role
from assistant.core.text import preview_line

TERMINAL_BRIDGE = "terminal"

_AMBIGUOUS = "uncertain:"
_REFUSED = "refused:"


def ambiguous_delivery_notice(item: OutboxItem) -> OutgoingMessage | None:
    """The owner's messages are reported where they were to go, all others at the terminals. None for a notice."""
    outgoing = item.outgoing
    place = (outgoing.bridge, outgoing.target) if _is_owners(outgoing) else (TERMINAL_BRIDGE, MAIN_SESSION)
    text = f"{_describe_message(outgoing)} may or may not have arrived; it was not sent twice."
    return _notice(_AMBIGUOUS, item, place, text)


def refused_delivery_notice(item: OutboxItem, error: str) -> OutgoingMessage | None:
    """At the terminals: nothing may be sent to its target. None for a notice."""
    text = f"{_describe_message(item.outgoing)} was refused by {item.outgoing.bridge}: {error.rstrip('.')}."
    return _notice(_REFUSED, item, (TERMINAL_BRIDGE, MAIN_SESSION), text)


def is_notice_to_guest(outgoing: OutgoingMessage) -> bool:
    """Whether it is a notice to somebody else, such as a stranger's code. The owner does not have to know that it was
    refused: anybody can write once, and then block the assistant."""
    return outgoing.kind == "notice" and not _is_owners(outgoing)


def _notice(prefix: str, item: OutboxItem, place: tuple[str, str], text: str) -> OutgoingMessage | None:
    if item.outgoing.key.startswith((_AMBIGUOUS, _REFUSED)):
        return None
    retry, drop = f"/deliveries again {item.id}", f"/deliveries drop {item.id}"
    text = f"{text} `{retry}` sends it once more, `{drop}` lets it be."
    buttons = (Button("Send it again", retry), Button("Let it be", drop))
    # A message that was sent again gets another notice when it fails again: `attempts` makes their keys differ.
    key = f"{prefix}{item.id}:{item.attempts}"
    # The words that it quotes are erased with the message.
    message_id = item.outgoing.message_id
    return OutgoingMessage(key, MAIN_SESSION, OWNER_SCOPE, *place, text, "notice", message_id, buttons=buttons)


def _describe_message(outgoing: OutgoingMessage) -> str:
    if not _is_owners(outgoing):
        return f"A message to {outgoing.session}"
    words = preview_line(outgoing.body) or ", ".join(preview_line(file.name or file.mime) for file in outgoing.media)
    return f"A message to you (`{words}`)" if words else "A message to you"


def _is_owners(outgoing: OutgoingMessage) -> bool:
    return session_role(outgoing.session) == "owner"
