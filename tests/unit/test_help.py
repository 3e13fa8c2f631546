"""Help fits a terminal of 80 columns, and a group without a command shows what there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from assistant.cli.aihistory.main import aihistory
from assistant.cli.main import assistant
from tests.support.command_line import run_in_process

WIDTH = 80


def tree(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from tree(_context(command, name, context))


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    return click.Context(command, parent, name, terminal_width=WIDTH, max_content_width=WIDTH)


PAGES = {page.command_path: page for root in (assistant, aihistory) for page in tree(_context(root, root.name or ""))}
GROUPS = [path.split()[1:] for path, page in PAGES.items() if isinstance(page.command, click.Group) and " " in path]


@pytest.mark.parametrize("path", PAGES)
def test_help_fits_80_columns_and_cuts_no_line_short(path: str) -> None:
    lines = PAGES[path].command.get_help(PAGES[path]).splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage:")] == []


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_group_without_a_command_shows_what_there_is(tmp_path: Path, words: list[str]) -> None:
    done = run_in_process(tmp_path / "home", *words)
    assert done.returncode in (0, 1), done.err
    assert "Usage:" not in done.out + done.err
