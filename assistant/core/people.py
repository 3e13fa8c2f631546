"""Who is known on which bridge, the codes by which people are let in, and who may do what: the one place where that is
decided, made of the settings tables `[guest]` and `[room]`. Frozen values and pure rules, and the ports of their
stores; every change in a store is one transaction, with the notice that reports it.

The owner may do everything; what another role may do is the least of what a tool or a command admits at all (its
own roles) and what the settings name. Nothing that anybody says takes part in it (I10). A code is eight characters
that nobody misreads; only a salted hash of it is kept. Times are aware and in UTC.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from assistant.core.sessions import SessionRole, session_role

PersonRole = Literal["owner", "guest"]
AccessState = Literal["allowed", "denied"]
PairingKind = Literal["knock", "link"]

# Without 0 and O, 1, I and L, and U, which is read as V: thirty characters, 39 bits in eight.
CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_LENGTH = 8
_WORK = 1 << 12
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Identity:
    """One account of a person."""

    bridge: str
    sender: str  # what the bridge's network calls it


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str
    role: PersonRole
    state: AccessState
    created_at: datetime
    identities: tuple[Identity, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownRoom:
    """A room that somebody decided on."""

    bridge: str
    room: str
    name: str
    state: AccessState
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class PairingCode:
    """A pairing code as it is kept."""

    salt: bytes
    hash: bytes

    def matches(self, typed: str) -> bool:
        """Takes the same time whatever was typed."""
        return hmac.compare_digest(self.hash, _hash_code(typed, self.salt))


@dataclass(frozen=True, slots=True)
class Pairing:
    """A code that was given out."""

    id: int
    kind: PairingKind
    bridge: str
    sender: str  # who asked; "" for a link
    room: str | None  # the room that they asked for
    target: str  # where they are answered on that bridge
    name: str
    code: PairingCode
    tries: int
    created_at: datetime
    expires_at: datetime
    locked: bool = False  # after too many wrong codes


@dataclass(frozen=True, slots=True)
class PairingOffer:
    """What is kept of a code that is given out."""

    code: PairingCode
    valid_from: datetime
    valid_until: datetime
    max_pending: int  # none is given out where so many of its kind wait


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """Somebody, or a room, that asks to be let in."""

    bridge: str
    sender: str
    room: str | None
    target: str  # where they are answered on that bridge
    name: str


def new_pairing_code(choose: Callable[[str], str], salt: bytes) -> tuple[str, PairingCode]:
    """A code and what is kept of it; `choose` picks one character of a text, `salt` is random."""
    code = "".join(choose(CODE_ALPHABET) for _ in range(CODE_LENGTH))
    return code, PairingCode(salt, _hash_code(code, salt))


def parse_pairing_code(text: str) -> str | None:
    """What a person typed as a code, without spaces and hyphens, in capitals; None where it cannot be one."""
    code = "".join(text.split()).replace("-", "").upper()
    return code if len(code) == CODE_LENGTH and all(letter in CODE_ALPHABET for letter in code) else None


def clean_display_name(name: str) -> str:
    """A name that a stranger chose, on one line, of printable characters, not too long."""
    line = "".join(letter if letter.isprintable() else " " for letter in name)
    return " ".join(line.split())[:_LONGEST_NAME].strip()


def _hash_code(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(code.encode(), salt=salt, n=_WORK, r=8, p=1, dklen=32)


OWNER_ONLY: frozenset[str] = frozenset({"owner"})
ALL_ROLES: frozenset[str] = frozenset({"owner", "guest", "room"})


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """What one role may do."""

    tools: frozenset[str]
    commands: frozenset[str]
    memory: bool
    budget_share: float  # the part of each cap (0 to 1) that all its sessions together may use


_NO_GRANT = RoleGrant(frozenset(), frozenset(), memory=False, budget_share=0.0)


@dataclass(frozen=True, slots=True)
class Permissions:
    """The grants of everybody but the owner."""

    grants: Mapping[SessionRole, RoleGrant]

    def may_use_tool(self, role: str, tool: str, admitted: Collection[str]) -> bool:
        """Whether a session of this role may use a tool that admits these roles."""
        return role in admitted and (role == "owner" or tool in self._grant(role).tools)

    def may_run_command(self, role: str, command: str, admitted: Collection[str]) -> bool:
        """Whether a session of this role may type a command (without the slash) that admits these roles."""
        return role in admitted and (role == "owner" or command in self._grant(role).commands)

    def may_learn_from(self, session: str) -> bool:
        """Whether what is said in this session is learned, for itself alone."""
        role = session_role(session)
        return role == "owner" or self._grant(role).memory

    def budget_share(self, role: str) -> float:
        """The part of each cap that all sessions of this role together may use."""
        return 1.0 if role == "owner" else self._grant(role).budget_share

    def _grant(self, role: str) -> RoleGrant:
        return next((grant for granted_role, grant in self.grants.items() if granted_role == role), _NO_GRANT)


OWNER_ONLY_PERMISSIONS = Permissions({})
"""The owner may do everything, nobody else anything."""
