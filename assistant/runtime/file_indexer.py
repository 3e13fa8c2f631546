"""Keeps the index of files up to the files: those of the workspace, and of the folders that the owner allows.

What always holds:
- It never holds the loop: looking, reading and storing happen in worker threads, documents are parsed in a child at low
  priority, a file at a time. A turn waits for none of it.
- A file that did not change is not read again; a kill costs the file that was being read. One that went or changed is
  found no longer as it was. A folder that cannot be reached keeps what is known of it.
- A file that cannot be read is named with its reason, and keeps nothing else from being read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Sequence

import structlog

from assistant.core.dataclass import dataclass
from assistant.core.plain_files import FileRefused
from assistant.core.text import pluralize, shorten
from assistant.documents.folders import FileFolders, FoundFile
from assistant.documents.kinds import HEAD_BYTES, DocumentKind, find_kind
from assistant.documents.passages import split_passages
from assistant.documents.reader import MAX_TEXT_BYTES, DocumentReader, ReaderUnavailable
from assistant.search.finder import SourceFinder
from assistant.store.home.workspace import EARLIER_FOLDER, SENT_FOLDER
from assistant.store.search.files import FileIndex

log = structlog.get_logger()

MOST_FILES = 100_000
"""Entries of one root that are looked at."""

_NO_TEXT = "is no text, nor a document that can be read"
_MOST_NAMED = 3
# Of one document, at low priority beside whatever else the machine does.
_MAX_SECONDS = 300.0
_LONGEST_NAME = 100
# Small texts of which so many are read and stored at a time, in some milliseconds.
_BATCH_FILES = 32
_SMALL = 64 * 1024


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """What one run did."""

    read: int = 0  # files
    unreadable: int = 0  # of these, that have no text that can be read
    removed: int = 0
    left: int = 0  # files that wait for the next run


class FileIndexer:
    def __init__(
        self,
        folders: FileFolders,
        index: FileIndex,
        finder: SourceFinder,
        documents: DocumentReader | None = None,
        most_files: int = MOST_FILES,
    ) -> None:
        """`finder` is over `index`; `most_files`: entries of one root that are looked at."""
        self._most = most_files
        self._folders = folders
        self.index = index
        self._finder = finder
        self._documents = documents or DocumentReader(_MAX_SECONDS, in_background=True)
        self._updating = asyncio.Lock()
        self.problems: tuple[str, ...] = ()  # what cannot be searched, a line each
        self.waiting = 0  # files that are still to be read, as of the last look

    async def update(self, max_seconds: float | None = None) -> IndexUpdate:
        """Look at all files, and take in what changed, for `max_seconds` at most. Raises `StoreError`."""
        ends = time.monotonic() + max_seconds if max_seconds is not None else None
        async with self._updating:
            changed, gone, problems = await asyncio.to_thread(self._compare)
            if gone:
                await asyncio.to_thread(self.index.remove, gone)
            self.waiting = len(changed)
            read = unreadable = 0
            for batch in _batches(changed):
                if ends is not None and time.monotonic() >= ends:
                    break
                unreadable += await self._read(batch)
                read += len(batch)
                self.waiting = len(changed) - read
            self.problems = (*problems, *await asyncio.to_thread(self._list_unreadable))
            return IndexUpdate(read, unreadable, len(gone), self.waiting)

    async def make_searchable(self) -> None:
        """Have the search index follow, a little at a time. Raises `StoreError`."""
        while await asyncio.to_thread(self._finder.index_next_batch):
            pass

    # ---------------------------------------------------------------------------------------------------------- looking

    def _compare(self) -> tuple[list[FoundFile], list[str], list[str]]:
        """The files that are new or changed, small ones first; the paths of those that are gone; what could not be
        looked at."""
        known, changed, problems = self.index.known_files(), [], []
        unseen = set(known)
        for root in self._folders.roots():
            try:
                found, is_all = self._folders.list_files(root, self._most)
            except FileRefused as error:
                problems.append(f"The folder {root} {error}; what was read of it before is still found.")
                found, is_all = [], False
            else:
                if not is_all:
                    where = root or "workspace"
                    problems.append(
                        f"The folder {where} has more than {self._most:,} entries; the others are not read."
                    )
            if not is_all:
                unseen = {path for path in unseen if not path.startswith(f"{root}/" if root else "")}
            for file in found:
                # What was sent is a copy of another file, and earlier texts are no answer to a question of today.
                if not file.path.startswith((f"{SENT_FOLDER}/", f"{EARLIER_FOLDER}/")):
                    unseen.discard(file.path)
                    if known.get(file.path) != file:
                        changed.append(file)
        return sorted(changed, key=lambda file: file.size), sorted(unseen), problems

    def _list_unreadable(self) -> list[str]:
        files = self.index.list_files(state="unreadable", limit=_MOST_NAMED + 1)
        lines = [f"The file {shorten(file.path, _LONGEST_NAME)!r} {file.reason}." for file in files[:_MOST_NAMED]]
        if len(files) > _MOST_NAMED:
            more = self.index.counts().unreadable - _MOST_NAMED
            lines.append(f"{pluralize(more, 'more file')} cannot be searched; `assistant files list --unreadable`.")
        return lines

    # ---------------------------------------------------------------------------------------------------------- reading

    async def _read(self, batch: Sequence[FoundFile]) -> int:
        """How many of them have no text that can be read."""
        epoch = self.index.epoch
        documents, unreadable = await asyncio.to_thread(self._read_texts, batch, epoch)
        for file, kind in documents:
            unreadable += not await self._read_document(file, kind, epoch)
        return unreadable

    def _read_texts(self, batch: Sequence[FoundFile], epoch: int) -> tuple[list[tuple[FoundFile, DocumentKind]], int]:
        """Take plain texts in; those that a child has to read, and how many no reader knows."""
        documents: list[tuple[FoundFile, DocumentKind]] = []
        unreadable = 0
        for file in batch:
            try:
                with self._folders.open(file.path, "plain file") as descriptor:
                    data = os.pread(descriptor, MAX_TEXT_BYTES if file.size <= _SMALL else HEAD_BYTES, 0)
                    kind = find_kind(file.path, data[:HEAD_BYTES])
                    if kind == "text" and len(data) < file.size:
                        data = os.pread(descriptor, MAX_TEXT_BYTES, 0)
            except (FileRefused, OSError) as error:
                log.info("a file could not be opened for the index", reason=str(error))
                continue
            text = _plain_text(data) if kind == "text" else None
            if kind is not None and text is None:
                documents.append((file, kind))
            else:
                self.index.put(file, split_passages(text or "", "text"), "" if kind else _NO_TEXT, epoch=epoch)
                unreadable += kind is None
        return documents, unreadable

    async def _read_document(self, file: FoundFile, kind: DocumentKind, epoch: int) -> bool:
        reason, text = "", b""
        try:
            with contextlib.ExitStack() as stack:
                opening = self._folders.open(file.path, "plain file")
                descriptor = await asyncio.to_thread(stack.enter_context, opening)
                text = await self._documents.read(descriptor, kind)
        except ReaderUnavailable as error:
            log.warning("a file waits to be read for the index", reason=str(error))
            return False
        except FileRefused as error:
            reason = str(error)
        await asyncio.to_thread(self._put_document, file, kind, text, reason, epoch)
        return not reason

    def _put_document(self, file: FoundFile, kind: DocumentKind, text: bytes, reason: str, epoch: int) -> None:
        self.index.put(file, split_passages(text.decode("utf-8", "replace"), kind), reason, epoch=epoch)


def _batches(files: Sequence[FoundFile]) -> list[tuple[FoundFile, ...]]:
    """Small files together, others one by one."""
    small = [file for file in files if file.size <= _SMALL]
    groups = [tuple(small[place : place + _BATCH_FILES]) for place in range(0, len(small), _BATCH_FILES)]
    return [*groups, *((file,) for file in files[len(small) :])]


def _plain_text(data: bytes) -> str | None:
    """UTF-8, of which the last character may be cut; None for any other encoding."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode() if error.start >= len(data) - 3 and len(data) >= MAX_TEXT_BYTES else None
