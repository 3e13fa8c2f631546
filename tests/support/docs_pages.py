"""Pages of docs/ as tests read them: the lines of their shell blocks, one such line parsed, and one run within this
process.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import click
from click.testing import CliRunner

from assistant.cli.aihistory.main import aihistory
from assistant.cli.lazy import run_guarded
from assistant.cli.main import assistant
from tests.support.command_line import ROOT, command_environment

DOCS = ROOT / "docs"
PROGRAMS: dict[str, click.Command] = {"assistant": assistant, "aihistory": aihistory}
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*=.*", re.DOTALL)


def read_page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def shell_lines(text: str) -> list[str]:
    """The lines of a page's ```sh blocks, in order, without what stands behind a `#`."""
    lines = [line.strip() for block in _BLOCK.findall(text) for line in block.splitlines()]
    return [line.partition(" # ")[0].rstrip() for line in lines if line]


def parse_shell_line(line: str) -> tuple[dict[str, str], list[str]]:
    """The variables that a line sets, and the words of its last command."""
    words = shlex.split(line.rpartition(" | ")[2])
    before = next((number for number, word in enumerate(words) if not _VARIABLE.fullmatch(word)), len(words))
    return dict(word.split("=", 1) for word in words[:before]), words[before:]


def run_shell_line(line: str, home: Path, *, expect: int = 0) -> str:
    """What a line of a shell prints: `[another command |] [VARIABLE=value] assistant ...`; it ends with `expect`."""
    before = line.rpartition(" | ")[0]
    said = subprocess.run(["sh", "-c", before], capture_output=True, check=True).stdout if before else b""
    variables, (program, *words) = parse_shell_line(line.replace("~/", f"{home.parent}/"))
    others = {name: None for name in os.environ if name.startswith(("ASSISTANT_", "ANTHROPIC_", "OPENAI_"))}
    with CliRunner().isolation(input=said, env={**others, **command_environment(home, **variables)}) as (out, err, _):
        code = run_guarded(PROGRAMS[program], words)
        assert code == expect, f"{line}: {out.getvalue().decode()}{err.getvalue().decode()}"
        return out.getvalue().decode()


def assistant_words(line: str) -> list[str] | None:
    """The words after `assistant`; None for another program's line."""
    words = [word for word in shlex.split(line) if not re.fullmatch(r"[A-Z_]+=\S+", word)]
    return words[words.index("assistant") + 1 :] if "assistant" in words else None


def parse_command(words: list[str]) -> click.Command:
    """The command that these words call, its options understood but nothing done. Raises `click.UsageError`."""
    command: click.Command = assistant
    context = command.make_context("assistant", list(words))
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None, name
        command = found
        context = command.make_context(name, rest, parent=context)
    return command
