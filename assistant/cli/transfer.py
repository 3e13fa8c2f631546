"""`assistant export`: everything that was said and learned, in a folder or a ZIP that people and programs can read, and
that `assistant import` makes an equal home of.

    README.md            what each file is
    export.json          which version wrote it
    conversations/*.md   what was said, to read
    sessions/*.jsonl     the same, whole, a JSON object a message
    memories.json        what is remembered, as `assistant memory export` has it
    tables/*.jsonl       the journal, to-dos, reminders and the like, a JSON object a row
    home/                MEMORY.md, the notes of the days, the persona
    files/               the workspace: attachments, and files of yours
"""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Protocol
from urllib.parse import quote, unquote

import click

from assistant.cli.exports import is_said, markdown_lines
from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.output import json_result, print_text
from assistant.commands.items import Item
from assistant.core.calendar import utc_now
from assistant.core.errors import HomeError, UsageError
from assistant.core.plain_files import expand_home
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import format_bytes, pluralize
from assistant.service.home_lock import home_lock
from assistant.settings.settings import Settings
from assistant.store.files import make_directory, write_file
from assistant.store.home.transfer import TABLES
from assistant.wire.stores import Stores
from sleep.cycle.rebuild import rebuild_memories

MANIFEST = "export.json"
_VERSION = 1
_README = __doc__.partition("\n\n")[2] if __doc__ else ""
_OWN_FILES = ("MEMORY.md", "PERSONA.md")
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class HomeExport(Item):
    """What was exported, or made of an export."""

    path: Path
    sessions: int
    messages: int
    files: int
    bytes: int


class _Target(Protocol):
    def write(self, name: str, data: bytes) -> None: ...


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, name: str, data: bytes) -> None:
        make_directory((self._path / name).parent)
        write_file(self._path / name, data)


class _Zip:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def write(self, name: str, data: bytes) -> None:
        entry = zipfile.ZipInfo(name, _ZIP_TIME)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
        self._archive.writestr(entry, data)


@contextmanager
def _open_target(path: Path) -> Iterator[_Target]:
    """A new folder, or a new ZIP file. Raises `HomeError`."""
    try:
        if path.suffix.lower() == ".zip":
            with path.open("xb") as file, zipfile.ZipFile(file, "w") as archive:
                path.chmod(0o600)
                yield _Zip(archive)
        else:
            path.mkdir(mode=0o700)
            yield _Folder(path)
    except FileExistsError:
        raise HomeError(f"{path} exists already. Nothing was written; name another.") from None
    except OSError as error:
        if not path.exists():
            raise HomeError(
                f"{path} cannot be made: {error.strerror}. Nothing was written; name another place."
            ) from None
        raise HomeError(f"{path} was not written to its end: {error.strerror}. Remove it, then try again.") from None


@click.command("export")
@click.argument("path", metavar="[FOLDER|FILE.zip]", default="", type=click.Path(path_type=Path))
@json_result(HomeExport)
def export_home(path: Path) -> HomeExport:
    """Write everything into a folder or a ZIP: to read, to keep, to move elsewhere.

    It has every conversation (Markdown and JSON lines), memories, journal, to-dos, reminders, notes and files, but no
    settings and no keys. What was forgotten is not in it. `assistant import` makes an equal data folder of it.

    > assistant export ~/nocturne.zip
    > assistant export ~/nocturne
    """
    settings = load_effective_settings(read_only=True)
    target_path = path if path.name else Path(f"nocturne-{utc_now().astimezone(settings.zone):%Y-%m-%d}.zip")
    target_path = expand_home(target_path).absolute()
    with open_home_stores(settings) as stores, _open_target(target_path) as target:
        counts = _write_all(settings, stores, target)
    size = sum(file.stat().st_size for file in [target_path, *target_path.rglob("*")] if file.is_file())
    report = HomeExport(path=target_path, bytes=size, **counts)
    print_text(
        f"Exported {pluralize(report.messages, 'message')} of {pluralize(report.sessions, 'conversation')} and "
        f"{pluralize(report.files, 'file')} to {report.path} ({format_bytes(report.bytes)}). It is not encrypted."
    )
    return report


def _write_all(settings: Settings, stores: Stores, target: _Target) -> dict[str, int]:
    transfer, messages, sessions = stores.transfer, 0, 0
    target.write(MANIFEST, _dump({"format": "nocturne-export", "version": _VERSION}).encode() + b"\n")
    target.write("README.md", _README.encode())
    for session in transfer.sessions():
        records = list(transfer.records(session))
        if not records:
            continue
        sessions, messages = sessions + 1, messages + sum(is_said(r.kind, r.role, r.content) for r in records)
        name = quote(session, safe=":").replace(":", "%3A")
        target.write(f"sessions/{name}.jsonl", _lines(transfer.to_json(record) for record in records))
        for generation in stores.generations.list_generations(session):
            said = [record for record in records if record.generation == generation.number]
            text = "\n".join(markdown_lines(said, generation, settings.zone))
            target.write(f"conversations/{name}-{generation.number}.md", f"{text}\n".encode())
    for table in TABLES:
        target.write(f"tables/{table}.jsonl", _lines(transfer.rows(table)))
    target.write("memories.json", _dump(_memories(settings, stores), indent=2).encode() + b"\n")
    files = 0
    for name, file in _home_files(settings):
        target.write(name, file.read_bytes())
        files += 1
    return {"sessions": sessions, "messages": messages, "files": files}


def _memories(settings: Settings, stores: Stores) -> dict[str, Any]:
    from assistant.wire.services import build_command_stores  # all commands, which the rest does without

    service = build_command_stores(settings, stores).memory

    async def read() -> dict[str, Any]:
        try:
            return await service.export(OWNER_SCOPE, utc_now())
        finally:
            await stores.memories.aclose()

    exported = asyncio.run(read())
    exported.pop("exported_at")
    return exported


def _home_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Files by their names in an export. No link is followed."""
    home = settings.home
    notes = sorted((home.path / "memory").rglob("*.md"))
    for file in [*(home.path / name for name in _OWN_FILES), *notes]:
        if file.is_file() and not file.is_symlink():
            yield f"home/{file.relative_to(home.path).as_posix()}", file
    for file in sorted(home.workspace.rglob("*")):
        if file.is_file() and not file.is_symlink():
            yield f"files/{file.relative_to(home.workspace).as_posix()}", file


def _lines(rows: Iterable[Any]) -> bytes:
    return "".join(f"{_dump(row)}\n" for row in rows).encode()


def _dump(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


# ------------------------------------------------------------------------------------------------------ reading it back


class _Source:
    """An export, a folder or a ZIP; nothing outside of it is opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zip = zipfile.ZipFile(path) if path.is_file() else None
        names = (
            self._zip.namelist()
            if self._zip is not None
            else [file.relative_to(path).as_posix() for file in sorted(path.rglob("*")) if file.is_file()]
        )
        self.names = [name for name in names if not name.endswith("/") and not _leads_out(name)]

    def read(self, name: str) -> bytes:
        if self._zip is not None:
            return self._zip.read(name)
        path = self._path / name
        return b"" if path.is_symlink() else path.read_bytes()

    def read_lines(self, name: str) -> list[Any]:
        """Raises `UsageError`."""
        try:
            return [json.loads(line) for line in self.read(name).decode().splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise UsageError(f"{name} in the export is damaged. Nothing of it was imported.") from None


def _leads_out(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name


def is_own_export(path: Path) -> bool:
    """Whether a folder or a ZIP is an export of this program. Raises `UsageError` for one of a later version."""
    try:
        if path.is_dir():
            text = (path / MANIFEST).read_bytes() if (path / MANIFEST).is_file() else b""
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                text = archive.read(MANIFEST) if MANIFEST in archive.namelist() else b""
        else:
            return False
        manifest = json.loads(text) if text else {}
    except (OSError, ValueError, RecursionError, zipfile.BadZipFile):
        return False
    if not isinstance(manifest, dict) or manifest.get("format") != "nocturne-export":
        return False
    if manifest.get("version") != _VERSION:
        raise UsageError(f"{path.name} is an export of a later version of this program. Nothing was imported.")
    return True


def import_home(settings: Settings, path: Path) -> HomeExport:
    """An equal data folder of an export, where nothing was ever said. Raises `UsageError`, `StoreError`."""
    now, source, messages = utc_now(), _Source(path), 0
    sessions = [name for name in source.names if name.startswith("sessions/") and name.endswith(".jsonl")]
    with home_lock(settings.home.path):
        stores = Stores(settings, now)
        try:
            transfer = stores.transfer
            transfer.require_empty()
            files = _write_home_files(settings, source)
            by_key = {unquote(PurePosixPath(name).stem): name for name in sessions}
            for key in transfer.parents_first(by_key):
                rows = source.read_lines(by_key[key])
                transfer.add_records(key, rows, now)
                messages += sum(is_said(row.get("kind"), row.get("role"), row.get("content")) for row in rows)
            for table in TABLES:
                if f"tables/{table}.jsonl" in source.names:
                    transfer.add_rows(table, source.read_lines(f"tables/{table}.jsonl"))
            asyncio.run(_make_memories(stores))
        finally:
            stores.close()
    return HomeExport(path=path, sessions=len(sessions), messages=messages, files=files, bytes=0)


async def _make_memories(stores: Stores) -> None:
    try:
        await rebuild_memories(stores.consolidations, stores.memories, utc_now())
    finally:
        await stores.memories.aclose()


def _write_home_files(settings: Settings, source: _Source) -> int:
    count = 0
    for name in source.names:
        folder, _, rest = name.partition("/")
        root = settings.home.workspace if folder == "files" else settings.home.path if folder == "home" else None
        is_note = rest.startswith("memory/") and rest.endswith(".md")
        if root is None or not rest or (folder == "home" and rest not in _OWN_FILES and not is_note):
            continue
        make_directory((root / rest).parent, home=settings.home.path)
        write_file(root / rest, source.read(name))
        count += 1
    return count
