"""`assistant docs`: the pages that explain the program, drawn page by page in a terminal."""

from __future__ import annotations

import shutil
import sys

import click

from assistant.cli.output import json_result, make_console, print_prose, print_text, render_markdown
from assistant.commands.argv import rewrite_for_shell
from assistant.commands.docs import DocsPage, load_pages, read_page, without_links
from assistant.core.errors import UsageError

_WIDEST = 100


@click.command()
@click.argument("page", required=False, shell_complete=lambda context, parameter, word: _complete(word))
@json_result(list[DocsPage], "Print a JSON array: the pages, or the one that is named.")
def docs(page: str | None) -> list[DocsPage]:
    """Show a page that explains the program, or the list of them.

    A terminal shows it page by page, a pipe gets the Markdown.

    > assistant docs
    > assistant docs telegram
    > assistant docs settings | grep -i budget
    """
    pages = load_pages()
    if page is None:
        _print_list([of for of, _ in pages.values()])
        return [of for of, _ in pages.values()]
    try:
        shown, text = read_page(page, pages)
    except UsageError as error:
        raise UsageError(rewrite_for_shell(str(error))) from None
    if sys.stdout.isatty():
        _show(*without_links(text, shown.name, pages))
    else:
        print_text(text)
    return [shown]


def _complete(word: str) -> list[str]:
    return [name for name in load_pages() if name.startswith(word)]


def _print_list(pages: list[DocsPage]) -> None:
    width = max(len(page.name) for page in pages)
    if not sys.stdout.isatty() or shutil.get_terminal_size().columns < 3 * width:
        print_text("\n".join(f"{page.name}: {page.about}" for page in pages))
        return
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for page in pages:
        table.add_row(page.name, page.about)
    make_console().print(table)
    print_prose("\n`assistant docs NAME` shows one.")


def _show(text: str, others: list[str]) -> None:
    """Draw a page, in a pager where it is longer than the screen. The pages that it leads to are named at its end."""
    console = make_console()
    console.width = min(console.width, _WIDEST)
    with console.capture() as drawn:
        console.print(render_markdown(text))
        if others:
            console.print(f"\nSee also: {', '.join(f'assistant docs {other}' for other in others)}", markup=False)
    if drawn.get().count("\n") < shutil.get_terminal_size().lines:
        click.echo(drawn.get(), nl=False, color=True)
    else:
        click.echo_via_pager(drawn.get(), color=True)
