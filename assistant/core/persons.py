"""Who is known, on which bridge, and the codes by which people are let in. Frozen values, and the pure rules of codes.

A code is eight characters that nobody misreads; what is kept of it is a salted hash. Times are aware and in UTC.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

PersonRole = Literal["owner", "guest"]
Standing = Literal["allowed", "denied"]
PairingKind = Literal["knock", "link"]

# Without 0 and O, 1, I and L, and U, which is read as V: thirty characters, 39 bits in eight.
ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_LENGTH = 8
_WORK = 1 << 12
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Identity:
    """One account of a person: `sender` is what the bridge's network calls it."""

    bridge: str
    sender: str


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str
    role: PersonRole
    state: Standing
    created_at: datetime
    identities: tuple[Identity, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownRoom:
    """A room that somebody decided on."""

    bridge: str
    room: str
    name: str
    state: Standing
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class Code:
    """A pairing code as it is kept."""

    salt: bytes
    hash: bytes

    def fits(self, typed: str) -> bool:
        """Takes the same time whatever was typed."""
        return hmac.compare_digest(self.hash, _hashed(typed, self.salt))


@dataclass(frozen=True, slots=True)
class Pairing:
    """A code that was given out. `sender` and `name` are who knocked ("" for a link), `room` the room that they knocked
    for; `locked` after too many wrong codes."""

    id: int
    kind: PairingKind
    bridge: str
    sender: str
    room: str | None
    target: str
    name: str
    code: Code
    tries: int
    created_at: datetime
    expires_at: datetime
    locked: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """What is kept of a code that is given out, where fewer than `most` of its kind wait; it holds from `at` to
    `until`."""

    code: Code
    at: datetime
    until: datetime
    most: int


@dataclass(frozen=True, slots=True)
class Knock:
    """Somebody, or a room, that asks to be let in. `target` is where they are answered on that bridge."""

    bridge: str
    sender: str
    room: str | None
    target: str
    name: str


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A command that was typed on a bridge and is not answered yet. `begun`: whether it may have taken effect."""

    id: int
    bridge: str
    external_id: str
    session: str
    scope: str
    sender: str
    target: str
    text: str
    begun: bool


def new_code(choose: Callable[[str], str], salt: bytes) -> tuple[str, Code]:
    """A code and what is kept of it; `choose` picks one character of a text, `salt` is random."""
    code = "".join(choose(ALPHABET) for _ in range(CODE_LENGTH))
    return code, Code(salt, _hashed(code, salt))


def typed_code(text: str) -> str | None:
    """What a person typed as a code, without spaces and hyphens, in capitals; None where it cannot be one."""
    code = "".join(text.split()).replace("-", "").upper()
    return code if len(code) == CODE_LENGTH and all(letter in ALPHABET for letter in code) else None


def shown_name(name: str) -> str:
    """A name that a stranger chose, on one line, of printable characters, not too long."""
    line = "".join(letter if letter.isprintable() else " " for letter in name)
    return " ".join(line.split())[:_LONGEST_NAME].strip()


def _hashed(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(code.encode(), salt=salt, n=_WORK, r=8, p=1, dklen=32)
