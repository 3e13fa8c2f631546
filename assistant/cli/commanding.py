"""Running a slash command on whoever serves the home: the daemon, or else this process, which opens the home for it.

So what a command line changes goes one way, whether a daemon runs or not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from assistant import daemon
from assistant.cli import attach
from assistant.cli.link import DirectLink, Link
from assistant.cli.logs import log_to_stderr
from assistant.cli.stored import require_home
from assistant.settings import Settings
from assistant.wire.house import build


def command(settings: Settings, text: str, session: str, *, begins: bool = False) -> str:
    """What the slash command `text` answers, as Markdown; one that `begins` may make the home. Raises `UsageError` and
    whatever else the command does, `HomeError` where there is no home yet, `LinkLost` when the daemon goes away
    meanwhile."""
    if not begins:
        require_home(settings)
    log_to_stderr("error")
    return attach.run(_commanded(settings, text, session))


async def _commanded(settings: Settings, text: str, session: str) -> str:
    async with attach.home_link(settings, opened_here) as link:
        return await link.command(text, session)


@asynccontextmanager
async def opened_here(settings: Settings) -> AsyncIterator[Link]:
    """The home, open under its lock, without anybody answering messages or listening on its socket. Raises
    `HomeLocked` when another process has it."""
    with daemon.home_lock(settings.home):
        house = build(settings, daemon.utc_now)
        try:
            house.stores.conversation.reconcile(daemon.utc_now())
            yield DirectLink(house.control, house.terminal)
        finally:
            await house.sleeping.sleeper.stop()
            await house.backing_up.stop()
            await house.close_model()
            house.close()
