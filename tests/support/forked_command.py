"""`assistant` in a process of its own that need not import the program: it is forked from one that has.

Importing is more than half of what a short command takes, and the tests start hundreds. The fork server (this module as
a program) has imported what commands use and waits; for each order it forks a process, which takes the arguments,
environment, working directory and pipes of the order and then runs `assistant.cli.main` as the installed command does.
The process is a child of the one that asked, so it is waited for, killed and read from as any other
(`subprocess.Popen`). Tests of the start itself, and those that need a terminal, run the real command.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import tzlocal

from assistant.cli.lazy import end_process
from tests.support.new_databases import make_new_databases_once

_ROOT = Path(__file__).parents[2]
_MAIN_MODULE = "assistant.cli.main"
_COMMAND = (sys.executable, "-m", "tests.support.forked_command")
# What `chat`, `run` and the commands that only look import, late imports included.
_PRELOADED = (
    "_strptime",
    "anthropic",
    "anyio._backends._asyncio",
    "apscheduler.executors.asyncio",
    "assistant.archive.object_store",
    "assistant.cli.backup",
    "assistant.cli.bridge.command",
    "assistant.cli.chat.command",
    "assistant.cli.client",
    "assistant.cli.config.command",
    "assistant.cli.exports",
    "assistant.cli.log",
    "assistant.cli.main",
    "assistant.cli.serve",
    "assistant.cli.shell",
    "assistant.cli.status",
    "assistant.cli.verify",
    "assistant.commands.catalog",
    "assistant.daemon",
    "assistant.mem0.embedders",
    "assistant.search.engine",
    "assistant.web.app",
    "assistant.web.server",
    "assistant.wire.app",
    "multiprocessing.spawn",
    "openai",
    "uvicorn",
)
# What a module imports when it is asked for something.
_LATE: dict[str, tuple[str, ...]] = {
    "assistant.documents.extract": (
        "PIL.ExifTags",
        "assistant.documents.mail_parts",
        "charset_normalizer",
        "docx.table",
        "lxml.html",
        "openpyxl",
        "pptx",
        "pypdf.errors",
        "trafilatura",
    ),
    "assistant.calendars.worker": ("assistant.calendars.sync", "assistant.calendars.collections"),
    "assistant.mcp.session_main": ("mcp", "mcp.client.session", "mcp.server.mcpserver", "uvicorn"),
}
_LONGEST_ORDER = 1 << 20
_PR_SET_CHILD_SUBREAPER = 36


class ForkedCommand(subprocess.Popen[bytes]):
    """`subprocess.Popen` for `assistant ARGUMENTS`; `start_new_session`, `preexec_fn` and the like are not known."""

    def _execute_child(self, *given: Any) -> None:
        fork_process(self, fork_server(), given[0], given)


def fork_process(
    process: subprocess.Popen[Any], server: ForkServer, arguments: Sequence[str], given: Sequence[Any]
) -> None:
    """What `Popen._execute_child` does with what it was `given`: in the order of CPython 3.11 to 3.14, args,
    executable, preexec_fn, close_fds, pass_fds, cwd, env, two for Windows, shell, the pipes' two ends each, whether
    signals are restored, groups, users, umask, and whether a session begins."""
    cwd, env = given[5], given[6]
    stdin, _, _, stdout, _, stderr = given[10:16]
    pipes = [theirs if theirs >= 0 else own for own, theirs in enumerate((stdin, stdout, stderr))]
    order = {
        "arguments": [os.fsdecode(word) for word in arguments],
        "environment": {
            os.fsdecode(key): os.fsdecode(value) for key, value in (os.environ if env is None else env).items()
        },
        "cwd": os.fsdecode(cwd or Path.cwd()),
        "session": bool(given[21]),
        "terminal": False,
    }
    process.pid = server.fork(order, pipes)
    process._child_created = True  # type: ignore[attr-defined]
    process._close_pipe_fds(*given[10:16])  # type: ignore[attr-defined]  # the child's ends of what was made for it


class ForkServer:
    """This end of the server, which ends when this process does. `module`: what its processes run, as the program;
    without one, `assistant`. `flags`: of the interpreter."""

    def __init__(self, module: str = "", flags: Sequence[str] = ()) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._turn = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [_COMMAND[0], *flags, *_COMMAND[1:], str(theirs.fileno()), module],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={
                    "PATH": os.environ["PATH"],
                    "LANG": "C.UTF-8",
                    "PYTHONPATH": str(_ROOT),
                    "OPENBLAS_NUM_THREADS": "1",
                },
            )

    def fork(self, order: dict[str, Any], pipes: list[int]) -> int:
        """The process of this order, a child of the calling process."""
        # An orphan goes to the nearest ancestor that takes orphans, else to the first process of all.
        with self._turn, _taking_orphans():
            socket.send_fds(self._socket, [json.dumps(order).encode()], pipes)
            return int(self._socket.recv(100))


@contextlib.contextmanager
def _taking_orphans() -> Iterator[None]:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for takes in (1, 0):
        if prctl(_PR_SET_CHILD_SUBREAPER, takes, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
        if takes:
            yield


def fork_server(module: str = "", flags: tuple[str, ...] = ()) -> ForkServer:
    """`assistant` itself and its module as a program are forked from the same one: making it takes seconds."""
    return _fork_server("" if module == _MAIN_MODULE else module, flags)


@cache
def _fork_server(module: str, flags: tuple[str, ...]) -> ForkServer:
    return ForkServer(module, flags)


# ----------------------------------------------------------------------------------------------------------- the server


def main() -> str:
    """Answer each order with a process; return in that process, with the module that it is to run."""
    orders, module = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    _preload(module)
    gc.freeze()
    while True:
        words, pipes, _, _ = socket.recv_fds(orders, _LONGEST_ORDER, 3)
        if not words:
            sys.exit()
        told, tells = os.pipe()
        if (between := os.fork()) == 0:
            if (process := os.fork()) == 0:
                for own in (orders.detach(), told, tells):
                    os.close(own)
                _become(json.loads(words), pipes)
                return module
            os.write(tells, str(process).encode())
            os._exit(0)
        os.waitpid(between, 0)  # only now the process has its new parent
        orders.send(os.read(told, 100))
        for own in (told, tells, *pipes):
            os.close(own)


def _preload(module: str) -> None:
    if module == "assistant.mcp.session_main":
        from tests.support.forked_modules import fork_servers_here

        fork_servers_here()
    if module == "assistant.wire.memory_worker_main":
        from tests.crash.forked_mem0 import import_mem0

        import_mem0()
    make_new_databases_once()
    names = (module, *_LATE.get(module, ())) if module else _PRELOADED
    for name in names:
        importlib.import_module(name)
    if names is _PRELOADED:
        _read_once()


def _read_once() -> None:
    """What every process reads, compiles and declares at its first message: expressions, weights, word vectors, tools.
    The home that this takes is gone then."""
    from assistant.core.calendar import utc_now
    from assistant.core.text import _LazyPattern
    from assistant.models.offline.parse import parse_message
    from assistant.settings.settings import load_settings
    from assistant.wire.app import build_app
    from assistant.wire.search import builtin_embedder
    from sleep.rules.classifier import find_signs
    from sleep.rules.pattern_files import _CountedPattern

    find_signs("")
    parse_message("Remind me tomorrow at 9 to call Anna.")
    for one in gc.get_objects():
        # `isinstance` asks every proxy for what it stands for, and those of openai import half of it to answer.
        if type(one) in (_CountedPattern, _LazyPattern):
            assert one.match
    builtin_embedder()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(XDG_STATE_HOME=folder, HOME=folder)
        build_app(load_settings(None, {"ASSISTANT_HOME": f"{folder}/home"}), utc_now).close()


def _become(order: dict[str, Any], pipes: list[int]) -> None:
    """Make this process what the order says, as a start would have."""
    for own, pipe in enumerate(pipes):
        os.dup2(pipe, own)
        os.close(pipe)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    if order["session"] or order["terminal"]:
        os.setsid()
    if order["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    time.tzset()
    tzlocal.reload_localzone()
    tempfile.tempdir = None
    sys.argv = ["assistant", *order["arguments"]]


def _run(module: str) -> None:
    """The program to its end: `module`, or `assistant`."""
    if module:
        # As the interpreter runs `-m`: the module once more, under the name of the program.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        from assistant.cli.main import main as assistant

        assistant()


def _end(error: SystemExit | None) -> NoReturn:
    """End as the program does: taking apart what was imported writes to most of the memory that is shared with the
    server, and copying it took ten times as long as a short command."""
    code = error.code if error is not None else None
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    end_process(code or 0)


if __name__ == "__main__":
    wanted = main()
    try:
        _run(wanted)
    except SystemExit as ended:
        _end(ended)
    _end(None)
