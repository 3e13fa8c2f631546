"""The seams that the ends of sessions work through, under the rules that `assistant.core.ports` states for all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from assistant.core.generations import Ending, Generation, Reset, Spoken
from assistant.core.records import Record, SessionInfo


class Turnover(Protocol):
    """The part of `assistant.core.ports.Conversation` by which generations end."""

    def turn_over(self, ending: Ending, now: datetime) -> SessionInfo:
        """End the current generation and begin the next with the ending's words as its first record: log first, then
        one transaction, in which what the journal has not read is queued for it (F28). Either the old generation
        stands whole or the new one does.

        Raises `StaleView` where the generation is not the current one, or something was written since `ending.seq`;
        `UsageError` while a turn of it is open, or where there is nothing to resume. Then nothing was changed."""
        ...

    def unread(self) -> list[SessionInfo]:
        """Ended generations of which something waits to be read for the journal."""
        ...


class Generations(Protocol):
    """What sessions were and are (script.db and the master log). Reading alone."""

    def all(self, session: str, newest: int | None = None) -> list[Generation]:
        """Every generation of a session, or its newest alone, oldest first; none where there is no such session."""
        ...

    def spoken(self, session: str) -> Spoken | None:
        """The current generation; None where there is no such session. Takes no longer in a long session."""
        ...

    def last_seq(self, session: str) -> int:
        """The seq of the session's last record; 0 where there is none."""
        ...

    def records(self, session: str, generation: int) -> Iterator[Record]:
        """Everything that was logged in a generation and not undone, oldest first, whole."""
        ...


class Resets(Protocol):
    """Resets under way and past, one a generation (script.db)."""

    def begin(self, reset: Reset) -> Reset:
        """Note that a reset of the generation is under way; what was noted of an earlier try of it is replaced, but
        for the number of its tries."""
        ...

    def archived(self, session: str, generation: int) -> None:
        """The archive has the generation."""
        ...

    def wait(self, session: str, generation: int, note: str, retry_at: datetime) -> Reset:
        """It could not be carried out now; one more try is counted."""
        ...

    def withdraw(self, session: str, generation: int, now: datetime) -> bool:
        """It is wanted no longer: whether one was under way."""
        ...

    def unfinished(self) -> list[Reset]:
        """Of current generations, oldest first: those that wait, and those that a crash cut off."""
        ...

    def of(self, session: str) -> list[Reset]:
        """All of a session, oldest first."""
        ...
