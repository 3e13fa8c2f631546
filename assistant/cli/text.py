"""Text that goes to a terminal and text that comes in on standard input.

What a model, a tool or another person wrote may hold escape sequences that move the cursor, rewrite the screen or
set the clipboard. Of such characters only line breaks and tabs ever reach a terminal; each of the others is shown
as a visible sign in its place. Standard input is read as lines, as they come, without blocking the event loop.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator

from assistant.core.errors import UsageError

_SHOWN_AS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_SHOWN_AS |= {0x7F: "\u2421"}
_SHOWN_AS |= dict.fromkeys(range(0x80, 0xA0), "\ufffd")
# Overrides of the writing direction can make text read as something it is not.
_SHOWN_AS |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")


def clean_for_terminal(text: str) -> str:
    """`text` without anything that a terminal would act on."""
    text = text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return text.translate(_SHOWN_AS)


def shorten_line(text: str, limit: int = 100) -> str:
    """The beginning of `text` as one clean line of at most `most` characters."""
    line = clean_for_terminal(" ".join(text[: limit * 4].split()))
    return line if len(line) <= limit and len(text) <= limit * 4 else f"{line[: limit - 1]}…"


def is_utf8(text: str) -> bool:
    """Whether it was UTF-8 when it was given to us (`surrogateescape` leaves marks)."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def require_utf8(text: str, where: str) -> str:
    """What a person gave us as text. Raises `UsageError` when it was not UTF-8 (`surrogateescape` left its marks)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{where} is not valid UTF-8 (at character {error.start + 1}). It was not sent.") from None
    return text


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
