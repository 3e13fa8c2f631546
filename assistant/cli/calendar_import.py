"""`assistant import` of a calendar (.ics) or an address book (.vcf) that another program exported.

What always holds: the file is kept in the workspace, whole, before anything is read of it, and is read from there like
any other calendar; a newer export of the same name takes its place, and the former one is kept. The same file again
changes nothing. A child process reads it; what it cannot read is named by its number. Of a ZIP that has nothing but
such files each is imported; nothing is unpacked beyond `calendar.max_megabytes` of a file, and no path of it is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from assistant.calendars.service import CalendarWorker, require_calendar_libraries
from assistant.cli.calendar import describe_source, read_or_wait, save_sources
from assistant.core.calendar import utc_now
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.plain_files import FileRefused, read_plain_file
from assistant.imports.records import RejectedRecord
from assistant.settings.calendar_sources import IMPORTED, CalendarSource
from assistant.settings.settings import Settings
from assistant.store.home.workspace import WorkspaceFiles

_KINDS = {".ics": "ics", ".vcf": "vcard"}
_MOST_IN_ZIP = 100
_UNREADABLE = "cannot be read, or repeats too often to be an appointment"


@dataclass(frozen=True, slots=True)
class CalendarImport:
    """What came of it. `is_new`: whether the file was not there before, as it is."""

    name: str
    kind: str
    entries: int
    is_new: bool
    rejected: list[RejectedRecord]


@contextlib.contextmanager
def open_calendar_files(path: Path, max_bytes: int) -> Iterator[list[Path]]:
    """The file itself, or those of a ZIP that has nothing else; none where it is another kind of export. Raises
    `UsageError`."""
    if path.suffix.lower() in _KINDS and path.is_file():
        yield [path]
        return
    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(path))
        except (OSError, zipfile.BadZipFile):
            yield []
            return
        members = [member for member in archive.infolist() if not member.is_dir()]
        names = [PurePosixPath(member.filename).name for member in members]
        if not all(PurePosixPath(name).suffix.lower() in _KINDS for name in names):
            yield []
            return
        if len({name.casefold() for name in names}) < len(names) or len(names) > _MOST_IN_ZIP:
            why = f"has two files of one name, or more than {_MOST_IN_ZIP}"
            raise UsageError(f"{path.name} {why}. Nothing was changed; unpack it, and import them one by one.")
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="nocturne-")))
        yield [_unpack(archive, member, folder / name, max_bytes) for member, name in zip(members, names, strict=True)]


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, max_bytes: int) -> Path:
    try:
        with archive.open(member) as file:
            data = file.read(max_bytes + 1)
    except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise UsageError(f"{path.name} in the ZIP is damaged or has a password. Nothing was changed.") from None
    if len(data) > max_bytes:
        raise UsageError(f"{path.name} in the ZIP is larger than {max_bytes // 2**20} MB. Nothing was changed.")
    path.write_bytes(data)
    return path


def import_calendar_file(settings: Settings, path: Path, *, dry_run: bool) -> CalendarImport:
    """Raises `UsageError`, and then nothing was changed; `StoreError`."""
    require_calendar_libraries()
    chosen, kind = settings.values.calendar, _KINDS[path.suffix.lower()]
    name = f"{IMPORTED}{path.stem}{path.suffix.lower()}"
    # Earlier versions had the whole path, which changes with the place of the data folder.
    former = next((it for it in chosen.sources if it.url == name or it.url.endswith(f"/workspace/{name}")), None)
    source = former or describe_source(settings, name, "", "", "", kind == "vcard", writable=False)
    source = source.changed(url=name)
    entries, rejected = _read(settings, source, path)
    if dry_run:
        return CalendarImport(source.name, kind, entries, former is None, rejected)
    files = WorkspaceFiles(settings.home.workspace)
    try:
        data = read_plain_file(path, chosen.max_megabytes * 2**20)
        is_new = former is None or files.find_text(name) != data
        if is_new:
            files.write_text(name, data, utc_now())
    except FileRefused as error:
        raise UsageError(f"{path.name} {error}. Nothing was changed.") from None
    if source != former:
        save_sources(settings, [*(it for it in chosen.sources if it is not former), source])
    if is_new:
        read_or_wait(settings, source)
    return CalendarImport(source.name, kind, entries, is_new, rejected)


def _read(settings: Settings, source: CalendarSource, path: Path) -> tuple[int, list[RejectedRecord]]:
    """How many entries the file has, and those that cannot be read."""
    chosen = settings.values.calendar
    worker = CalendarWorker(settings.home.path, settings.zone, chosen.timeout_seconds, chosen.max_megabytes * 2**20)
    asked = source.changed(url=str(path)).as_json()
    try:
        answer = asyncio.run(worker.run("test", utc_now(), source=asked, password=""))
    except UsageError as error:
        raise UsageError(f"{error} Nothing was changed.") from None
    entry = "event" if source.kind == "ics" else "contact"
    return answer["entries"], [RejectedRecord(f"{entry} {number}", _UNREADABLE) for number in answer["skipped"]]
