"""Blanks log lines in place, and defines what is left of an erased message (I2).

A blanked line keeps its length, header and position; salt and body are gone. It is computed from the header and the
length alone, so that a line half blanked before a power cut can be blanked again.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from assistant.core.errors import CorruptStore, StoreError
from assistant.core.messages import LogByteRange, Message
from assistant.core.plain_files import open_plain_file
from assistant.store.files import sync, sync_directory, write_file
from assistant.store.log.format import SALT_KEY, SALT_LENGTH
from assistant.store.log.reader import LogFiles
from assistant.store.rows import FORGOTTEN_PLACEHOLDER

_EMPTY_CONTENT = b',"content":""'
_EMPTY_REST = b',"tool_calls":[],"media":[],"thinking":[]}\n'
_EMPTY_NAMES = (b',"name":null', b',"name":""')
# Metadata that an erased message keeps.
_KEPT_METADATA = ("turn", "carried_from", "inherited", "type", "refs")


def redact_message(message: Message) -> Message:
    """Return an erased message without content: that it existed, and what it answered."""
    return replace(
        message,
        content=FORGOTTEN_PLACEHOLDER,
        tool_calls=tuple(replace(call, arguments={}) for call in message.tool_calls),
        name=message.name if message.role == "tool" else None,
        media=(),
        thinking=(),
        metadata={
            **{key: message.metadata[key] for key in _KEPT_METADATA if key in message.metadata},
            "forgotten": True,
        },
    )


def build_blank_line(header: bytes, length: int) -> bytes:
    """Return the line of `length` bytes with this header (without its brace) and no content."""
    opened = header + SALT_KEY + b" " * SALT_LENGTH + b'"' + _EMPTY_CONTENT
    # The shortest name is shorter than null.
    name = next((name for name in _EMPTY_NAMES if len(opened) + len(name) + len(_EMPTY_REST) <= length), None)
    if name is None:
        raise CorruptStore(f"a record of {length} bytes is too short. Nothing was changed; run `assistant verify`.")
    return opened + b" " * (length - len(opened) - len(name) - len(_EMPTY_REST)) + name + _EMPTY_REST


def is_blank_line(line: bytes) -> bool:
    """Return whether the content of a line was erased: its salt is blank then."""
    at = line.find(SALT_KEY)
    return at >= 0 and not line[at + len(SALT_KEY) : at + len(SALT_KEY) + SALT_LENGTH].strip()


def blank_record(log: LogFiles, session: str, span: LogByteRange) -> None:
    """Blank the record at `span`, durably. Raises `StoreError`, `CorruptStore`."""
    line = build_blank_line(log.read_header(session, span), span.end - span.start)
    path = log.path(session)
    try:
        descriptor = open_plain_file(path, os.O_RDWR)
        try:
            if os.pread(descriptor, len(line), span.start) == line:
                return
            done = 0
            while done < len(line):
                done += os.pwrite(descriptor, memoryview(line)[done:], span.start + done)
            sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(
            f"{path} was not written: {error.strerror}. It is not forgotten yet; repair the disk, then repeat it."
        ) from error


def read_plain_or_gzip(path: Path) -> bytes:
    """Return the content of a plain or gzip file; empty if it does not exist. Raises `StoreError`."""
    try:
        if path.is_symlink() or not path.is_file():
            return b""
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path} cannot be read: {error}. It was left as it is.") from error


def rewrite_plain_or_gzip(path: Path, change: Callable[[bytes], bytes]) -> bool:
    """Replace the content of a file (gzip if its name ends so) by the result of `change`, in one step; return whether
    it changed. Raises `StoreError`, with the file unchanged."""
    before = read_plain_or_gzip(path)
    after = change(before)
    partial = path.with_name(f".{path.name}.forgetting")
    if after == before:
        return False
    try:
        data = gzip.compress(after, mtime=0) if path.suffix == ".gz" else after
        write_file(partial, data, path.stat().st_mode & 0o777)
        partial.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StoreError(
            f"{path} was not rewritten: {error.strerror}. It is as it was; make room, then repeat."
        ) from error
    return True
