"""Encrypts objects with a passphrase or an identity, in the age format (age-encryption.org), so that the `age` program
can decrypt them too.

age runs in a child process, `python -m assistant.archive.encryption encrypt|decrypt`, since deriving a key from a
passphrase takes a second and half a gigabyte and would block all threads of the daemon. A line with the passphrase, or
with an age identity (AGE-SECRET-KEY-1...), then the object, are passed on standard input, so that no secret is on a
command line; the result is on standard output. Exit code 1 with a line on standard error if the object cannot be read.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import pyrage

from assistant.core.errors import ArchiveUnavailable

ENCRYPTED_SUFFIX = ".age"
# Deriving a key from a passphrase takes a second, on small machines many; the rest is fast.
_SECONDS = 120.0


class AgeEncryption:
    """Encrypts and decrypts; with `key` "" data is unchanged."""

    def __init__(self, key: str) -> None:
        self._key = key.strip()

    @property
    def has_key(self) -> bool:
        return bool(self._key)

    def encrypt(self, data: bytes) -> bytes:
        """Raises `ArchiveUnavailable`."""
        return self._run("encrypt", data, "It could not be encrypted")

    def decrypt(self, data: bytes, url: str) -> bytes:
        """Decrypt an object. Raises `ArchiveUnavailable`, also without a key or with the wrong one."""
        if not self._key:
            raise ArchiveUnavailable(f"{url} is encrypted and [archive] key is not set. Nothing was changed; set it.")
        return self._run("decrypt", data, f"{url} cannot be decrypted with [archive] key")

    def _run(self, action: Literal["encrypt", "decrypt"], data: bytes, failed: str) -> bytes:
        command = (sys.executable, "-P", "-B", "-m", "assistant.archive.encryption", action)
        try:
            child = subprocess.run(
                command, input=self._key.encode() + b"\n" + data, capture_output=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ArchiveUnavailable(f"{failed}: {type(error).__name__}. Nothing was cleared.") from None
        if child.returncode:
            *_, last = child.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {child.returncode}"]
            raise ArchiveUnavailable(f"{failed}: {last[:200]}. Nothing was changed.")
        return child.stdout


IDENTITY_PREFIX = "AGE-SECRET-KEY-"


def change_with_age(secret: str, data: bytes, *, encrypts: bool) -> bytes:
    """Return the data encrypted, or decrypted. Raises one of pyrage's errors."""
    if not secret.startswith(IDENTITY_PREFIX):
        change = pyrage.passphrase.encrypt if encrypts else pyrage.passphrase.decrypt
        return bytes(change(data, secret))
    identity = pyrage.x25519.Identity.from_str(secret)
    return bytes(pyrage.encrypt(data, [identity.to_public()]) if encrypts else pyrage.decrypt(data, [identity]))


def main() -> int:
    """The child process: see the module. Returns the exit code."""
    secret, _, data = sys.stdin.buffer.read().partition(b"\n")
    try:
        changed = change_with_age(secret.decode(), data, encrypts=sys.argv[1] == "encrypt")
    except (pyrage.DecryptError, pyrage.EncryptError, pyrage.IdentityError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(changed)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
