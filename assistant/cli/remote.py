"""Running a slash command on whoever serves the home: the daemon, or else this process, which opens the home for it.

So what a command line changes goes one way, whether a daemon runs or not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from assistant.cli.link import InProcessLink, Link, open_link, run_with_signals
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_markdown, print_text
from assistant.cli.slash import rewrite_for_shell
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError
from assistant.service.home_lock import home_lock
from assistant.settings.settings import Settings


def run_slash_command(settings: Settings, text: str, session: str, *, begins: bool = False) -> str:
    """What the slash command `text` answers, as Markdown in the words of a shell; one that `begins` may make the home.
    Raises `UsageError` and whatever else the command does, `HomeError` where there is no home yet, `LinkLost` when the
    daemon goes away meanwhile."""
    configure_logging("error")
    try:
        told = run_with_signals(_commanded(settings, text, session, begins))
    except AssistantError as error:
        error.args = (rewrite_for_shell(str(error)), *error.args[1:])
        raise
    # JSON is what was asked for, word for word.
    return told if _is_json(text) else rewrite_for_shell(told)


def print_slash_command(settings: Settings, text: str, session: str, *, begins: bool = False) -> None:
    """Run the slash command `text` as `command` does, and print what it answers."""
    told = run_slash_command(settings, text, session, begins=begins)
    (print_text if _is_json(text) else print_markdown)(told)


def _is_json(text: str) -> bool:
    return "--json" in text.split()


async def _commanded(settings: Settings, text: str, session: str, begins: bool) -> str:
    async with open_link(settings, partial(open_home_locally, begins=begins)) as link:
        return await link.run_command(text, session)


@asynccontextmanager
async def open_home_locally(settings: Settings, *, begins: bool = True) -> AsyncIterator[Link]:
    """The home, open under its lock, without anybody answering messages or listening on its socket. Raises
    `HomeLocked` when another process has it, `HomeError` where there is none and nothing `begins` one."""
    from assistant.cli.home_stores import require_home
    from assistant.wire.app import build_app

    if not begins:
        require_home(settings)
    with home_lock(settings.home):
        app = build_app(settings, utc_now)
        try:
            app.stores.conversation.recover_after_crash(utc_now())
            yield InProcessLink(app.control, app.terminal)
        finally:
            await app.sleep.scheduler.stop()
            await app.backup_scheduler.stop()
            await app.models.aclose()
            app.close()
