"""Asking a person, at a terminal or of lines that are piped in: one question, one answer, the known value as default.

Enter takes the default, `-` skips the whole step. An answer that cannot be used is refused, and the question is asked
again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import TypeVar

import click

from assistant.cli.output import is_utf8, print_prose, print_text
from assistant.core.errors import AssistantError, UsageError

SKIP_ANSWER = "-"

T = TypeVar("T")
_asks_again: ContextVar[bool] = ContextVar("asks_again", default=True)
_NO_ALIASES: Mapping[str, str] = {}


class StepSkipped(Exception):
    """The person leaves this step out."""


@contextlib.contextmanager
def asking(*, again: bool) -> Iterator[None]:
    """Whether an answer that is refused is asked for again. Whoever gives all answers beforehand cannot give another:
    the next line would be taken for it."""
    token = _asks_again.set(again)
    try:
        yield
    finally:
        _asks_again.reset(token)


def prompt_until_valid(
    question: str, default: str, parse: Callable[[str], T], *, shown: str | None = None, secret: bool = False
) -> T:
    """What `parse` makes of the answer; an `AssistantError` of it is printed, and the question asked again. `shown` is
    printed in place of a default that is not shown itself. Raises `StepSkipped`; `click.Abort` for Ctrl-C, the end of
    the input, and what is refused where nothing is asked again (`asking`)."""
    beside = default if shown is None else shown
    while True:
        answer = _answer(f"{question} [{beside}]" if beside else question, secret).strip()
        if answer == SKIP_ANSWER:
            raise StepSkipped
        if not is_utf8(answer):
            print_prose("That is not valid UTF-8 text.")
        else:
            try:
                return parse(answer or default)
            except AssistantError as error:
                print_prose(str(error))
        if not _asks_again.get():
            raise click.Abort


def _answer(prompt: str, secret: bool) -> str:
    """A line, as it was given. Raises `click.Abort`."""
    colon = "" if prompt.endswith("?") else ":"
    if sys.stdin is not None and sys.stdin.isatty():
        typed: str = click.prompt(prompt, default="", show_default=False, hide_input=secret, prompt_suffix=f"{colon} ")
        return typed
    print_text(f"{prompt}{colon}")
    line = sys.stdin.readline() if sys.stdin is not None else ""
    if not line:
        raise click.Abort
    return line


def prompt_choice(
    question: str, choices: Mapping[str, str], default: str, aliases: Mapping[str, str] = _NO_ALIASES
) -> str:
    """One of `choices` (a word, and what it means), by its word, its number, or another name in `aliases`."""
    from_number = {str(number): word for number, word in enumerate(choices, 1)}
    for number, word in from_number.items():
        print_prose(f"  {number}  {word}: {choices[word]}")

    def parse(answer: str) -> str:
        word = from_number.get(answer) or read_choice_answer(answer, choices, aliases)
        if word is None:
            raise AssistantError(f"Answer with one of: {', '.join([*choices, *from_number])}.")
        return word

    return prompt_until_valid(question, default, parse)


YES_ANSWERS = ("y", "yeah", "yep", "sure", "ok", "okay", "please", "ja", "oui", "si", "sí")
NO_ANSWERS = ("n", "nope", "later", "nein", "non", "never", "not")


def read_choice_answer(text: str, words: Iterable[str], aliases: Mapping[str, str]) -> str | None:
    """The word that is meant: itself, another name of it, or the only one among the words of a sentence."""
    words = tuple(words)
    names = {word.casefold(): word for word in words}
    for word, others in (("yes", YES_ANSWERS), ("no", NO_ANSWERS)):
        names |= dict.fromkeys(others, word) if word in words else {}
    names |= aliases
    folded = text.casefold().strip(" .!?")
    if folded in names:
        return names[folded]
    named = {names[word] for word in re.findall(r"[\w.'’-]+", folded) if word in names}
    named |= {word for name, word in names.items() if " " in name and name in folded}
    if not named and len(folded) >= 3:
        named = {word for name, word in names.items() if name.startswith(folded)}
    return named.pop() if len(named) == 1 else None


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


async def read_next_line() -> str | None:
    """The next line of standard input, blank or not, without its end; None where there is none any more."""
    line = await _read_in_thread().get()
    return line.decode("utf-8", "replace").rstrip("\r\n") if line is not None else None


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
