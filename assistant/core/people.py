"""Who is known on which bridge, and the codes by which people are let in. Frozen values and pure rules; every change in
a store is one transaction, with the notice that reports it.

A code is eight characters that nobody misreads; only a salted hash of it is kept. Times are aware and in UTC.
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
