"""The child process of semantic memory, started in milliseconds: forked by a mother that has imported Mem0 once, for
tests that are about what the child does and not about how it starts.

What is started in its place is a messenger: it hands its three streams to the mother and ends with the child; where the
messenger is killed, so is the child. What runs is the child's own `main`, in a process of its own.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from assistant.wire.memories import MEMORY_WORKER_COMMAND
from tests.crash.forked_mem0 import import_mem0, serve

_ROOT = Path(__file__).resolve().parents[2]
_MESSENGER = (
    "import socket, sys\n"
    "mother = socket.socket(socket.AF_UNIX)\n"
    "mother.connect(sys.argv[1])\n"
    "socket.send_fds(mother, [b'child'], [0, 1, 2])\n"
    "import os\n"
    "null = os.open(os.devnull, os.O_RDWR)\n"
    "for stream in (0, 1, 2): os.dup2(null, stream)\n"
    "mother.recv(1)\n"
)


@cache
def warm_child_command() -> tuple[str, ...]:
    """The command that starts one; the mother ends with this process."""
    if not hasattr(os, "pidfd_open"):
        return MEMORY_WORKER_COMMAND
    folder = tempfile.TemporaryDirectory()
    address = f"{folder.name}/mother"
    mother = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm_memory_child", address],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert mother.stdin is not None and mother.stdout is not None
    mother.stdout.readline()
    atexit.register(folder.cleanup)
    atexit.register(mother.stdin.close)
    return sys.executable, "-I", "-S", "-c", _MESSENGER, address


def _mother(address: str) -> None:
    import_mem0()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        print("ready", flush=True)
        while door.fileno() in select.select([door.fileno(), sys.stdin.fileno()], [], [])[0]:
            messenger, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _keep(messenger)
            messenger.close()


def _keep(messenger: socket.socket) -> None:
    """One child, until it ends or its messenger does."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(messenger, 16, 3)
    child = os.fork()
    if child == 0:
        messenger.close()
        serve(streams)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)
    if ended not in select.select([messenger.fileno(), ended], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os._exit(0)


if __name__ == "__main__":
    _mother(sys.argv[1])
