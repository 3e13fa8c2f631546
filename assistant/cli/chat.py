"""`assistant chat`: a conversation in this terminal, one question from a script, or a line at a time from a pipe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator

import click

from assistant.cli import attach
from assistant.cli.ask import Answer, ask, new_external_id
from assistant.cli.in_force import settings_in_force
from assistant.cli.lazy import load
from assistant.cli.lines import typed_lines, whole_input
from assistant.cli.link import Link, LinkLost
from assistant.cli.logs import log_to_stderr
from assistant.cli.plain import as_json, say_markdown, tell
from assistant.cli.slash import is_command, leaves, switched
from assistant.cli.text import typed
from assistant.core.errors import AssistantError, UsageError
from assistant.core.sessions import MAIN_SESSION, parse_session_name, session_role
from assistant.settings.settings import Settings

# A daemon that is restarted while it answers comes back, or its place is taken by this process.
_TRIES = 3


@click.command()
@click.option(
    "-m", "--message", metavar="TEXT", help="Ask this one thing and print the answer; - reads all of the input."
)
@click.option(
    "--json", "json_out", is_flag=True, help="Print the answer as JSON: reply, session, turn, model, usage, pressure."
)
@click.option("--session", default=MAIN_SESSION, show_default=True, metavar="NAME", help="The conversation to talk in.")
@click.pass_context
def chat(context: click.Context, message: str | None, json_out: bool, session: str) -> None:
    """Talk to the assistant.

    Attaches to the running daemon; without one it serves the home itself for as long as you talk. With lines on
    standard input it answers each.

    \b
    Example:
      assistant chat
      assistant chat -m "what did I say about Bergen?"
      assistant chat --session trip
      assistant chat -m - --json < letter.txt
    """
    session = parse_session_name(session)
    if session_role(session) != "owner":
        raise UsageError(f"{session!r} is not a conversation of yours. Nothing was sent.")
    settings = settings_in_force()
    log_to_stderr("error")
    if message is not None:
        text = whole_input() if message == "-" else typed(message, "The message")
        context.exit(attach.run(one_question(settings, text, session, json_out)))
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        if json_out:
            raise UsageError("--json goes with -m, or with lines on standard input.")
        context.exit(talk_here(settings, session))
    context.exit(attach.run(from_pipe(settings, session, json_out)))


def talk_here(settings: Settings, session: str) -> int:
    """A conversation in this terminal, until the person leaves or the process is told to end; the exit code."""
    try:
        attach.run(_conversation(settings, session))
    except attach.Ended as ended:
        tell(str(ended))
    return 0


async def _conversation(settings: Settings, session: str) -> None:
    talk = load("assistant.cli.talk:talk")
    async with attach.home_link(settings) as link:
        await talk(link, session, settings)


async def one_question(settings: Settings, text: str, session: str, json_out: bool) -> int:
    """One turn; the exit code. A daemon that goes away meanwhile is waited for, or this process answers itself."""
    if not text.strip():
        raise UsageError("The message is empty. Nothing was sent.")
    external_id = new_external_id()
    for _ in range(_TRIES):
        with contextlib.suppress(LinkLost):
            async with attach.home_link(settings) as link:
                return await _one(link, text, session, external_id, json_out)
        await attach.daemon_appears(settings.home)
    raise LinkLost()


async def from_pipe(settings: Settings, session: str, json_out: bool) -> int:
    async with attach.home_link(settings) as link:
        return await answer_lines(link, typed_lines(), session, json_out)


async def answer_lines(link: Link, lines: AsyncIterator[str | UsageError], session: str, json_out: bool = False) -> int:
    """Answer each line in turn. A line that fails is told and does not keep the next from being answered; the exit
    code is that of the first failure."""
    worst = 0
    async for line in lines:
        if isinstance(line, str) and leaves(line):
            break
        try:
            if isinstance(line, UsageError):
                raise line
            code = await _one(link, line, session, new_external_id(), json_out, indent=None)
            session = switched(line, session)
        except LinkLost:
            raise
        except AssistantError as error:
            tell(f"Error: {error}")
            code = error.exit_code
        worst = worst or code
    return worst


async def _one(link: Link, text: str, session: str, external_id: str, json_out: bool, *, indent: int | None = 2) -> int:
    if is_command(text):
        shown = await link.command(text.strip(), session)
        _print(Answer(shown, "", 0, session, None, None), json_out, indent)
        return 0
    answer = await ask(link, text, session, external_id, lambda answer: _print(answer, json_out, indent))
    return answer.exit_code


def _print(answer: Answer, json_out: bool, indent: int | None) -> None:
    if json_out:
        as_json(answer.as_json(), indent=indent)
    elif not answer.error:
        say_markdown(answer.reply)
    if answer.error:
        tell(f"Error: {answer.error}")
