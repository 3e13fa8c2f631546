"""The note of a daemon that nobody needs: which process it is, and when it has something to do next. A host of a fleet
reads it, to stop the daemon and start it again in time.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from assistant.core.plain_files import read_own_file

_FILE = "run/idle.json"


def write_idle_note(home: Path, process: int, next_due: datetime | None) -> None:
    """Write the note; with None, remove it. Raises `OSError`."""
    path = home / _FILE
    if next_due is None:
        path.unlink(missing_ok=True)
        return
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps({"process": process, "next_due": next_due.isoformat()}))
    fresh.replace(path)


def read_idle_note(home: Path, process: int) -> datetime | None:
    """Return when this process has something to do next; None without a note of it."""
    try:
        note = json.loads(read_own_file(home / _FILE))
        return datetime.fromisoformat(note["next_due"]) if note["process"] == process else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
