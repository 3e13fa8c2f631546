"""The keyring of the operating system, through the package `keyring`.

The package is optional, and imported when a secret is first stored there or read. A keyring may ask a person to unlock
it, for as long as it likes: it is waited for only so long, so that a daemon that starts at night starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assistant.core.errors import SecretsUnavailable

_SERVICE = "nocturne-assistant"
# Below this, keyrings call themselves not recommended: files in plain text, and the one that refuses everything.
_LEAST_PRIORITY = 1


@dataclass(frozen=True, slots=True)
class SystemKeyring:
    """Secrets by account. Every method raises `SecretsUnavailable`, with a reason in one line that does not repeat the
    secret."""

    read_seconds: float = 10.0
    write_seconds: float = 120.0  # a person who stores a secret may have to type a password first

    def read(self, account: str) -> str | None:
        value: str | None = _call_keyring(lambda ring: ring.get_password(_SERVICE, account), self.read_seconds)
        return value

    def write(self, account: str, value: str) -> None:
        """Verified by reading it back."""
        _call_keyring(lambda ring: ring.set_password(_SERVICE, account, value), self.write_seconds)
        if self.read(account) != value:
            raise SecretsUnavailable("The keyring did not keep what it was given.")

    def remove(self, account: str) -> None:
        if self.read(account) is not None:
            _call_keyring(lambda ring: ring.delete_password(_SERVICE, account), self.write_seconds)


def _call_keyring(work: Callable[[Any], Any], seconds: float) -> Any:
    """What `work` returns, given the keyring. A thread of its own asks, which nobody waits for at the end."""
    answers: list[Any] = []
    reasons: list[str] = []

    def ask() -> None:
        try:
            answers.append(work(_backend()))
        except SecretsUnavailable as error:
            reasons.append(str(error))
        except (_errors(), OSError, RuntimeError) as error:
            reasons.append(f"The keyring refused ({type(error).__name__}).")

    thread = threading.Thread(target=ask, name="keyring", daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        raise SecretsUnavailable(reasons[0] if reasons else "The keyring does not answer.")
    return answers[0]


def _backend() -> Any:
    try:
        import keyring  # an extra
    except ImportError:
        raise SecretsUnavailable("The package `keyring` is not installed.") from None
    backend = keyring.get_keyring()
    if backend.priority < _LEAST_PRIORITY:
        raise SecretsUnavailable("There is no keyring on this machine.")
    return backend


def _errors() -> type[Exception]:
    """What every keyring raises; asked for only after one was asked, which imported it."""
    try:
        from keyring.errors import KeyringError
    except ImportError:
        return OSError
    return KeyringError
