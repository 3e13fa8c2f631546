"""A process that is killed while it forgets: run as a program by the tests of crashes.

Arguments: the home, before which durable step it is killed (0: never), and what the path of a file has to end in whose
opening counts as a step ("": any file opened, moved or removed, and any statement given to a database). Prints how many
steps there were."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

from tests.support.erasure_home import ErasureHome, erasure_request
from tests.support.store_home import NOW

_FILES = ("open", "os.rename", "os.remove", "shutil.copyfile")
_READING = ("SELECT", "PRAGMA", "SAVEPOINT", "RELEASE", "--")


def main(path: Path, step: int, ending: str) -> None:
    home = ErasureHome(path).open()
    home.search_ids("gate")
    steps = itertools.count(1)
    counted = 0

    def count() -> None:
        nonlocal counted
        counted = next(steps)
        if counted == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(sql: str) -> None:
        if not ending and not sql.lstrip().startswith(_READING):
            count()

    def audit(event: str, values: tuple[object, ...]) -> None:
        writes = event != "open" or bool(int(str(values[2])) & (os.O_WRONLY | os.O_RDWR))
        if event in _FILES and writes and str(values[0]).startswith(str(path)) and str(values[0]).endswith(ending):
            count()

    for db in (home.db, home.character_db, home.memory_db):
        db.connection.set_trace_callback(statement)
    sys.addaudithook(audit)
    asyncio.run(home.erasure.erase(erasure_request(), NOW))
    print(counted)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
