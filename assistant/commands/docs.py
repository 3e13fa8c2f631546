"""`docs`: the pages that explain the program. They are the files of `docs/`, of which a wheel has a copy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import TableCommand
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.text import lazy_regex, shorten_line

_LIST = "## Using it"
_ROW = lazy_regex(r"^\| \[(?P<title>[^]]+)\]\((?P<file>[\w./-]+\.md)\) \| (?P<about>.+) \|$", re.MULTILINE)
_FENCE = lazy_regex(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = lazy_regex(r"!?\[([^]\[]+)\]\((?!\w+:)([^()#\s]*)(?:#[^()\s]*)?\)")


@dataclass(frozen=True, slots=True)
class DocsPage:
    """A page of the documentation."""

    name: str  # as `assistant docs` takes it
    title: str
    about: str


@dataclass(frozen=True, slots=True)
class DocsAnswer:
    """A page of the documentation, or the list of them."""

    text: str  # Markdown
    pages: list[DocsPage]


def load_pages() -> dict[str, tuple[DocsPage, Path]]:
    """The pages for people and their files, by name, in the order of docs/index.md."""
    folder = _docs_dir()
    index = (folder / "index.md").read_text(encoding="utf-8").partition(_LIST)[2].partition("\n## ")[0]
    pages: dict[str, tuple[DocsPage, Path]] = {}
    for row in _ROW.finditer(index):
        file = folder / row["file"]
        # Where two have a name, the second is what `--help` says anyway.
        if file.is_file() and file.stem not in pages:
            pages[file.stem] = DocsPage(file.stem, row["title"], _LINK.sub(r"\1", row["about"])), file
    return pages


def read_page(asked: str, pages: Mapping[str, tuple[DocsPage, Path]]) -> tuple[DocsPage, str]:
    """A page by its name or file, and its Markdown. Raises `UsageError` with those like it where it is not there."""
    name = asked.lower().rpartition("/")[2].removesuffix(".md")
    if name not in pages:
        raise UsageError(f"There is no page {shorten_line(asked, 40)}. {_what_instead(name, pages)}")
    page, file = pages[name]
    return page, file.read_text(encoding="utf-8").rstrip()


def without_links(text: str, name: str, pages: Mapping[str, tuple[DocsPage, Path]]) -> tuple[str, list[str]]:
    """The Markdown of the page `name` with the words of its links to files alone, and the pages that these lead to."""
    linked = [Path(link[2]).stem for link in _LINK.finditer(_FENCE.sub("", text)) if link[2].endswith(".md")]
    return _LINK.sub(r"\1", text), [it for it in dict.fromkeys(linked) if it in pages and it != name]


@click.command(cls=TableCommand, reads=True, with_session=False)
@click.argument("page", required=False)
def docs(context: CommandContext, page: str | None) -> DocsAnswer:
    """Show a page that explains the program, or the list of them.

    > assistant docs
    > assistant docs telegram
    """
    pages = load_pages()
    if page is None:
        rows = [f"- `{of.name}`: {of.about}" for of, _ in pages.values()]
        return DocsAnswer("\n".join([*rows, "", "`/docs NAME` shows one."]), [of for of, _ in pages.values()])
    shown, text = read_page(page, pages)
    text, others = without_links(text, shown.name, pages)
    more = f"\n\nSee also: {', '.join(f'`/docs {it}`' for it in others)}" if others else ""
    return DocsAnswer(f"{text}{more}", [shown])


def _docs_dir() -> Path:
    """The folder of the pages: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).parents[1]
    shipped = package / "docs"
    return shipped if shipped.is_dir() else package.parent / "docs"


def _what_instead(name: str, pages: Mapping[str, tuple[DocsPage, Path]]) -> str:
    """Pages with a name like that, or that mention the word."""
    found = difflib.get_close_matches(name, pages, 3, 0.75)
    if found:
        return f"Did you mean {' or '.join(f'`/docs {like}`' for like in found)}?"
    word = re.compile(rf"\b{re.escape(name)}", re.IGNORECASE)
    texts = {of: file.read_text(encoding="utf-8") for of, (_, file) in pages.items()} if name else {}
    counts = {of: len(word.findall(text)) for of, text in texts.items()}
    mention = sorted((of for of, count in counts.items() if count), key=lambda of: -counts[of])[:5]
    return f"These mention it: {', '.join(mention)}." if mention else "`/docs` lists the pages."
