"""Where each thread of this process is, asked from one of them.

`sys._current_frames` gives frames that their threads go on with: to follow their `f_back` can end an interpreter of
Python 3.11 with a segmentation fault (https://github.com/getsentry/sentry-python/issues/2386). `faulthandler` reads
them in one go, while nothing else has the interpreter.
"""

from __future__ import annotations

import faulthandler
import re
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

_THREAD = re.compile(r"(?:Current t|T)hread 0x([0-9a-f]+) ")
_PLACE = re.compile(r'  File "(.*)", line (\d+) in (.*)')
_WAITING = frozenset({"threading.py", "thread.py", "selectors.py"})


class Place(NamedTuple):
    file: str
    line: int
    function: str


class ThreadStacks:
    """Looked at by one thread at a time."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - for as long as the process looks

    def look(self) -> dict[int, list[Place]]:
        """By `threading.get_ident`: the places of each thread, the innermost first, at most 100 each."""
        self._file.seek(0)
        self._file.truncate()
        faulthandler.dump_traceback(self._file, all_threads=True)
        self._file.seek(0)
        found: dict[int, list[Place]] = {}
        places: list[Place] = []
        for line in self._file.read().decode(errors="replace").splitlines():
            if thread := _THREAD.match(line):
                places = found[int(thread[1], 16)] = []
            elif place := _PLACE.fullmatch(line):
                places.append(Place(place[1], int(place[2]), place[3]))
        return found


def waits(places: list[Place]) -> bool:
    """Whether a thread waits for something to do."""
    return not places or Path(places[0].file).name in _WAITING
