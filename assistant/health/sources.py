"""The stores that tell how a home is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assistant.core.backups import Backup
from assistant.core.memory_api import ConsolidationsPort
from assistant.core.ports import BreakersPort, LedgerPort
from assistant.core.store_ports import Conversation, Journal, Outbox


class Forgettings(Protocol):
    def unfinished(self) -> Sequence[object]:
        """What was begun and not finished. Raises `StoreError` where nobody can tell."""
        ...


class AtHand(Protocol):
    def at_hand(self, memory_ids: Sequence[str]) -> Mapping[str, object]:
        """Those that can be read in this process, by their ids."""
        ...

    def fault(self) -> str:
        """Why none can be read; "" where they can."""
        ...


class BackupsKept(Protocol):
    def all(self) -> Sequence[Backup]:
        """Oldest first. Raises `StoreError` where nobody can tell."""
        ...


class Due(Protocol):
    def next_at(self) -> datetime | None:
        """When the next reminder or schedule is due; None where nothing waits."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """Those of one home."""

    conversation: Conversation
    outbox: Outbox
    ledger: LedgerPort
    breakers: BreakersPort
    journal: Journal
    consolidations: ConsolidationsPort
    forgetting: Forgettings
    memories: AtHand
    backups: BackupsKept
    jobs: Due
