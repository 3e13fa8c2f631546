"""What a chat or a daemon loads before it is ready: nothing that only some jobs, archives or secrets need."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "anthropic",
    "boto3",
    "cronsim",
    "cryptography",
    "dateparser",
    "dateutil.rrule",
    "fsspec",
    "keyring",
    "mcp",
    "mem0",
    "openai",
    "opentelemetry",
    "prometheus_client",
    "pyrage",
    "tiktoken",
    "tomlkit",
    "wordllama",
}


def test_what_few_need_is_not_loaded_at_start() -> None:
    program = f"import sys, assistant.cli.link, assistant.daemon; print(sorted({HEAVY} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
