"""Tells the user where an apparent password, key, PIN or card number in their message is stored.

At most once per conversation; the notice never contains the value.
"""

from __future__ import annotations

from assistant.core.jobs import DeliveryTarget
from assistant.core.notices import NoticeAddress, NoticeKind, NoticePlace
from assistant.core.records import Turn, is_timed_schedule_prompt
from assistant.core.sessions import session_role
from assistant.gateway.notices import NoticeSender
from sleep.rules.secrets import find_secrets

_LOOKED_AT = 8_000  # characters searched per message


def announce_secret(turn: Turn, notices: NoticeSender) -> None:
    """Send the notice if a message of the turn contains a secret. Raises `StoreError`."""
    for item in turn.items:
        secrets = find_secrets(item.incoming.content[:_LOOKED_AT])
        if not secrets or is_timed_schedule_prompt(item.incoming):
            continue
        is_owners = session_role(turn.session) == "owner"
        kind = NoticeKind.SECRET_SAID if is_owners else NoticeKind.SECRET_SAID_FOR_OTHERS
        notice = kind.fill(f"{turn.session}:{turn.generation}", kind=secrets[0].kind)
        place = DeliveryTarget(turn.session, turn.scope, item.incoming.bridge, item.incoming.target)
        notices.send(NoticeAddress((NoticePlace(place, item.id),), turn.id), notice)
        break
