"""Asking a person, at a terminal or of lines that are piped in: one question, one answer, the known value as default.

Enter takes the default, `-` skips the whole step. An answer that cannot be used is refused, and the question is asked
again.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from assistant.cli.output import is_utf8, print_remark, print_text
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


def confirm_or_report(question: str) -> bool:
    """Whether the answer is yes. After anything else it prints that nothing was changed; raises `click.Abort` for
    Ctrl-C and the end of the input."""
    try:
        yes = click.confirm(question, err=True)
    except click.Abort:
        print_remark("\nNothing was changed.")
        raise
    if not yes:
        print_remark("Nothing was changed.")
    return yes


def settings_refusal(config: Path, keys: Iterable[str], problems: Sequence[str]) -> UsageError:
    """What the settings refuse of the answers for `keys`. Of `problems` with the file `config`, the file is named only
    where the value is in it already."""
    of_answers = tuple(f"{config}: `{key}` " for key in keys)
    lines = [it.removeprefix(f"{config}: ") if it.startswith(of_answers) else it for it in problems]
    return UsageError("\n".join(lines))


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
    loop = asyncio.get_running_loop()
    raw: asyncio.Queue[bytes | None] = asyncio.Queue()
    threading.Thread(target=_read, args=(loop, raw), name="standard input", daemon=True).start()
    number = 0
    while (line := await raw.get()) is not None:
        number += 1
        if line.strip():
            yield _decoded(line, number)


async def read_next_line() -> str:
    """The next line of standard input, blank or not, without its end; "" at its end."""
    loop = asyncio.get_running_loop()
    raw: asyncio.Queue[bytes | None] = asyncio.Queue()
    threading.Thread(target=_read, args=(loop, raw), name="standard input", daemon=True).start()
    return (await raw.get() or b"").decode("utf-8", "replace").rstrip("\r\n")


def read_all_stdin() -> str:
    """Standard input to its end, as one text. Raises `UsageError` when it is not UTF-8."""
    data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    text = _decoded(data, None)
    if isinstance(text, UsageError):
        raise text
    return text


def _read(loop: asyncio.AbstractEventLoop, raw: asyncio.Queue[bytes | None]) -> None:
    rest = b""
    try:
        while chunk := os.read(0, _CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                loop.call_soon_threadsafe(raw.put_nowait, line)
        if rest:
            loop.call_soon_threadsafe(raw.put_nowait, rest)
        loop.call_soon_threadsafe(raw.put_nowait, None)
    except OSError:
        loop.call_soon_threadsafe(raw.put_nowait, None)
    except RuntimeError:
        # The loop was closed meanwhile: nobody waits for lines any more.
        return


def _decoded(data: bytes, number: int | None) -> str | UsageError:
    try:
        return data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        where = f"Line {number} of the input" if number else "The input"
        return UsageError(f"{where} is not valid UTF-8 (at byte {error.start + 1}). It was not sent.")
