"""Asking a person, at a terminal or of lines that are piped in: one question, one answer, the known value as default.

Enter takes the default, `-` skips the whole step. An answer that cannot be used is refused, and the question is asked
again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import click

from assistant.cli.output import is_utf8, print_text
from assistant.core.errors import AssistantError, UsageError

SKIP_ANSWER = "-"

T = TypeVar("T")


class StepSkipped(Exception):
    """The person leaves this step out."""


def prompt_until_valid(
    question: str, default: str, parse: Callable[[str], T], *, shown: str | None = None, secret: bool = False
) -> T:
    """What `parse` makes of the answer; an `AssistantError` of it is printed, and the question asked again. `shown` is
    printed in place of a default that is not shown itself. Raises `StepSkipped`; `click.Abort` for Ctrl-C and the end
    of the input."""
    beside = default if shown is None else shown
    while True:
        answer = _answer(f"{question} [{beside}]" if beside else question, secret).strip()
        if answer == SKIP_ANSWER:
            raise StepSkipped
        if not is_utf8(answer):
            print_text("That is not valid UTF-8 text.")
            continue
        try:
            return parse(answer or default)
        except AssistantError as error:
            print_text(str(error))


def _answer(prompt: str, secret: bool) -> str:
    """A line, as it was given. Raises `click.Abort`."""
    if sys.stdin is not None and sys.stdin.isatty():
        typed: str = click.prompt(prompt, default="", show_default=False, hide_input=secret)
        return typed
    print_text(f"{prompt}:")
    line = sys.stdin.readline() if sys.stdin is not None else ""
    if not line:
        raise click.Abort
    return line


def prompt_choice(question: str, choices: dict[str, str], default: str) -> str:
    """One of `choices` (a word, and what it means), by its word or its number."""
    from_number = {str(number): word for number, word in enumerate(choices, 1)}
    for number, word in from_number.items():
        print_text(f"  {number}  {word}: {choices[word]}")

    def parse(answer: str) -> str:
        word = from_number.get(answer, answer.casefold())
        if word not in choices:
            raise AssistantError(f"Answer with one of: {', '.join([*choices, *from_number])}.")
        return word

    return prompt_until_valid(question, default, parse)


_CHUNK = 64 * 1024


async def read_stdin_lines() -> AsyncIterator[str | UsageError]:
    """Each line of standard input that is not blank, without its end; `UsageError` stands for one that is not UTF-8.

    The thread reads the descriptor itself: one that waits in Python's own buffer would keep the process from ending."""
    lines = _read_in_thread()
    number = 0
    while (line := await lines.get()) is not None:
        number += 1
        if line.strip():
            yield _decoded(line, number)


async def read_next_line() -> str:
    """The next line of standard input, blank or not, without its end; "" at its end."""
    return (await _read_in_thread().get() or b"").decode("utf-8", "replace").rstrip("\r\n")


def read_all_stdin() -> str:
    """Standard input to its end, as one text. Raises `UsageError` when it is not UTF-8."""
    data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    text = _decoded(data, None)
    if isinstance(text, UsageError):
        raise text
    return text


def _read_in_thread() -> asyncio.Queue[bytes | None]:
    """Lines of standard input as they come, then None."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def read() -> None:
        rest = b""
        # The loop may be closed meanwhile (`RuntimeError`): nobody waits for lines any more.
        with contextlib.suppress(RuntimeError):
            with contextlib.suppress(OSError):
                while chunk := os.read(0, _CHUNK):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        loop.call_soon_threadsafe(queue.put_nowait, line)
                if rest:
                    loop.call_soon_threadsafe(queue.put_nowait, rest)
            loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    return queue


def _decoded(data: bytes, number: int | None) -> str | UsageError:
    try:
        return data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        where = f"Line {number} of the input" if number else "The input"
        return UsageError(f"{where} is not valid UTF-8 (at byte {error.start + 1}). It was not sent.")
