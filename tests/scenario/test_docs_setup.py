"""Every command of docs/setup.md does what the page says: run in order, in a home of its own, within this process."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

from click.testing import CliRunner
from keyring.backends.fail import Keyring as NoKeyring

from assistant.cli.lazy import guarded
from assistant.cli.main import assistant as assistant_command
from tests.kept_keyring import in_use
from tests.scenario.command_line import ROOT, environment

PAGE = ROOT / "docs" / "setup.md"
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def run(line: str, home: Path) -> str:
    """What a line of a shell prints: `[another command |] [VARIABLE=value] assistant ...`; it has to end well."""
    before, _, ours = line.rpartition(" | ")
    said = subprocess.run(["sh", "-c", before], capture_output=True, check=True).stdout if before else b""
    words = shlex.split(ours)
    variables = dict(word.split("=", 1) for word in words[: words.index("assistant")])
    others = {name: None for name in os.environ if name.startswith(("ASSISTANT_", "ANTHROPIC_", "OPENAI_"))}
    env = {**others, **environment(home, **variables)}
    with CliRunner().isolation(input=said, env=env) as (out, err, _):
        code = guarded(assistant_command, words[words.index("assistant") + 1 :])
        assert code == 0, f"{line}: {err.getvalue().decode()}"
        return out.getvalue().decode()


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    lines = [line for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")) for line in block.splitlines()]
    assert len(lines) >= 12
    with in_use(NoKeyring()):  # type: ignore[no-untyped-call]
        printed = {line: run(line, home) for line in lines}
    assert printed["assistant config unset context.target"] == "context.target: 0.25 -> 0.3 (the default)\n"
    assert printed["assistant config get context.target"] == "0.3\n"
    assert "The settings are fine." in printed["assistant config check"]
    assert re.search(r"^archive\.key +secrets\.toml$", printed["assistant config secret list"], re.MULTILINE)
    assert "called Ada." in (home / "PERSONA.md").read_text()
