"""One object enciphered or deciphered by age, in a process of its own: making a key of a passphrase takes a second and
half a gigabyte, in which nothing else of a Python process runs, and a daemon has people waiting.

`python -m assistant.archive.age seal|open`: a line with the passphrase, or with an age identity (AGE-SECRET-KEY-1...),
then the object, come in on the input, so that no secret is on a command line; the other form goes out on the output.
Exit code 1 with a line on standard error where the object cannot be read with it.
"""

from __future__ import annotations

import sys

import pyrage

IDENTITY = "AGE-SECRET-KEY-"


def sealed(secret: str, data: bytes) -> bytes:
    """Raises one of pyrage's errors."""
    if secret.startswith(IDENTITY):
        done: bytes = pyrage.encrypt(data, [pyrage.x25519.Identity.from_str(secret).to_public()])
    else:
        done = pyrage.passphrase.encrypt(data, secret)
    return done


def opened(secret: str, data: bytes) -> bytes:
    """Raises one of pyrage's errors."""
    if secret.startswith(IDENTITY):
        done: bytes = pyrage.decrypt(data, [pyrage.x25519.Identity.from_str(secret)])
    else:
        done = pyrage.passphrase.decrypt(data, secret)
    return done


def main() -> int:
    secret, _, data = sys.stdin.buffer.read().partition(b"\n")
    change = sealed if sys.argv[1] == "seal" else opened
    try:
        done = change(secret.decode(), data)
    except (pyrage.DecryptError, pyrage.EncryptError, pyrage.IdentityError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(done)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
