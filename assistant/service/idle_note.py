"""The note of a daemon that nobody needs: which process it is, and when it has something to do next. A host of a fleet
reads it, to stop the daemon and start it again in time.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.plain_files import read_own_file

_FILE = "run/idle.json"
_MOST_SECONDS_BETWEEN_LOOKS, _LOOKS = 5.0, 10
EXIT_NO_NEWS = 75
"""Code with which `run --if-news` exits at once, since no network has anything for the home."""


@dataclass(frozen=True, slots=True)
class IdleOptions:
    """When a daemon notes that nobody needs it."""

    minutes: float  # without use
    polled: bool  # whether its networks are asked while it does not run, where that is possible

    @property
    def look_seconds(self) -> float:
        """How long the note may lag behind."""
        return min(_MOST_SECONDS_BETWEEN_LOOKS, self.minutes * 60 / _LOOKS)


@dataclass(frozen=True, slots=True)
class IdleNote:
    """Nobody needs the daemon now."""

    next_due: datetime
    lasts: bool  # for as long as it was told; otherwise for some seconds, so it is stopped only for one that waits
    polls: bool  # whether its networks are to be asked meanwhile whether they have anything


def write_idle_note(home: Path, process: int, note: IdleNote | None) -> None:
    """Write the note; with None, remove it. Raises `OSError`."""
    path = home / _FILE
    if note is None:
        path.unlink(missing_ok=True)
        return
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps({"process": process, **asdict(note)}, default=datetime.isoformat))
    fresh.replace(path)


def read_idle_note(home: Path, process: int) -> IdleNote | None:
    """Return what this process noted; None if it did not."""
    try:
        note = json.loads(read_own_file(home / _FILE))
        found = IdleNote(datetime.fromisoformat(note["next_due"]), bool(note["lasts"]), bool(note["polls"]))
        return found if note["process"] == process else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
