"""Where the logs are, and reading them: by byte range, or one record after another.

Reading never changes anything and needs no lock, so that `aihistory` and searches read beside the running daemon.
Lines may be tens of megabytes: one line is held at a time. Of the files, a bounded number is open.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from assistant.core.errors import CorruptStore, StoreError
from assistant.core.messages import LogByteRange
from assistant.core.records import LogLocation, LogRecord
from assistant.store.files import find_files
from assistant.store.log.format import SALT_KEY, SALT_LENGTH, decode_record

LOG_NAME = "conversation.jsonl"
_LONGEST_NAME = 200
_BLOCK = 1 << 16
# About twice what a header takes.
_HEADER = 1 << 10
_BUFFER = 1 << 20


def session_folder_name(session: str) -> str:
    """The directory of a session: percent-encoded, so that no key leaves the log directory, and capitals too, since
    some file systems do not tell them from small letters. Very long keys end in a hash."""
    name = "".join(char if char in "abcdefghijklmnopqrstuvwxyz0123456789-_" else _percent(char) for char in session)
    if len(name) <= _LONGEST_NAME:
        return name or "%"
    return f"{name[:120]}~{hashlib.sha256(session.encode()).hexdigest()}"


def _percent(char: str) -> str:
    quoted = quote(char, safe="")
    return quoted if quoted.startswith("%") else f"%{ord(char):02X}"


class LogFiles:
    """The message logs in the data folder `home`, to read."""

    def __init__(self, home: Path, *, max_open: int = 32) -> None:
        self.home = home
        self.root = home / "log"
        self._max_open = max_open
        self._reading: OrderedDict[str, int] = OrderedDict()

    def path(self, session: str) -> Path:
        return self.root / session_folder_name(session) / LOG_NAME

    def log_place(self, session: str, span: LogByteRange) -> LogLocation:
        return LogLocation(session, f"log/{session_folder_name(session)}/{LOG_NAME}", span)

    def list_logs(self) -> Iterator[tuple[Path, str | None]]:
        """Every log file with the session that its first record names; None where the first line is no record. An
        empty file is no log yet."""
        for path in find_files(self.root, f"*/{LOG_NAME}"):
            with _read_errors(path), path.open("rb") as file:
                # Blanks hold the place of records that were lost.
                first = next((line for line in file if line.strip()), b"")
            try:
                if first:
                    yield path, decode_record(first, 0).session
            except (ValueError, KeyError, TypeError):
                yield path, None

    def sessions(self) -> list[str]:
        """The sessions that have a log; sorted."""
        return sorted(session for _, session in self.list_logs() if session is not None)

    def size(self, session: str) -> int:
        """Bytes in the log of a session; 0 where there is none."""
        path = self.path(session)
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from error

    def read(self, session: str, span: LogByteRange) -> LogRecord:
        """The record at exactly `span`. Raises `CorruptStore` when there is no whole record there."""
        return _parse_line(self.path(session), self.read_line(session, span), span.start)

    def read_line(self, session: str, span: LogByteRange) -> bytes:
        """The bytes of `span`, which must be one line."""
        path = self.path(session)
        with _read_errors(path):
            data = os.pread(self._descriptor(session), span.end - span.start, span.start)
        if len(data) != span.end - span.start or not data.endswith(b"\n"):
            raise CorruptStore(f"{path} has no record at bytes {span.start}-{span.end}. Run `assistant verify`.")
        return data

    def read_piece(self, session: str, start: int, size: int) -> bytes:
        """As many of these bytes as there are; none of a log that is missing."""
        try:
            with _read_errors(self.path(session)):
                return os.pread(self._descriptor(session), size, start)
        except CorruptStore:
            return b""

    def read_header(self, session: str, span: LogByteRange) -> bytes:
        """The header of the record at `span`, without its closing brace; of a long record no more is read."""
        path = self.path(session)
        data = b""
        with _read_errors(path):
            while (end := data.find(SALT_KEY)) < 0 and len(data) < span.end - span.start:
                more = os.pread(self._descriptor(session), _BLOCK if data else _HEADER, span.start + len(data))
                if not more:
                    break
                data += more
        if end < 0:
            raise CorruptStore(
                f"{path} has no record at byte {span.start}. Nothing was changed; run `assistant verify`."
            )
        return data[:end]

    def is_blank(self, session: str, span: LogByteRange) -> bool:
        """Whether the words of the record at `span` were forgotten; of a long record only its beginning is read."""
        salt = span.start + len(self.read_header(session, span)) + len(SALT_KEY)
        with _read_errors(self.path(session)):
            return not os.pread(self._descriptor(session), SALT_LENGTH, salt).strip()

    def iterate_lines(self, session: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """(offset, line) from byte `start` on; the last one may lack its newline."""
        path = self.path(session)
        if not self.size(session):
            return
        with _read_errors(path), path.open("rb", buffering=_BUFFER) as file:
            file.seek(start)
            for line in file:
                yield start, line
                start += len(line)

    def scan(self, session: str, start: int = 0) -> Iterator[LogRecord]:
        """The records from byte `start` on, oldest first. Raises `CorruptStore` at the first line that is none."""
        path = self.path(session)
        for offset, line in self.iterate_lines(session, start):
            yield _parse_line(path, line, offset)

    def close(self) -> None:
        while self._reading:
            os.close(self._reading.popitem()[1])

    def _descriptor(self, session: str) -> int:
        descriptor = self._reading.get(session)
        if descriptor is None:
            descriptor = os.open(self.path(session), os.O_RDONLY | os.O_CLOEXEC)
            self._reading[session] = descriptor
            while len(self._reading) > self._max_open:
                os.close(self._reading.popitem(last=False)[1])
        self._reading.move_to_end(session)
        return descriptor


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptStore(f"{path} is missing. Nothing was changed; run `assistant verify`.") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from error


def _parse_line(path: Path, line: bytes, start: int) -> LogRecord:
    try:
        return decode_record(line, start)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptStore(f"{path}: no record at byte {start}. Run `assistant verify`.") from error


def read_last_line(descriptor: int, size: int) -> tuple[int, bytes]:
    """(offset, bytes) of the last line of a file of `size` bytes, its newline included where it has one; read from
    the end backwards."""
    parts: list[bytes] = []
    at = size
    while at > 0:
        begin = max(0, at - _BLOCK)
        block = os.pread(descriptor, at - begin, begin)
        newline = block.rfind(b"\n", 0, len(block) - 1 if at == size else len(block))
        if newline >= 0:
            parts.append(block[newline + 1 :])
            return begin + newline + 1, b"".join(reversed(parts))
        parts.append(block)
        at = begin
    return 0, b"".join(reversed(parts))
