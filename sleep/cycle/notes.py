"""Daily notes: writes new journal entries to the note of the day on which they were said, after compactions and resets,
in naps and at night, so that today's prompt has today's notes. Outside of sleep only those of today and yesterday are
written: a note waits for the disk several times, and what was read for the first time may be of hundreds of days.

- Each entry is noted once, whoever runs this: the reading position is shared and saved after the notes. After a crash,
  duplicates are recognised by their text (I4).
- Entries already covered by a note of the day are skipped; a line that a person removed stays out.
- Apparent passwords, keys, PINs and card numbers are never noted (`sleep/rules/secrets.py`).
- A full file, or one that a person is editing, does not affect others.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime, tzinfo
from functools import partial

from assistant.context.memory_block import today_and_yesterday
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, UsageError
from assistant.core.logger import get_logger
from assistant.core.memories import JournalEntry, PhaseCursor
from assistant.core.memory_api import MemoryFilesPort
from assistant.core.quoting import replace_hidden_characters
from assistant.core.store_ports import Journal
from assistant.core.text import shorten
from sleep.cycle.phase import PhaseResult
from sleep.cycle.validate import KnownTexts
from sleep.rules.secrets import has_secret

log = get_logger()

NOTES_PHASE = "notes"
_AT_ONCE = 200
_NAMESPACE = uuid.UUID("0c6d4f0e-7a39-5d55-9d3c-5b1c2f4a9e10")
_LONGEST_LINE = 300
_NOT_FOR_NOTES = frozenset({"summary"})


@dataclass(frozen=True, slots=True)
class DayNote:
    """Lines for one scope's note of a day, with a header."""

    scope: str
    day: date
    time: str  # the header
    lines: tuple[str, ...]
    key: str  # idempotency key


@dataclass(frozen=True, slots=True)
class DayNotes:
    """Writes the daily notes. `rest` is awaited between those of a sleep, and lets turns go first."""

    journal: Journal
    files: MemoryFilesPort
    zone: tzinfo
    rest: Callable[[], Awaitable[None]] = partial(asyncio.sleep, 0)

    async def run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        """Run the phase. Raises `StoreError` if the journal cannot be read."""
        entries, last = read_new_entries(self.journal, NOTES_PHASE)
        outcome.read_count = len(entries)
        for note in build_day_notes(entries, self.zone):
            await self.rest()
            self._write(note, outcome, cycle)
        if not outcome.errors:
            self._mark_read(last, now)

    def write_or_log(self, now: datetime) -> None:
        """Write the notes of today and yesterday, after a compaction or before a reset, logging errors."""
        outcome = PhaseResult()
        try:
            entries, last = read_new_entries(self.journal, NOTES_PHASE)
            notes, (_, yesterday) = build_day_notes(entries, self.zone), today_and_yesterday(now, self.zone)
            recent = [note for note in notes if note.day >= yesterday]
            for note in recent:
                self._write(note, outcome, None)
            if len(recent) == len(notes) and not outcome.errors:
                self._mark_read(last, now)
        except AssistantError as error:
            outcome.errors.append(str(error))
        if outcome.errors:
            log.error("the notes of the day lack something until the next sleep", error="; ".join(outcome.errors))

    def _write(self, note: DayNote, outcome: PhaseResult, cycle: int | None) -> None:
        try:
            lines = self._new_lines(note)
            if lines and self.files.append_daily_note(note.scope, note.day, note.time, lines, note.key, cycle=cycle):
                outcome.add_count("notes", 1)
        except UsageError as error:
            # A full file is not retried.
            outcome.rejected.append(str(error))
        except AssistantError as error:
            outcome.errors.append(str(error))

    def _mark_read(self, last: int, now: datetime) -> None:
        # Whoever wrote notes meanwhile may have read on.
        if last > self.journal.read_position(NOTES_PHASE, "", 0):
            self.journal.add((), now, reading=PhaseCursor(NOTES_PHASE, "", 0, last))

    def _new_lines(self, note: DayNote) -> list[str]:
        known = KnownTexts(self.files.read_daily_note(note.scope, note.day).splitlines())
        return [line for line in note.lines if not known.contains(line)]


def read_new_entries(journal: Journal, phase: str) -> tuple[list[JournalEntry], int]:
    """Return the entries a phase has not read, and the id of the last one."""
    entries: list[JournalEntry] = []
    last = journal.read_position(phase, "", 0)
    while page := journal.entries_after(last, limit=_AT_ONCE):
        entries += page
        last = page[-1].id or 0
    return entries, last


def build_day_notes(entries: Sequence[JournalEntry], zone: tzinfo) -> list[DayNote]:
    """Group new entries into notes by scope and day (in `zone`), oldest first; the header is the time of the last
    entry."""
    grouped: dict[tuple[str, date], list[JournalEntry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.timestamp, entry.key)):
        is_noted = entry.source_type != "context_synthesis" and not _NOT_FOR_NOTES.intersection(entry.tags)
        if is_noted and not has_secret(entry.content):
            grouped.setdefault((entry.scope, entry.timestamp.astimezone(zone).date()), []).append(entry)
    return [_note(scope, day, grouped[scope, day], zone) for scope, day in sorted(grouped)]


def flat_line(content: str) -> str:
    """Format an entry's text as one line."""
    return shorten(replace_hidden_characters(" ".join(content.split())), _LONGEST_LINE)


def _note(scope: str, day: date, entries: Sequence[JournalEntry], zone: tzinfo) -> DayNote:
    lines = tuple(dict.fromkeys(f"- {flat_line(entry.content)}" for entry in entries))
    keys = " ".join(sorted(entry.key for entry in entries))
    time = entries[-1].timestamp.astimezone(zone).strftime("%H:%M")
    return DayNote(scope, day, time, lines, f"note:{day.isoformat()}:{uuid.uuid5(_NAMESPACE, f'{scope} {keys}').hex}")
