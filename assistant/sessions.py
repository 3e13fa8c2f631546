"""Who is who: session keys, the scope of what they may see, the role they act in. Pure.

`main` is the owner's conversation over all bridges, `branch:<n>` one that goes on from a message of it, `thread:<name>`
one that the owner keeps apart (a project, a trip);
`peer:<bridge>:<id>` is another person, `room:<bridge>:<id>` a room with several. A scope is the column that every query
of words names (I10): the owner's sessions share the scope "owner", every other session is its own scope.
"""

from __future__ import annotations

from typing import Literal

SessionRole = Literal["owner", "guest", "room"]

MAIN = "main"
BRANCH = "branch:"
THREAD = "thread:"
OWNER_SCOPE = "owner"


def peer_key(bridge: str, person: str) -> str:
    return f"peer:{bridge}:{person}"


def role_of(session: str) -> SessionRole:
    """The role of everybody who speaks in this session; anything unknown is a guest, never the owner. Branches are made
    by the stores alone, and of the owner's conversations only."""
    if session == MAIN or session.startswith((BRANCH, THREAD)):
        return "owner"
    return "room" if session.startswith("room:") else "guest"


def scope_of(session: str) -> str:
    return OWNER_SCOPE if role_of(session) == "owner" else session
