"""Pages of docs/ as tests read them: the lines of their blocks of shell, and one such line run within this process."""

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
from tests.scenario.command_line import ROOT, environment

DOCS = ROOT / "docs"
PROGRAMS: dict[str, click.Command] = {"assistant": assistant, "aihistory": aihistory}
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*=.*", re.DOTALL)


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def shell_lines(text: str) -> list[str]:
    """The lines of a page's ```sh blocks, in order, without what stands behind a `#`."""
    lines = [line.strip() for block in _BLOCK.findall(text) for line in block.splitlines()]
    return [line.partition(" # ")[0].rstrip() for line in lines if line]


def words_of(line: str) -> tuple[dict[str, str], list[str]]:
    """The variables that a line sets, and the words of its last command."""
    words = shlex.split(line.rpartition(" | ")[2])
    before = next((number for number, word in enumerate(words) if not _VARIABLE.fullmatch(word)), len(words))
    return dict(word.split("=", 1) for word in words[:before]), words[before:]


def run(line: str, home: Path, *, expect: int = 0) -> str:
    """What a line of a shell prints: `[another command |] [VARIABLE=value] assistant ...`; it ends with `expect`."""
    before = line.rpartition(" | ")[0]
    said = subprocess.run(["sh", "-c", before], capture_output=True, check=True).stdout if before else b""
    variables, (program, *words) = words_of(line.replace("~/", f"{home.parent}/"))
    others = {name: None for name in os.environ if name.startswith(("ASSISTANT_", "ANTHROPIC_", "OPENAI_"))}
    with CliRunner().isolation(input=said, env={**others, **environment(home, **variables)}) as (out, err, _):
        code = run_guarded(PROGRAMS[program], words)
        assert code == expect, f"{line}: {out.getvalue().decode()}{err.getvalue().decode()}"
        return out.getvalue().decode()
