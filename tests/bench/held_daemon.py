"""`python -m tests.bench.held_daemon HOLDS LOOKS STACKS`: the daemon as it is installed, in the foreground, that writes
each callback which held its loop for a while into HOLDS, a line of JSON each; and for each line of the pipe LOOKS where
each of its threads is into STACKS. What keeps the interpreter is seen when it ends, in the function that called it."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from assistant.cli.main import main as run_program
from tests.support.loop_holds import Hold, LoopHolds, waits

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
    with looks.open() as asked, stacks.open("w", buffering=1) as seen:
        for at in asked:
            own = threading.get_ident()
            frames = [frame for thread, frame in sys._current_frames().items() if thread != own and not waits(frame)]
            seen.write(json.dumps([float(at), sorted(map(_functions, frames))]) + "\n")


def _functions(frame: FrameType | None) -> str:
    places: list[str] = []
    while frame is not None and len(places) < _INNERMOST:
        folder, name = f"/{frame.f_code.co_filename}".split("/")[-2:]
        places.append(f"{folder}/{name}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(places)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
