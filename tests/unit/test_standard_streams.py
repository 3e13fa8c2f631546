"""A program that is started with its standard streams closed, as some supervisors and scripts do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_OPENS_A_FILE = """
from assistant.cli import start
import os, sys
data = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(2, b"an error of the interpreter")
print("an answer")
print("a remark", file=sys.stderr)
assert sys.stdin.read() == "" and not sys.stdout.isatty()
os.write(data, b"kept")
"""


def test_what_is_written_to_a_closed_stream_gets_into_no_file_and_fails_nobody(tmp_path: Path) -> None:
    file = tmp_path / "conversation.jsonl"
    ended = subprocess.run([sys.executable, "-c", _OPENS_A_FILE, file], preexec_fn=lambda: os.closerange(0, 3))
    assert ended.returncode == 0
    assert file.read_text() == "kept"
