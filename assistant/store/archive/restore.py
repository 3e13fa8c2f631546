"""Restores lost log records from an archive, at the same bytes of the log.

An existing record is never changed, moved or duplicated, and erased records stay erased. A line is written only at the
end of the log, or where there is no record; before writing, it is checked that everything fits and that the log
continues from it (I2). After a crash, the same restore continues. Only the process that holds the lock of the data
folder may call it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from assistant.core.archives import LogRestoreResult
from assistant.core.errors import ArchiveUnavailable, StoreError, UsageError
from assistant.core.plain_files import open_plain_file
from assistant.store.archive.archive import StoredArchive
from assistant.store.archive.format import ArchiveHeader, DamagedArchive, check_archive, read_lines, save_archive_row
from assistant.store.files import make_directory, sync, sync_directory, write_all
from assistant.store.log.format import GENESIS_HASH, SALT_KEY, compute_commitment, hash_header, split_line
from assistant.store.log.reader import LogFiles, read_last_line
from assistant.store.log.rebuild import write_padding
from assistant.store.log.redact import is_blank_line


def restore_to_log(archive: StoredArchive, home: Path, session: str, generation: int) -> LogRestoreResult:
    """Restore a generation's records. Raises `UsageError` if they do not fit, `ArchiveUnavailable`, `StoreError`;
    nothing was changed then, except for what a full disk cut off."""
    url = archive.readable_url(session, generation)
    fetched = archive.object_store.get(url)
    header = _verified(url, fetched.data, session, generation)
    path = LogFiles(home).path(session)
    try:
        missing, present = _missing(path, header, fetched.data)
        if missing:
            _write(path, header, fetched.data, missing)
    except OSError as error:
        raise StoreError(
            f"{path} was not written: {error.strerror}. Make room or repair the disk, then restore it again."
        ) from error
    if archive.find_entry(session, generation) is None:
        with archive.open_writer() as db:
            save_archive_row(db, header, fetched.stored)
    return LogRestoreResult(present, len(missing))


def write_log_copy(archive: StoredArchive, home: Path) -> list[str]:
    """Write the archived logs to a new data folder `home`, each record at its offset, and return which archives could
    not be used, and why. Raises `OSError`."""
    problems = []
    for entry in archive.list_archives():
        try:
            data = archive.object_store.get(archive.readable_url(entry.session, entry.generation)).data
            header = _verified(entry.url, data, entry.session, entry.generation)
        except ArchiveUnavailable as error:
            problems.append(str(error))
            continue
        path = LogFiles(home).path(entry.session)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("ab") as file:
            # A generation that was archived again under another name, after an older state of this log.
            if header.start >= file.tell():
                write_padding(file, header.start - file.tell())
                file.writelines(read_lines(data))
    return problems


def _verified(url: str, data: bytes, session: str, generation: int) -> ArchiveHeader:
    try:
        header, check = check_archive(data)
    except DamagedArchive as error:
        raise ArchiveUnavailable(f"{url} cannot be read: {error}. Nothing was changed.") from None
    if check.problems or (header.session, header.generation) != (session, generation):
        raise ArchiveUnavailable(f"{url} is not whole. Nothing was changed; see `assistant archive verify`.")
    return header


def _lines_with_offsets(header: ArchiveHeader, data: bytes) -> Iterator[tuple[int, bytes]]:
    at = header.start
    for line in read_lines(data):
        yield at, line
        at += len(line)


def _missing(path: Path, header: ArchiveHeader, data: bytes) -> tuple[set[int], int]:
    """Return where lines are missing, and how many exist. Raises `UsageError` if the archive does not belong to the
    log."""
    if not path.exists():
        _require_continuation(header, 0, GENESIS_HASH)
        return {at for at, _ in _lines_with_offsets(header, data)}, 0
    missing, present = set(), 0
    descriptor = open_plain_file(path)
    try:
        size = os.fstat(descriptor).st_size
        _require_continuation(header, size, _hash_before(descriptor, min(header.start, size)))
        for at, line in _lines_with_offsets(header, data):
            on_disk = os.pread(descriptor, len(line), at)
            if on_disk == line or _is_forgotten(line, on_disk):
                present += 1
            elif _is_another(line, on_disk):
                raise UsageError(
                    f"Another record is at byte {at} of {path}, so this archive is not of this log. Nothing was "
                    "changed."
                )
            else:
                missing.add(at)
    finally:
        os.close(descriptor)
    return missing, present


def _require_continuation(header: ArchiveHeader, size: int, hashed: str | None) -> None:
    if size < header.start:
        raise UsageError(
            f"The log of {header.session!r} ends before generation {header.generation} begins (byte {size:,} of "
            f"{header.start:,}). Nothing was changed; restore the conversations before it first."
        )
    if hashed is not None and hashed != header.prev:
        raise UsageError(
            f"The log of {header.session!r} does not continue into this archive, which is of another log. Nothing was "
            "changed."
        )


def _hash_before(descriptor: int, start: int) -> str | None:
    """Return the header hash of the record that ends at byte `start`; None if none can be read there."""
    line = read_last_line(descriptor, start)[1]
    try:
        return hash_header(split_line(line)[0]) if start else GENESIS_HASH
    except ValueError:
        return None


def _is_forgotten(line: bytes, on_disk: bytes) -> bool:
    """Return whether it is the same record, erased since; one whose erasure was interrupted is erased again later."""
    at = line.index(SALT_KEY) + len(SALT_KEY)
    return on_disk[:at] == line[:at] and is_blank_line(on_disk)


def _is_another(line: bytes, on_disk: bytes) -> bool:
    """Return whether another, intact record begins there."""
    try:
        opened, salt, body = split_line(on_disk.partition(b"\n")[0] + b"\n")
        commit = json.loads(opened + b"}")["commit"]
        proves = not salt.strip() or compute_commitment(salt, body) == commit
    except (ValueError, KeyError, TypeError):
        return False
    return proves and f'"commit":"{commit}"'.encode() not in line


def _write(path: Path, header: ArchiveHeader, data: bytes, missing: set[int]) -> None:
    make_directory(path.parent)
    descriptor = open_plain_file(path, os.O_RDWR | os.O_CREAT)
    try:
        for at, line in _lines_with_offsets(header, data):
            if at in missing:
                os.lseek(descriptor, at, os.SEEK_SET)
                write_all(descriptor, line)
        sync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(path.parent)
