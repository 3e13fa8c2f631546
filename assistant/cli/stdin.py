"""Text that comes in on standard input: lines as they come, without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator

from assistant.core.errors import UsageError

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
