"""Objects enciphered with a passphrase or an identity, in the age format (age-encryption.org): anybody who has it reads
them with the `age` program, without this one.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

from assistant.core.errors import ArchiveUnavailable

SUFFIX = ".age"
# Making a key of a passphrase takes a second, on small machines many; the rest is fast.
_SECONDS = 120.0


class Sealing:
    """`key` "" seals nothing and opens nothing."""

    def __init__(self, key: str) -> None:
        self._key = key.strip()

    @property
    def has_key(self) -> bool:
        return bool(self._key)

    def sealed(self, data: bytes) -> bytes:
        """Raises `ArchiveUnavailable`."""
        return self._run("seal", data, "It could not be encrypted")

    def opened(self, data: bytes, url: str) -> bytes:
        """Raises `ArchiveUnavailable`, also where there is no key or another one."""
        if not self._key:
            raise ArchiveUnavailable(f"{url} is encrypted and [archive] key is not set. Nothing was changed; set it.")
        return self._run("open", data, f"{url} cannot be decrypted with [archive] key")

    def _run(self, way: Literal["seal", "open"], data: bytes, failed: str) -> bytes:
        command = (sys.executable, "-P", "-B", "-m", "assistant.archive.age", way)
        try:
            done = subprocess.run(
                command, input=self._key.encode() + b"\n" + data, capture_output=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ArchiveUnavailable(f"{failed}: {type(error).__name__}. Nothing was cleared.") from None
        if done.returncode:
            *_, last = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
            raise ArchiveUnavailable(f"{failed}: {last[:200]}. Nothing was changed.")
        return done.stdout
