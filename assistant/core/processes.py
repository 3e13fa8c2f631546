"""The end of a child process that asyncio started: it comes even when nobody reads on, and nothing of it is left to the
garbage collector.

A process counts as ended once its pipes are at their end as well. One that nobody reads, because what it said is no
longer wanted, never gets there: a wait for the process would never end, and what is collected after its
loop has ended cannot be closed any more. So the pipes are closed first.
"""

from __future__ import annotations

import contextlib
import os
import signal
from asyncio import SubprocessTransport
from asyncio.subprocess import Process

_STDOUT, _STDERR = 1, 2


async def end_process(process: Process) -> None:
    """Kill it where it still runs, drop what it has said and nobody read, and wait for its end."""
    # asyncio has no other way to it.
    transport: SubprocessTransport = process._transport  # type: ignore[attr-defined]
    if process.returncode is None:
        # `Process.kill` may take the exit code of one that has just ended from asyncio, which then reports 255.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    if process.stdin is not None and not process.stdin.transport.is_closing():
        process.stdin.transport.abort()
    for descriptor in (_STDOUT, _STDERR):
        pipe = transport.get_pipe_transport(descriptor)
        if pipe is not None:
            pipe.close()
    try:
        await process.wait()
    finally:
        transport.close()
