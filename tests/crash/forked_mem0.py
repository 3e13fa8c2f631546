"""The child process of semantic memory, started in milliseconds: forked from a process that has imported Mem0, instead
of an interpreter that begins by importing it. What runs is the child's own `main`, in a process of its own, over the
same pipes.

SQLite must not be carried over a fork; so the `Nursery` that children are forked from is forked itself before anything
is opened. What the app starts is a messenger that hands its three streams to the nursery, and ends with the child.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys
import tempfile
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, Process
from dataclasses import asdict

from assistant.mem0.client import MemoryProcess, MemoryStoreSettings
from assistant.service.child_process import MAX_ANSWER_BYTES
from assistant.wire import memory_worker_main as wire_mem0

_STREAMS = 3
_MOST_DESCRIPTORS = 4096


def import_mem0() -> None:
    """Once, in the process that all others are forked from. Mem0 makes a directory as it is imported, and needs it no
    more."""
    sys.modules.update(dict.fromkeys(("spacy", "fastembed")))  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=folder)
        for module in ("service", "adapter", "embedders"):
            importlib.import_module(f"assistant.mem0.{module}")


class MemoryChildForker:
    """A process that forks children. It ends with the process that made it."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        if os.fork() == 0:
            self._ours.close()
            _fork_children(theirs)
        theirs.close()

    def hand_over(self) -> None:
        """Called in a new process: give its streams to a new child, end with it."""
        done, held = os.pipe()
        socket.send_fds(self._ours, [b"child"], [0, 1, 2, held])
        os.dup2(done, 0)
        os.closerange(1, _MOST_DESCRIPTORS)
        os.read(0, 1)
        os._exit(0)


class ForkedChild(MemoryProcess):
    def __init__(self, settings: MemoryStoreSettings, nursery: MemoryChildForker) -> None:
        super().__init__((), asdict(settings) | {"home": str(settings.home)}, seconds=settings.seconds)
        self._nursery = nursery

    async def start(self) -> Process:
        # The command is never run: the function before it does not return.
        return await create_subprocess_exec(
            sys.executable,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=MAX_ANSWER_BYTES,
            preexec_fn=self._nursery.hand_over,
        )


def _fork_children(orders: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        said, streams, _, _ = socket.recv_fds(orders, 16, _STREAMS + 1)
        if not said:
            os._exit(0)
        if os.fork() == 0:
            orders.close()
            serve(streams)
        for stream in streams:
            os.close(stream)


def serve(streams: list[int]) -> None:
    """Be the child, in a process of its own. `streams`: its input, output and complaints, and what is held open as
    long as it lives."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(len(streams), _MOST_DESCRIPTORS)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    code = 1
    try:
        code = wire_mem0.main()
    except BaseException as error:  # noqa: BLE001 -- the end of a process
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(code)
