"""The child process that reads an export, `python -m assistant.imports.child`: what to read on standard input (one line
of JSON), the result on standard output, one JSON object per line:

    {"total": BYTES}
    {"at": BYTES, "batch": {...}}      consecutive messages of one conversation
    {"rejected": [WHERE, WHY]}
    {"refused": WHY}                   nothing more is read
    {"done": true}

It has limited memory, and writes or unpacks no file.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast
from zoneinfo import ZoneInfo

from assistant.core.import_records import ImportedBatch, batch_to_json
from assistant.imports.files import ExportRefused, list_files, read_file
from assistant.imports.records import ReadOptions

MAX_MEMORY = 768 * 1024 * 1024


class _CountingStream:
    """Counts the bytes read from a stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.read_bytes += len(data)
        return data


def _read_all(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    now = datetime.fromisoformat(request["now"])
    options = ReadOptions(now, ZoneInfo(request["zone"]), request["owner"])
    try:
        files = list_files(Path(request["path"]), now)
    except ExportRefused as error:
        yield {"refused": str(error)}
        return
    yield {"total": sum(file.size for file in files)}
    before = 0
    watched: list[_CountingStream] = []

    def watch(stream: BinaryIO) -> BinaryIO:
        watched[:] = [_CountingStream(stream)]
        return cast("BinaryIO", watched[0])

    for file in files:
        watched.clear()
        for read in read_file(file, request["kind"], options, watch):
            at = before + (watched[0].read_bytes if watched else 0)
            if isinstance(read, ImportedBatch):
                yield {"at": at, "batch": batch_to_json(read)}
            else:
                where = read.where if len(files) == 1 else f"{file.name}: {read.where}"
                yield {"rejected": [where, read.why]}
        before += file.size
    yield {"done": True}


def main() -> int:
    """The child process: see the module. The exit code is 0 even if something was refused, which the output says."""
    for kind, most in ((resource.RLIMIT_AS, MAX_MEMORY), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):  # macOS has no limit for the address space
            continue
    request = json.loads(sys.stdin.readline())
    try:
        for line in _read_all(request):
            sys.stdout.write(json.dumps(line, ensure_ascii=True) + "\n")
        sys.stdout.flush()
    except MemoryError:
        sys.stdout.write('\n{"refused": "needs more memory to read than it may have"}\n')
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
