"""Programs that are started as `python -m MODULE` by this process are forked from one that has imported MODULE.

Importing is nearly all that such a child takes: the SDK of MCP 1.3 s of CPU, Mem0 and the readers of calendars half a
second, those of documents a quarter. What runs is the module's own program, in a process of its own, a child of the
one that started it (`forked_command.py`). One fork server for each module begins at the first start of it. A server of
MCP is started by such a child, and forked from that. Children of other children, and what is started in another way,
are not touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from tests.support.forked_command import fork_process, fork_server

MODULES = {
    "assistant.backup.process",
    "assistant.calendars.worker",
    "assistant.cli.main",
    "assistant.documents.extract",
    "assistant.imports.child",
    "assistant.mcp.session_main",
    "assistant.wire.memory_worker_main",
    "tests.support.processes.killed_compaction",
    "tests.support.processes.killed_erasure",
    "tests.support.processes.killed_memory_file_change",
}
FORKED_HERE = {"tests.support.mcp_server"}
"""By whoever starts them, a process of one thread that has imported what they need."""
_MOST_DESCRIPTORS = 4096
# Before a command it changes what no test looks at.
_DISK_PRIORITY = ("ionice", "-c", "3")
_start: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]


def fork_modules() -> None:
    """From now on, in this process."""
    subprocess.Popen._execute_child = _execute_child  # type: ignore[attr-defined]


def fork_servers_here() -> None:
    """From now on, in this process and in those that it forks."""
    subprocess.Popen._execute_child = _execute_server  # type: ignore[attr-defined]


def _execute_server(self: subprocess.Popen[Any], *given: Any) -> None:
    _, module, arguments = _asked_for(given[0])
    if module not in FORKED_HERE:
        _start(self, *given)
        return
    process = os.fork()
    if process == 0:
        _run_here(module, arguments, given)
    self.pid = process
    self._child_created = True  # type: ignore[attr-defined]
    self._close_pipe_fds(*given[10:16])  # type: ignore[attr-defined]


def _run_here(module: str, arguments: Sequence[str], given: Sequence[Any]) -> NoReturn:
    """Be the program, in a process that was just forked."""
    pipes, code = (given[10], given[13], given[15]), 0
    try:
        for own, pipe in enumerate(pipes):
            if pipe >= 0:
                os.dup2(pipe, own)
        os.closerange(len(pipes), _MOST_DESCRIPTORS)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        asyncio.set_event_loop(None)
        os.environ.clear()
        os.environ.update(given[6] or {})
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 -- the end of a process
        traceback.print_exc()
        code = 1
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def _execute_child(self: subprocess.Popen[Any], *given: Any) -> None:
    flags, module, arguments = _asked_for(given[0])
    # What runs before it, what it is handed, whom it runs as (three), umask, group: as `fork_process` cannot do it.
    plain = given[2] is None and not given[4] and given[17:21] == (None, None, None, -1) and given[22:] == (-1,)
    if module in MODULES and plain:
        fork_process(self, fork_server(module, tuple(flags)), arguments, given)
    else:
        _start(self, *given)


def _asked_for(words: Any) -> tuple[Sequence[str], str, Sequence[str]]:
    """The flags of the interpreter, the module, and its arguments; no module where it is another command."""
    if isinstance(words, (list, tuple)) and tuple(words[: len(_DISK_PRIORITY)]) == _DISK_PRIORITY:
        words = words[len(_DISK_PRIORITY) :]
    if isinstance(words, (list, tuple)) and words and words[0] == sys.executable and "-m" in words:
        at = words.index("-m")
        flags = words[1:at]
        if all(isinstance(flag, str) and (flag.startswith("-") or flag == "utf8") for flag in flags):
            return flags, words[at + 1], words[at + 2 :]
    return (), "", ()
