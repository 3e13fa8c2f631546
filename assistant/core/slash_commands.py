"""Commands that were typed on a bridge and wait for their answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command that was typed on a bridge and is not answered yet."""

    id: int
    bridge: str
    external_id: str
    session: str
    scope: str
    sender: str
    target: str
    text: str
    begun: bool  # whether it may have taken effect
