"""Runs commands that only a shell has (settings, checks, setup, the service, past compactions) for the page, each in
its own process like in a shell.

Only listed commands are run, one at a time, and no shell interprets their arguments; input (a key, an answer) is passed
on standard input, so that no other program on the machine sees it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path

from assistant.commands.table import CommandResult
from assistant.core.errors import AssistantError, UsageError
from assistant.core.processes import end_process
from assistant.settings.home import environment_for

# With whether each prints JSON. Commands that need a terminal, an editor or their own process are excluded.
_COMMANDS: Mapping[str, bool] = {
    **dict.fromkeys(("config show", "config get", "config set", "config unset", "config check"), True),
    **dict.fromkeys(("config secret list", "config secret set", "config secret remove"), True),
    **dict.fromkeys(("doctor", "verify", "service status", "service restart"), True),
    **dict.fromkeys(("bridge add", "service logs", "setup", "aihistory show", "aihistory stats"), False),
    **dict.fromkeys(("aihistory recover", "aihistory diff"), True),
}
_MOST_SECONDS = 600.0
_ERROR = "Error: "


class ShellCommands:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._one_at_a_time = asyncio.Lock()

    def includes(self, argv: Sequence[str]) -> bool:
        """Return whether the command is one of those listed."""
        return _name_of(argv) is not None

    async def run(self, argv: Sequence[str], typed: str) -> CommandResult:
        """Run a command with `typed` as its standard input. Raises `UsageError` with the command's message if it
        fails."""
        name = _name_of(argv)
        if name is None:
            raise UsageError(f"`{' '.join(argv)}` is not run from here. Nothing was done.")
        prints_json = _COMMANDS[name]
        depth = len(name.split())
        words = [*argv[:depth], *(["--json"] if prints_json else []), *argv[depth:]]
        async with self._one_at_a_time:
            code, out, err = await self._run(words, typed)
        try:
            value = json.loads(out) if prints_json else None
        except ValueError:
            raise UsageError(err.removeprefix(_ERROR) or f"`{' '.join(argv)}` ended with {code}.") from None
        if not prints_json and code and not out.strip():
            raise UsageError(err.removeprefix(_ERROR))
        return CommandResult("" if prints_json else out.strip(), value, code, remark=err)

    async def _run(self, words: Sequence[str], typed: str) -> tuple[int, str, str]:
        program, arguments = ("aihistory", words[1:]) if words[0] == "aihistory" else ("assistant", words)
        module = "assistant.cli.aihistory.main" if program == "aihistory" else "assistant.cli.main"
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", module, *arguments),
                stdin=PIPE if typed else DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                env=environment_for(self._home),
            )
        except OSError as error:
            raise AssistantError(f"`{program}` cannot be started ({error.strerror}). Nothing was done.") from error
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                out, err = await process.communicate(typed.encode() if typed else None)
        except BaseException:
            await end_process(process)
            raise
        return process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace").strip()


def _name_of(argv: Sequence[str]) -> str | None:
    """Return the listed command that the words begin with."""
    return next((name for name in _COMMANDS if list(argv[: len(name.split())]) == name.split()), None)
