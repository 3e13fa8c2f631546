"""What commands print: text as it is, Markdown, JSON, and remarks.

Answers go to standard output and nothing else does; everything said about them goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from assistant.cli.text import clean_for_terminal


def print_text(text: str) -> None:
    """Text as it is; cleaned when a terminal would read it."""
    sys.stdout.write(f"{clean_for_terminal(text) if sys.stdout.isatty() else text}\n")
    sys.stdout.flush()


def print_markdown(text: str) -> None:
    """Markdown: drawn where a terminal would show it, as it is for a program."""
    if sys.stdout.isatty():
        from assistant.cli.tables import draw_markdown

        draw_markdown(text)
    else:
        print_text(text)


def print_remark(text: str) -> None:
    """A remark beside the output, on standard error; lost where that cannot be written."""
    sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{clean_for_terminal(text)}\n")
        sys.stderr.flush()


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """`value` as JSON with its keys in the order given; without `indent`, on one line."""
    print_text(json.dumps(value, ensure_ascii=False, indent=indent, default=str))
