"""One object enciphered or deciphered by age, in a process of its own: deriving the key takes a second in which nothing
else of a Python process runs, and a daemon has people waiting.

`python -m assistant.archive.age seal|open`: the passphrase's line, then the object, come in on the input, so that the
passphrase is on no command line; the other form goes out on the output. Exit code 1 with a line on standard error
where the object cannot be read with this passphrase.
"""

from __future__ import annotations

import sys

import pyrage


def main() -> int:
    passphrase, _, data = sys.stdin.buffer.read().partition(b"\n")
    try:
        if sys.argv[1] == "seal":
            changed = pyrage.passphrase.encrypt(data, passphrase.decode())
        else:
            changed = pyrage.passphrase.decrypt(data, passphrase.decode())
    except (pyrage.DecryptError, pyrage.EncryptError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(changed)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
