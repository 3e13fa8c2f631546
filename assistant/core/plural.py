"""Numbers of things, and durations, as people read them. Pure."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 memory`, `2,000 memories`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def lasting(seconds: float) -> str:
    """A duration: `12 s`, `4 min 5 s`, `3 h 20 min`, `12 d 3 h`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"
