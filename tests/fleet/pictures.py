"""Line charts as SVG: the pictures of `docs/fleet.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 300, 60, 20, 40, 50
_COLOURS = ("#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed", "#64748b")
_LINES = 4

Points = Sequence[tuple[float, float]]


def draw_lines(
    path: Path,
    title: str,
    x_label: str,
    y_label: str,
    lines: Mapping[str, Points],
    marks: Mapping[str, float] | None = None,
) -> None:
    """Draw each line over x; `marks` are moments with a name, drawn as vertical lines."""
    points = [point for line in lines.values() for point in line]
    right, top = (_round_up(max(point[axis] for point in points)) for axis in (0, 1))

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return _LEFT + across * x / right, _HEIGHT - _BOTTOM - up * y / top

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        _text(_LEFT, 18, title, "start", 14),
        _text((_LEFT + _WIDTH) / 2, _HEIGHT - 12, x_label, "middle"),
        _text(_LEFT, 34, y_label, "start"),
    ]
    for step in range(_LINES + 1):
        value = top * step / _LINES
        x, y = place(0, value)
        parts += [_line((x, y), place(right, value), "#e2e8f0"), _text(x - 6, y + 4, f"{value:g}", "end")]
        x, y = place(right * step / _LINES, 0)
        parts.append(_text(x, y + 18, f"{right * step / _LINES:.0f}", "middle"))
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in line)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(_text(_WIDTH - _RIGHT - 90 * (len(lines) - 1 - number), 34, name, "end", colour=colour))
    for name, at in (marks or {}).items():
        x, y = place(at, top)
        parts += [_line((x, y), place(at, 0), "#dc2626"), _text(x + 4, y + 12, name, "start", colour="#dc2626")]
    path.write_text("\n".join([*parts, "</svg>", ""]))


def _round_up(value: float) -> float:
    """Return a number that four lines divide evenly."""
    step, steps = 1, (1, 2, 3, 4, 5, 8)
    while all(each * step * _LINES < value for each in steps):
        step *= 10
    return float(min(each * step for each in steps if each * step * _LINES >= value) * _LINES)


def _text(x: float, y: float, text: str, anchor: str, size: int = 12, colour: str = "#334155") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
    )


def _line(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
