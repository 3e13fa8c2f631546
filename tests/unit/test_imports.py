"""What a start does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

from assistant.core.imports import hidden_modules

_LOADED = "import sys\nimport assistant.cli.{}\nimport assistant.daemon\nprint(*sys.modules)"


def test_what_is_hidden_cannot_be_imported_until_it_is_shown_again() -> None:
    assert "mailbox" not in sys.modules
    with hidden_modules("mailbox", "sys"), pytest.raises(ImportError):
        import mailbox
    import mailbox
    import sys as shown

    assert mailbox.Mailbox and shown is sys


@pytest.mark.parametrize("command", ["chat.command", "serve"])
def test_a_start_loads_nothing_that_it_may_not_need(command: str) -> None:
    code = _LOADED.format(command)
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "pandas", "rich", "fastapi", "anthropic", "openai", "mem0"}.isdisjoint(loaded)
