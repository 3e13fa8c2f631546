"""What commands print: text as it is, Markdown, JSON, and remarks.

Answers go to standard output and nothing else does; everything said about them goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from assistant.cli.lazy import load
from assistant.cli.text import clean


def say(text: str) -> None:
    """Text as it is; cleaned when a terminal would read it."""
    sys.stdout.write(f"{clean(text) if sys.stdout.isatty() else text}\n")
    sys.stdout.flush()


def say_markdown(text: str) -> None:
    """Markdown: drawn where a terminal would show it, as it is for a program."""
    if sys.stdout.isatty():
        load("assistant.cli.markdown:draw")(text)
    else:
        say(text)


def tell(text: str) -> None:
    """A remark beside the output, on standard error; lost where that cannot be written."""
    sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{clean(text)}\n")
        sys.stderr.flush()


def as_json(value: Any, *, indent: int | None = 2) -> None:
    """`value` as JSON with its keys in the order given; without `indent`, on one line."""
    say(json.dumps(value, ensure_ascii=False, indent=indent, default=str))
