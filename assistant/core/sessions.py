"""Session keys, the scope of what a session may see, the role it acts in; and its generations: the conversations that
follow one another under one key, how one ends and the next begins. Pure but for the two store ports at the end.

`main` is the owner's conversation over all bridges, `branch:<n>` one that continues from a message of it,
`thread:<name>` one that the owner keeps apart (a project, a trip); `import:<n>` was brought along from another program:
it has ended, nobody talks in it, and no model sees a view of it. `peer:<bridge>:<id>` is another person,
`room:<bridge>:<id>` a room with several. A scope is the column that every query of words names (I10): the owner's
sessions share the scope "owner", every other session is its own scope.

What a network calls a person or a room goes into a key percent-encoded, a long one as its hash, so that two of them
never share a key and none reads as a session of the owner's. All times are aware and in UTC.
"""

from __future__ import annotations

import hashlib
import unicodedata
from datetime import datetime
from typing import Literal
from urllib.parse import quote

from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.text import lazy_regex

SessionRole = Literal["owner", "guest", "room"]
SessionKind = Literal["main", "thread", "import", "guest", "room"]

MAIN_SESSION = "main"
BRANCH_PREFIX = "branch:"
THREAD_PREFIX = "thread:"
PEER_PREFIX = "peer:"
ROOM_PREFIX = "room:"
IMPORT_PREFIX = "import:"
OWNER_SCOPE = "owner"

# A key is in names of files, where 255 bytes have room.
_LONGEST_PART = 80
_LONGEST_THREAD = 40
_NO_NAME = lazy_regex(r"[^\w.-]")


def peer_session_key(bridge: str, person: str) -> str:
    """The session of another person. Raises ValueError for an empty name."""
    return f"{PEER_PREFIX}{encode_key_part(bridge)}:{encode_key_part(person)}"


def room_session_key(bridge: str, room: str) -> str:
    """The session of a room. Raises ValueError for an empty name."""
    return f"{ROOM_PREFIX}{encode_key_part(bridge)}:{encode_key_part(room)}"


def encode_key_part(name: str) -> str:
    """A name as part of a key: letters, digits and `_.-%` alone; one that is long as `~` and its hash."""
    if not name:
        raise ValueError("a part of a session's key is empty")
    part = quote(name, safe="", errors="surrogatepass").replace("~", "%7E")
    return part if len(part) <= _LONGEST_PART else "~" + hashlib.sha256(part.encode()).hexdigest()


def is_visible_on_bridge(session: str, bridge: str) -> bool:
    """Whether somebody on this bridge may see what happens in a session: the owner's are theirs everywhere."""
    if session_role(session) == "owner":
        return True
    _, _, rest = session.partition(":")
    return rest.partition(":")[0] == encode_key_part(bridge)


def session_role(session: str) -> SessionRole:
    """The role of everybody who speaks in this session; anything unknown is a guest, never the owner. Branches are made
    by the stores alone, and of the owner's conversations only."""
    if session == MAIN_SESSION or session.startswith((BRANCH_PREFIX, THREAD_PREFIX, IMPORT_PREFIX)):
        return "owner"
    return "room" if session.startswith(ROOM_PREFIX) else "guest"


def is_imported(session: str) -> bool:
    """Whether a conversation was brought along from another program."""
    return session.startswith(IMPORT_PREFIX)


def session_scope(session: str) -> str:
    return OWNER_SCOPE if session_role(session) == "owner" else session


def session_kind(session: str) -> SessionKind:
    """Which reset policy holds for a session. Branches are threads; what was imported has ended."""
    if is_imported(session):
        return "import"
    role = session_role(session)
    if role == "owner":
        return "main" if session == MAIN_SESSION else "thread"
    return role


def parse_session_name(name: str) -> str:
    """The key of a session as a person types it: a key as it is, any other name a thread's. Spaces become hyphens,
    large letters small ones. Raises `UsageError` for what is no name."""
    if name.strip().lower() == MAIN_SESSION:
        return MAIN_SESSION
    if name.startswith((BRANCH_PREFIX, PEER_PREFIX, ROOM_PREFIX, IMPORT_PREFIX)) and not name.endswith(":"):
        return name
    thread = name if name.endswith(":") else name.removeprefix(THREAD_PREFIX)
    return f"{THREAD_PREFIX}{_thread_name(thread)}"


def _thread_name(name: str) -> str:
    words = unicodedata.normalize("NFKC", name).lower().split()
    thread = "-".join(words)
    if not any(letter.isalnum() for letter in thread) or _NO_NAME.search(thread) or len(thread) > _LONGEST_THREAD:
        raise UsageError(
            f"A conversation cannot be named {name!r}: use letters, digits, hyphens and dots, "
            f"{_LONGEST_THREAD} at most. Nothing was changed."
        )
    return thread


EndReason = Literal["manual", "daily", "idle", "end", "resume", "import"]
"""Why a generation ended: somebody said so, it was the hour, nobody spoke, it was put away, an earlier one continues,
it was said elsewhere."""

ResetState = Literal["begun", "waiting", "archived", "done", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of a session: one conversation under its key."""

    session: str
    number: int
    scope: str
    started_at: datetime
    from_seq: int  # seq of its first record
    messages: int = 0  # how many people, the assistant and its tools said
    first_at: datetime | None = None  # when something was said first; None: not yet
    last_at: datetime | None = None  # when something was said last
    ended_at: datetime | None = None
    end_reason: str = ""
    pressure: float | None = None  # how full its context was when it ended
    resumed: int | None = None  # number of the generation that it continues from


@dataclass(frozen=True, slots=True)
class GenerationActivity:
    """When something was said in the current generation of a session."""

    session: str
    generation: int
    first_at: datetime | None  # None: not yet
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class GenerationEnd:
    """The end of a session's current generation, and the first words of the next."""

    session: str
    generation: int
    seq: int  # the last record that the archive holds: if something was written since, this ending is void
    handover_text: str  # first record of the next generation
    reason: str
    sources: tuple[int, ...] = ()  # ids of the messages that the text speaks of
    resumes: int | None = None  # the next generation begins with this generation's last view


@dataclass(frozen=True, slots=True)
class SessionReset:
    """A reset under way, or how it ended."""

    session: str
    generation: int
    scope: str
    reason: EndReason
    state: ResetState  # `waiting`: the archive could not be reached
    begun_at: datetime
    resumes: int | None = None  # number of the generation that continues
    pressure: float | None = None  # how full the context was
    attempts: int = 0
    note: str = ""  # why it waits
    retry_at: datetime | None = None  # when a waiting reset is tried again
    ended_at: datetime | None = None
