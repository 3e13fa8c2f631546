"""Session keys, scopes and roles, and the generations of a session: the consecutive conversations under one key, and
how one ends and the next begins. Pure, except for the two store ports at the end.

`main` is the owner's conversation on all bridges, `branch:<n>` a branch from one of its messages, `thread:<name>` a
separate conversation of the owner (a project, a trip); `import:<n>` was imported from another program: it has ended, is
read-only, and has no view. `peer:<bridge>:<id>` is another person, `room:<bridge>:<id>` a group chat. A scope is the
column that every query of text filters by (I10): the owner's sessions share the scope "owner", every other session is
its own scope.

Network ids of people and rooms are percent-encoded in keys, long ones hashed, so that keys never collide and none looks
like an owner session. All times are aware and in UTC.
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
# Said where a command is about the main conversation, which has not begun.
NOTHING_SAID = "Nothing was said yet. Begin with `assistant chat`."
BRANCH_PREFIX = "branch:"
THREAD_PREFIX = "thread:"
PEER_PREFIX = "peer:"
ROOM_PREFIX = "room:"
IMPORT_PREFIX = "import:"
OWNER_SCOPE = "owner"

# Keys are used in file names, which are limited to 255 bytes.
_LONGEST_PART = 80
_LONGEST_THREAD = 40
_NO_NAME = lazy_regex(r"[^\w.-]")


def peer_session_key(bridge: str, person: str) -> str:
    """Return the session key of another person. Raises `UsageError` for an empty name."""
    return f"{PEER_PREFIX}{encode_key_part(bridge)}:{encode_key_part(person)}"


def room_session_key(bridge: str, room: str) -> str:
    """Return the session key of a room. Raises `UsageError` for an empty name."""
    return f"{ROOM_PREFIX}{encode_key_part(bridge)}:{encode_key_part(room)}"


def encode_key_part(name: str) -> str:
    """Encode a name for a key, using only letters, digits and `_.-%`; a long one becomes `~` plus its hash."""
    if not name:
        raise UsageError("The name of a bridge, a person or a room is empty. Nothing was changed.")
    part = quote(name, safe="", errors="surrogatepass").replace("~", "%7E")
    return part if len(part) <= _LONGEST_PART else "~" + hashlib.sha256(part.encode()).hexdigest()


def is_visible_on_bridge(session: str, bridge: str) -> bool:
    """Return whether users of a bridge may see events of a session. The owner's sessions are visible on all bridges."""
    if session_role(session) == "owner":
        return True
    _, _, rest = session.partition(":")
    return rest.partition(":")[0] == encode_key_part(bridge)


def session_role(session: str) -> SessionRole:
    """Return the role of a session; an unknown kind is a guest, never the owner. Only the stores create branches, and
    only of owner sessions."""
    if session == MAIN_SESSION or session.startswith((BRANCH_PREFIX, THREAD_PREFIX, IMPORT_PREFIX)):
        return "owner"
    return "room" if session.startswith(ROOM_PREFIX) else "guest"


def is_imported(session: str) -> bool:
    """Return whether a session was imported from another program."""
    return session.startswith(IMPORT_PREFIX)


def session_scope(session: str) -> str:
    """Return the scope of what is said there: the owner's sessions share one, any other session is its own."""
    return OWNER_SCOPE if session_role(session) == "owner" else session


def session_kind(session: str) -> SessionKind:
    """Return the kind of a session, which selects its reset policy. Branches count as threads."""
    if is_imported(session):
        return "import"
    role = session_role(session)
    if role == "owner":
        return "main" if session == MAIN_SESSION else "thread"
    return role


def parse_session_name(name: str) -> str:
    """Return the key for a session name as typed: a key unchanged, any other name as a thread, with spaces as hyphens
    and in lower case. Raises `UsageError` for an invalid name."""
    if name.strip().lower() == MAIN_SESSION:
        return MAIN_SESSION
    if name.startswith((BRANCH_PREFIX, PEER_PREFIX, ROOM_PREFIX, IMPORT_PREFIX)) and not name.endswith(":"):
        return name
    thread = name if name.endswith(":") else name.removeprefix(THREAD_PREFIX)
    return f"{THREAD_PREFIX}{_thread_name(thread)}"


def session_name(key: str) -> str:
    """Return the key as people type it: a thread by its name alone."""
    return key.removeprefix(THREAD_PREFIX)


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
"""Why a generation ended: by command, at the daily hour, after inactivity, ended for good, replaced by a resumed one,
or imported."""

ResetState = Literal["begun", "waiting", "archived", "done", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of a session: one conversation under its key."""

    session: str
    number: int
    scope: str
    started_at: datetime
    from_seq: int  # seq of its first record
    messages: int = 0  # messages by people, the assistant and tools
    first_at: datetime | None = None  # time of the first message, None if there is none
    last_at: datetime | None = None  # time of the last message
    ended_at: datetime | None = None
    end_reason: str = ""
    pressure: float | None = None  # context pressure when it ended
    resumed: int | None = None  # number of the generation it resumes


@dataclass(frozen=True, slots=True)
class GenerationActivity:
    """First and last message times of a session's current generation."""

    session: str
    generation: int
    first_at: datetime | None  # None if there is none
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class GenerationEnd:
    """The end of a session's current generation, and the handover to the next."""

    session: str
    generation: int
    seq: int  # last archived record; if newer ones exist, this ending is void
    handover_text: str  # first record of the next generation
    reason: str
    sources: tuple[int, ...] = ()  # ids of the messages it is based on
    resumes: int | None = None  # the next generation starts with the last view of this one


@dataclass(frozen=True, slots=True)
class SessionReset:
    """A reset in progress or completed."""

    session: str
    generation: int
    scope: str
    reason: EndReason
    state: ResetState  # `waiting`: the archive was unreachable
    begun_at: datetime
    resumes: int | None = None  # number of the generation to resume
    pressure: float | None = None  # context pressure
    attempts: int = 0
    note: str = ""  # why it is waiting
    retry_at: datetime | None = None  # next retry of a waiting reset
    ended_at: datetime | None = None
