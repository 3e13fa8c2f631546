"""Reads the text of documents: PDF, Word, Excel, PowerPoint, OpenDocument, EPUB, HTML, e-mail, and picture metadata.

No document is parsed in this process. A child process (`extract.py`) does it, with limits on time and memory and
without the environment's secrets, and ends before the text is used, so a malicious document cannot affect the
assistant.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import OrderedDict
from dataclasses import field

from assistant.core.dataclass import dataclass
from assistant.core.plain_files import FileRefused
from assistant.core.processes import end_process
from assistant.documents.kinds import DocumentKind

MAX_DOCUMENT_BYTES = 100 * 1024 * 1024
MAX_TEXT_BYTES = 8 * 1024 * 1024
TIMEOUT_SECONDS = 45.0
_KEPT_BYTES = MAX_TEXT_BYTES
_DIED = "could not be read: what reads it ended ({why}); it may be damaged, or larger than it looks"


class ReaderUnavailable(FileRefused):
    """The file may be fine: no process can be started now."""


@dataclass(slots=True)
class DocumentReader:
    """Caches the texts of the last few documents, so that paging reads each once. `in_background`: with low
    priority."""

    timeout_seconds: float = TIMEOUT_SECONDS
    in_background: bool = False
    _texts: OrderedDict[tuple[int, int, int, int], bytes] = field(default_factory=OrderedDict)

    async def read(self, descriptor: int, kind: DocumentKind) -> bytes:
        """Return the text, in UTF-8, of the file open at a descriptor. Raises `FileRefused`."""
        state = os.fstat(descriptor)
        key = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
        if (known := self._texts.get(key)) is not None:
            self._texts.move_to_end(key)
            return known
        if state.st_size > MAX_DOCUMENT_BYTES:
            raise FileRefused(f"is larger than {MAX_DOCUMENT_BYTES // 2**20} MB, the most that is read")
        os.lseek(descriptor, 0, os.SEEK_SET)
        text = await self._extract(kind, descriptor)
        self._texts[key] = text
        while len(self._texts) > 1 and sum(map(len, self._texts.values())) > _KEPT_BYTES:
            self._texts.popitem(last=False)
        return text

    async def extract(self, kind: DocumentKind, data: bytes, *, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
        """Return the first `max_bytes` of the text, in UTF-8, of a document in memory. Raises `FileRefused`."""
        return await self._extract(kind, PIPE, data, max_bytes)

    async def _extract(
        self, kind: DocumentKind, source: int, data: bytes | None = None, max_bytes: int = MAX_TEXT_BYTES
    ) -> bytes:
        command: tuple[str, ...] = (sys.executable, "-P", "-B", "-X", "utf8", "-m", "assistant.documents.extract", kind)
        command += ("background",) if self.in_background else ()
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=source, stdout=PIPE, stderr=PIPE, env=environment, limit=2**16
            )
        except OSError as error:
            raise ReaderUnavailable(f"could not be read: no process can be started ({error.strerror})") from error
        try:
            async with asyncio.timeout(self.timeout_seconds):
                text, reason = await _communicate(process, data, max_bytes)
        except TimeoutError:
            raise FileRefused(f"took longer than {self.timeout_seconds:.0f} seconds to read") from None
        finally:
            await end_process(process)
        if process.returncode == FileRefused.exit_code and reason:
            raise FileRefused(reason[-1])
        if process.returncode != 0:
            raise FileRefused(_DIED.format(why=f"exit code {process.returncode}"))
        return text


async def _communicate(process: Process, data: bytes | None, max_bytes: int) -> tuple[bytes, list[str]]:
    """Return the first `max_bytes` of the child's output, and its error lines."""
    assert process.stdout is not None
    assert process.stderr is not None
    _, text, errors = await asyncio.gather(
        _feed(process, data), _read_at_most(process.stdout, max_bytes), _read_at_most(process.stderr, MAX_TEXT_BYTES)
    )
    await process.wait()
    return text, errors.decode(errors="replace").strip().splitlines()


async def _feed(process: Process, data: bytes | None) -> None:
    if data is None or process.stdin is None:
        return
    with contextlib.suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _read_at_most(stream: asyncio.StreamReader, max_bytes: int) -> bytes:
    """Read at most `max_bytes` and discard the rest, so that the child does not block."""
    kept = bytearray()
    while chunk := await stream.read(2**16):
        kept += chunk[: max_bytes - len(kept)]
    return bytes(kept)
