"""Objects encrypted with a passphrase or an identity, in the age format (age-encryption.org): anybody who has it reads
them with the `age` program, without this one.

age runs in a process of its own, since making a key of a passphrase takes a second and half a gigabyte, in which
nothing else of a Python process runs, and a daemon has people waiting: `python -m assistant.archive.encryption
encrypt|decrypt`. A line with the passphrase, or with an age identity (AGE-SECRET-KEY-1...), then the object, come in on
the input, so that no secret is on a command line; the result goes out on the output. Exit code 1 with a line on
standard error where the object cannot be read with it.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import pyrage

from assistant.core.errors import ArchiveUnavailable

ENCRYPTED_SUFFIX = ".age"
# Making a key of a passphrase takes a second, on small machines many; the rest is fast.
_SECONDS = 120.0


class AgeEncryption:
    """`key` "" encrypts nothing and decrypts nothing."""

    def __init__(self, key: str) -> None:
        self._key = key.strip()

    @property
    def has_key(self) -> bool:
        return bool(self._key)

    def encrypt(self, data: bytes) -> bytes:
        """Raises `ArchiveUnavailable`."""
        return self._run("encrypt", data, "It could not be encrypted")

    def decrypt(self, data: bytes, url: str) -> bytes:
        """Raises `ArchiveUnavailable`, also where there is no key or another one."""
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
    """The data encrypted, or decrypted. Raises one of pyrage's errors."""
    if not secret.startswith(IDENTITY_PREFIX):
        change = pyrage.passphrase.encrypt if encrypts else pyrage.passphrase.decrypt
        return bytes(change(data, secret))
    identity = pyrage.x25519.Identity.from_str(secret)
    return bytes(pyrage.encrypt(data, [identity.to_public()]) if encrypts else pyrage.decrypt(data, [identity]))


def main() -> int:
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
