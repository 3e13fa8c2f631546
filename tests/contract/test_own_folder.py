"""A process that sees its own folder, and none of those beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_TRIES = """
import ctypes, os, subprocess, sys
from pathlib import Path
from assistant.sandbox.own_folder import hide_siblings

own = Path(sys.argv[1])
hide_siblings(own)
(own / "mine").write_text("kept")
print(os.listdir(own.parent), (own / ".." / "bob" / "diary").exists())
try:
    (own.parent / "carol").mkdir()
except OSError as error:
    print(error.strerror)
for place in (own, own.parent):
    print(ctypes.CDLL(None).umount2(os.fsencode(place), 2))
print(subprocess.run(["ls", own.parent], capture_output=True, text=True, check=True).stdout.strip())
"""


def test_a_process_sees_and_changes_its_own_folder_and_none_beside_it_and_cannot_take_that_back(tmp_path: Path) -> None:
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "diary").touch()
    tried = subprocess.run(
        [sys.executable, "-c", _TRIES, str(tmp_path / "alice")], capture_output=True, text=True, check=False
    )
    assert tried.stdout.splitlines() == ["['alice'] False", "Read-only file system", "-1", "-1", "alice"], tried.stderr
    assert (tmp_path / "alice" / "mine").read_text() == "kept"
