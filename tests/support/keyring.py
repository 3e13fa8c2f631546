"""A keyring in memory, through the package's own interface for backends; and the one in use set for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class InMemoryKeyring(KeyringBackend):
    """Keeps what it is given, unless it is `locked`; `forgetful` keeps nothing and says nothing. Where `unlocked` is
    cleared, it waits for somebody to type a password."""

    priority = 5  # type: ignore[assignment]

    def __init__(self, *, locked: bool = False, forgetful: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.unlocked = threading.Event()
        self.unlocked.set()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = locked
        self.forgetful = forgetful
        self.asked = 0

    def get_password(self, service: str, username: str) -> str | None:
        self._open()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()
        if not self.forgetful:
            self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._open()
        if (service, username) not in self.kept:
            raise PasswordDeleteError("not found")
        del self.kept[service, username]

    def _open(self) -> None:
        self.asked += 1
        self.unlocked.wait()
        if self.locked:
            raise KeyringLocked("locked")


class PlainTextKeyring(InMemoryKeyring):
    """One that calls itself not recommended, as those do that write plain text."""

    priority = 0.5  # type: ignore[assignment]


@contextmanager
def use_keyring(ring: KeyringBackend) -> Iterator[None]:
    """`ring` is the machine's keyring."""
    before = keyring.get_keyring()
    keyring.set_keyring(ring)
    try:
        yield
    finally:
        keyring.set_keyring(before)
