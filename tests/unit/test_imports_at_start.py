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
    "importlib.metadata",
    "keyring",
    "mcp",
    "mem0",
    "openai",
    "opentelemetry",
    "prometheus_client",
    "pyrage",
    "sqlite_utils.db",
    "tiktoken",
    "tomlkit",
    "wordllama",
}


def printed_by(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_what_few_need_is_not_loaded_at_start() -> None:
    program = f"import sys, assistant.cli.link, assistant.daemon; print(sorted({HEAVY} & set(sys.modules)))"
    assert printed_by(program) == "[]"


def test_counting_tokens_with_toksum_loads_no_sdk() -> None:
    program = (
        "import sys; from assistant.context.tokens import choose_tier, open_counter;"
        "counter = open_counter(choose_tier('claude-3-opus-20240229', None, toksum=True));"
        f"print(counter.tier.name, counter.count_text('A walk.') > 0, sorted({HEAVY} & set(sys.modules)))"
    )
    assert printed_by(program) == "toksum True []"
