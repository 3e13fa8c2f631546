"""The files of an export: one file, a folder, or a ZIP; and the kind of each, detected by its content.

Nothing is unpacked to the disk, links are not followed, and a name in a ZIP only opens its own entry. An archive with
an absurd compression ratio, or too many files, is refused before it is read.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from assistant.core.dataclass import dataclass
from assistant.imports.agents import read_json_lines, read_letta, read_markdown
from assistant.imports.chats import read_conversations
from assistant.imports.json_stream import Utf8Stream
from assistant.imports.records import BadRecord, Read, ReadOptions, RejectedRecord
from assistant.imports.telegram import read_telegram
from assistant.imports.whatsapp import is_whatsapp, read_whatsapp

MAX_FILES = 20_000
MAX_UNPACKED = 32 * 1024**3
MAX_RATIO = 200
_SMALL = 64 * 1024 * 1024
_HEAD = 64 * 1024
_SUFFIXES = (".json", ".jsonl", ".txt", ".md", ".markdown", ".af")
# Other files in such folders: instructions for their own assistant, and files that are not conversations.
_NOT_READ = frozenset(
    ("soul.md", "agents.md", "tools.md", "heartbeat.md", "bootstrap.md", "skill.md", "readme.md", "sessions.json")
)


_ZIP_BEGINS = b"PK\x03\x04"


class ExportRefused(Exception):
    """The text completes a sentence that begins with the file name."""


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file to read."""

    name: str
    size: int
    modified: datetime
    open: Callable[[], BinaryIO]


def list_files(path: Path, now: datetime) -> list[ExportFile]:
    """Raises `ExportRefused`."""
    try:
        state = path.stat()
        if stat.S_ISDIR(state.st_mode):
            return _without_copies(_in_folder(path))
        if not stat.S_ISREG(state.st_mode):
            raise ExportRefused("is neither a file nor a folder")
        if zipfile.is_zipfile(path):
            return _without_copies(_in_zip(path, now))
        with path.open("rb") as file:
            if file.read(len(_ZIP_BEGINS)) == _ZIP_BEGINS:
                raise ExportRefused("is a ZIP file that was cut off: the list at its end is missing; get it again")
        modified = datetime.fromtimestamp(state.st_mtime, UTC)
        return [ExportFile(path.name, state.st_size, modified, partial(_open_path, path))]
    except OSError as error:
        raise ExportRefused(f"cannot be read: {error.strerror}") from None


def _without_copies(files: list[ExportFile]) -> list[ExportFile]:
    """From our own exports, keep only the messages: the rest repeats them, or belongs to their data folder."""
    if not any(file.name == "export.json" for file in files):
        return files
    return [file for file in files if file.name.startswith("sessions/")]


def _in_folder(folder: Path) -> list[ExportFile]:
    found: list[ExportFile] = []
    for root, names, files in os.walk(folder, followlinks=False):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            path = Path(root, name)
            if not _is_read(name) or path.is_symlink():
                continue
            state = path.lstat()
            if not stat.S_ISREG(state.st_mode):
                continue
            if len(found) == MAX_FILES:
                raise ExportRefused(f"has more than {MAX_FILES:,} files")
            modified = datetime.fromtimestamp(state.st_mtime, UTC)
            relative = path.relative_to(folder).as_posix()
            found.append(ExportFile(relative, state.st_size, modified, partial(_open_path, path)))
    return found


def _in_zip(path: Path, now: datetime) -> list[ExportFile]:
    try:
        archive = zipfile.ZipFile(path)
        entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, RecursionError):
        raise ExportRefused("is a damaged ZIP file") from None
    if len(entries) > MAX_FILES * 10:
        raise ExportRefused(f"has more than {MAX_FILES * 10:,} entries")
    found = []
    for entry in entries:
        name = PurePosixPath(entry.filename.replace("\\", "/"))
        if entry.is_dir() or not _is_read(name.name) or stat.S_ISLNK(entry.external_attr >> 16):
            continue
        is_bomb = entry.file_size > _SMALL and entry.file_size > MAX_RATIO * max(1, entry.compress_size)
        if is_bomb or entry.file_size > MAX_UNPACKED:
            raise ExportRefused(f"has {name.name!r}, which would unpack to {entry.file_size:,} bytes; it is not read")
        if entry.flag_bits & 1:
            raise ExportRefused("is locked with a password")
        # WhatsApp names the chat only in the name of the ZIP.
        shown = f"{path.stem}.txt" if name.name == "_chat.txt" else name.as_posix()
        modified = _entry_time(entry, now)
        found.append(ExportFile(shown, entry.file_size, modified, partial(_open_entry, archive, entry)))
    return found


def _open_path(path: Path) -> BinaryIO:
    return path.open("rb")


def _open_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> BinaryIO:
    return cast("BinaryIO", archive.open(entry))


def _entry_time(entry: zipfile.ZipInfo, now: datetime) -> datetime:
    try:
        return datetime(*entry.date_time, tzinfo=UTC)
    except ValueError:
        return now


def _is_read(name: str) -> bool:
    return name.lower().endswith(_SUFFIXES) and name.lower() not in _NOT_READ and not name.startswith("._")


# ------------------------------------------------------------------------------------------------------------- reading

_WHATSAPP_NAMES = ("WhatsApp Chat with ", "WhatsApp Chat - ", "WhatsApp-Chat mit ", "Chat de WhatsApp con ")


def read_file(
    file: ExportFile, kind: str, options: ReadOptions, watch: Callable[[BinaryIO], BinaryIO]
) -> Iterator[Read]:
    """Yield the content of a file; nothing if it is not an export. `watch` wraps each stream that is read."""
    try:
        with file.open() as stream:
            head = stream.read(_HEAD)
        found = kind or find_kind(file.name, head)
        if not found:
            return
        with file.open() as stream, file.open() as again:
            yield from _read(file, found, watch(stream), again, options)
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        yield RejectedRecord(file.name, f"cannot be read to its end ({type(error).__name__}); the file may be cut off")
    except BadRecord as error:
        yield RejectedRecord(file.name, str(error))


def _read(file: ExportFile, kind: str, stream: BinaryIO, again: BinaryIO, options: ReadOptions) -> Iterator[Read]:
    match kind:
        case "chatgpt" | "claude":
            return read_conversations(stream, options)
        case "telegram":
            return read_telegram(stream, options)
        case "whatsapp":
            return read_whatsapp(again, stream, _chat_name(file.name), options)
        case "letta":
            return read_letta(stream, file.name, file.modified, options)
        case "jsonl" | "openclaw" | "nanobot" if file.name.lower().endswith(".jsonl"):
            return read_json_lines(stream, file.name, options)
        case _:
            return read_markdown(stream, file.name, file.modified, options)


def _chat_name(name: str) -> str:
    stem = PurePosixPath(name).stem
    return next((stem.removeprefix(start) for start in _WHATSAPP_NAMES if stem.startswith(start)), stem)


def find_kind(name: str, head: bytes) -> str:
    """Detect the kind of a file by its first bytes; "" if it is not a known export."""
    text = _decode(head)
    start = text.lstrip()
    suffix = PurePosixPath(name).suffix.lower()
    if suffix == ".jsonl":
        return "jsonl"
    if suffix in (".md", ".markdown"):
        return "markdown"
    if is_whatsapp(text):
        return "whatsapp"
    if start.startswith("["):
        return "chatgpt" if '"mapping"' in text else "claude" if '"chat_messages"' in text else ""
    if start.startswith("{"):
        if suffix == ".af" or '"agent_type"' in text or '"core_memory"' in text:
            return "letta"
        return "telegram" if '"messages"' in text or '"chats"' in text or '"personal_information"' in text else ""
    return ""


def _decode(head: bytes) -> str:
    reader = Utf8Stream(io.BytesIO(head))
    pieces = []
    while piece := reader.read(_HEAD):
        pieces.append(piece)
    return b"".join(pieces).decode("utf-8", "replace")
