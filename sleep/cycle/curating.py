"""The phase "curate": what the journal learned since goes into the notes of its day, into profiles, and for the owner
into MEMORY.md.

What always holds: every change carries a deterministic key, and how far was read is noted last, so that a night that
was cut off does each change once (I4); a file that a person is editing, or that cannot be written, is left alone and
named in the report, and the others are done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, tzinfo

from assistant.core.errors import AssistantError
from assistant.core.memories import JournalEntry, PhaseCursor
from assistant.core.memory_api import MemoryFilesPort, ProfilesPort
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.store_ports import Journal
from sleep.cycle.curation import day_notes, is_outdated, proposal
from sleep.cycle.outcome import Outcome
from sleep.cycle.profiles import profile_changes

PHASE = "curate"
_TARGET = "file:MEMORY.md"
_AT_ONCE = 200
_MOST_EDITS = 1_000
# Superseded entries of the last months: their lines leave MEMORY.md.
_LOOKED_BACK = 2_000


class Curating:
    def __init__(
        self,
        journal: Journal,
        profiles: ProfilesPort,
        files: MemoryFilesPort,
        zone: tzinfo,
        count: Callable[[str], int],
        most: int,
    ) -> None:
        """`count` gives the tokens of a text, `most` how many MEMORY.md may have."""
        self._journal = journal
        self._profiles = profiles
        self._files = files
        self._zone = zone
        self._count = count
        self._most = most

    async def run(self, cycle: int, outcome: Outcome, now: datetime) -> None:
        """Raises `StoreError` where even the journal cannot be read."""
        entries = list(self._unread())
        outcome.read = len(entries)
        for step in (self._note, self._know, self._curate):
            step(entries, cycle, outcome, now)
            await asyncio.sleep(0)
        if entries and not outcome.errors:
            self._journal.add((), now, reading=PhaseCursor(PHASE, "", 0, entries[-1].id or 0))

    def _unread(self) -> Iterator[JournalEntry]:
        last = self._journal.reading(PHASE, "", 0)
        while found := self._journal.after(last, limit=_AT_ONCE):
            yield from found
            last = found[-1].id or 0

    def _note(self, entries: Sequence[JournalEntry], cycle: int, outcome: Outcome, now: datetime) -> None:
        for note in day_notes(entries, self._zone):
            with _told(outcome):
                outcome.counted(
                    "notes", self._files.note(note.scope, note.day, note.time, note.lines, note.key, cycle=cycle)
                )

    def _know(self, entries: Sequence[JournalEntry], cycle: int, outcome: Outcome, now: datetime) -> None:
        for scope in dict.fromkeys(entry.scope for entry in entries):
            mine = [entry for entry in entries if entry.scope == scope]
            for change in profile_changes(mine, self._profiles.all(scope)):
                with _told(outcome):
                    self._profiles.save(change.profile, "sleep", now, key=change.key, cycle=cycle)
                    outcome.counted("profiles", 1)

    def _curate(self, entries: Sequence[JournalEntry], cycle: int, outcome: Outcome, now: datetime) -> None:
        with _told(outcome):
            stands = self._files.curated()
            edits = self._files.edits(OWNER_SCOPE, target=_TARGET, limit=_MOST_EDITS)
            former = [
                entry
                for entry in self._journal.entries(OWNER_SCOPE, limit=_LOOKED_BACK)
                if entry.superseded_by is not None
            ]
            mine = [entry for entry in entries if entry.scope == OWNER_SCOPE]
            # What the memory store learned late supersedes what an earlier night wrote, without anything new.
            if not mine and not is_outdated(stands, former):
                return
            wanted = proposal([*former, *mine], stands, edits, self._zone, self._count, self._most)
            if wanted != stands:
                self._files.curate(wanted, stands, "sleep", now, key=f"curate:{cycle}", cycle=cycle)
                outcome.counted("curated", 1)


class _told:  # noqa: N801 - reads as what it does
    """What fails inside is told in the report; what follows is done all the same."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, AssistantError):
            self._outcome.errors.append(str(error))
            return True
        return False
