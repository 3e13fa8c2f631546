"""Asks the networks of a data folder that nobody serves whether they have anything for it, for the host of a fleet.

It runs as a process of that home alone: no other has its tokens, and none reads what its networks answer. Nothing is
received or confirmed: that is done once the daemon runs.
"""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from pathlib import Path

from assistant.bridges.configured import ConfiguredBridges
from assistant.core.bridge_api import NETWORK_NAMES, Bridge, PollableBridge
from assistant.core.errors import BridgeError
from assistant.core.logger import get_logger
from assistant.core.plain_files import read_own_file
from assistant.gateway.supervisor import as_bridge_error
from assistant.settings.settings import Settings
from assistant.store.database import Database
from assistant.store.home.inventory import SCRIPT_DB
from assistant.store.script.inbox import BridgeStates
from assistant.store.script.outbox import StuckItems

log = get_logger()

_SECONDS = 10.0
# A network that cannot be reached for so many polls is left to the daemon, whose status then says so.
_MOST_FAILURES = 10
_FAILURES_FILE = "run/poll-failures"


async def has_news(settings: Settings) -> bool:
    """Return whether the daemon has something to receive, or to send where the network answers again. Raises
    `StoreError`."""
    home = settings.home.path
    if not (home / SCRIPT_DB).exists():
        return True
    with closing(Database.open_reader(home / SCRIPT_DB)) as script:
        states, unsent = BridgeStates(script), StuckItems(script).count_open_by_bridge()
        names = [name for name in NETWORK_NAMES if getattr(settings.values, name).enabled]
        positions = {name: states.load_position(name) for name in names if not states.is_paused(name)}
    configured = ConfiguredBridges(settings, None)
    answers = {name: _poll(configured.open_one(name), position) for name, position in positions.items()}
    news = dict(zip(answers, await asyncio.gather(*answers.values()), strict=True))
    lasts = _count_failure(home / _FAILURES_FILE, failed=None in news.values())
    return lasts or any(found or (found is False and name in unsent) for name, found in news.items())


async def _poll(bridge: Bridge, position: str) -> bool | None:
    """Return whether the network has anything after a position; None if that is not known."""
    if not isinstance(bridge, PollableBridge):
        return True
    try:
        with as_bridge_error(bridge.name, "It could not be asked"):
            async with asyncio.timeout(_SECONDS):
                return await bridge.has_news(position)
    except BridgeError as error:
        log.warning("a network does not say whether it has anything", bridge=bridge.name, error=str(error))
        return None
    finally:
        with suppress(BridgeError), as_bridge_error(bridge.name, "It could not be closed"):
            await bridge.aclose()


def _count_failure(file: Path, *, failed: bool) -> bool:
    """Return whether polls have failed for too long."""
    if not failed:
        file.unlink(missing_ok=True)
        return False
    count = len(read_own_file(file)) + 1 if file.exists() else 1
    file.write_bytes(b"." * (count % _MOST_FAILURES))
    return count == _MOST_FAILURES
