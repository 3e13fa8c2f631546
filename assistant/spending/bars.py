"""Lengths drawn with block characters, in eighths of a column. Pure."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL, _REST = "█", "░"


def bar(share: float, width: int) -> str:
    """A length of `share` of `width` columns; something is drawn for whatever is more than nothing."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    eighths = max(eighths, 1) if share > 0 else 0
    whole, rest = divmod(eighths, 8)
    return _FULL * whole + (_EIGHTHS[rest] if rest else "")


def gauge(share: float, width: int) -> str:
    """How much of something is used, always `width` columns wide; full only where all is."""
    used = width if share >= 1 else min(int(max(share, 0.0) * width + 0.5), width - 1)
    return _FULL * used + _REST * (width - used)
