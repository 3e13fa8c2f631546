"""`assistant chat`: a conversation in this terminal, one question from a script, or a line at a time from a pipe.

The answer to one question counts as given when it stands on standard output, so its delivery is confirmed only
after `show` returned.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, fields
from typing import Any

import click

from assistant.cli.home_stores import load_effective_settings
from assistant.cli.link import (
    Link,
    LinkEvent,
    LinkLost,
    ProcessTerminated,
    open_link,
    run_with_signals,
    wait_for_daemon,
)
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import json_option, print_json, print_markdown, print_remark, require_utf8
from assistant.cli.prompts import read_all_stdin, read_stdin_lines
from assistant.commands.argv import is_leave_command, is_slash_command, session_after_command
from assistant.core.errors import AssistantError, StoreError, UsageError
from assistant.core.records import InboxReceipt
from assistant.core.sessions import MAIN_SESSION, parse_session_name, session_role
from assistant.settings.settings import Settings

# A daemon that is restarted while it answers comes back, or its place is taken by this process.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What was answered; `error` is there only where there is one."""

    reply: str
    session: str
    turn: str | None
    model: str | None
    usage: dict[str, float | None]  # tokens of each kind, and what they cost in dollars
    pressure: float | None  # how full the context is, from 0 to 1
    error: str


@click.command()
@click.option("-m", "--message", metavar="TEXT", help="Ask one thing and print the answer; - reads standard input.")
@json_option(ChatAnswer, "Print the answer as JSON, with its cost and how full the context is.")
@click.option("--session", default=MAIN_SESSION, show_default=True, metavar="NAME", help="The conversation to talk in.")
@click.pass_context
def chat(context: click.Context, message: str | None, json_out: bool, session: str) -> None:
    """Talk to the assistant.

    Connects to the running assistant, or starts one for as long as you talk. With standard input that is not a
    terminal, it answers each line.

    > assistant chat
    > assistant chat -m "what did I say about Bergen?"
    > assistant chat --session trip
    > assistant chat -m - --json < letter.txt
    """
    session = parse_session_name(session)
    if session_role(session) != "owner":
        raise UsageError(f"{session!r} is not a conversation of yours. Nothing was sent.")
    settings = load_effective_settings()
    configure_logging("error")
    if message is not None:
        text = read_all_stdin() if message == "-" else require_utf8(message, "The message")
        context.exit(run_with_signals(one_question(settings, text, session, json_out)))
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        if json_out:
            raise UsageError("--json needs -m, or lines on standard input.")
        context.exit(talk_here(settings, session))
    context.exit(run_with_signals(from_pipe(settings, session, json_out)))


def talk_here(settings: Settings, session: str) -> int:
    """A conversation in this terminal, until the person leaves or the process is told to end; the exit code."""
    from assistant.cli.chat.dialog import run_dialog  # draws, which a pipe does without

    async def talk() -> None:
        async with open_link(settings) as link:
            await run_dialog(link, session, settings)

    try:
        run_with_signals(talk())
    except ProcessTerminated as error:
        print_remark(str(error))
    return 0


async def one_question(settings: Settings, text: str, session: str, json_out: bool) -> int:
    """One turn; the exit code. A daemon that goes away meanwhile is waited for, or this process answers itself."""
    if not text.strip():
        raise UsageError("The message is empty. Nothing was sent.")
    external_id = new_external_id()
    for _ in range(_TRIES):
        with contextlib.suppress(LinkLost):
            async with open_link(settings) as link:
                return await _answer(link, text, session, external_id, json_out)
        await wait_for_daemon(settings.home)
    raise LinkLost()


async def from_pipe(settings: Settings, session: str, json_out: bool) -> int:
    async with open_link(settings) as link:
        return await answer_lines(link, read_stdin_lines(), session, json_out)


async def answer_lines(link: Link, lines: AsyncIterator[str | UsageError], session: str, json_out: bool = False) -> int:
    """Answer each line in turn. A line that fails is told and does not keep the next from being answered; the exit
    code is that of the first failure."""
    exit_code = 0
    async for line in lines:
        if isinstance(line, str) and is_leave_command(line):
            break
        try:
            if isinstance(line, UsageError):
                raise line
            code = await _answer(link, line, session, new_external_id(), json_out, indent=None)
            session = session_after_command(line, session)
        except LinkLost:
            raise
        except AssistantError as error:
            print_remark(f"Error: {error}")
            code = error.exit_code
        exit_code = exit_code or code
    return exit_code


async def _answer(
    link: Link, text: str, session: str, external_id: str, json_out: bool, *, indent: int | None = 2
) -> int:
    if is_slash_command(text):
        reply = await link.run_command(text.strip(), session)
        nothing = dict.fromkeys(("turn", "model", "usage", "pressure"))
        _print({"reply": reply, "error": "", "session": session, **nothing}, json_out, indent)
        return 0
    result = await ask_and_wait(link, text, session, external_id, lambda result: _print(result, json_out, indent))
    return int(result["exit_code"])


def _print(result: Mapping[str, Any], json_out: bool, indent: int | None) -> None:
    if json_out:
        print_json(answer_as_json(result), indent=indent)
    elif not result["error"]:
        print_markdown(result["reply"])
    if result["error"]:
        print_remark(f"Error: {result['error']}")


_ENDS = ("answered", "failed", "superseded")
_NO_USAGE: Mapping[str, Any] = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "cost_usd": None}
# The delivery follows the end of a turn at once; where another terminal's message led that turn, none comes here.
_DELIVERED_WITHIN = 2.0


def answer_as_json(result: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of `chat --json`; `error` only where there is one."""
    answer = {field.name: result[field.name] for field in fields(ChatAnswer)}
    answer["usage"] = answer["usage"] or _NO_USAGE
    return answer if answer.pop("error") == "" else answer | {"error": result["error"]}


def new_external_id() -> str:
    return str(uuid.uuid4())


async def ask_and_wait(
    link: Link, text: str, session: str, external_id: str, show: Callable[[Mapping[str, Any]], None]
) -> Mapping[str, Any]:
    """Say `text`, wait until its turn has ended, `show` what became of it (`Link.result`), then confirm its delivery.

    Cancelled, it stops the turn. Raises what a `Link` raises, and `StoreError` where the home cannot be written."""
    accepted = await link.send_message(text, external_id, session)
    try:
        async with aclosing(link.events(session, accepted.inbox_id)) as events:
            result, key = await _until_ended(link, events, accepted)
            show(result)
            with contextlib.suppress(LinkLost):
                key = key or await _late_key(events)
                if key:
                    await link.acknowledge(key)
        return result
    except asyncio.CancelledError:
        await _give_up(link, accepted)
        raise


async def _give_up(link: Link, accepted: InboxReceipt) -> None:
    """Stop the turn of this message, and of no other."""
    with contextlib.suppress(AssistantError):
        result = await link.result(accepted.inbox_id)
        if result["state"] == "running":
            await link.stop(result["session"])


async def _until_ended(
    link: Link, events: AsyncGenerator[LinkEvent], accepted: InboxReceipt
) -> tuple[Mapping[str, Any], str | None]:
    async for name, data in events:
        if name == "notice" and data.get("disk"):
            # No one here can make room: the message is kept, and the caller gets an error instead of waiting.
            raise StoreError(str(data["text"]))
        if name in ("hello", "deliver") or (name == "turn" and data["state"] != "started"):
            result = await link.result(accepted.inbox_id)
            if result["state"] in _ENDS:
                return result, str(data["key"]) if name == "deliver" else None
    raise LinkLost()


async def _late_key(events: AsyncGenerator[LinkEvent]) -> str | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DELIVERED_WITHIN):
            async for name, data in events:
                if name == "deliver":
                    return str(data["key"])
    return None
