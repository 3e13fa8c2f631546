"""What the owner is told of a delivery that may have arrived, or was refused. Pure.

What always holds: of such a notice nothing is told in turn. Of what was meant for others than the owner no words are
shown, only for whom it was.
"""

from __future__ import annotations

from assistant.core.records import Button, OutboxItem, Outgoing
from assistant.core.sessions import MAIN, OWNER_SCOPE, role_of

TERMINAL = "terminal"

_DOUBT = "uncertain:"
_REFUSAL = "refused:"
_LONGEST = 100


def doubt(item: OutboxItem) -> Outgoing | None:
    """What was the owner's is told of where it was to go, the rest at the terminals. None for a notice."""
    about = item.outgoing
    place = (about.bridge, about.target) if _is_owners(about) else (TERMINAL, MAIN)
    text = f"{_named(about)} may or may not have arrived; it was not sent twice."
    return _told(_DOUBT, item, place, text)


def refusal(item: OutboxItem, error: str) -> Outgoing | None:
    """At the terminals: where it was to go nothing may be said. None for a notice."""
    text = f"{_named(item.outgoing)} was refused by {item.outgoing.bridge}: {error.rstrip('.')}."
    return _told(_REFUSAL, item, (TERMINAL, MAIN), text)


def is_courtesy(about: Outgoing) -> bool:
    """Whether it is what the house itself says to somebody else, a stranger's code perhaps. Who will not have that is
    nothing the owner has to know: anybody can write once, and then block the assistant."""
    return about.kind == "notice" and not _is_owners(about)


def beginning(text: str) -> str:
    """On one line, and fit to stand between backticks."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _told(about: str, item: OutboxItem, place: tuple[str, str], text: str) -> Outgoing | None:
    if item.outgoing.key.startswith((_DOUBT, _REFUSAL)):
        return None
    again, drop = f"/deliveries again {item.id}", f"/deliveries drop {item.id}"
    text = f"{text} `{again}` sends it once more, `{drop}` lets it be."
    buttons = (Button("Send it again", again), Button("Let it be", drop))
    # One that was sent again may be told of again: its attempts tell the two apart.
    key = f"{about}{item.id}:{item.attempts}"
    # The words that it names are forgotten with the message.
    of = item.outgoing.message_id
    return Outgoing(key, MAIN, OWNER_SCOPE, *place, text, "notice", of, buttons=buttons)


def _named(about: Outgoing) -> str:
    if not _is_owners(about):
        return f"A message to {about.session}"
    words = beginning(about.body) or ", ".join(beginning(one.name or one.mime) for one in about.media)
    return f"A message to you (`{words}`)" if words else "A message to you"


def _is_owners(about: Outgoing) -> bool:
    return role_of(about.session) == "owner"
