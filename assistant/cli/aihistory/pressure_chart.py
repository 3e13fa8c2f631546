"""The saw-tooth of a conversation's context, drawn in a terminal: it fills, a compaction brings it down, and so on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import plotille

from assistant.core.checkpoints import Checkpoint

_HEIGHT = 10
# What plotille puts before the drawing, and at its end.
_MARGIN = 15
# With more teeth than this the drawing is one dark band.
_TEETH = 30
_NEVER_INSTALLED = ("started", "failed")
_SHARE = "%"
# From so many days on a tick names the date, else the hour; it has nine letters.
_MANY_DAYS = 8
_BLANKS = " \u2800"


@dataclass(frozen=True, slots=True)
class PressureDrop:
    """What a compaction did at a moment; in shares of the context, or in tokens where those were not noted."""

    at: datetime
    before: float
    after: float


def draw_pressure_chart(checkpoints: Sequence[Checkpoint], zone: ZoneInfo, width: int) -> str:
    """The last compactions of the conversation that has most of them, `width` columns wide; empty for fewer than two,
    which make no saw."""
    done = [c for c in checkpoints if c.state not in _NEVER_INSTALLED and not c.is_merge]
    if not done:
        return ""
    session = Counter(c.session for c in done).most_common(1)[0][0]
    of_session = sorted((c for c in done if c.session == session), key=lambda c: c.created_at)[-_TEETH:]
    if len(of_session) < 2 or of_session[0].created_at == of_session[-1].created_at:
        return ""
    shares = [fall for c in of_session if (fall := _in_shares(c)) is not None]
    if len(shares) == len(of_session):
        title = f"Context of {session}, in % of its room, at its last {len(shares)} compactions"
        return f"{title}\n{_plot(shares, zone, width, _SHARE)}"
    tokens = [PressureDrop(c.created_at, c.original_tokens, c.compressed_tokens) for c in of_session]
    title = f"What was compacted of {session}, in tokens, at its last {len(tokens)} compactions"
    return f"{title}\n{_plot(tokens, zone, width, 'tokens')}"


def _in_shares(c: Checkpoint) -> PressureDrop | None:
    """From the pressure before and after that a compaction noted among its key facts."""
    noted = c.key_facts.get("pressure")
    if not isinstance(noted, list) or len(noted) != 2:
        return None
    return PressureDrop(c.created_at, 100 * float(noted[0]), 100 * float(noted[1]))


def _plot(falls: Sequence[PressureDrop], zone: ZoneInfo, width: int, unit: str) -> str:
    moments = [fall.at.astimezone(zone) for fall in falls for _ in range(2)]
    heights = [height for fall in falls for height in (fall.before, fall.after)]
    figure = plotille.Figure()
    figure.width, figure.height = max(20, width - _MARGIN), _HEIGHT
    figure.with_colors, figure.origin = False, False
    figure.x_label, figure.y_label = "time", unit
    figure.set_y_limits(0, max(100.0 if unit == _SHARE else 1.0, *heights))
    figure.y_ticks_fkt = lambda low, _: f"{low:,.0f}"
    days = "%d %b %y" if (moments[-1] - moments[0]).days >= _MANY_DAYS else "%d. %H:%M"
    figure.x_ticks_fkt = lambda low, _: f"{low:{days}}"
    figure.plot(moments, heights)
    return "\n".join(line.rstrip(_BLANKS) for line in figure.show().splitlines())
