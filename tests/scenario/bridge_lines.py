"""`assistant bridge ...` within the process of a test, with lines as its standard input."""

from __future__ import annotations

import os

from click.testing import CliRunner

from assistant.cli.lazy import run_guarded
from assistant.cli.main import assistant as assistant_command
from assistant.settings.home import Home
from tests.scenario.command_line import Done, environment


def run(home: Home, *words: str, said: str = "", **settings: str) -> Done:
    """A command with `said` as its standard input, and nothing of this process's environment."""
    others = {name: None for name in os.environ if name.startswith(("ASSISTANT_", "ANTHROPIC_", "OPENAI_"))}
    env = {**others, **environment(home.path, **settings)}
    with CliRunner().isolation(input=said, env=env) as (out, err, _):
        code = run_guarded(assistant_command, words)
        return Done(code, out.getvalue().decode(), err.getvalue().decode())
