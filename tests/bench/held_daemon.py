"""`python -m tests.bench.held_daemon HOLDS STACKS`: the daemon as it is installed, in the foreground, that writes each
callback which held its loop for a while into HOLDS, a line of JSON each; and with each SIGUSR2 into STACKS where each
of its threads is, which needs no interpreter."""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from assistant.cli.main import main as run_program
from tests.support.loop_holds import Hold, LoopHolds


def main(holds: Path, stacks: Path) -> None:
    with holds.open("w", buffering=1) as file, stacks.open("w") as seen:
        faulthandler.register(signal.SIGUSR2, seen)

        def told(hold: Hold) -> None:
            file.write(json.dumps(asdict(hold)) + "\n")

        with LoopHolds(told=told):
            sys.argv = ["assistant", "run"]
            run_program()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
