"""Makes a backup in a child process of low priority, so that it does not slow answers down: the parent's side, and the
child, `python -m assistant.backup.process`.

The child reads one line of JSON, ends with its parent, and writes the result as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from datetime import datetime
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from assistant.core.backups import BackupKind, BackupResult
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, StoreError, UsageError
from assistant.core.processes import end_process
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.make import BackupRequest, make_backup
from assistant.store.files import WriteThrottle

# Lower than others; at the lowest priority it would never finish on a machine that is always busy.
_NICENESS = 10
_LOW_DISK_PRIORITY = ("ionice", "-c", "3")


@dataclass(frozen=True, slots=True)
class _Job:
    home: Path
    folder: str
    request: BackupRequest
    parent: int  # process id


@cache
def _job_json() -> TypeAdapter[_Job]:
    return TypeAdapter(_Job)


@cache
def _result_json() -> TypeAdapter[BackupResult]:
    return TypeAdapter(BackupResult)


async def make_in_child(folder: BackupFolder, workspace: bool, kind: BackupKind, now: datetime) -> BackupResult:
    """Call `make_backup` in a child process. Raises the same errors."""
    disk = _LOW_DISK_PRIORITY if shutil.which(_LOW_DISK_PRIORITY[0]) else ()
    command = (*disk, sys.executable, "-P", "-B", "-m", "assistant.backup.process")
    chosen = "" if folder.is_in_home else str(folder.path)
    job = _Job(folder.home, chosen, BackupRequest(kind, now, workspace), os.getpid())
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        raise StoreError(f"No backup was made: its process cannot be started ({error.strerror}).") from error
    try:
        out, err = await process.communicate(_job_json().dump_json(job) + b"\n")
    except BaseException:
        await end_process(process)
        # What cannot be deleted now is deleted at the next start.
        with contextlib.suppress(AssistantError), folder.lock():
            folder.remove_partial()
        raise
    if process.returncode == 0:
        return _result_json().validate_json(out)
    lines = err.decode(errors="replace").strip().splitlines()
    reason = lines[-1] if lines else f"its process ended with {process.returncode}"
    raise UsageError(reason) if process.returncode == UsageError.exit_code else StoreError(reason)


def main() -> int:
    """Make one backup at low priority, as the job on standard input says; returns the exit code. The result is JSON on
    standard output; it stops when its parent ends."""
    os.nice(_NICENESS)
    os.umask(0o077)
    job = _job_json().validate_json(sys.stdin.buffer.readline())
    try:
        result = make_backup(
            BackupFolder(job.home, job.folder), job.request, WriteThrottle(lambda: os.getppid() == job.parent)
        )
    except AssistantError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.buffer.write(_result_json().dump_json(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
