"""Identifies the data folder that owns a replica: a random name, the epoch under which it writes, and which home of the
replica it is. Stored in the folder itself; not part of backups or of the replica.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.core.plain_files import read_own_file

_FILE = "run/replica.json"
_REMEMBERED = "run/replica-resume.json"


@dataclass(frozen=True, slots=True)
class Holder:
    """A new one has a random name, and owns nothing yet."""

    name: str = field(default_factory=lambda: secrets.token_hex(16))
    epoch: int = 0
    home: str = ""  # "" where an earlier version stored it


def load_holder(home: Path) -> Holder | None:
    """Return the holder, None if the folder never owned a replica. Raises `StoreError`."""
    try:
        content = json.loads(read_own_file(home / _FILE))
        return Holder(str(content["holder"]), int(content["epoch"]), str(content.get("home", "")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{home / _FILE} cannot be read ({error}). Nothing was changed.") from error


def save_holder(home: Path, holder: Holder) -> None:
    """Raises `StoreError`."""
    _save(home / _FILE, {"holder": holder.name, "epoch": holder.epoch, "home": holder.home})


def save_remembered(home: Path, remembered: Mapping[str, Any], replica: tuple[int, int, str]) -> None:
    """Keep for the next start what the replica has at a stop; `replica`: its sequence, its base, the id of the key.
    Raises `StoreError`."""
    _save(home / _REMEMBERED, {**remembered, "replica": replica})


def take_remembered(home: Path, replica: tuple[int, int, str]) -> Mapping[str, Any] | None:
    """Return what the last stop kept, once; None after a crash, or if the replica is another by now."""
    path = home / _REMEMBERED
    try:
        remembered: Mapping[str, Any] = json.loads(path.read_bytes())
        path.unlink()
        return remembered if tuple(remembered["replica"]) == replica else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _save(path: Path, content: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.new")
        fresh.write_text(json.dumps(content))
        fresh.chmod(0o600)
        fresh.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}. Nothing was changed.") from error


def remove_holder(home: Path) -> None:
    """Forget on this machine that it ever owned the home."""
    (home / _FILE).unlink(missing_ok=True)
