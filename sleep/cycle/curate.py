"""The phase "curate": updates profiles, and the owner's MEMORY.md, from new journal entries.

- Changes have deterministic keys, and the reading position is saved last, so that an interrupted cycle makes each
  change once (I4). A file that a person is editing or that is not writable is skipped and reported; the others are
  updated.
- In MEMORY.md only lines written by this phase are moved, replaced or removed; all others are preserved byte for byte.
  A line of ours that a person removed, manually or by undo, is not written again.
- Only the owner's statements worth a permanent line count: guests' entries, tasks, summaries, orders, questions,
  fragments and apparent secrets are skipped.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, tzinfo

from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError
from assistant.core.memories import JournalEntry, PhaseCursor, UndoableEdit
from assistant.core.memory_api import MemoryFilesPort, ProfilesPort
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.store_ports import Journal
from sleep.cycle.memory_md import (
    DATED_LINE,
    DECISIONS,
    PREFERENCES,
    MemoryLine,
    MemoryPage,
    choose_section,
    is_typed_again,
    is_worth_a_daily_line,
    normalise_line,
)
from sleep.cycle.notes import flat_line, read_new_entries
from sleep.cycle.phase import PhaseResult
from sleep.cycle.profiles import find_profile_changes
from sleep.rules.classifier import score_importance
from sleep.rules.secrets import has_secret

CURATE_PHASE = "curate"
_TARGET = "file:MEMORY.md"
_MOST_EDITS = 1_000
# Recent superseded entries, whose lines are removed from MEMORY.md.
_LOOKED_BACK = 2_000


@dataclass(frozen=True, slots=True)
class CurationPhase:
    journal: Journal
    profiles: ProfilesPort
    files: MemoryFilesPort
    zone: tzinfo
    count_tokens: Callable[[str], int]  # of a text
    max_tokens: int  # limit of MEMORY.md

    async def run(self, cycle: int, outcome: PhaseResult, now: datetime) -> None:
        """Run the phase. Raises `StoreError` if the journal cannot be read."""
        entries, last = read_new_entries(self.journal, CURATE_PHASE)
        outcome.read_count = len(entries)
        secrets = sum(has_secret(entry.content) for entry in entries)
        if secrets:
            outcome.add_count("secrets", secrets)
            entries = [entry for entry in entries if not has_secret(entry.content)]
        for step in (self._update_profiles, self._update_memory_file):
            step(entries, cycle, outcome, now)
            await asyncio.sleep(0)
        if outcome.read_count and not outcome.errors:
            self.journal.add((), now, reading=PhaseCursor(CURATE_PHASE, "", 0, last))

    def _update_profiles(
        self, entries: Sequence[JournalEntry], cycle: int, outcome: PhaseResult, now: datetime
    ) -> None:
        for scope in dict.fromkeys(entry.scope for entry in entries):
            of_scope = [entry for entry in entries if entry.scope == scope]
            for change in find_profile_changes(of_scope, self.profiles.list_profiles(scope)):
                with _errors_recorded(outcome):
                    self.profiles.save(change.profile, "sleep", now, key=change.key, cycle=cycle)
                    outcome.add_count("profiles", 1)

    def _update_memory_file(
        self, entries: Sequence[JournalEntry], cycle: int, outcome: PhaseResult, now: datetime
    ) -> None:
        with _errors_recorded(outcome):
            current = self.files.read_memory_file()
            edits = self.files.list_edits(OWNER_SCOPE, target=_TARGET, limit=_MOST_EDITS)
            owners = self.journal.entries(OWNER_SCOPE, limit=_LOOKED_BACK)
            former = [entry for entry in owners if entry.superseded_by is not None]
            new = [entry for entry in entries if entry.scope == OWNER_SCOPE]
            # Consolidation may supersede older entries without any new ones.
            over = _superseded(former)
            if not new and not any(normalise_line(line) in over for line in current.split("\n")):
                return
            today = now.astimezone(self.zone).date()
            wanted = propose_memory_md(
                [*former, *new], current, edits, self.zone, self.count_tokens, self.max_tokens, today
            )
            if wanted != current:
                self.files.replace_memory_file(wanted, current, "sleep", now, key=f"curate:{cycle}", cycle=cycle)
                outcome.add_count("curated", 1)


@contextmanager
def _errors_recorded(outcome: PhaseResult) -> Iterator[None]:
    """Record errors in the report and continue."""
    try:
        yield
    except AssistantError as error:
        outcome.errors.append(str(error))


_LEAST_IMPORTANCE = 0.5
_MOST_LINES = 400
_NOT_STANDING = frozenset({"summary", "task", "guest"})


def propose_memory_md(
    entries: Sequence[JournalEntry],
    current: str,
    edits: Sequence[UndoableEdit],
    zone: tzinfo,
    count_tokens: Callable[[str], int],
    max_tokens: int,
    today: date | None = None,
) -> str:
    """Return the new MEMORY.md: `current` updated with `entries`, each dated by its day in `zone`; entries about a day
    before `today` are dropped.

    `edits` are all edits of MEMORY.md, in any order, from which our own and removed lines are derived. An own line is
    kept unless its entry is superseded or more important lines need the space. The result has at most `max_tokens`
    tokens; it is `current` if other people's lines leave no room.
    """
    history = sorted(edits, key=lambda edit: edit.id or 0)
    ours, removed = _read_history(history, current)
    page = MemoryPage.parse(current, ours)
    out = removed | {normalise_line(line) for line in page.other_lines()} | _superseded(entries)
    day = date.min if today is None else today
    new = [_line(entry, zone) for entry in entries if _is_standing(entry, day)]
    new_texts = {normalise_line(line.text) for line in new}
    stood = [_own_line(line, section) for line, section in page.own_lines if normalise_line(line) not in new_texts]
    chosen: dict[str, MemoryLine] = {}
    for line in sorted((*new, *stood), key=lambda line: line.rank):
        said = normalise_line(line.text, folded=False)
        if normalise_line(line.text) not in out and is_worth_a_daily_line(said, _tags_of(line.section), day):
            chosen.setdefault(normalise_line(line.text), line)
    lines = _without_typos(list(chosen.values())[:_MOST_LINES])
    text = _fitting(page, lines, count_tokens, max_tokens)
    return current if text is None else text


def _superseded(entries: Iterable[JournalEntry]) -> set[str]:
    return {normalise_line(flat_line(entry.content)) for entry in entries if entry.superseded_by is not None}


# ---------------------------------------------------------------------------------------------------------------- lines


def _without_typos(lines: Sequence[MemoryLine]) -> list[MemoryLine]:
    """Of lines that differ only by a typo keep the first (more important or newer) one."""
    kept: list[MemoryLine] = []
    for line in lines:
        said = normalise_line(line.text, folded=False)
        if not any(is_typed_again(said, normalise_line(other.text, folded=False)) for other in kept):
            kept.append(line)
    return kept


def _tags_of(section: str) -> tuple[str, ...]:
    return {PREFERENCES: ("preference",), DECISIONS: ("decision",)}.get(section, ())


def _is_standing(entry: JournalEntry, today: date) -> bool:
    return (
        entry.scope == OWNER_SCOPE
        and entry.superseded_by is None
        and entry.source_type != "context_synthesis"
        and entry.importance >= _LEAST_IMPORTANCE
        and not _NOT_STANDING.intersection(entry.tags)
        and bool(entry.content.strip())
        and is_worth_a_daily_line(entry.content, entry.tags, today)
    )


def _line(entry: JournalEntry, zone: tzinfo) -> MemoryLine:
    """Return an entry's line; ranked by importance, then newest first."""
    day = entry.timestamp.astimezone(zone).date()
    text = f"- {flat_line(entry.content)} ({day.isoformat()})"
    return MemoryLine(text, choose_section(entry.content, entry.tags), (-entry.importance, -day.toordinal(), text))


def _own_line(line: str, section: str) -> MemoryLine:
    """Return an existing own line without its entry, ranked by its text."""
    dated = DATED_LINE.fullmatch(line)
    day = date.fromisoformat(dated["day"]).toordinal() if dated else 0
    return MemoryLine(line, section, (-score_importance("fact", normalise_line(line, folded=False)), -day, line))


def _count_lines(text: str) -> Counter[str]:
    """Count each non-blank line of a text."""
    return Counter(bare for line in text.split("\n") if (bare := line.rstrip("\r")).strip())


# -------------------------------------------------------------------------------------------------------------- history


def _read_history(history: Sequence[UndoableEdit], current: str) -> tuple[Counter[str], set[str]]:
    """Return our lines that nobody removed, with counts (a line also written by a person is theirs), and lines removed
    by others and not restored."""
    ours: Counter[str] = Counter()
    removed: set[str] = set()
    for before, after, by_sleep in _steps(history, current):
        stood, stands = _count_lines(before), _count_lines(after)
        ours -= stood - stands
        if by_sleep:
            ours += stands - stood
        else:
            old, new = set(map(normalise_line, stood)), set(map(normalise_line, stands))
            removed = (removed | (old - new)) - (new - old)
    return ours, removed


def _steps(history: Sequence[UndoableEdit], current: str) -> Iterator[tuple[str, str, bool]]:
    """Yield every change of the text, oldest first: the edits, and manual changes between them."""
    for edit, following in zip(history, [*(edit.before for edit in history[1:]), current], strict=False):
        yield edit.before, edit.after, edit.by == "sleep"
        yield edit.after, following, False


def _fitting(page: MemoryPage, chosen: Sequence[MemoryLine], count: Callable[[str], int], most: int) -> str | None:
    """Render as many of the most important lines as fit; None if the other lines alone exceed the limit."""
    fitting = bisect_right(range(len(chosen) + 1), most, key=lambda lines: count(page.render(chosen[:lines])))
    return page.render(chosen[: fitting - 1]) if fitting else None
