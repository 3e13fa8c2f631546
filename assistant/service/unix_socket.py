"""Addresses of Unix sockets. The kernel's sockaddr_un is short (104 bytes on macOS, 108 on Linux, the closing NUL
included) and a home may lie deep: a longer path is reached through a link in a private temporary directory."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 103
# What `short_address` adds to the temporary directory's own name.
_LINK_LENGTH = 50


@contextmanager
def short_address(path: Path) -> Iterator[str]:
    """An address that reaches `path` for as long as the context is open: to bind, or to connect."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="nocturne-", dir=_short_temporary()) as folder:
        link = Path(folder) / "run"
        link.symlink_to(path.parent, target_is_directory=True)
        yield str(link / path.name)


def is_listening(path: Path) -> bool:
    """Whether a living process listens at `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, short_address(path) as address:
        probe.setblocking(False)
        try:
            probe.connect(address)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def _short_temporary() -> str:
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) + _LINK_LENGTH <= _LONGEST else "/tmp"
