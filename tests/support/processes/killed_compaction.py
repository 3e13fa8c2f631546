"""A process that is killed while it compacts: run as a program by the tests of crashes.

Arguments: the home, what it does (`begin`, `compact`, `undo`), and after how many instructions of SQLite it is killed;
0 kills it when it has done that."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tests.support.compactions import live_messages, plan_compaction, plan_masking, summary_message
from tests.support.store_home import NOW, StoreHome


def main(path: Path, what: str, steps: int) -> None:
    home = StoreHome(path).open()
    ids = plan_compaction(home, 0, 5)
    named = (ids.from_message_id, ids.to_message_id)
    planned = replace(
        plan_compaction(home, 0, 5, summary_message()),
        shortened=plan_masking(home, len(live_messages(home)) - 1).shortened,
    )
    if what == "undo":
        home.conversation.commit_compaction(planned, NOW)
        told = home.conversation.plan_uncompact("main")
        _killed_after(home, steps)
        home.conversation.undo_compaction(told, "main", NOW)
    else:
        if what == "begin":
            _killed_after(home, steps)
        until = NOW + timedelta(minutes=5)
        started = home.conversation.begin_compaction("main", planned.prefix_rev, "nap", named, until, NOW)
        if what == "compact":
            _killed_after(home, steps)
            home.conversation.commit_compaction(replace(planned, started_id=started), NOW)
    _die()


def _killed_after(home: StoreHome, steps: int) -> None:
    left = itertools.count(steps - 1, -1)
    if steps:
        home.db.connection.set_progress_handler(lambda: 0 if next(left) else _die(), 1)


def _die() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
