"""Reads an export in a child process (`child.py`).

Files of other programs are never parsed in this process, so a malicious file cannot affect it. The child waits while
its output is not read, so that memory stays limited.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from asyncio import StreamReader
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import datetime, tzinfo
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.import_records import ImportedBatch, batch_from_json
from assistant.core.processes import end_process
from assistant.imports.records import RejectedRecord

_READ_AT_ONCE = 64 * 1024


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """The child's progress in bytes; `total` is 0 until it is known."""

    at: int
    total: int


async def read_export(
    path: Path, kind: str, owner: str, zone: tzinfo, now: datetime
) -> AsyncIterator[ImportedBatch | RejectedRecord | ReadProgress]:
    """Raises `UsageError` if nothing can be read."""
    command = (sys.executable, "-P", "-B", "-X", "utf8", "-m", "assistant.imports.child")
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    request = {"path": str(path), "kind": kind, "owner": owner, "zone": str(zone), "now": now.isoformat()}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    total, is_whole = 0, False
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await process.stdin.drain()
        process.stdin.close()
        async with contextlib.aclosing(read_lines(process.stdout)) as lines:
            async for line in lines:
                found = json.loads(line) if line.strip() else {}
                if "total" in found:
                    total = found["total"]
                if "refused" in found:
                    raise UsageError(f"{path.name} {found['refused']}. What was read before is kept.")
                if "rejected" in found:
                    yield RejectedRecord(*found["rejected"])
                if "batch" in found:
                    yield batch_from_json(found["batch"])
                if "at" in found or "total" in found:
                    yield ReadProgress(found.get("at", 0), total)
                is_whole = is_whole or "done" in found
    finally:
        await end_process(process)
    if not is_whole:
        yield RejectedRecord(path.name, "what reads it ended before its end; the file may be damaged")


async def read_lines(stream: StreamReader) -> AsyncGenerator[bytes]:
    """Yield lines of any length. `StreamReader.readline` would need a limit as long as the longest, twice of which is
    read ahead of who writes them into the store."""
    begun = bytearray()
    while block := await stream.read(_READ_AT_ONCE):
        begun += block
        if b"\n" in block:
            *lines, begun = begun.split(b"\n")
            for line in lines:
                yield bytes(line)
    if begun:
        yield bytes(begun)
