"""Who is who: session keys, the scope of what they may see, the role they act in. Pure.

`main` is the owner's conversation over all bridges, `branch:<n>` one that goes on from a message of it, `thread:<name>`
one that the owner keeps apart (a project, a trip);
`peer:<bridge>:<id>` is another person, `room:<bridge>:<id>` a room with several. A scope is the column that every query
of words names (I10): the owner's sessions share the scope "owner", every other session is its own scope.

What a network calls a person or a room goes into a key percent-encoded, a long one as its hash, so that two of them
never share a key and none reads as a session of the owner's.
"""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Literal
from urllib.parse import quote

from assistant.core.errors import UsageError
from assistant.core.expressions import expression

SessionRole = Literal["owner", "guest", "room"]
SessionKind = Literal["main", "thread", "guest", "room"]

MAIN = "main"
BRANCH = "branch:"
THREAD = "thread:"
PEER = "peer:"
ROOM = "room:"
OWNER_SCOPE = "owner"

# A key stands in names of files, where 255 bytes have room.
_LONGEST_PART = 80
_LONGEST_THREAD = 40
_NO_NAME = expression(r"[^\w.-]")


def peer_key(bridge: str, person: str) -> str:
    """The session of another person. Raises ValueError for an empty name."""
    return f"{PEER}{encoded(bridge)}:{encoded(person)}"


def room_key(bridge: str, room: str) -> str:
    """The session of a room. Raises ValueError for an empty name."""
    return f"{ROOM}{encoded(bridge)}:{encoded(room)}"


def encoded(name: str) -> str:
    """A name as part of a key: letters, digits and `_.-%` alone; one that is long as `~` and its hash."""
    if not name:
        raise ValueError("a part of a session's key is empty")
    part = quote(name, safe="", errors="surrogatepass").replace("~", "%7E")
    return part if len(part) <= _LONGEST_PART else "~" + hashlib.sha256(part.encode()).hexdigest()


def is_on(session: str, bridge: str) -> bool:
    """Whether somebody on this bridge may see what happens in a session: the owner's are theirs everywhere."""
    if role_of(session) == "owner":
        return True
    _, _, rest = session.partition(":")
    return rest.partition(":")[0] == encoded(bridge)


def role_of(session: str) -> SessionRole:
    """The role of everybody who speaks in this session; anything unknown is a guest, never the owner. Branches are made
    by the stores alone, and of the owner's conversations only."""
    if session == MAIN or session.startswith((BRANCH, THREAD)):
        return "owner"
    return "room" if session.startswith(ROOM) else "guest"


def scope_of(session: str) -> str:
    return OWNER_SCOPE if role_of(session) == "owner" else session


def kind_of(session: str) -> SessionKind:
    """Which reset policy holds for a session. Branches are threads."""
    role = role_of(session)
    if role == "owner":
        return "main" if session == MAIN else "thread"
    return role


def session_named(name: str) -> str:
    """The key of a session as a person types it: a key as it is, any other name a thread's. Spaces become hyphens,
    large letters small ones. Raises `UsageError` for what is no name."""
    if name == MAIN or (name.startswith((BRANCH, THREAD, PEER, ROOM)) and not name.endswith(":")):
        return name if not name.startswith(THREAD) else f"{THREAD}{_thread(name.removeprefix(THREAD))}"
    return MAIN if name.strip().lower() == MAIN else f"{THREAD}{_thread(name)}"


def _thread(name: str) -> str:
    words = unicodedata.normalize("NFKC", name).lower().split()
    thread = "-".join(words)
    if not any(letter.isalnum() for letter in thread) or _NO_NAME.search(thread) or len(thread) > _LONGEST_THREAD:
        raise UsageError(
            f"{name!r} is no name for a conversation: letters, digits, hyphens and dots, {_LONGEST_THREAD} at most. "
            "Nothing was changed."
        )
    return thread
