"""Keeps the file index up to date with the workspace and the folders the owner allows.

- It never blocks the event loop: scanning, reading and storing run in worker threads, documents are parsed in a
  low-priority child process, one at a time. No turn waits for it.
- Unchanged files are not read again; a kill loses only the file being read. Deleted or changed files are removed from
  the index or updated. An unreachable folder keeps its indexed content.
- An unreadable file is listed with its reason, and does not affect others.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Sequence

from assistant.core.dataclass import dataclass
from assistant.core.logger import get_logger
from assistant.core.plain_files import FileRefused
from assistant.core.text import pluralize, shorten
from assistant.documents.folders import FileFolders, FoundFile
from assistant.documents.kinds import HEAD_BYTES, DocumentKind, find_kind
from assistant.documents.passages import split_passages
from assistant.documents.reader import MAX_TEXT_BYTES, DocumentReader, ReaderUnavailable
from assistant.search.finder import SourceFinder
from assistant.store.home.workspace import EARLIER_FOLDER, SENT_FOLDER
from assistant.store.search.files import FileIndex

log = get_logger()

MOST_FILES = 100_000
"""Maximum number of entries scanned per root."""

_NO_TEXT = "is no text, nor a document that can be read"
_MOST_NAMED = 3
# Per document, at low priority.
_MAX_SECONDS = 300.0
_LONGEST_NAME = 100
# Number of small texts read and stored per batch, in some milliseconds.
_BATCH_FILES = 32
_SMALL = 64 * 1024


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """The result of one run."""

    read: int = 0  # files
    unreadable: int = 0  # of `read`, those without readable text
    removed: int = 0
    left: int = 0  # files left for the next run


class FileIndexer:
    def __init__(
        self,
        folders: FileFolders,
        index: FileIndex,
        finder: SourceFinder,
        documents: DocumentReader | None = None,
        most_files: int = MOST_FILES,
    ) -> None:
        """`finder` searches `index`; `most_files` limits the entries scanned per root."""
        self._most = most_files
        self._folders = folders
        self.index = index
        self._finder = finder
        self._documents = documents or DocumentReader(_MAX_SECONDS, in_background=True)
        self._updating = asyncio.Lock()
        self.problems: tuple[str, ...] = ()  # what cannot be searched, one line each
        self.waiting = 0  # files still to be read, as of the last scan

    async def update(self, max_seconds: float | None = None) -> IndexUpdate:
        """Scan all files and index changes, for at most `max_seconds`. Raises `StoreError`."""
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
        """Update the search index in small batches. Raises `StoreError`."""
        while await asyncio.to_thread(self._finder.index_next_batch):
            pass

    # ---------------------------------------------------------------------------------------------------------- looking

    def _compare(self) -> tuple[list[FoundFile], list[str], list[str]]:
        """Return new or changed files, small ones first; paths of deleted files; and scan problems."""
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
                # Sent files are copies, and earlier versions do not answer current questions.
                if not file.path.startswith((f"{SENT_FOLDER}/", f"{EARLIER_FOLDER}/")):
                    unseen.discard(file.path)
                    if known.get(file.path) != file:
                        changed.append(file)
        return sorted(changed, key=lambda file: file.size), sorted(unseen), problems

    def _list_unreadable(self) -> list[str]:
        # A recording or a program has no text, and nothing is wrong with it.
        files = self.index.list_files(state="unreadable", except_reason=_NO_TEXT)
        lines = [f"The file {shorten(file.path, _LONGEST_NAME)!r} {file.reason}." for file in files[:_MOST_NAMED]]
        if len(files) > _MOST_NAMED:
            more = len(files) - _MOST_NAMED
            lines.append(f"{pluralize(more, 'more file')} cannot be searched; `assistant files list --unreadable`.")
        return lines

    # ---------------------------------------------------------------------------------------------------------- reading

    async def _read(self, batch: Sequence[FoundFile]) -> int:
        """Read files and return how many have no readable text."""
        epoch = self.index.epoch
        documents, unreadable = await asyncio.to_thread(self._read_texts, batch, epoch)
        for file, kind in documents:
            unreadable += not await self._read_document(file, kind, epoch)
        return unreadable

    def _read_texts(self, batch: Sequence[FoundFile], epoch: int) -> tuple[list[tuple[FoundFile, DocumentKind]], int]:
        """Index plain texts; return documents for the child process, and the number of unreadable files."""
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
    """Group small files into batches; others are read one by one."""
    small = [file for file in files if file.size <= _SMALL]
    groups = [tuple(small[place : place + _BATCH_FILES]) for place in range(0, len(small), _BATCH_FILES)]
    return [*groups, *((file,) for file in files[len(small) :])]


def _plain_text(data: bytes) -> str | None:
    """Decode UTF-8, tolerating a truncated last character; None for other encodings."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode() if error.start >= len(data) - 3 and len(data) >= MAX_TEXT_BYTES else None
