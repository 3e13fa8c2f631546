"""How a data folder is replicated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.replica.shipment import Cipher

MakeBase = Callable[[Path, datetime], Awaitable[Path]]
"""Makes a backup of the data folder, and returns its file. Raises `AssistantError`."""


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    """How a data folder is replicated."""

    on_failure: Literal["continue", "refuse"]
    timeout_seconds: float
    cipher: Cipher
    machine: str
    is_base_due: Callable[[datetime, datetime], bool]  # whether a base of one time is to be replaced at another
