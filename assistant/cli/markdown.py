"""Markdown, as a terminal shows it."""

from __future__ import annotations

from rich.markdown import Markdown

from assistant.cli.tables import console
from assistant.cli.text import clean


def drawing(text: str) -> Markdown:
    # Addresses are written out: a link whose text says something else is a trap.
    return Markdown(clean(text), code_theme="ansi_dark", hyperlinks=False)


def draw(text: str) -> None:
    """On standard output."""
    console().print(drawing(text))
