"""A change of a memory file or a profile, as the lines that went and the lines that came. Pure."""

from __future__ import annotations

import difflib

from assistant.core.memories import UndoableEdit
from assistant.core.text import pluralize

_AROUND = 2
_MOST_LINES = 4000
_NO_NEWLINE = "\\ No newline at end of file"


def diff(edit: UndoableEdit) -> str:
    """A unified diff, without a newline at its end; "" where nothing changed. What was taken back is shown as what it
    had changed. Of texts of very many lines only their number is told, since comparing them takes too long."""
    before, after = _lines(edit.before), _lines(edit.after)
    if edit.before == edit.after:
        return ""
    if max(len(before), len(after)) > _MOST_LINES:
        return f"{edit.target}: {pluralize(len(before), 'line')} became {len(after):,}"
    name = edit.target.partition(":")[2] or edit.target
    shown: list[str] = []
    for line in difflib.unified_diff(before, after, name, name, n=_AROUND):
        shown.append(line.removesuffix("\n"))
        if not line.endswith("\n"):
            shown.append(_NO_NEWLINE)
    return "\n".join(shown)


def _lines(text: str) -> list[str]:
    """Only a line feed ends a line: other signs that some count as line ends are part of what somebody wrote."""
    pieces = text.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
