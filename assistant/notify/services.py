"""Sends a text to external services (ntfy, Gotify, a desktop, e-mail, ...) with apprise, an optional dependency.

apprise is imported at first use, and runs in its own thread with a time limit, so that a hanging service blocks
nothing; addresses, which contain passwords, are in no text.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, install_hint
from assistant.core.text import shorten_line
from assistant.store.home.browser_sessions import PushAddress

SEND_SECONDS = 20.0
_LONGEST_REASON = 160
_MISSING = f"Notifications need a package that is not installed; {install_hint('notify')}."
_PIECES = re.compile(r"[^\w.~-]+")
_SHORTEST_SECRET = 6


class PushError(AssistantError):
    """A service did not accept a notification. `uncertain`: it may have."""

    def __init__(self, text: str, *, uncertain: bool = False) -> None:
        super().__init__(text)
        self.uncertain = uncertain


@dataclass(frozen=True, slots=True)
class PushService:
    """One address of `notify.urls`, or a browser (`browser`), whose `url` is that of its push service."""

    url: str
    browser: PushAddress | None = None

    @property
    def id(self) -> str:
        """Return an id that is the same for the same address, and does not reveal it."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """Return its kind, and the host if that is not secret: "ntfy", "gotify"."""
        return "browser" if self.browser else self.url.partition(":")[0].lower()[:20] or "address"


def read_services(urls: str) -> tuple[PushService, ...]:
    """Return the services of a setting, without duplicates."""
    return tuple(PushService(url) for url in dict.fromkeys(urls.split()))


def browser_services(addresses: Iterable[PushAddress]) -> tuple[PushService, ...]:
    return tuple(PushService(address.endpoint, address) for address in addresses)


async def send_push(service: PushService, title: str, body: str, seconds: float = SEND_SECONDS) -> None:
    """Raises `PushError`."""
    await in_time(service, lambda: _send(service, title, body), seconds)


async def in_time(service: PushService, work: Callable[[], None], seconds: float = SEND_SECONDS) -> None:
    """Send in a thread. Raises `PushError`."""
    try:
        await asyncio.wait_for(_in_thread(work), seconds)
    except TimeoutError:
        raise PushError(f"{service.name} did not answer within {seconds:g} s.", uncertain=True) from None


def _in_thread(work: Callable[[], None]) -> asyncio.Future[None]:
    """Run in a thread that does not delay the exit of the process."""
    done: Future[None] = Future()
    # The caller may stop waiting, but the work continues.
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            work()
        except PushError as error:
            done.set_exception(error)
        # Each of about a hundred services may raise something else.
        except Exception as error:  # noqa: BLE001
            done.set_exception(PushError(f"It could not be sent ({type(error).__name__})."))
        else:
            done.set_result(None)

    threading.Thread(target=run, name="notification", daemon=True).start()
    return asyncio.wrap_future(done)


def _send(service: PushService, title: str, body: str) -> None:
    try:
        import apprise  # slow to import, an optional dependency
    except ImportError:
        raise PushError(_MISSING) from None
    # It logs addresses with their passwords.
    logging.getLogger("apprise").propagate = False
    plugin: Any = apprise.Apprise.instantiate(service.url, suppress_exceptions=True)
    if plugin is None:
        raise PushError(f"The address of {service.name} in notify.urls is not understood, or lacks a package.")
    capture: Any = apprise.LogCapture
    with capture(level=logging.WARNING, fmt="%(message)s") as captured:
        is_sent = plugin.notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT)
        reason = captured.getvalue()
    if not is_sent:
        raise PushError(f"{service.name} did not take it: {_without_address(reason, service.url)}")


def _without_address(text: str, url: str) -> str:
    """Return the first line of an error, without any part of the address."""
    line = next(iter(text.strip().splitlines()), "") or "it gave no reason"
    line = line.replace(".,", ",")  # Apprise joins sentences
    for piece in sorted(_PIECES.split(url), key=len, reverse=True):
        if len(piece) >= _SHORTEST_SECRET:
            line = line.replace(piece, "…")
    return shorten_line(line, _LONGEST_REASON)
