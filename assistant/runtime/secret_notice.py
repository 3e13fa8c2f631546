"""Tells the user where an apparent password, key, PIN or card number in their message is stored.

At most once per conversation; the notice never contains the value.
"""

from __future__ import annotations

from assistant.core.jobs import DeliveryTarget
from assistant.core.notices import NoticeAddress, NoticeKind, NoticePlace
from assistant.core.records import Turn, is_timed_schedule_prompt
from assistant.core.sessions import session_role
from assistant.gateway.notices import NoticeSender
from sleep.rules.secrets import Secret, find_secrets

_LOOKED_AT = 8_000  # characters searched per message


def announce_secret(turn: Turn, notices: NoticeSender) -> None:
    """Send the notice if a message of the turn contains a secret. Raises `StoreError`."""
    for item in turn.items:
        secrets = find_message_secrets(item.incoming.content)
        if not secrets or is_timed_schedule_prompt(item.incoming):
            continue
        is_owners = session_role(turn.session) == "owner"
        kind = NoticeKind.SECRET_SAID if is_owners else NoticeKind.SECRET_SAID_FOR_OTHERS
        notice = kind.fill(f"{turn.session}:{turn.generation}", kind=secrets[0].kind)
        place = DeliveryTarget(turn.session, turn.scope, item.incoming.bridge, item.incoming.target)
        notices.send(NoticeAddress((NoticePlace(place, item.id),), turn.id), notice)
        break


def find_message_secrets(text: str) -> list[Secret]:
    """Return what looks secret in the beginning of a message; that there is nothing is remembered."""
    return find_secrets(text[:_LOOKED_AT])
