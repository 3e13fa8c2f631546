"""Appends to message logs: JSON lines, one file per session, durable on return.

Offsets never change. A batch is one write and one fsync; it is either completely in the file, or the file is truncated
to its previous end (nothing of the batch was synced or reported). After any failure, the file is closed and its end
read again before the next append, since a failed fsync may have lost data. A torn last line (power cut) is moved to
another file and never interpreted. Only the head of each open log is in memory: its end, last seq and last header hash.
"""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, StoreError
from assistant.core.messages import Message
from assistant.core.plain_files import open_own_file, open_plain_file
from assistant.core.records import LogRecord
from assistant.store.files import make_directory, sync, sync_directory, write_all
from assistant.store.log.format import (
    GENESIS_HASH,
    RecordBody,
    compute_commitment,
    decode_record,
    encode_body,
    encode_record,
    hash_header,
    split_line,
)
from assistant.store.log.reader import LogFiles, read_last_line
from assistant.store.rows import message_parts

_SALT_BYTES = 16
_MOST_PREPARED = 2


@dataclass(frozen=True, slots=True)
class LogHead:
    """The end of a log and its last record."""

    end: int = 0  # in bytes
    seq: int = 0
    id: int = 0
    hash: str = GENESIS_HASH  # of the header


@dataclass(slots=True)
class _OpenLog:
    descriptor: int
    head: LogHead


class MessageLog(LogFiles):
    """Appends to the logs of a data folder; one process at a time (the lock of the data folder)."""

    def __init__(self, home: Path, *, max_open: int = 32) -> None:
        super().__init__(home, max_open=max_open)
        self._writing: OrderedDict[str, _OpenLog] = OrderedDict()
        self._kept: dict[str, int] = {}
        self._prepared: OrderedDict[str, tuple[dict[str, Any], RecordBody]] = OrderedDict()  # by content

    def prepare(self, message: Message) -> None:
        """Encode a message to be appended next, in any thread; for megabytes this is the slowest step."""
        self._prepared[message.content] = message_parts(message), encode_body(message, secrets.token_hex(_SALT_BYTES))
        while len(self._prepared) > _MOST_PREPARED:
            # The record has other content, or is erased.
            self._prepared.popitem(last=False)

    def append(self, records: Sequence[LogRecord]) -> tuple[LogRecord, ...]:
        """Append records of one session, durably; return them with seq, hashes, salt and span. Raises `StoreError` with
        nothing written."""
        session = records[0].session
        log = self._opened(session, records[0].ts)
        placed, lines, head = self._chain(records, log.head)
        self._write(session, log, b"".join(lines))
        log.head = head
        self._kept[session] = head.end
        return placed

    def read_head(self, session: str, now: datetime) -> LogHead:
        """Return the head of a session's log, read again from its end; a torn last line is moved aside."""
        self._forget(session)
        return self._opened(session, now).head if self.size(session) else LogHead()

    def recover_tail(self, session: str, indexed: LogHead, now: datetime) -> Path | None:
        """Check every record after `indexed` and move a torn end aside; return that file, or None.

        Raises `CorruptStore` if the log is shorter than `indexed`.
        """
        self._forget(session)
        size = self.size(session)
        if size < indexed.end:
            raise CorruptStore(
                f"{self.path(session)} ends at byte {size}, but {indexed.end} bytes were written. "
                "Nothing was changed; run `assistant verify`."
            )
        self._kept[session] = indexed.end
        head = indexed
        for offset, line in self.iterate_lines(session, indexed.end):
            following = _head_after(line, offset, head)
            if following is None:
                break
            head = following
        torn = self._set_aside(session, head.end, size, now) if head.end < size else None
        self._kept[session] = head.end
        if size:
            try:
                self._hold(session, _OpenLog(self._descriptor_to_write(session), head))
            except OSError as error:
                self._fail(session, error)
        return torn

    def quarantine_torn_logs(self, now: datetime) -> list[Path]:
        """Move aside logs that only have a torn first line: the first message of a session that is not indexed."""
        aside = []
        for path, session in self.list_logs():
            if session is None and _is_one_line(path):
                target = _torn_name(path, now)
                try:
                    path.rename(target)
                    sync_directory(path.parent)
                except OSError as error:
                    raise StoreError(
                        f"{path} could not be set aside: {error.strerror}. Nothing was changed."
                    ) from error
                aside.append(target)
        return aside

    def close(self) -> None:
        super().close()
        while self._writing:
            os.close(self._writing.popitem()[1].descriptor)

    def _chain(self, records: Sequence[LogRecord], head: LogHead) -> tuple[tuple[LogRecord, ...], list[bytes], LogHead]:
        placed, lines = [], []
        for draft in records:
            record, line, hashed = encode_record(draft, head.seq + 1, head.hash, self._take_body(draft), head.end)
            placed.append(record)
            lines.append(line)
            head = LogHead(record.span.end, record.seq, record.id, hashed)
        return tuple(placed), lines, head

    def _take_body(self, record: LogRecord) -> RecordBody:
        """Return the prepared body of a record, at most once, since a salt is for one record."""
        if self._prepared:
            parts, body = self._prepared.pop(record.content, (None, None))
            if body is not None and parts == message_parts(record):
                return body
        return encode_body(record, secrets.token_hex(_SALT_BYTES))

    # ------------------------------------------------------------------------------------------------------ opening

    def _opened(self, session: str, now: datetime) -> _OpenLog:
        log = self._writing.get(session)
        if log is None:
            try:
                log = self._hold(session, self._open(session, now))
            except OSError as error:
                self._fail(session, error)
        self._writing.move_to_end(session)
        return log

    def _hold(self, session: str, log: _OpenLog) -> _OpenLog:
        self._writing[session] = log
        while len(self._writing) > self._max_open:
            os.close(self._writing.popitem(last=False)[1].descriptor)
        return log

    def _open(self, session: str, now: datetime) -> _OpenLog:
        """Open a log, created if new, and find its head from the last complete record."""
        descriptor = self._descriptor_to_write(session)
        try:
            size = start = os.fstat(descriptor).st_size
            head = None
            while head is None:
                start, line = read_last_line(descriptor, start)
                head = _head_after(line, start) if line else LogHead()
            if head.end < size:
                self._set_aside(session, head.end, size, now)
        except BaseException:
            os.close(descriptor)
            raise
        return _OpenLog(descriptor, head)

    def _descriptor_to_write(self, session: str) -> int:
        path = self.path(session)
        flags = os.O_RDWR | os.O_APPEND
        if path.exists():
            return open_plain_file(path, flags)
        make_directory(path.parent, home=self.home)
        descriptor = open_plain_file(path, flags | os.O_CREAT)
        try:
            # Its content is synced by the first append.
            sync_directory(path.parent)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _forget(self, session: str) -> None:
        log = self._writing.pop(session, None)
        if log is not None:
            os.close(log.descriptor)

    # ------------------------------------------------------------------------------------------------------ writing

    def _write(self, session: str, log: _OpenLog, data: bytes) -> None:
        state = os.fstat(log.descriptor)
        if state.st_nlink == 0 or state.st_size != log.head.end:
            self._forget(session)
            raise StoreError(
                f"{self.path(session)} was removed or changed by another program. Nothing was written; "
                "put it back, then run `assistant verify`."
            )
        try:
            write_all(log.descriptor, data)
            sync(log.descriptor)
        except OSError as error:
            self._take_back(log)
            self._forget(session)
            self._fail(session, error)

    def _take_back(self, log: _OpenLog) -> None:
        try:
            os.ftruncate(log.descriptor, log.head.end)
            sync(log.descriptor)
        except OSError:
            # The remainder is not indexed; it is checked again when the log is next opened.
            return

    def _fail(self, session: str, error: OSError) -> NoReturn:
        raise StoreError(
            f"{self.path(session)} was not written: {error.strerror}. What was accepted before is kept; "
            "make room or repair the disk, then try again."
        ) from error

    def _set_aside(self, session: str, start: int, end: int, now: datetime) -> Path:
        """Copy the bytes starting at `start` to another file, durably, then truncate the log."""
        path = self.path(session)
        if start < self._kept.get(session, 0):
            raise CorruptStore(f"{path}: no record at byte {start}. Nothing was changed; run `assistant verify`.")
        target = _torn_name(path, now)
        try:
            source = open_plain_file(path, os.O_RDWR)
            try:
                self._copy(source, start, end, target)
                os.ftruncate(source, start)
                sync(source)
            finally:
                os.close(source)
        except OSError as error:
            raise StoreError(
                f"{path} has a torn end that could not be set aside: {error.strerror}. Nothing was changed; "
                "make room or repair the disk, then start again."
            ) from error
        return target

    @staticmethod
    def _copy(source: int, start: int, end: int, target: Path) -> None:
        copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            while start < end and (block := os.pread(source, 1 << 20, start)):
                write_all(copy, block)
                start += len(block)
            sync(copy)
        finally:
            os.close(copy)
        sync_directory(target.parent)


def _torn_name(path: Path, now: datetime) -> Path:
    return path.with_name(f"{path.name}.torn-{now:%Y%m%dT%H%M%S.%fZ}")


def _is_one_line(path: Path) -> bool:
    with open_own_file(path) as file:
        return not file.readline() or not file.readline()


def _head_after(line: bytes, start: int, before: LogHead | None = None) -> LogHead | None:
    """Return the head after a line; None if the line is invalid or does not continue the chain at `before`."""
    try:
        opened, salt, body = split_line(line)
        record = decode_record(line, start)
        if before is not None:
            # An erased record has no salt, so its content cannot be checked.
            body_matches = not salt.strip() or record.commit == compute_commitment(salt, body)
            if not body_matches or record.prev != before.hash or record.seq != before.seq + 1:
                return None
    except (ValueError, KeyError, TypeError):
        return None
    return LogHead(record.span.end, record.seq, record.id, hash_header(opened))
