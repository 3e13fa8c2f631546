"""`assistant chat`: a conversation in this terminal, one question from a script, or a line at a time from a pipe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import click

from assistant.agenda.attendance import warns_that_nothing_runs
from assistant.cli.chat.answers import (
    ask_and_wait,
    ask_last_question_again,
    is_retry,
    new_external_id,
    wait_for_answer,
)
from assistant.cli.daemon_link import wait_for_daemon
from assistant.cli.handover import HandedOver, serve_in_process
from assistant.cli.home_stores import load_effective_settings
from assistant.cli.link import Link, LinkLost
from assistant.cli.logging_setup import log_to_file
from assistant.cli.open_link import LocalLinkFactory, ProcessTerminated, open_link, run_with_signals
from assistant.cli.output import json_option, print_json, print_markdown, print_remark, require_utf8
from assistant.cli.prompts import read_all_stdin, read_stdin_lines
from assistant.cli.silence import DaemonSilent
from assistant.commands.argv import (
    LEAVE_COMMANDS,
    command_name,
    is_leave_command,
    rewrite_for_shell,
    session_after_command,
)
from assistant.commands.completion import complete_files
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, NothingYet, UsageError
from assistant.core.messages import Media
from assistant.core.sessions import MAIN_SESSION, parse_session_name, session_name, session_role
from assistant.settings.settings import Settings

# A daemon that is restarted while it answers comes back, or its place is taken by this process.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What was answered; `error` is there only where there is one."""

    reply: str
    session: str
    turn: str | None
    model: str | None  # who answered
    fallback: bool | None  # whether in place of the first model
    fallback_reason: str  # who answered then, and why
    notices: tuple[str, ...]  # what was told beside the answer: notices, reminders that came due
    usage: dict[str, float | None]  # tokens of each kind, and what they cost in dollars
    pressure: float | None  # how full the context is, from 0 to 1
    error: str


@click.command()
@click.option("-m", "--message", metavar="TEXT", help="Ask one thing and print the answer; - reads standard input.")
@click.option(
    "-f", "--file", "files", multiple=True, metavar="FILE", help="Send a file along.", shell_complete=complete_files
)
@json_option(ChatAnswer, "Print the answer as JSON, with its cost and how full the context is.")
@click.option("--session", default=MAIN_SESSION, show_default=True, metavar="NAME", help="The conversation to talk in.")
@click.pass_context
def chat(context: click.Context, message: str | None, files: tuple[str, ...], json_out: bool, session: str) -> None:
    """Talk to the assistant.

    Connects to the running assistant, or starts one for as long as you talk. With standard input that is not a
    terminal, it answers each line.

    > assistant chat
    > assistant chat -m "what did I say about Bergen?"
    > assistant chat -m "when does the notice end?" --file lease.pdf
    > assistant chat --session trip
    > assistant chat -m - --json < letter.txt
    """
    session = parse_session_name(session)
    if session_role(session) != "owner":
        raise UsageError(f"{session!r} is not a conversation of yours. Nothing was sent.")
    settings = load_effective_settings()
    log_to_file(settings.home.program_log)
    if message is not None:
        text = read_all_stdin() if message == "-" else require_utf8(message, "The message")
        context.exit(run_with_signals(one_question(settings, text, session, json_out, read_files(files, text))))
    if files:
        raise UsageError("--file needs -m; in a conversation, `/add FILE` gives it a file. Nothing was sent.")
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        if json_out:
            raise UsageError("--json needs -m, or lines on standard input.")
        context.exit(talk_here(settings, session))
    context.exit(run_with_signals(from_pipe(settings, session, json_out)))


def talk_here(settings: Settings, session: str, inside: LocalLinkFactory | None = None) -> int:
    """A conversation in this terminal, until the person leaves or the process is told to end; the exit code. `inside`
    as in `open_link`."""
    from assistant.cli.chat.dialog import run_dialog  # draws, which a pipe does without

    async def talk() -> None:
        async with open_link(settings, inside, stays=True) as link:
            await run_dialog(link, session, settings)
            print_unattended(await read_unattended(link))

    try:
        run_with_signals(talk())
    except ProcessTerminated as error:
        print_remark(str(error))
    return 0


def read_files(names: Sequence[str], text: str) -> tuple[Media, ...]:
    """The files that go with a message. Raises `UsageError`."""
    if not names:
        return ()
    if command_name(text):
        raise UsageError("A command takes no --file. Nothing was done.")
    from assistant.cli.chat.attached import read_attached  # few send one

    return read_attached(names)


async def one_question(settings: Settings, text: str, session: str, json_out: bool, files: Sequence[Media] = ()) -> int:
    """One turn; the exit code. A daemon that goes away meanwhile is waited for, or this process answers itself."""
    if not (text.strip() or files):
        raise UsageError("The message is empty. Nothing was sent.")
    if f"/{text.strip().lower()}" in LEAVE_COMMANDS:
        # There is nothing to leave, and the command says so. "bye" is answered.
        text = f"/{text.strip()}"
    external_id = new_external_id()
    for _ in range(_TRIES):
        with suppress_lost_link():
            # Whoever asks one thing leaves before anything that is loaded now could serve them.
            async with open_link(settings, partial(serve_in_process, warms=False)) as link:
                before = await read_unattended(link)
                await remark_new_conversation(link, session)
                printer = Printer(json_out)
                exit_code = await _answer(link, text, session, external_id, printer, files)
                print_unattended(await read_unattended(link), before, printer)
                return exit_code
        await wait_for_daemon(settings.home)
    raise LinkLost()


async def from_pipe(settings: Settings, session: str, json_out: bool) -> int:
    """Answer standard input line by line, and return the exit code of all. Raises `LinkLost`: lines that were accepted
    are kept."""
    async with open_link(settings) as link:
        before, printer = await read_unattended(link), Printer(json_out, indent=None)
        await remark_new_conversation(link, session)
        exit_code = await answer_lines(link, read_stdin_lines(), session, printer)
        print_unattended(await read_unattended(link), before, printer)
        return exit_code


async def remark_new_conversation(link: Link, session: str) -> None:
    """Say that a conversation of this name begins now: the name may be a misspelt one."""
    if session == MAIN_SESSION:
        return
    known = {it["session"] for it in (await link.status()).get("sessions", ())}
    if session not in known:
        print_remark(
            f"A new conversation begins: {session_name(session)}. `assistant sessions` lists those that you have."
        )


async def read_unattended(link: Link) -> str:
    """`Link.unattended`, also of a link that is lost."""
    with suppress_lost_link():
        return await link.unattended()
    return ""


@contextlib.contextmanager
def suppress_lost_link() -> Iterator[None]:
    """Suppress `LinkLost`, but not that the other end is there and does not answer: it would not answer again."""
    try:
        yield
    except DaemonSilent:
        raise
    except LinkLost:
        pass


def print_unattended(note: str, before: str = "", printer: Printer | None = None) -> None:
    """Who asks one thing is told of what waits when it is not what waited before, and no answer said so."""
    if note and note != before and not (printer and printer.warned_that_nothing_runs):
        print_remark(note)


async def answer_lines(
    link: Link, lines: AsyncIterator[str | UsageError], session: str, printer: Printer | None = None
) -> int:
    """Answer each line in turn. A line that fails is told and does not keep the next from being answered; the exit
    code is that of the first failure."""
    exit_code = 0
    printer = printer or Printer(json_out=False)
    async for line in lines:
        if isinstance(line, str) and is_leave_command(line):
            break
        try:
            if isinstance(line, UsageError):
                raise line
            code = await _answer(link, line, session, new_external_id(), printer)
            session = session_after_command(line, session)
        except LinkLost:
            raise
        except AssistantError as error:
            print_remark(str(error) if isinstance(error, NothingYet) else f"Error: {error}")
            code = error.exit_code
        exit_code = exit_code or code
    return exit_code


async def _answer(
    link: Link, text: str, session: str, external_id: str, printer: Printer, files: Sequence[Media] = ()
) -> int:
    """Print the answer, and return the exit code. A command that fails raises; as JSON, there is an object for each
    line nevertheless."""
    if command_name(text):
        from assistant.cli.named_files import run_typed_command  # only where a command was typed

        try:
            if is_retry(text):
                return await _ask_again(link, session, printer)
            printer.show(_result_without_turn(session, await run_typed_command(link, text, session)))
        except LinkLost:
            raise
        except AssistantError as error:
            printer.show_json(_result_without_turn(session, error=str(error)))
            raise
        return 0
    while True:
        # Said again to whoever took over: it was accepted once, and is answered once.
        with contextlib.suppress(HandedOver):
            result = await ask_and_wait(link, text, session, external_id, printer.show, files)
            return int(result["exit_code"])


async def _ask_again(link: Link, session: str, printer: Printer) -> int:
    text, accepted = await ask_last_question_again(link, session)
    print_remark(text)
    try:
        while True:
            with contextlib.suppress(HandedOver):
                return int((await wait_for_answer(link, session, accepted, printer.show))["exit_code"])
    except LinkLost as error:
        # The command was carried out; the caller does not say it again.
        raise AssistantError(str(error)) from error


@dataclass(slots=True)
class Printer:
    """Prints answers. Why another model answers is said with the first one, and again after the first model was back,
    unless a notice says it."""

    json_out: bool
    indent: int | None = 2
    warned_that_nothing_runs: bool = False  # an answer said that nothing will run when something is due
    _knows_fallback: bool = False

    def show(self, result: Mapping[str, Any]) -> None:
        """Print a result of `Link.result`: reply or JSON on standard output, errors and remarks on standard error."""
        self.show_json(result)
        if not (self.json_out or result["error"]):
            print_markdown(result["reply"])
        if result["error"]:
            print_remark(rewrite_for_shell(f"Error: {result['error']}"))
        elif result["fallback_reason"]:
            said = any(words in notice for words in _FALLBACK_NOTICES for notice in result["notices"])
            # What is under the answer, as of a budget that is used up, is not said beside it again.
            said |= result["fallback_reason"].partition(": ")[2].rstrip(".") in result["reply"]
            if not said and not self._knows_fallback:
                print_remark(result["fallback_reason"])
        self.warned_that_nothing_runs |= warns_that_nothing_runs(result["reply"] or "")
        # A command is answered by no model.
        if result["fallback"] is not None:
            self._knows_fallback = bool(result["fallback"])

    def show_json(self, result: Mapping[str, Any]) -> None:
        """Print the result, where JSON is asked for."""
        if self.json_out:
            print_json(answer_as_json(result), indent=self.indent)


def _result_without_turn(session: str, reply: str = "", error: str = "") -> dict[str, Any]:
    nothing = dict.fromkeys(("turn", "model", "fallback", "usage", "pressure"))
    return {"reply": reply, "error": error, "session": session, **nothing, "fallback_reason": "", "notices": ()}


# Notices that say why another model answers.
_FALLBACK_NOTICES = ("does not answer: ", "declined to answer")
_NO_USAGE: Mapping[str, Any] = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "cost_usd": None}


def answer_as_json(result: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of `chat --json`; `error` only where there is one."""
    answer = {field.name: result[field.name] for field in fields(ChatAnswer)}
    answer["usage"] = answer["usage"] or _NO_USAGE
    return answer if answer.pop("error") == "" else answer | {"error": result["error"]}
