"""What the journal leaves in the files: notes of the day, and a proposal of MEMORY.md. Pure.

What always holds: in MEMORY.md only lines that sleep itself wrote are ever moved, replaced or left out; every other
line stays where it is, byte for byte. A line of sleep's that somebody took out, by hand or by taking an edit back, is
not written again. Only what the owner said counts: entries of guests, tasks and summaries are left out.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from itertools import pairwise

from assistant.context.quote import visible
from assistant.core.memories import JournalEntry, UndoableEdit
from assistant.core.sessions import OWNER_SCOPE
from sleep.cycle.page import DATED, Line, Page, words_of
from sleep.rules.importance import importance
from sleep.rules.sections import section_of

_NAMESPACE = uuid.UUID("0c6d4f0e-7a39-5d55-9d3c-5b1c2f4a9e10")
_LONGEST = 300
_LEAST_IMPORTANCE = 0.5
_MOST_LINES = 400
_NOT_FOR_NOTES = frozenset({"summary"})
_NOT_STANDING = frozenset({"summary", "task", "guest"})


@dataclass(frozen=True, slots=True)
class DayNote:
    """What `MemoryFiles.note` is given: lines for one scope's file of a day, with a header; `key` is deterministic."""

    scope: str
    day: date
    time: str
    lines: tuple[str, ...]
    key: str


def day_notes(entries: Sequence[JournalEntry], zone: tzinfo) -> list[DayNote]:
    """Entries that were just written, as notes of the day (in `zone`) on which each was said, oldest first; the header
    is the time of the last of them."""
    grouped: dict[tuple[str, date], list[JournalEntry]] = {}
    for entry in sorted(entries, key=lambda one: (one.timestamp, one.key)):
        if entry.source_type != "context_synthesis" and not _NOT_FOR_NOTES.intersection(entry.tags):
            grouped.setdefault((entry.scope, entry.timestamp.astimezone(zone).date()), []).append(entry)
    return [_note(scope, day, told, zone) for (scope, day), told in sorted(grouped.items(), key=lambda item: item[0])]


def proposal(
    entries: Sequence[JournalEntry],
    current: str,
    edits: Sequence[UndoableEdit],
    zone: tzinfo,
    count: Callable[[str], int],
    most: int,
) -> str:
    """MEMORY.md as it should be: `current` with what `entries` tell, each dated by its day in `zone`.

    `edits` are all the edits of MEMORY.md, in any order: they tell which lines are sleep's and which were taken out. A
    line of sleep's stays unless it is of an entry that is superseded, or more important ones need its place. The result
    has at most `most` tokens, or is `current` where what others wrote there leaves no room."""
    history = sorted(edits, key=lambda edit: edit.id or 0)
    page = Page.of(current, _sleeps(history, current))
    out = _removed(history, current) | {words_of(line) for line in page.kept()}
    out |= _superseded(entries)
    told = [_line(entry, zone) for entry in entries if _is_standing(entry)]
    new = {words_of(line.text) for line in told}
    stood = [_known(line, section) for line, section in page.ours if words_of(line) not in new]
    chosen: dict[str, Line] = {}
    for line in sorted((*told, *stood), key=lambda one: one.rank):
        if words_of(line.text) not in out:
            chosen.setdefault(words_of(line.text), line)
    text = _fitting(page, list(chosen.values())[:_MOST_LINES], count, most)
    return current if text is None else text


def is_outdated(current: str, entries: Iterable[JournalEntry]) -> bool:
    """Whether a line of an entry that is superseded stands there."""
    out = _superseded(entries)
    return bool(out) and any(words_of(line) in out for line in current.split("\n"))


def _superseded(entries: Iterable[JournalEntry]) -> set[str]:
    return {words_of(_flat(entry.content)) for entry in entries if entry.superseded_by is not None}


# ---------------------------------------------------------------------------------------------------------------- lines


def _note(scope: str, day: date, told: Sequence[JournalEntry], zone: tzinfo) -> DayNote:
    lines = tuple(dict.fromkeys(f"- {_flat(entry.content)}" for entry in told))
    keys = " ".join(sorted(entry.key for entry in told))
    time = told[-1].timestamp.astimezone(zone).strftime("%H:%M")
    return DayNote(scope, day, time, lines, f"note:{day.isoformat()}:{uuid.uuid5(_NAMESPACE, f'{scope} {keys}').hex}")


def _is_standing(entry: JournalEntry) -> bool:
    return (
        entry.scope == OWNER_SCOPE
        and entry.superseded_by is None
        and entry.source_type != "context_synthesis"
        and entry.importance >= _LEAST_IMPORTANCE
        and not _NOT_STANDING.intersection(entry.tags)
        and bool(entry.content.strip())
    )


def _line(entry: JournalEntry, zone: tzinfo) -> Line:
    """The most important first, then the newest."""
    day = entry.timestamp.astimezone(zone).date()
    text = f"- {_flat(entry.content)} ({day.isoformat()})"
    return Line(text, section_of(entry.content, entry.tags), (-entry.importance, -day.toordinal(), text))


def _known(line: str, section: str) -> Line:
    """A line of sleep's whose entry is not at hand: as important as its words make it."""
    dated = DATED.fullmatch(line)
    day = date.fromisoformat(dated["day"]).toordinal() if dated else 0
    return Line(line, section, (-importance("fact", words_of(line, folded=False)), -day, line))


def _flat(content: str) -> str:
    text = visible(" ".join(content.split()))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _of(text: str) -> Counter[str]:
    """How often a text has each line that says something."""
    return Counter(bare for line in text.split("\n") if (bare := line.rstrip("\r")).strip())


# -------------------------------------------------------------------------------------------------------------- history


def _sleeps(history: Sequence[UndoableEdit], current: str) -> Counter[str]:
    """The lines that sleep wrote and nobody took out, how often each; one that a person wrote as well is theirs."""
    ours: Counter[str] = Counter()
    for before, after, by_sleep in _steps(history, current):
        stood, stands = _of(before), _of(after)
        ours -= stood - stands
        if by_sleep:
            ours += stands - stood
    return ours


def _removed(history: Sequence[UndoableEdit], current: str) -> frozenset[str]:
    """What somebody else than sleep took out and did not put back."""
    removed: set[str] = set()
    for before, after, by_sleep in _steps(history, current):
        stood, stands = set(map(words_of, _of(before))), set(map(words_of, _of(after)))
        if not by_sleep:
            removed = (removed | (stood - stands)) - (stands - stood)
    return frozenset(removed)


def _steps(history: Sequence[UndoableEdit], current: str) -> Iterable[tuple[str, str, bool]]:
    """Every change of the text, oldest first: the edits, and between them what a person changed by hand or took
    back."""
    for edit, following in pairwise([*history, None]):
        if edit is None:
            continue
        yield edit.before, edit.after, edit.by == "sleep"
        yield edit.after, current if following is None else following.before, False


def _fitting(page: Page, chosen: Sequence[Line], count: Callable[[str], int], most: int) -> str | None:
    """With as many lines as fit, the most important ones; None where what others wrote is too much already."""
    low, high = 0, len(chosen)
    if count(page.text(())) > most:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if count(page.text(chosen[:middle])) <= most:
            low = middle
        else:
            high = middle - 1
    return page.text(chosen[:low])
