"""`python -m tests.bench.held_daemon FILE`: the daemon as it is installed, in the foreground, that writes each callback
which held its loop for a while into FILE, a line of JSON each."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from assistant.cli.main import main as run_program
from tests.support.loop_holds import Hold, LoopHolds


def main(path: Path) -> None:
    with path.open("w", buffering=1) as file:

        def told(hold: Hold) -> None:
            file.write(json.dumps(asdict(hold)) + "\n")

        with LoopHolds(told=told):
            sys.argv = ["assistant", "run"]
            run_program()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
