"""What a chat or a daemon loads before it is ready: nothing that only some jobs, archives or secrets need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HEAVY = {
    "anthropic",
    "apscheduler",
    "boto3",
    "cronsim",
    "cryptography",
    "dateparser",
    "dateutil.rrule",
    "email",
    "fsspec",
    "importlib.metadata",
    "keyring",
    "mcp",
    "mem0",
    "openai",
    "opentelemetry",
    "prometheus_client",
    "pyrage",
    "sqlite_utils.db",
    "structlog",
    "tarfile",
    "tiktoken",
    "tomlkit",
    "wordllama",
}


# There are 758 with Python 3.11; each takes half a millisecond.
MOST_MODULES = 780


def printed_by(program: str, environment: Mapping[str, str] | None = None) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(environment or {})},
    )
    return ended.stdout.strip()


def test_what_few_need_is_not_loaded_at_start() -> None:
    program = f"import sys, assistant.cli.open_link, assistant.daemon; print(sorted({HEAVY} & set(sys.modules)))"
    assert printed_by(program) == "[]"


def test_a_first_question_in_a_new_home_loads_nothing_that_only_others_need(tmp_path: Path) -> None:
    program = (
        "import atexit, sys; from assistant.cli.start import assistant;"
        f"atexit.register(lambda: print(sorted({HEAVY} & set(sys.modules)), len(sys.modules) < {MOST_MODULES}));"
        "sys.argv = ['assistant', 'chat', '-m', 'hi']; assistant()"
    )
    environment = {"ASSISTANT_HOME": str(tmp_path / "home"), "ASSISTANT_MODEL__PROVIDER": "offline"}
    assert printed_by(program, environment).splitlines()[-1] == "[] True"


def test_counting_tokens_with_toksum_loads_no_sdk() -> None:
    program = (
        "import sys; from assistant.context.tokens import choose_tier, open_counter;"
        "counter = open_counter(choose_tier('claude-3-opus-20240229', None, toksum=True));"
        f"print(counter.tier.name, counter.count_text('A walk.') > 0, sorted({HEAVY} & set(sys.modules)))"
    )
    assert printed_by(program) == "toksum True []"
