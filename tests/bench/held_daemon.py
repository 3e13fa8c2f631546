"""`python -m tests.bench.held_daemon HOLDS LOOKS STACKS`: the daemon as it is installed, in the foreground, that writes
each callback which held its loop for a while into HOLDS, a line of JSON each; and for each line of the pipe LOOKS where
each of its threads is into STACKS. What keeps the interpreter is seen when it ends, in the function that called it."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from assistant.cli.main import main as run_program
from tests.support.loop_holds import Hold, LoopHolds
from tests.support.thread_stacks import Place, ThreadStacks, waits

_INNERMOST = 8


def main(holds: Path, looks: Path, stacks: Path) -> None:
    threading.Thread(target=_look, args=(looks, stacks), name="looks", daemon=True).start()
    with holds.open("w", buffering=1) as file:

        def told(hold: Hold) -> None:
            file.write(json.dumps(asdict(hold)) + "\n")

        with LoopHolds(told=told):
            sys.argv = ["assistant", "run"]
            run_program()


def _look(looks: Path, stacks: Path) -> None:
    own, threads = threading.get_ident(), ThreadStacks()
    with looks.open() as asked, stacks.open("w", buffering=1) as seen:
        for at in asked:
            working = [places for thread, places in threads.look().items() if thread != own and not waits(places)]
            seen.write(json.dumps([float(at), sorted(map(_shown, working))]) + "\n")


def _shown(places: list[Place]) -> str:
    files = ["/".join(f"/{place.file}".split("/")[-2:]) for place in places[:_INNERMOST]]
    return " < ".join(f"{file}:{place.line} {place.function}" for file, place in zip(files, places, strict=False))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
