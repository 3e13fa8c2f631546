"""What commands draw for people with rich: tables, times, Markdown. Plain where the output is not a terminal, without
colours under NO_COLOR.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from assistant.cli.text import clean_for_terminal

# Wide enough that nothing is folded where the output is read by a program.
_WIDTH_OF_A_FILE = 240


def make_console() -> Console:
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = (), empty: str
) -> None:
    """Rows for people; `right` names the columns of numbers, `empty` is said where there are no rows."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        drawn.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(clean_for_terminal(cell)) for cell in row))
    make_console().print(drawn if drawn.row_count else Text(empty))


def format_local_time(moment: datetime | None, zone: ZoneInfo) -> str:
    """A time as people read it, in the home's zone; empty for none."""
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S") if moment else ""


def render_markdown(text: str) -> Markdown:
    # Addresses are written out: a link whose text says something else is a trap.
    return Markdown(clean_for_terminal(text), code_theme="ansi_dark", hyperlinks=False)


def draw_markdown(text: str) -> None:
    """On standard output."""
    make_console().print(render_markdown(text))
