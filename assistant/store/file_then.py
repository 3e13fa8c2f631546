"""What a file said at an earlier time, told from the edits that are kept of it. Pure.

What always holds: an edit has the whole text before and after it, and when it was made and taken back. What a person
writes into the file is no edit: it shows in that the next edit found another text than the last one left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from assistant.core.memories import FileSnapshot, UndoableEdit

_Step = tuple[datetime, int, str, str]


def text_then(edits: Sequence[UndoableEdit], at: datetime, now: str, changed_at: datetime | None) -> FileSnapshot:
    """`edits` of one file in any order; `now` is what it says now, last changed at `changed_at`."""
    steps = sorted(_steps(edits))
    before = [step for step in steps if step[0] <= at]
    after = [step for step in steps if step[0] > at]
    left = before[-1][3] if before else None
    if after:
        found = after[0][2]
        return FileSnapshot(found if left is None else left, found == (left or ""))
    if left == now or (changed_at is not None and changed_at <= at):
        return FileSnapshot(now)
    return FileSnapshot("" if left is None else left, sure=False)


def _steps(edits: Sequence[UndoableEdit]) -> Iterator[_Step]:
    """When a text took the place of which."""
    for edit in edits:
        yield edit.at, 2 * (edit.id or 0), edit.before, edit.after
        if edit.undone_at is not None:
            yield edit.undone_at, 2 * (edit.id or 0) + 1, edit.after, edit.before
