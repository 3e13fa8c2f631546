"""A process that is killed while it changes a memory file: run as a program by the tests of crashes.

Arguments: the home, what it does (`curate`, `note`, `undo`), and before which of its durable steps it is killed: a
statement that writes to the database, a file opened to be written, renamed or removed. Past its last step it is killed
when it has done that."""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.memory_files_home import DAY, NOW, MemoryFilesHome

KEY = "k"
LINE = "She sails."
WANTED = "two\n"
_WRITES = re.compile(r"BEGIN|INSERT|UPDATE|DELETE|COMMIT|ROLLBACK")
_FILES = {"os.rename", "os.remove"}


def main(path: Path, what: str, step: int) -> None:
    home = MemoryFilesHome(path).open()
    _killed_before(home, step)
    act(home, what)
    os.kill(os.getpid(), signal.SIGKILL)


def act(home: MemoryFilesHome, what: str) -> None:
    """The change, made for the text "one" of MEMORY.md; a note of the day; MEMORY.md's newest change taken back."""
    if what == "curate":
        home.files.replace_memory_file(WANTED, "one\n", "sleep", NOW, key=KEY)
    elif what == "note":
        home.files.append_daily_note("owner", DAY, "14:03", [LINE], KEY)
    else:
        home.files.undo_edit(home.files.list_edits("owner")[0].id or 0, "owner", NOW)


def _killed_before(home: MemoryFilesHome, step: int) -> None:
    left = itertools.count(step - 1, -1)

    def count() -> None:
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def seen(event: str, arguments: tuple[object, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in _FILES or writes:
            count()

    home.db.connection.set_trace_callback(_on(_WRITES, count))
    sys.addaudithook(seen)


def _on(wanted: re.Pattern[str], count: Callable[[], None]) -> Callable[[str], None]:
    def traced(statement: str) -> None:
        if wanted.match(statement):
            count()

    return traced


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
