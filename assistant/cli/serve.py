"""`assistant run` and `stop`: the daemon in the foreground, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator
from functools import partial

import click

from assistant.cli.chat.command import answer_lines, print_unattended, talk_here
from assistant.cli.handover import HandoverLink, serve_in_process, serve_when_free
from assistant.cli.home_stores import remark_missing_home
from assistant.cli.logging_setup import log_to_file, log_to_stderr
from assistant.cli.open_link import open_link, run_with_signals
from assistant.cli.output import json_result, print_remark
from assistant.cli.prompts import read_stdin_lines
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, SettingsError, UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.core.shutdown import service_manager_timeout
from assistant.service.home_lock import is_home_served, lock_holder
from assistant.service.idle_note import EXIT_NO_NEWS, IdleOptions
from assistant.service.malloc import limit_heap
from assistant.service.presence import detect_service_manager, is_service_enabled
from assistant.settings.home import home_from_environment, notify_target_from_environment
from assistant.settings.settings import Settings, load_settings, parse_settings_values

_HOW_TO_TALK = (
    "The assistant runs with {home}. Talk to it from another terminal with `assistant chat`, "
    'or ask one thing with `assistant chat -m "..."`. `assistant stop` stops it.'
)
_KEEP_OPEN = "Keep this terminal open: reminders come while it runs."
_IN_BACKGROUND = " `assistant service install` runs it in the background."
_PAGE = "The page for your browser is at {}; `assistant open` opens it, logged in."
_NOT_ON_PATH = "Here `assistant` is `{}`; `pipx install ./` puts it on your PATH."
# Input that stays silent for this long (seconds) may never come: say how to talk meanwhile.
_SILENT_AFTER = 1.0
_LOOK_EVERY = 0.05


@click.command()
@click.option("--chat", "with_chat", is_flag=True, help="Also talk in this terminal, or answer piped lines.")
@click.option("--note-idle", default=0.0, hidden=True, help="For `fleet host`: minutes until it notes that it is idle.")
@click.option("--polled", is_flag=True, hidden=True, help="For `fleet host`: bridges are polled while it does not run.")
@click.option("--if-news", is_flag=True, hidden=True, help="For `fleet host`: exit at once if no bridge has anything.")
@click.pass_context
def run(context: click.Context, with_chat: bool, note_idle: float, polled: bool, if_news: bool) -> None:
    """Run the assistant in the foreground, until Ctrl-C or `assistant stop`.

    With --chat you also talk to it: in this terminal, or with lines on standard input, which it answers, and then
    stops.

    > assistant run
    > assistant run --chat
    > echo "remember that the key is under the pot" | assistant run --chat
    """
    limit_heap()
    manager = notify_target_from_environment()
    settings = load_settings()
    hint = _HOW_TO_TALK.format(home=settings.home.path)
    if not (manager.address or manager.watchdog_seconds or is_service_enabled(settings.home.path)):
        hint = f"{hint} {_KEEP_OPEN}{_IN_BACKGROUND if detect_service_manager() else ''}"
    if not with_chat:
        log_to_stderr(settings.values.log.level)
        remark_missing_home(settings)
        if if_news and not _has_news(settings):
            context.exit(EXIT_NO_NEWS)
        idle = IdleOptions(note_idle, polled) if note_idle else None
        asyncio.run(serve_when_free(settings, partial(_say_ready, hint), manager, idle))
        return
    log_to_file(settings.home.program_log, settings.values.log.level)
    if is_home_served(settings.home.path):
        print_remark(f"Process {lock_holder(settings.home.path)} runs it already; this terminal connects to it.")
    if _talks_at_a_terminal():
        code = talk_here(settings, MAIN_SESSION, partial(serve_in_process, on_page=_print_page))
        # Told where the next command is typed: the first screen has other things to say.
        if hint := path_hint(sys.argv[0]):
            print_remark(hint)
        context.exit(code)
    context.exit(run_with_signals(_answer_or_serve(settings, hint)))


def _has_news(settings: Settings) -> bool:
    from assistant.wire.poll import has_news  # only on a host of a fleet

    return asyncio.run(has_news(settings))


def path_hint(program: str) -> str:
    """Return what to type where texts say `assistant`, if that is not on the PATH, as after `make run`; else ""."""
    if not program.endswith("/assistant") or shutil.which("assistant") is not None:
        return ""
    return _NOT_ON_PATH.format(program)


@dataclass(frozen=True, slots=True)
class StoppedProcess:
    """The process that was stopped; null where none ran."""

    process: int | None


@click.command()
@json_result(StoppedProcess)
def stop() -> StoppedProcess:
    """Stop the running assistant; returns when it has ended.

    Answers under way get `daemon.drain_seconds` to finish. Accepted messages are kept. If reminders wait, it says so.

    > assistant stop
    """
    home = home_from_environment()
    if not is_home_served(home.path):
        print_remark("The assistant is not running.")
        return StoppedProcess(None)
    holder = lock_holder(home.path)
    if holder is None:
        raise AssistantError("The assistant is just starting. Try again in a moment.")
    try:
        values = load_settings(home, ring=None).values
    except SettingsError:
        # That config.toml was edited to nonsense meanwhile keeps nobody from ending.
        values, _ = parse_settings_values(home, "")
    os.kill(holder, signal.SIGTERM)
    # One that is stopped hears the signal only once it continues.
    os.kill(holder, signal.SIGCONT)
    limit = time.monotonic() + service_manager_timeout(values.daemon.drain_seconds)
    while is_home_served(home.path):
        if time.monotonic() > limit:
            raise AssistantError(f"Process {holder} was asked to stop and still runs. Its log says why.")
        time.sleep(_LOOK_EVERY)
    print_remark(f"Stopped process {holder}.")
    from assistant.cli.status import read_status_report  # and all that it looks at

    with contextlib.suppress(AssistantError):
        print_unattended(read_status_report(home)["unattended"])
    return StoppedProcess(holder)


def _say_ready(hint: str, page_url: str) -> None:
    print_remark(hint + (f" {_PAGE.format(page_url)}" if page_url else ""))


def _print_page(url: str) -> None:
    if url:
        print_remark(_PAGE.format(url))


def _talks_at_a_terminal() -> bool:
    """A person sits at this terminal, and it is ours to read: a job in the background would be halted."""
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    with contextlib.suppress(OSError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


async def _answer_or_serve(settings: Settings, hint: str) -> int:
    """Answer the lines that were piped in; where there are none, serve until told to stop."""
    async with open_link(settings) as link:
        lines = read_stdin_lines()
        first = asyncio.ensure_future(anext(lines, None))
        silent = not (await asyncio.wait([first], timeout=_SILENT_AFTER))[0]
        if silent:
            print_remark(hint)
        line = await first
        if line is not None:
            return await answer_lines(link, _with_first(line, lines), MAIN_SESSION)
        if not silent:
            print_remark(hint)
        if isinstance(link, HandoverLink):
            # Ctrl-C and SIGTERM cancel; here that is the ordinary end.
            with contextlib.suppress(asyncio.CancelledError):
                await link.handed_over.wait()
    return 0


async def _with_first(
    first: str | UsageError, rest: AsyncIterator[str | UsageError]
) -> AsyncIterator[str | UsageError]:
    yield first
    async for line in rest:
        yield line
