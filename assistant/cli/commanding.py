"""Running a slash command on whoever serves the home: the daemon, or else this process, which opens the home for it.

So what a command line changes goes one way, whether a daemon runs or not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from assistant.cli import attach
from assistant.cli.lazy import load
from assistant.cli.link import DirectLink, Link
from assistant.cli.logs import log_to_stderr
from assistant.cli.plain import say, say_markdown
from assistant.cli.slash import in_shell
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError
from assistant.service.home_lock import home_lock
from assistant.settings.settings import Settings


def command(settings: Settings, text: str, session: str, *, begins: bool = False) -> str:
    """What the slash command `text` answers, as Markdown in the words of a shell; one that `begins` may make the home.
    Raises `UsageError` and whatever else the command does, `HomeError` where there is no home yet, `LinkLost` when the
    daemon goes away meanwhile."""
    log_to_stderr("error")
    try:
        told = attach.run(_commanded(settings, text, session, begins))
    except AssistantError as error:
        error.args = (in_shell(str(error)), *error.args[1:])
        raise
    # JSON is what was asked for, word for word.
    return told if _is_json(text) else in_shell(told)


def say_answer(settings: Settings, text: str, session: str, *, begins: bool = False) -> None:
    """Run the slash command `text` as `command` does, and print what it answers."""
    told = command(settings, text, session, begins=begins)
    (say if _is_json(text) else say_markdown)(told)


def _is_json(text: str) -> bool:
    return "--json" in text.split()


async def _commanded(settings: Settings, text: str, session: str, begins: bool) -> str:
    async with attach.home_link(settings, partial(opened_here, begins=begins)) as link:
        return await link.command(text, session)


@asynccontextmanager
async def opened_here(settings: Settings, *, begins: bool = True) -> AsyncIterator[Link]:
    """The home, open under its lock, without anybody answering messages or listening on its socket. Raises
    `HomeLocked` when another process has it, `HomeError` where there is none and nothing `begins` one."""
    if not begins:
        load("assistant.cli.stored:require_home")(settings)
    with home_lock(settings.home):
        house = load("assistant.wire.house:build")(settings, utc_now)
        try:
            house.stores.conversation.reconcile(utc_now())
            yield DirectLink(house.control, house.terminal)
        finally:
            await house.sleeping.sleeper.stop()
            await house.backing_up.stop()
            await house.close_model()
            house.close()
