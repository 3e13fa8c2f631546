"""Value types for known people and rooms, and pairing codes. Frozen and pure; each change in a store is one transaction
that includes the notice about it.

A code has eight unambiguous characters; only its salted hash is stored. Times are aware and in UTC.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from assistant.core.dataclass import dataclass

PersonRole = Literal["owner", "guest"]
AccessState = Literal["allowed", "denied"]
PairingKind = Literal["knock", "link"]

# Without 0 and O, 1, I and L, and U (looks like V): thirty characters, 39 bits in eight.
CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_LENGTH = 8
_WORK = 1 << 12
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Identity:
    """One account of a person."""

    bridge: str
    sender: str  # account name on the network


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
    """A room that the owner allowed or denied."""

    bridge: str
    room: str
    name: str
    state: AccessState
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class PairingCode:
    """A stored pairing code."""

    salt: bytes
    hash: bytes

    def matches(self, typed: str) -> bool:
        """Return whether the code is correct, in constant time."""
        return hmac.compare_digest(self.hash, _hash_code(typed, self.salt))


@dataclass(frozen=True, slots=True)
class Pairing:
    """A pending pairing code."""

    id: int
    kind: PairingKind
    bridge: str
    sender: str  # the requesting account; "" for a link
    room: str | None  # the requested room
    target: str  # where replies are sent on that bridge
    name: str
    code: PairingCode
    tries: int
    created_at: datetime
    expires_at: datetime
    locked: bool = False  # after too many wrong codes


@dataclass(frozen=True, slots=True)
class PairingOffer:
    """What is stored when a code is issued."""

    code: PairingCode
    valid_from: datetime
    valid_until: datetime
    max_pending: int  # no code is issued while this many of its kind are pending


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """A person or room that requests access."""

    bridge: str
    sender: str
    room: str | None
    target: str  # where replies are sent on that bridge
    name: str


def new_pairing_code(choose: Callable[[str], str], salt: bytes) -> tuple[str, PairingCode]:
    """Return a new code and its stored form; `choose` picks a random character of a text, `salt` is random."""
    code = "".join(choose(CODE_ALPHABET) for _ in range(CODE_LENGTH))
    return code, PairingCode(salt, _hash_code(code, salt))


def parse_pairing_code(text: str) -> str | None:
    """Normalise a typed code (no spaces or hyphens, upper case), or return None if it cannot be one."""
    code = "".join(text.split()).replace("-", "").upper()
    return code if len(code) == CODE_LENGTH and all(letter in CODE_ALPHABET for letter in code) else None


def clean_display_name(name: str) -> str:
    """Return a display name as one line of printable characters with limited length."""
    line = "".join(letter if letter.isprintable() else " " for letter in name)
    return " ".join(line.split())[:_LONGEST_NAME].strip()


def _hash_code(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(code.encode(), salt=salt, n=_WORK, r=8, p=1, dklen=32)
