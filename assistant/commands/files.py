"""`files` and `add`: what the assistant can find in your files, and files that you give it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, tzinfo

import click

from assistant.commands.completion import complete_files
from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.items import Item, TextOrNull
from assistant.commands.table import CommandGroup, TableCommand, words_argument
from assistant.core.calendar import format_local_time
from assistant.core.dataclass import dataclass
from assistant.core.errors import ToolError, UsageError
from assistant.core.quoting import quote_text
from assistant.core.text import pluralize
from assistant.store.search.files import FileCounts, FileHit, IndexedFile

STORED_OPTION = "--stored"
_MOST_SECONDS = 12 * 3600.0
_MOST_NAMED = 5
_LONGEST_NAME = 200
_FREE_TEXT = {"ignore_unknown_options": True}


@click.group(cls=CommandGroup, default="search")
def files() -> None:
    """Search your files: those of the workspace, and of the folders in `files.folders`.

    > assistant files search "notice period"
    > assistant files list
    """


class FileHitItem(Item):
    path: str
    place: TextOrNull
    start: int
    excerpt: str
    changed_at: datetime


def _render_hits(hits: Sequence[FileHit], zone: tzinfo) -> str:
    if not hits:
        return "No file has that."
    return "\n".join(
        f"- {quote_text(hit.path)}{hit.place and f', {hit.place}'}: {' '.join(hit.excerpt.split())}" for hit in hits
    )


@files.command(
    "search",
    result=list[FileHitItem],
    render=_render_hits,
    reads=True,
    with_session=False,
    context_settings=_FREE_TEXT,
)
@words_argument("text")
@click.option("--in", "inside", default="", metavar="PATH", help="Only in this folder or file.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 100), help="How many.")
async def search(context: CommandContext, text: str, inside: str, limit: int) -> list[FileHit]:
    """Find what your files say, by words and meaning.

    The best comes first, each with its page.

    > assistant files search "when does the lease end"
    """
    find = context.stores.file_search.search
    return await asyncio.to_thread(find, text, limit=limit, inside=inside.strip("/"))


class FileItem(Item):
    path: str
    bytes: int
    changed_at: datetime
    pages: int
    searchable: bool
    reason: TextOrNull


@dataclass(frozen=True, slots=True)
class _ListedFile:
    """A file as the listing shows it."""

    path: str
    bytes: int
    changed_at: datetime
    pages: int
    searchable: bool
    reason: str


def _render_files(listed: Sequence[_ListedFile], zone: tzinfo) -> str:
    return (
        "\n".join(_file_line(file, zone) for file in listed) or "No files are indexed. `/files index` reads them now."
    )


def _file_line(file: _ListedFile, zone: tzinfo) -> str:
    pages = f", {pluralize(file.pages, 'page')}" if file.pages else ""
    why = "" if file.searchable else f"; cannot be searched: it {file.reason.removeprefix('it ')}"
    return f"- {quote_text(file.path)}, {format_local_time(file.changed_at, zone)}{pages}{why}"


@files.command("list", result=list[FileItem], render=_render_files, reads=True, with_session=False)
@click.option("--unreadable", is_flag=True, help="Only those that cannot be searched.")
@click.option("--limit", default=1_000, show_default=True, type=click.IntRange(1, 1_000_000), help="How many.")
async def list_files(context: CommandContext, unreadable: bool, limit: int) -> list[_ListedFile]:
    """List the files that can be searched, and those that cannot.

    Each with its pages, or with the reason why it cannot be searched.

    > assistant files list --unreadable
    """
    index = context.stores.file_search.index
    listed = await asyncio.to_thread(index.list_files, state="unreadable" if unreadable else None, limit=limit)
    return [_listed(file) for file in listed]


def _listed(file: IndexedFile) -> _ListedFile:
    return _ListedFile(file.path, file.size, file.changed_at, file.pages, file.state == "read", file.reason)


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What a look at all files found."""

    read: int  # files that were new or changed
    removed: int
    files: int
    pages: int
    unreadable: int
    bytes: int  # of the index


def _render_index(result: IndexResult, zone: tzinfo) -> str:
    removed = f", {result.removed} gone" if result.removed else ""
    unreadable = f", {result.unreadable} of them without text that can be read" if result.unreadable else ""
    return (
        f"{pluralize(result.read, 'file')} read{removed}. {pluralize(result.files, 'file')} with "
        f"{pluralize(result.pages, 'page')} can be found{unreadable}."
    )


@files.command("index", render=_render_index, max_seconds=_MOST_SECONDS, with_session=False)
async def index(context: CommandContext) -> IndexResult:
    """Look at all files now, and read those that are new or changed.

    It happens automatically: every five minutes, and before the assistant searches.

    > assistant files index
    """
    indexer = context.services.file_indexer
    update = await indexer.update()
    await indexer.make_searchable()
    counts: FileCounts = await asyncio.to_thread(indexer.index.counts)
    return IndexResult(update.read, update.removed, counts.files, counts.pages, counts.unreadable, counts.bytes)


def is_address(source: str) -> bool:
    """Whether what was named is a page of the web."""
    return source.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class AddResult:
    """Files that were added, and what can be found of them."""

    files: Sequence[FileItem]
    pages: int
    not_searchable: int
    problems: Sequence[str]  # addresses that gave nothing, a line each


def _render_added(result: AddResult, zone: tzinfo) -> str:
    lines = []
    if result.files:
        pages = f", {pluralize(result.pages, 'page')}" if result.pages else ""
        count = len(result.files) - result.not_searchable
        every = "it can" if len(result.files) == 1 else "they can"
        can = every if count == len(result.files) else f"{count} of them can"
        lines.append(f"Added {pluralize(len(result.files), 'file')}{pages}; {can} be searched.")
    closed = [file for file in result.files if not file.searchable]
    lines += [f"- {quote_text(file.path)} cannot be searched: it {file.reason}." for file in closed[:_MOST_NAMED]]
    if len(closed) > _MOST_NAMED:
        lines.append(f"- and {len(closed) - _MOST_NAMED} more: `/files list --unreadable`")
    return "\n".join([*lines, *(f"- {problem}" for problem in result.problems)])


def _progress(stores: CommandStores, now: datetime) -> str:
    counts = stores.file_search.index.counts()
    return f"{pluralize(counts.files, 'file')}, {pluralize(counts.pages, 'page')} read"


@click.command(
    cls=TableCommand,
    render=_render_added,
    creates_home=True,
    max_seconds=_MOST_SECONDS,
    with_session=False,
    follow=_progress,
    exit_code=lambda result: 1 if result.problems else 0,
)
@click.argument(
    "sources", nargs=-1, metavar="FILE|FOLDER|URL...", type=click.UNPROCESSED, shell_complete=complete_files
)
@click.option(STORED_OPTION, "stored", multiple=True, hidden=True, type=click.UNPROCESSED, help="Sent with it.")
async def add(context: CommandContext, sources: Sequence[str], stored: Sequence[str]) -> AddResult:
    """Give the assistant files, folders or pages of the web: copied into its workspace, and searchable.

    In a conversation on a network, an address; files are sent there as attachments.

    > assistant add lease.pdf ~/Documents/letters
    > assistant add https://example.org/timetable.pdf
    """
    if not (sources or stored):
        raise UsageError("Say what to add: a file, a folder, or an address of the web. Nothing was added.")
    names, problems = list(stored), []
    for source in sources:
        if not is_address(source):
            raise UsageError(
                f"{source[:_LONGEST_NAME]!r} is no address of the web. From here only those can be added; send a file "
                "as an attachment, or use `assistant add` in a shell. Nothing was added."
            )
        try:
            names.append(await context.services.save_page(source, context.now))
        except ToolError as error:
            problems.append(str(error))
    indexer = context.services.file_indexer
    await indexer.update()
    await indexer.make_searchable()
    files = await asyncio.to_thread(indexer.index.files_by_path, names)
    items = [FileItem.model_validate(_listed(file)) for file in files]
    closed = sum(not item.searchable for item in items)
    return AddResult(items, sum(item.pages for item in items), closed, problems)
