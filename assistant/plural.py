"""Numbers of things, as people read them. Pure."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 memory`, `2,000 memories`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
