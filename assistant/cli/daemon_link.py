"""The link to the daemon that serves a data folder, and the waiting for it where it is still starting."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from assistant.cli.link import Link
from assistant.cli.output import print_remark
from assistant.service.home_lock import is_home_claimed, is_home_served, is_listening
from assistant.settings.home import Home

_STARTS_WITHIN = 15.0
_LOOK_EVERY = 0.05


def open_daemon_link(home: Home, tell: Callable[[str], None] = print_remark) -> AbstractAsyncContextManager[Link]:
    """The link over the home's socket. `tell` shows a line to whoever waits for a process that does not answer."""
    from assistant.cli.client import open_socket_link  # an HTTP client, which the serving process never needs

    return open_socket_link(home.socket, tell)


async def wait_for_daemon(home: Home) -> bool:
    """Wait for the socket of the process that holds the home's lock, or is next to; False when there is none, or it
    takes too long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_STARTS_WITHIN):
            while is_home_served(home.path) or is_home_claimed(home.path):
                if is_listening(home.socket):
                    return True
                await asyncio.sleep(_LOOK_EVERY)
    return False
