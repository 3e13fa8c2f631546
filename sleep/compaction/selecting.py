"""Which old messages say most, for the strategy that keeps those and no summary. Pure."""

from __future__ import annotations

from sleep.compaction.sheet import Sheet

_OF_ROLE = {"user": 2.0, "assistant": 1.0}


def most_telling(sheet: Sheet, cut: int) -> list[int]:
    """Indexes of the words said before `cut`, the most telling first: those that name most for their length, a person's
    own before the assistant's, newer before older where they are alike."""
    said = [n for n in range(cut) if sheet.rows[n].role in _OF_ROLE and not sheet.rows[n].tool_calls]
    return sorted(said, key=lambda n: (-_telling(sheet, n), -n))


def _telling(sheet: Sheet, index: int) -> float:
    row = sheet.rows[index]
    words = row.content.split()
    marks = sum(
        any(c.isdigit() for c in word) or (place > 0 and word[:1].isupper()) for place, word in enumerate(words)
    )
    return round(_OF_ROLE[row.role] * (1 + marks) / (20 + len(words)), 3)
