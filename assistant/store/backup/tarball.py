"""The file format of a backup: a plain tar in gzip, which any `tar` opens, with a manifest (readable JSON) as its last
member.

A backup is read back by the same rules as a file from elsewhere. Members are plain files and folders with names a data
folder has; links, devices, absolute names and names that lead out of the folder are refused, and so is a file that
differs from its manifest. These rules are stricter than the filters of `tarfile`, which only exist since Python 3.11.4.

Compression level 1 is four times as fast as level 6 on the texts and databases of a data folder, for 20 % more bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

from assistant.core.backups import BACKUP_PARTS, MANIFEST_NAME, BackupEntry, BackupManifest
from assistant.core.errors import CorruptStore, NewerSchema, StoreError
from assistant.core.plain_files import open_own_file
from assistant.store.files import ThrottledFile, WriteThrottle, sync, sync_directory
from assistant.store.rows import format_time, from_values

_FORMAT = 1
_MADE_AGAIN = "search.db and files.db are not in a backup: they are made again from the logs and the files."


def manifest_to_json(manifest: BackupManifest) -> bytes:
    """Encode a manifest; names that are not valid UTF-8 are escaped, as JSON permits."""
    content = asdict(manifest)
    files = content.pop("files")
    content = {"format": _FORMAT, **content, "note": _MADE_AGAIN, "files": files}
    return json.dumps(content, indent=1, default=format_time).encode() + b"\n"


def manifest_from_json(data: bytes) -> BackupManifest:
    """Decode a manifest. Raises `CorruptStore` if it is invalid, `NewerSchema` for a later format."""
    try:
        content = json.loads(data)
        if content["format"] > _FORMAT:
            raise NewerSchema("The backup was made by a newer version. Nothing was changed; install that version.")
        return from_values(BackupManifest, content)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = str(error).splitlines()[0]
        raise CorruptStore(f"{MANIFEST_NAME} of the backup cannot be read ({why}). Nothing was changed.") from error


_LEVEL = 1
_BLOCK = 1 << 18
_WHOLE = 1 << 23
_LARGEST_MANIFEST = 1 << 28


class BackupWriter:
    """Writes an archive to a new file. Raises `OSError`, and `StoreError` from its throttle."""

    def __init__(self, path: Path, throttle: WriteThrottle) -> None:
        self._file = ThrottledFile(path, throttle)
        self._zipped = gzip.GzipFile("", "wb", _LEVEL, self._file, mtime=0)
        self._tar = tarfile.TarFile(None, "w", self._zipped, format=tarfile.PAX_FORMAT, copybufsize=_BLOCK)

    def add(self, name: str, path: Path, size: int | None = None) -> BackupEntry:
        """Add the first `size` bytes of a file, or all of it. Raises `StoreError` if it has become shorter."""
        with open_own_file(path) as file:
            state = os.fstat(file.fileno())
            size = state.st_size if size is None else size
            # A small file that may be written meanwhile is read at once, whatever its length.
            content = file.read(size) if size <= _WHOLE else None
            size = size if content is None else len(content)
            member = _member(name, size, state.st_mode, state.st_mtime)
            measured = _HashingReader(file if content is None else io.BytesIO(content))
            try:
                self._tar.addfile(member, measured)  # type: ignore[arg-type]
            except OSError as error:
                # The error tarfile raises if the data ends too early.
                if error.errno is None:
                    raise StoreError(
                        f"{path} grew shorter while it was copied. No backup was kept of this; try again."
                    ) from error
                raise
        return BackupEntry(name, size, measured.digest.hexdigest())

    def add_folder(self, name: str) -> None:
        member = tarfile.TarInfo(name)
        member.type, member.mode = tarfile.DIRTYPE, 0o700
        self._tar.addfile(member)

    def finish(self, manifest: BackupManifest) -> None:
        """Write the manifest, and sync the file."""
        data = manifest_to_json(manifest)
        self._tar.addfile(_member(MANIFEST_NAME, len(data), 0o600, manifest.made_at.timestamp()), io.BytesIO(data))
        self._tar.close()
        self._zipped.close()
        sync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class _HashingReader:
    """Hashes bytes as they are read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        return data


def _member(name: str, size: int, mode: int, changed: float) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, int(changed), 0o600 | (mode & 0o100)
    return member


# -------------------------------------------------------------------------------------------------------------- reading


def verify_backup_file(path: Path, throttle: WriteThrottle) -> BackupManifest:
    """Read an archive to its end and compare every byte to its manifest. Raises `CorruptStore`, `StoreError`."""
    return _read(path, None, throttle)


def unpack_backup_file(path: Path, target: Path, throttle: WriteThrottle) -> BackupManifest:
    """Verify like `verify_backup_file`, and write the files into the new folder `target` (0700), synced. Raises
    `CorruptStore`, `StoreError`, which may leave files in `target`."""
    with _explained(path):
        target.mkdir(mode=0o700)
    manifest = _read(path, target, throttle)
    with _explained(path):
        for folder, _, _ in os.walk(target, topdown=False):
            sync_directory(Path(folder))
    return manifest


def _read(path: Path, target: Path | None, throttle: WriteThrottle) -> BackupManifest:
    entries: dict[str, BackupEntry] = {}
    manifest: BackupManifest | None = None
    with _explained(path):
        for member, source in _members(path):
            if member.name in entries or manifest is not None:
                raise CorruptStore(f"{path} has {member.name!r} twice, or after its end. Nothing was changed.")
            if member.name == MANIFEST_NAME and source is not None and member.size <= _LARGEST_MANIFEST:
                manifest = manifest_from_json(source.read())
                continue
            if target is not None:
                _make_folders(target, member)
            if source is not None:
                entries[member.name] = _copy(member, source, target, throttle)
    if manifest is None:
        raise CorruptStore(f"{path} is not a complete backup: it has no {MANIFEST_NAME}. Nothing was changed.")
    promised = {entry.path: entry for entry in manifest.files}
    wrong = sorted({*promised, *entries} - {name for name in entries if entries[name] == promised.get(name)})
    if wrong:
        some = ", ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else "")
        raise CorruptStore(f"{path} is damaged: {some} differ from its manifest. Nothing was changed.")
    return manifest


def _members(path: Path) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """Yield each member with its data (None for a folder), in order; reads to the end of the gzip stream, which has its
    own checksum."""
    with gzip.open(path, "rb") as unzipped:
        with tarfile.open(fileobj=unzipped, mode="r|", errorlevel=2) as tar:
            for member in tar:
                _require_allowed(path, member)
                yield member, tar.extractfile(member) if member.type != tarfile.DIRTYPE else None
        while unzipped.read(_BLOCK):
            continue


def _require_allowed(path: Path, member: tarfile.TarInfo) -> None:
    parts = member.name.split("/")
    plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
    inside = not {"", ".", ".."} & {*parts} and "\0" not in member.name
    expected = parts[0] in BACKUP_PARTS or (parts == [MANIFEST_NAME] and member.type != tarfile.DIRTYPE)
    if not (plain and inside and expected):
        raise CorruptStore(f"{path} has {member.name!r}, which no backup has. Nothing was unpacked from it.")


def _make_folders(target: Path, member: tarfile.TarInfo) -> None:
    """Create the folders that a member is in, or is, closed to others."""
    place = target / member.name
    folder = place if member.type == tarfile.DIRTYPE else place.parent
    for parent in (*reversed(folder.parents), folder):
        if target in parent.parents:
            parent.mkdir(mode=0o700, exist_ok=True)


def _copy(member: tarfile.TarInfo, source: IO[bytes], target: Path | None, throttle: WriteThrottle) -> BackupEntry:
    """Read a file of the archive, and return its manifest entry; with `target`, also write it, synced."""
    place = None if target is None else target / member.name
    digest, size = hashlib.sha256(), 0
    with ExitStack() as stack:
        mode = 0o600 | (member.mode & 0o100)
        file = None if place is None else stack.enter_context(closing(ThrottledFile(place, throttle, mode)))
        while data := source.read(_BLOCK):
            throttle.require_wanted()
            digest.update(data)
            size += len(data)
            if file is not None:
                file.write(data)
        if file is not None:
            sync(file.fileno())
    if place is not None:
        os.utime(place, (member.mtime, member.mtime))
    return BackupEntry(member.name, size, digest.hexdigest())


def _reason(error: Exception) -> str:
    # The error message of gzip for an invalid header quotes its bytes, and that of a cut file speaks of its format.
    if isinstance(error, EOFError):
        return "it ends too early"
    return "it is not compressed with gzip" if isinstance(error, gzip.BadGzipFile) else str(error)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorruptStore(f"{path} is not a complete backup ({_reason(error)}). Nothing was changed.") from error
    except OSError as error:
        where = f" ({error.filename})" if error.filename and error.filename != str(path) else ""
        raise StoreError(
            f"{path} cannot be read or unpacked: {error.strerror or error}{where}. Nothing was changed."
        ) from error
