"""The seam by which what is remembered is found, under the rules that `assistant.ports` states for all."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from assistant.remembered import Recalled


class MemorySearch(Protocol):
    """Memories, and journal entries that are none yet, by what they say; it needs neither Mem0 nor a child process."""

    def search(
        self,
        question: str,
        scope: str,
        *,
        limit: int = 8,
        after: datetime | None = None,
        before: datetime | None = None,
    ) -> list[Recalled]:
        """Best first; what was noted until now is found. What no longer holds is found too, below what holds and with
        what took its place. With times: what was said in [after, before), then what was said earlier and held in
        between, and what was said later and names a day of that time. Raises `StoreError`."""
        ...

    def said(self, scope: str, after: datetime, before: datetime, *, limit: int = 8) -> list[Recalled]:
        """What was said in [after, before), the most important first. Raises `StoreError`."""
        ...
