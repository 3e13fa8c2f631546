"""Locates and reads message logs: by byte range, or record by record.

Reading changes nothing and needs no lock, so `aihistory` and searches read while the daemon runs. Lines may be tens of
megabytes; only one is held in memory. The number of open files is limited.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from assistant.core.errors import CorruptStore, StoreError
from assistant.core.messages import LogByteRange
from assistant.core.plain_files import open_own_file, open_plain_file
from assistant.core.records import LogLocation, LogRecord
from assistant.store.files import find_files
from assistant.store.log.format import SALT_KEY, SALT_LENGTH, decode_record

LOG_NAME = "conversation.jsonl"
_LONGEST_NAME = 200
_MOST_PATHS = 256
_BLOCK = 1 << 16
# About twice the size of a header.
_HEADER = 1 << 10
_BUFFER = 1 << 20


@lru_cache(maxsize=_MOST_PATHS)
def session_folder_name(session: str) -> str:
    """Return the directory name of a session: percent-encoded, so that no key leaves the log directory; capitals too,
    since some file systems ignore case. Very long keys end in a hash."""
    name = "".join(char if char in "abcdefghijklmnopqrstuvwxyz0123456789-_" else _percent(char) for char in session)
    if len(name) <= _LONGEST_NAME:
        return name or "%"
    return f"{name[:120]}~{hashlib.sha256(session.encode()).hexdigest()}"


def _percent(char: str) -> str:
    quoted = quote(char, safe="")
    return quoted if quoted.startswith("%") else f"%{ord(char):02X}"


class LogFiles:
    """Reads the message logs in the data folder `home`."""

    def __init__(self, home: Path, *, max_open: int = 32) -> None:
        self.home = home
        self.root = home / "log"
        self._max_open = max_open
        self._reading: OrderedDict[str, int] = OrderedDict()
        self._paths: dict[str, Path] = {}  # building one takes longer than reading a record

    def path(self, session: str) -> Path:
        """Return where the session's log is or would be."""
        path = self._paths.get(session)
        if path is None:
            if len(self._paths) >= _MOST_PATHS:
                self._paths.clear()
            path = self._paths[session] = self.root / session_folder_name(session) / LOG_NAME
        return path

    def log_place(self, session: str, span: LogByteRange) -> LogLocation:
        """Return a place in the log, with its path as people see it, relative to the home."""
        return LogLocation(session, f"log/{session_folder_name(session)}/{LOG_NAME}", span)

    def list_logs(self) -> Iterator[tuple[Path, str | None]]:
        """Yield every log file with the session named by its first record, None if the first line is invalid. Empty
        files are skipped."""
        for path in find_files(self.root, f"*/{LOG_NAME}"):
            with _read_errors(path), open_own_file(path) as file:
                # Padding takes the place of lost records.
                first = next((line for line in file if line.strip()), b"")
            try:
                if first:
                    yield path, decode_record(first, 0).session
            except (ValueError, KeyError, TypeError):
                yield path, None

    def sessions(self) -> list[str]:
        """Return the sessions that have a log; sorted."""
        return sorted(session for _, session in self.list_logs() if session is not None)

    def size(self, session: str) -> int:
        """Return the size of a session's log in bytes; 0 if there is none."""
        path = self.path(session)
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from error

    def read(self, session: str, span: LogByteRange) -> LogRecord:
        """Return the record at exactly `span`. Raises `CorruptStore` if there is no complete record."""
        return _parse_line(self.path(session), self.read_line(session, span), span.start)

    def read_line(self, session: str, span: LogByteRange) -> bytes:
        """Return the bytes of `span`, which must be one line."""
        path = self.path(session)
        with _read_errors(path):
            data = os.pread(self._descriptor(session), span.end - span.start, span.start)
        if len(data) != span.end - span.start or not data.endswith(b"\n"):
            raise CorruptStore(f"{path} has no record at bytes {span.start}-{span.end}. Run `assistant verify`.")
        return data

    def read_piece(self, session: str, start: int, size: int) -> bytes:
        """Return at most `size` bytes; empty if the log is missing."""
        try:
            return os.pread(self._descriptor(session), size, start)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise _unreadable(self.path(session), error) from error

    def read_header(self, session: str, span: LogByteRange) -> bytes:
        """Return the header of the record at `span`, without its closing brace; reads only the beginning of a long
        record."""
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
        """Return whether the record at `span` was erased; reads only the beginning of a long record."""
        salt = span.start + len(self.read_header(session, span)) + len(SALT_KEY)
        with _read_errors(self.path(session)):
            return not os.pread(self._descriptor(session), SALT_LENGTH, salt).strip()

    def iterate_lines(self, session: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line) starting at byte `start`; the last line may lack its newline."""
        path = self.path(session)
        if not self.size(session):
            return
        with _read_errors(path), open_own_file(path, _BUFFER) as file:
            file.seek(start)
            for line in file:
                yield start, line
                start += len(line)

    def scan(self, session: str, start: int = 0) -> Iterator[LogRecord]:
        """Yield records starting at byte `start`, oldest first. Raises `CorruptStore` at the first invalid line."""
        path = self.path(session)
        for offset, line in self.iterate_lines(session, start):
            yield _parse_line(path, line, offset)

    def close(self) -> None:
        while self._reading:
            os.close(self._reading.popitem()[1])

    def _descriptor(self, session: str) -> int:
        descriptor = self._reading.get(session)
        if descriptor is None:
            descriptor = open_plain_file(self.path(session))
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
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be read: {error.strerror}. Nothing was changed.")


def _parse_line(path: Path, line: bytes, start: int) -> LogRecord:
    try:
        return decode_record(line, start)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptStore(f"{path}: no record at byte {start}. Run `assistant verify`.") from error


def read_last_line(descriptor: int, size: int) -> tuple[int, bytes]:
    """Return (offset, bytes) of the last line of a file of `size` bytes, including a newline if present; reads
    backwards from the end."""
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
