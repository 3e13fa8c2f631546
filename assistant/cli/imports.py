"""`assistant import FILE`: reads what another program exported, in a child process, and hands it to the process that
serves the data folder, some messages at a time.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant.cli.calendar_import import import_calendar_file, open_calendar_files
from assistant.cli.home_stores import is_new_home, load_effective_settings
from assistant.cli.link import Link, LinkLost
from assistant.cli.logging_setup import log_to_file
from assistant.cli.open_link import open_home_locally, open_link, run_with_signals
from assistant.cli.output import clean_for_terminal, json_result, print_remark, print_text, require_utf8
from assistant.cli.shell import with_commands
from assistant.cli.transfer import import_home, is_own_export
from assistant.commands import imports as import_commands
from assistant.commands.imports import MAX_PIECE
from assistant.commands.items import Item
from assistant.core.calendar import utc_now
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.import_records import IMPORT_SOURCES, SOURCE_NAMES, ImportedBatch, batch_to_json
from assistant.core.plain_files import expand_home
from assistant.core.sessions import MAIN_SESSION
from assistant.core.text import pluralize
from assistant.imports.reader import ReadProgress, read_export
from assistant.imports.records import RejectedRecord
from assistant.settings.settings import Settings

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_AT_ONCE = 400
# The command and the daemon have each batch in memory some ten times, as text, JSON and bytes.
_CHARACTERS_AT_ONCE = 500_000
_SHOWN = 20
_MOST_SECONDS = 3600.0


Connect = Callable[[], Awaitable[Link]]
"""To the process that serves the data folder."""


class RejectedItem(Item):
    """A record of a file that is left out."""

    where: str
    why: str


class ImportReport(Item):
    """What came of an import."""

    id: int | None  # None where nothing was written
    source: str
    dry_run: bool
    conversations: int  # that were not there before
    messages: int  # that were added
    known: int  # that were there already
    entries: int  # events or contacts of a calendar or an address book
    rejected: list[RejectedItem]


@dataclass(slots=True)
class _Run:
    """An import under way."""

    name: str
    dry_run: bool
    id: int | None = None
    source: str = ""
    conversations: int = 0
    messages: int = 0
    known: int = 0
    rejected: list[RejectedRecord] = field(default_factory=list)
    seen: set[tuple[str, str]] = field(default_factory=set)
    waiting: list[ImportedBatch] = field(default_factory=list)

    def is_full(self) -> bool:
        count = sum(len(batch.messages) for batch in self.waiting)
        size = sum(len(message.text) for batch in self.waiting for message in batch.messages)
        return count >= _AT_ONCE or size >= _CHARACTERS_AT_ONCE

    async def hand_in(self, connect: Connect) -> None:
        """What waits, to the process that serves the data folder; of a dry run it is counted."""
        batches, self.waiting = self.waiting, []
        if not batches:
            return
        self.source = self.source or batches[0].source
        if self.dry_run:
            known = {(batch.source, batch.external_id) for batch in batches}
            self.conversations += len(known - self.seen)
            self.seen |= known
            self.messages += sum(len(batch.messages) for batch in batches)
            return
        link = await connect()
        if self.id is None:
            self.id = (await self._ask(link, "begin", "--", self.source, self.name))["id"]
        text = json.dumps([batch_to_json(batch) for batch in batches], ensure_ascii=False)
        pieces = [text[start : start + MAX_PIECE] for start in range(0, len(text), MAX_PIECE)]
        added = await self._ask(link, "add", "--", str(self.id), *pieces)
        self.conversations += added["conversations"]
        self.messages += added["messages"]
        self.known += added["known"]

    async def finish(self, connect: Connect) -> None:
        await self.hand_in(connect)
        if self.id is not None:
            await self._ask(await connect(), "finish", "--", str(self.id), str(len(self.rejected)))

    @staticmethod
    async def _ask(link: Link, *words: str) -> Any:
        return (await link.run_argv(("import", *words), MAIN_SESSION, _MOST_SECONDS)).value


@click.command("file")
@click.argument("path", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(IMPORT_SOURCES),
    metavar="KIND",
    help=f"What it is, by default found by its content: {', '.join(IMPORT_SOURCES)}.",
)
@click.option("--name", default="", metavar="NAME", help="Your own name in a chat with others, as the file has it.")
@click.option("--dry-run", is_flag=True, help="Count what is in it, and change nothing.")
@json_result(ImportReport)
def import_file(path: Path, kind: str | None, name: str, dry_run: bool) -> ImportReport:
    """Import a file, a ZIP or a folder of another program.

    ChatGPT, Claude, Telegram, WhatsApp, OpenClaw, Hermes, Letta, nanobot, Markdown and JSON lines are known by their
    content, a calendar (.ics) and an address book (.vcf) by their names. The same file again changes nothing, and a
    newer export adds what is new. Interrupted, the same command continues. What cannot be read is named by its number
    and left out.

    > assistant import ~/Downloads/chatgpt-export.zip
    > assistant import "WhatsApp Chat with Anna.txt" --name "Tom Smith"
    > assistant import result.json --dry-run
    > assistant import contacts.vcf
    """
    settings = load_effective_settings()
    log_to_file(settings.home.program_log)
    found = expand_home(require_utf8(str(path), "FILE")).absolute()
    if not found.exists():
        raise UsageError(f"There is no file {path}. Nothing was imported.")
    if not found.is_file() and not found.is_dir():
        # A pipe would be waited for, and a device has no end.
        raise UsageError(f"{path} is neither a file nor a folder. Nothing was imported.")
    if is_own_export(found) and is_new_home(settings.home) and not dry_run:
        return _make_home(settings, found)
    with open_calendar_files(found, settings.values.calendar.max_megabytes * 2**20) as files:
        if files:
            return _joined(list(_import_calendars(files, dry_run=dry_run)))
    run = _Run(found.name, dry_run)
    try:
        run_with_signals(_import(settings, run, found, kind or "", require_utf8(name, "NAME")))
    except KeyboardInterrupt:
        print_remark("It was interrupted. What was imported is kept; the same command continues with the rest.")
        raise
    except LinkLost:
        raise LinkLost(
            "The assistant stopped in the middle of it. What was imported is kept; the same command continues with the "
            "rest, also without the assistant."
        ) from None
    if not (run.messages or run.known or run.rejected):
        raise UsageError(
            f"Nothing in {found.name} is an export that is known here. Nothing was imported; `--kind` says what it is."
        )
    print_text("\n".join(_lines(run)))
    return _report(run)


def _make_home(settings: Settings, found: Path) -> ImportReport:
    """Fill the new data folder from an export of another one."""
    made = import_home(settings, found)
    print_text(
        f"Your data folder is made of {found.name}: {pluralize(made.messages, 'message')} of "
        f"{pluralize(made.sessions, 'conversation')}, with all that was learned. Settings and keys are not in it."
    )
    return ImportReport(
        id=None,
        source="nocturne",
        dry_run=False,
        conversations=made.sessions,
        messages=made.messages,
        known=0,
        entries=0,
        rejected=[],
    )


def _report(run: _Run) -> ImportReport:
    rejected = [RejectedItem(where=record.where, why=record.why) for record in run.rejected]
    return ImportReport(
        id=run.id,
        source=run.source,
        dry_run=run.dry_run,
        conversations=run.conversations,
        messages=run.messages,
        known=run.known,
        entries=0,
        rejected=rejected,
    )


def _joined(reports: Sequence[ImportReport]) -> ImportReport:
    """Of the calendars and address books of one file."""
    entries = sum(report.entries for report in reports)
    rejected = [record for report in reports for record in report.rejected]
    return reports[0].model_copy(update={"entries": entries, "rejected": rejected})


def _import_calendars(files: Sequence[Path], *, dry_run: bool) -> Iterator[ImportReport]:
    """Raises `UsageError`, which names those that were imported before."""
    for number, path in enumerate(files):
        try:
            yield _import_calendar(path, dry_run=dry_run)
        except UsageError as error:
            if dry_run or not number:
                raise
            why = str(error).replace(" Nothing was changed.", "").replace("Nothing was changed; ", "")
            done = ", ".join(it.name for it in files[:number])
            raise UsageError(
                f"{path.name} was not imported: {why} Imported before it and kept: {done}. Correct it and import the "
                "ZIP again; what is here already stays as it is."
            ) from None


def _import_calendar(path: Path, *, dry_run: bool) -> ImportReport:
    # Each one before it has changed the settings.
    brought = import_calendar_file(load_effective_settings(), path, dry_run=dry_run)
    entries = pluralize(brought.entries, "event" if brought.kind == "ics" else "contact")
    if dry_run:
        print_text(f"{path.name} has {entries}. Nothing was imported.")
    elif brought.is_new:
        print_text(f"Imported {entries} as {brought.name}. `assistant calendar remove {brought.name}` takes it back.")
    else:
        print_text(f"Nothing new: {path.name} is here already.")
    if brought.rejected:
        print_text("\n".join(_rejected_lines(brought.rejected)))
    return ImportReport(
        id=None,
        source=brought.kind,
        dry_run=dry_run,
        conversations=0,
        messages=0,
        known=0,
        entries=brought.entries,
        rejected=[RejectedItem(where=record.where, why=record.why) for record in brought.rejected],
    )


async def _import(settings: Settings, run: _Run, path: Path, kind: str, owner: str) -> None:
    """The data folder is opened, and made, only for what there is to write."""
    link: Link | None = None
    async with AsyncExitStack() as stack:

        async def connect() -> Link:
            nonlocal link
            if link is None:
                link = await stack.enter_async_context(open_link(settings, partial(open_home_locally, begins=True)))
            return link

        bar = stack.enter_context(_progress())
        task: TaskID | None = None
        try:
            async for found in read_export(path, kind, owner, settings.zone, utc_now()):
                if isinstance(found, RejectedRecord):
                    run.rejected.append(found)
                elif isinstance(found, ImportedBatch):
                    run.waiting.append(found)
                    if run.is_full():
                        await run.hand_in(connect)
                elif bar is not None:
                    task = _show(bar, task, found, run)
        finally:
            await run.hand_in(connect)
        await run.finish(connect)


def _progress() -> AbstractContextManager[Progress | None]:
    """A bar, where somebody looks on."""
    import sys

    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console  # only where somebody looks on
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)


def _show(bar: Progress, task: TaskID | None, progress: ReadProgress, run: _Run) -> TaskID:
    shown = task if task is not None else bar.add_task("Reading", total=None)
    done = run.messages + run.known
    bar.update(shown, total=max(progress.total, 1), completed=progress.at, description=pluralize(done, "message"))
    return shown


def _lines(run: _Run) -> Iterator[str]:
    source = SOURCE_NAMES.get(run.source, run.source)
    counts = f"{pluralize(run.messages, 'message')} in {pluralize(run.conversations, 'new conversation')}"
    if run.dry_run:
        yield f"{run.name} ({source}) has {counts.replace('new ', '')}. Nothing was imported."
    elif run.messages:
        yield f"Imported {counts} from {source} (import {run.id}). What they teach is learned in the next sleeps."
    elif run.known:
        yield f"Nothing new: all {pluralize(run.known, 'message')} are here already."
    else:
        yield "Nothing could be imported."
    if run.known and run.messages:
        yield f"{pluralize(run.known, 'message')} were here already."
    yield from _rejected_lines(run.rejected)


def _rejected_lines(rejected: Sequence[RejectedRecord]) -> Iterator[str]:
    if not rejected:
        return
    yield f"Left out: {pluralize(len(rejected), 'record')}."
    for record in rejected[:_SHOWN]:
        yield f"- {clean_for_terminal(record.where)}: {clean_for_terminal(record.why)}"
    if len(rejected) > _SHOWN:
        yield f"- and {len(rejected) - _SHOWN} more; `--json` lists them all."


imports = with_commands(import_commands.imports, import_file)
