"""Which entries no memory is made of, and why (F29). Pure.

What always holds: what a person, a tool or an import wrote down on purpose is no junk unless it says nothing at all.
"""

from __future__ import annotations

from assistant.core.memories import JournalEntry
from sleep.rules.contradiction import Reading
from sleep.rules.importance import is_small_talk

LEAST_IMPORTANCE = 0.25
_FOUND = frozenset({"extraction", "compaction", "reset"})


def unwanted(entry: JournalEntry, reading: Reading) -> str:
    """Why no memory is made of it; "" where one is."""
    if not any(char.isalnum() for char in entry.content):
        return "it has no words"
    if entry.source_type not in _FOUND:
        return ""
    if is_small_talk(entry.content):
        return "small talk"
    said = reading.statement
    if not (said.content or said.values or said.old or reading.slots):
        return "it names nothing"
    return "of little importance" if entry.importance < LEAST_IMPORTANCE else ""
