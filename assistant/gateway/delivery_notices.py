"""Notices to the owner about a delivery that may have arrived, or was refused. Pure.

There is no notice about a notice. Of a message that was meant for others than the owner no words are shown, only
for whom it was.
"""

from __future__ import annotations

from assistant.core.records import Button, OutboxItem, OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE, session_role
from assistant.core.text import preview_line

TERMINAL_BRIDGE = "terminal"

_DOUBT = "uncertain:"
_REFUSAL = "refused:"


def ambiguous_delivery_notice(item: OutboxItem) -> OutgoingMessage | None:
    """What was the owner's is told of where it was to go, the rest at the terminals. None for a notice."""
    about = item.outgoing
    place = (about.bridge, about.target) if _is_owners(about) else (TERMINAL_BRIDGE, MAIN_SESSION)
    text = f"{_describe_message(about)} may or may not have arrived; it was not sent twice."
    return _notice(_DOUBT, item, place, text)


def refused_delivery_notice(item: OutboxItem, error: str) -> OutgoingMessage | None:
    """At the terminals: where it was to go nothing may be said. None for a notice."""
    text = f"{_describe_message(item.outgoing)} was refused by {item.outgoing.bridge}: {error.rstrip('.')}."
    return _notice(_REFUSAL, item, (TERMINAL_BRIDGE, MAIN_SESSION), text)


def is_notice_to_guest(about: OutgoingMessage) -> bool:
    """Whether it is what the app itself says to somebody else, a stranger's code perhaps. Who will not have that is
    nothing the owner has to know: anybody can write once, and then block the assistant."""
    return about.kind == "notice" and not _is_owners(about)


def _notice(about: str, item: OutboxItem, place: tuple[str, str], text: str) -> OutgoingMessage | None:
    if item.outgoing.key.startswith((_DOUBT, _REFUSAL)):
        return None
    again, drop = f"/deliveries again {item.id}", f"/deliveries drop {item.id}"
    text = f"{text} `{again}` sends it once more, `{drop}` lets it be."
    buttons = (Button("Send it again", again), Button("Let it be", drop))
    # One that was sent again may be told of again: its attempts tell the two apart.
    key = f"{about}{item.id}:{item.attempts}"
    # The words that it names are forgotten with the message.
    of = item.outgoing.message_id
    return OutgoingMessage(key, MAIN_SESSION, OWNER_SCOPE, *place, text, "notice", of, buttons=buttons)


def _describe_message(about: OutgoingMessage) -> str:
    if not _is_owners(about):
        return f"A message to {about.session}"
    words = preview_line(about.body) or ", ".join(preview_line(one.name or one.mime) for one in about.media)
    return f"A message to you (`{words}`)" if words else "A message to you"


def _is_owners(about: OutgoingMessage) -> bool:
    return session_role(about.session) == "owner"
