"""Terminates child processes started by asyncio, leaving nothing to the garbage collector.

asyncio considers a process ended only after its pipes reached their end. A pipe that nobody reads never does, so
waiting for the process would hang, and a transport that is collected after its loop has ended cannot be closed. So the
pipes are closed first.
"""

from __future__ import annotations

import contextlib
import os
import signal
from asyncio import SubprocessTransport
from asyncio.subprocess import Process

_STDOUT, _STDERR = 1, 2


async def end_process(process: Process) -> None:
    """Kill the process if it is running, discard unread output, and wait for it."""
    # asyncio offers no public access.
    transport: SubprocessTransport = process._transport  # type: ignore[attr-defined]
    if process.returncode is None:
        # `Process.kill` may reap a process that just ended, so that asyncio reports exit code 255.
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
