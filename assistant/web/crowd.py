"""Who is connected over TCP, and who goes where there are too many.

What always holds: a connection counts from the moment it is accepted, before a word of TLS or HTTP, and each holds one
of the files that the daemon may have open: without a limit, silent ones would take those of the stores too (F42). Who
has shown the token stays; of the others, whoever has been there longest makes room for who comes, so that a crowd that
says nothing keeps nobody out.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

# Host and port of who is connected, as ASGI has them.
Address = tuple[str, int]


class Crowd:
    """`most` who are known, and one who may become so."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Longest there first.
        self._there: dict[Address, socket.socket] = {}
        self._known: set[Address] = set()

    def comes(self, connection: socket.socket, address: Address) -> None:
        """One more is there; whoever has to go for that is on the way."""
        self._forget_gone()
        if len(self._there) > self._most:
            self._one_goes()
        self._there[address] = connection

    def lets_in(self, address: Address) -> bool:
        """Who is connected from there has shown the token; False where as many have as may be connected."""
        self._forget_gone()
        if address not in self._known and len(self._known) >= self._most:
            return False
        self._known.add(address)
        return True

    def _forget_gone(self) -> None:
        self._there = {address: one for address, one in self._there.items() if one.fileno() != -1}
        self._known &= self._there.keys()

    def _one_goes(self) -> None:
        address = next(one for one in self._there if one not in self._known)
        # Whoever serves it sees its end, and closes it.
        with contextlib.suppress(OSError):
            self._there.pop(address).shutdown(socket.SHUT_RDWR)


class Entrance(socket.socket):
    """A listening socket as `listening`, where the crowd is told of each who comes."""

    def __init__(self, listening: socket.socket, crowd: Crowd) -> None:
        super().__init__(fileno=os.dup(listening.fileno()))
        self._crowd = crowd

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        self._crowd.comes(connection, (str(address[0]), int(address[1])))
        return connection, address
