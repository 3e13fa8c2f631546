"""`assistant docs`: the pages that explain the program. They are the files of `docs/`, of which a wheel has a copy."""

from __future__ import annotations

import difflib
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from assistant.cli.output import clean_line, json_result, make_console, print_prose, print_text, render_markdown
from assistant.core.errors import UsageError

_LIST = "## Using it"
_ROW = re.compile(r"^\| \[(?P<title>[^]]+)\]\((?P<file>[\w./-]+\.md)\) \| (?P<about>.+) \|$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[([^]\[]+)\]\((?!\w+:)([^()#\s]*)(?:#[^()\s]*)?\)")
_WIDEST = 100


@dataclass(frozen=True, slots=True)
class DocsPage:
    """A page of the documentation."""

    name: str  # as `assistant docs` takes it
    title: str
    about: str


def docs_dir() -> Path:
    """Return the folder of the pages: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).parents[1]
    shipped = package / "docs"
    return shipped if shipped.is_dir() else package.parent / "docs"


def load_pages() -> dict[str, tuple[DocsPage, Path]]:
    """The pages for people and their files, by name, in the order of docs/index.md."""
    folder = docs_dir()
    index = (folder / "index.md").read_text(encoding="utf-8").partition(_LIST)[2].partition("\n## ")[0]
    pages: dict[str, tuple[DocsPage, Path]] = {}
    for row in _ROW.finditer(index):
        file = folder / row["file"]
        # Where two have a name, the second is what `--help` says anyway.
        if file.is_file() and file.stem not in pages:
            pages[file.stem] = DocsPage(file.stem, row["title"], _LINK.sub(r"\1", row["about"])), file
    return pages


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
    name = page.lower().rpartition("/")[2].removesuffix(".md")
    if name not in pages:
        raise UsageError(f"There is no page {clean_line(page, 40)}. {_what_instead(name, pages)}")
    shown, file = pages[name]
    text = file.read_text(encoding="utf-8")
    if sys.stdout.isatty():
        _show(text, name, pages)
    else:
        print_text(text.rstrip())
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


def _what_instead(name: str, pages: dict[str, tuple[DocsPage, Path]]) -> str:
    """Pages with a name like that, or that mention the word."""
    found = difflib.get_close_matches(name, pages, 3, 0.75)
    if found:
        return f"Did you mean {' or '.join(f'`assistant docs {like}`' for like in found)}?"
    word = re.compile(rf"\b{re.escape(name)}", re.IGNORECASE)
    texts = {of: file.read_text(encoding="utf-8") for of, (_, file) in pages.items()} if name else {}
    counts = {of: len(word.findall(text)) for of, text in texts.items()}
    mention = sorted((of for of, count in counts.items() if count), key=lambda of: -counts[of])[:5]
    return f"These mention it: {', '.join(mention)}." if mention else "`assistant docs` lists the pages."


def _show(text: str, name: str, pages: dict[str, tuple[DocsPage, Path]]) -> None:
    """Draw a page, in a pager where it is longer than the screen. Links to other pages are named at its end."""
    linked = [Path(link[2]).stem for link in _LINK.finditer(_FENCE.sub("", text)) if link[2].endswith(".md")]
    others = [other for other in dict.fromkeys(linked) if other in pages and other != name]
    console = make_console()
    console.width = min(console.width, _WIDEST)
    with console.capture() as drawn:
        console.print(render_markdown(_LINK.sub(r"\1", text)))
        if others:
            console.print(f"\nSee also: {', '.join(f'assistant docs {other}' for other in others)}", markup=False)
    if drawn.get().count("\n") < shutil.get_terminal_size().lines:
        click.echo(drawn.get(), nl=False, color=True)
    else:
        click.echo_via_pager(drawn.get(), color=True)
