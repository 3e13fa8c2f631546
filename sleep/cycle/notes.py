"""The notes of the days: what the journal learned since goes into the file of the day on which it was said, after each
compaction and reset, in naps and at night, so that the prompt of today has today's notes.

What always holds:
- Each entry is noted once, no matter who notes it: the position up to which the journal was noted is one for all, and
  is written after the notes. What a crash kept from being counted as noted is left out by its words (I4).
- What a note of the day says already, in more words, is not noted again; a line that a person took out stays out.
- What looks like a password, a key, a PIN or a card number is in no note (`sleep/rules/secrets.py`).
- A file that is full, or that a person is editing, keeps nothing else from being noted.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import date, datetime, tzinfo

import structlog

from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, UsageError
from assistant.core.memories import JournalEntry, PhaseCursor
from assistant.core.memory_api import MemoryFilesPort
from assistant.core.quoting import replace_hidden_characters
from assistant.core.store_ports import Journal
from assistant.core.text import shorten
from sleep.cycle.phase import PhaseResult
from sleep.cycle.validate import KnownTexts
from sleep.rules.secrets import has_secret

log = structlog.get_logger()

NOTES_PHASE = "notes"
_AT_ONCE = 200
_NAMESPACE = uuid.UUID("0c6d4f0e-7a39-5d55-9d3c-5b1c2f4a9e10")
_LONGEST_LINE = 300
_NOT_FOR_NOTES = frozenset({"summary"})


@dataclass(frozen=True, slots=True)
class DayNote:
    """Lines for one scope's file of a day, with a header."""

    scope: str
    day: date
    time: str  # the header
    lines: tuple[str, ...]
    key: str  # deterministic


@dataclass(frozen=True, slots=True)
class DayNotes:
    """Writes the notes of the days."""

    journal: Journal
    files: MemoryFilesPort
    zone: tzinfo

    async def run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        """The phase of a sleep. Raises `StoreError` where the journal cannot be read."""
        self._write(outcome, now, cycle)

    def write_or_log(self, now: datetime) -> None:
        """After a compaction or before a reset, neither of which fails for it."""
        outcome = PhaseResult()
        try:
            self._write(outcome, now, None)
        except AssistantError as error:
            outcome.errors.append(str(error))
        if outcome.errors:
            log.error("the notes of the day lack something until the next sleep", error="; ".join(outcome.errors))

    def _write(self, outcome: PhaseResult, now: datetime, cycle: int | None) -> None:
        entries, last = read_new_entries(self.journal, NOTES_PHASE)
        outcome.read_count = len(entries)
        for note in build_day_notes(entries, self.zone):
            try:
                lines = self._new_lines(note)
                if lines and self.files.append_daily_note(
                    note.scope, note.day, note.time, lines, note.key, cycle=cycle
                ):
                    outcome.add_count("notes", 1)
            except UsageError as error:
                # A full file takes nothing tomorrow either.
                outcome.rejected.append(str(error))
            except AssistantError as error:
                outcome.errors.append(str(error))
        if entries and not outcome.errors:
            self.journal.add((), now, reading=PhaseCursor(NOTES_PHASE, "", 0, last))

    def _new_lines(self, note: DayNote) -> list[str]:
        known = KnownTexts(self.files.read_daily_note(note.scope, note.day).splitlines())
        return [line for line in note.lines if not known.contains(line)]


def read_new_entries(journal: Journal, phase: str) -> tuple[list[JournalEntry], int]:
    """The entries that a phase has not read, and the id of the last one."""
    entries: list[JournalEntry] = []
    last = journal.read_position(phase, "", 0)
    while page := journal.entries_after(last, limit=_AT_ONCE):
        entries += page
        last = page[-1].id or 0
    return entries, last


def build_day_notes(entries: Sequence[JournalEntry], zone: tzinfo) -> list[DayNote]:
    """Entries that were just written, as notes of the day (in `zone`) on which each was said, oldest first; the header
    is the time of the last of them."""
    grouped: dict[tuple[str, date], list[JournalEntry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.timestamp, entry.key)):
        is_noted = entry.source_type != "context_synthesis" and not _NOT_FOR_NOTES.intersection(entry.tags)
        if is_noted and not has_secret(entry.content):
            grouped.setdefault((entry.scope, entry.timestamp.astimezone(zone).date()), []).append(entry)
    return [_note(scope, day, grouped[scope, day], zone) for scope, day in sorted(grouped)]


def flat_line(content: str) -> str:
    """What an entry says as one line of a file."""
    return shorten(replace_hidden_characters(" ".join(content.split())), _LONGEST_LINE)


def _note(scope: str, day: date, entries: Sequence[JournalEntry], zone: tzinfo) -> DayNote:
    lines = tuple(dict.fromkeys(f"- {flat_line(entry.content)}" for entry in entries))
    keys = " ".join(sorted(entry.key for entry in entries))
    time = entries[-1].timestamp.astimezone(zone).strftime("%H:%M")
    return DayNote(scope, day, time, lines, f"note:{day.isoformat()}:{uuid.uuid5(_NAMESPACE, f'{scope} {keys}').hex}")
