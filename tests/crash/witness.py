"""What the world outside the home saw: model calls, deliveries, acknowledgements, effects of tools.

It is a file beside the home, appended to with one write a line, so that it outlives the process that is killed. Its
writes are kill points like any other: killed before one, the world has not seen it; killed before the next call of any
kind, it has. Where it was killed in the middle of one, it has not.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def effect_log_path(home: Path) -> Path:
    """Where the witness of a home lies."""
    return home.with_name(f"{home.name}.witness")


class EffectLog:
    """Appends to, and reads back, what was seen."""

    def __init__(self, home: Path) -> None:
        self._path = effect_log_path(home)
        self._file = os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)

    def record(self, what: str, **details: Any) -> None:
        """Note that something happened, before anybody goes on."""
        os.write(self._file, ("\n" + json.dumps({"what": what, **details}) + "\n").encode())

    def recorded(self, what: str) -> list[dict[str, Any]]:
        """What was seen of one kind, over all processes so far, oldest first."""
        lines = self._path.read_text(encoding="utf-8").splitlines()
        whole = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [seen for seen in whole if seen["what"] == what]
