"""`assistant` at a terminal, as `pexpect.spawn` starts it, forked from a process that has imported it
(`forked_command.py`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pexpect
from ptyprocess import PtyProcess

from tests.support.forked_command import fork_server


class AssistantTerminal(pexpect.spawn):
    """`pexpect.spawn` for `assistant ARGUMENTS`."""

    def __init__(self, *arguments: str, env: dict[str, str], **more: Any) -> None:
        # Of the command only its arguments count.
        super().__init__(sys.executable, list(arguments), env=env, use_poll=True, **more)

    def _spawnpty(self, args: list[str], *, env: dict[str, str], dimensions: tuple[int, int], **_: Any) -> PtyProcess:
        ours, theirs = os.openpty()
        order = {
            "arguments": [os.fsdecode(word) for word in args[1:]],
            "environment": env,
            "cwd": str(Path.cwd()),
            "session": False,
            "terminal": True,
        }
        terminal = PtyProcess(-1, ours)
        terminal.setwinsize(*dimensions)
        terminal.pid = fork_server().fork(order, [theirs, theirs, theirs])
        os.close(theirs)
        return terminal
