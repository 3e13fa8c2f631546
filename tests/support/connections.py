"""Which servers this process connects to, seen by the interpreter's own audit of sockets: nothing that asks by another
library, in a thread, or by an address of its own passes it by. Child processes are not seen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_watchers: list[list[int | str]] = []
_is_hooked = False


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watchers or event not in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        return
    found: int | str | None = None
    if event == "socket.getaddrinfo":
        found = str(arguments[0]) if arguments[0] not in (None, "127.0.0.1", "localhost") else None
    elif isinstance(address := arguments[1], tuple):  # another one is a socket in the file system
        found = address[1] if address[0] in ("127.0.0.1", "localhost") else f"{address[0]}:{address[1]}"
    if found is not None:
        for connections in _watchers:
            connections.append(found)


@contextmanager
def watching_connections() -> Iterator[list[int | str]]:
    """Filled while it is open: the port of each connection on this machine, the address or name of any other."""
    global _is_hooked
    if not _is_hooked:
        sys.addaudithook(_note)  # for as long as the process lives
        _is_hooked = True
    connections: list[int | str] = []
    _watchers.append(connections)
    try:
        yield connections
    finally:
        _watchers.remove(connections)
