"""The object store for archives, over file systems supported by fsspec: a local folder, S3, and others.

- An object is first written under another name, read back and verified, then renamed and read back again. Partial
  objects are in `.part/` below the same root, under names the next attempt reuses.
- Objects in the data folder are not encrypted, since the log next to them is in plain text; in other places they are if
  there is a key.
- Reads never come from a cache.
- Every step has a timeout: a hanging storage blocks only its own thread, which does not prevent the program from
  exiting.
- Errors of a file system are reported on one line, without the credentials in the address.
- Names are full paths below the root, without characters that a file system treats as a pattern.
"""

from __future__ import annotations

import hashlib
import posixpath
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from assistant.archive.encryption import ENCRYPTED_SUFFIX, AgeEncryption
from assistant.core.archives import FetchedObject, StoredObject
from assistant.core.dataclass import dataclass
from assistant.core.errors import ArchiveMissing, ArchiveUnavailable, install_hint

T = TypeVar("T")

_S3 = ("s3://", "s3a://")
# Object stores, where folders are only part of names; creating one would create a bucket.
_OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss", "obs"})
# The timeout is extended for every so many bytes.
_BYTES_A_WAIT = 10_000_000


@dataclass(frozen=True, slots=True)
class LocalDurability:
    """How a local folder is written so that it survives a power cut."""

    make_directory: Callable[[Path], None]
    sync: Callable[[Path], None]  # a file, or a directory for the names in it


@dataclass(frozen=True, slots=True)
class FolderWords:
    """What an error says of a folder."""

    name: str = "archive"
    section: str = "[archive]"  # of the settings
    kept: str = "Nothing was cleared"
    timeout: str = " ([archive] timeout_seconds)"


class FsspecFolder:
    """The folder at `url`, which is not accessed before the first call. Every method raises `ArchiveUnavailable`."""

    def __init__(
        self, url: str, timeout_seconds: float, durability: LocalDurability, words: FolderWords | None = None
    ) -> None:
        self._words = words or FolderWords()
        self.display_url = url_without_credentials(url)
        self._url = url
        self._timeout = timeout_seconds
        self._durability = durability
        self._opened: tuple[Any, str] | None = None

    def write(self, name: str, data: bytes) -> None:
        """Write an object to the medium. It may be incomplete: read it back."""
        fs, path = self._locate(name)

        def act() -> None:
            self._make_folder(fs, path)
            if isinstance(fs, LocalFileSystem):
                # Private before it has content.
                Path(path).touch(mode=0o600)
            fs.pipe_file(path, data)
            if isinstance(fs, LocalFileSystem):
                self._durability.sync(Path(path))

        self._run(act, "written", len(data))

    def read(self, name: str) -> bytes:
        """Read an object. Raises `ArchiveMissing` if it does not exist."""
        fs, path = self._locate(name)
        fs.invalidate_cache()
        size = self._run(lambda: fs.info(path)["size"], "read")
        return bytes(self._run(lambda: fs.cat_file(path), "read", size or 0))

    def has(self, name: str) -> bool:
        fs, path = self._locate(name)
        fs.invalidate_cache()
        return bool(self._run(lambda: fs.exists(path), "read"))

    def move(self, name: str, to: str) -> None:
        """Rename an object, replacing one at `to`."""
        fs, path = self._locate(name)
        _, target = self._locate(to)

        def act() -> None:
            self._make_folder(fs, target)
            fs.mv(path, target)
            if isinstance(fs, LocalFileSystem):
                self._durability.sync(Path(target).parent)
                self._durability.sync(Path(path).parent)

        self._run(act, "moved to its name")

    def remove(self, name: str) -> None:
        """Delete an object; succeeds if it does not exist."""
        fs, path = self._locate(name)
        fs.invalidate_cache()

        def act() -> None:
            if fs.exists(path):
                fs.rm_file(path)
                if isinstance(fs, LocalFileSystem):
                    self._durability.sync(Path(path).parent)

        self._run(act, "removed")

    def list_names(self, folder: str) -> list[str]:
        """Return the names of objects directly in a folder below the root."""
        fs, path = self._locate(folder)
        fs.invalidate_cache()

        def act() -> list[str]:
            if not fs.exists(path):
                return []
            return [posixpath.basename(entry["name"]) for entry in fs.ls(path, detail=True) if entry["type"] == "file"]

        return self._run(act, "listed")

    # ------------------------------------------------------------------------------------------------------------ calls

    def _locate(self, name: str) -> tuple[Any, str]:
        if self._opened is None:
            options = _s3_options(self._timeout) if self._url.startswith(_S3) else {}
            self._opened = self._run(lambda: url_to_fs(self._url, skip_instance_cache=True, **options), "opened")
        fs, root = self._opened
        return fs, f"{root.rstrip('/')}/{name}"

    def _make_folder(self, fs: Any, path: str) -> None:
        """Create the folder of a file, if the storage has folders."""
        protocols = {fs.protocol} if isinstance(fs.protocol, str) else {*fs.protocol}
        if isinstance(fs, LocalFileSystem):
            self._durability.make_directory(Path(path).parent)
        elif not _OBJECT_STORES & protocols:
            fs.makedirs(posixpath.dirname(path), exist_ok=True)

    def _run(self, act: Callable[[], T], action: str, size: int = 0) -> T:
        seconds, words = self._timeout * (1 + size // _BYTES_A_WAIT), self._words
        it = f"The {words.name} at {self.display_url}"
        outcome: Future[T] = Future()
        threading.Thread(target=_act, args=(act, outcome), name="archive", daemon=True).start()
        try:
            error = outcome.exception(seconds)
        except TimeoutError:
            raise ArchiveUnavailable(
                f"{it} did not answer within {seconds:g} s{words.timeout}. {words.kept}; it is tried again later."
            ) from None
        if isinstance(error, FileNotFoundError):
            raise ArchiveMissing(f"{it} could not be {action}: it is not there.") from None
        if error is not None:
            # Not chained: the error of a file system may contain the address with its credentials.
            raise ArchiveUnavailable(
                f"{it} could not be {action}: {self._reason(error)}. {words.kept}; see {words.section} in the "
                "settings. It is tried again later."
            ) from None
        return outcome.result()

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, ImportError):
            is_s3 = self._url.startswith(_S3)
            package = install_hint("s3") if is_s3 else error.name or "see its manual"
            return f"this kind of address needs a package that is not installed ({package})"
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        line = (text.strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
        parts = urlsplit(self._url)
        for secret in (parts.password, parts.username, parts.query):
            line = line.replace(secret, "***") if secret else line
        return line


def _act(act: Callable[[], T], outcome: Future[T]) -> None:
    try:
        outcome.set_result(act())
    # File systems raise arbitrary errors, those written in Rust even beyond `Exception`; if they were not caught, the
    # caller would wait for the timeout. `FsspecFolder._run` explains them.
    except BaseException as error:  # noqa: BLE001
        outcome.set_exception(error)


def url_without_credentials(url: str) -> str:
    """Return an address without user, password and query, and without a slash at its end."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url.rstrip("/")
    rest = rest.partition("?")[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}".rstrip("/")


def _s3_options(seconds: float) -> dict[str, Any]:
    """Return options for S3. Its timeouts end before ours; credentials come from AWS's own files and variables."""
    return {"use_listings_cache": False, "config_kwargs": {"connect_timeout": seconds, "read_timeout": seconds}}


ARCHIVE_FOLDER = "archive"
_PARTS = ".part"
_LOCAL = ("/", "file://", "local://")


class FsspecObjectStore:
    """Objects below `url`; "" is `archive/` in the data folder."""

    def __init__(
        self, home: Path, url: str, encryption: AgeEncryption, timeout_seconds: float, durability: LocalDurability
    ) -> None:
        self._encryption = encryption
        self._encrypts = bool(url) and encryption.has_key
        self._timeout = timeout_seconds
        self._durability = durability
        self._own = self._place(str(home / ARCHIVE_FOLDER))
        self._chosen = self._place(url) if url else self._own
        self._root = url_without_credentials(url) if url else ARCHIVE_FOLDER

    def url_of(self, name: str) -> str:
        return f"{self._root}/{name}{ENCRYPTED_SUFFIX if self._encrypts else ''}"

    def put(self, name: str, data: bytes, require_intact: Callable[[bytes], None]) -> StoredObject:
        object_name = f"{name}{ENCRYPTED_SUFFIX}" if self._encrypts else name
        whole = self._encryption.encrypt(data) if self._encrypts else data
        stored = StoredObject(self.url_of(name), len(whole), hashlib.sha256(whole).hexdigest(), self._encrypts)
        part = f"{_PARTS}/{object_name.replace('/', '.')}"
        self._chosen.write(part, whole)
        back = self._read_back(self._chosen, part, stored)
        require_intact(self._encryption.decrypt(back, stored.url) if self._encrypts else back)
        self._chosen.move(part, object_name)
        self._read_back(self._chosen, object_name, stored)
        return stored

    def get(self, url: str) -> FetchedObject:
        place, name = self._locate(url)
        whole = place.read(name)
        data = self._encryption.decrypt(whole, url) if url.endswith(ENCRYPTED_SUFFIX) else whole
        digest = hashlib.sha256(whole).hexdigest()
        return FetchedObject(data, StoredObject(url, len(whole), digest, url.endswith(ENCRYPTED_SUFFIX)))

    def exists(self, url: str) -> bool:
        place, name = self._locate(url)
        return place.has(name)

    def is_local(self, url: str) -> bool:
        return url.startswith((f"{ARCHIVE_FOLDER}/", *_LOCAL))

    def remove(self, url: str) -> None:
        place, name = self._locate(url)
        place.remove(name)

    def remove_partial(self) -> None:
        for name in self._chosen.list_names(_PARTS):
            self._chosen.remove(f"{_PARTS}/{name}")

    def _locate(self, url: str) -> tuple[FsspecFolder, str]:
        """Return folder and name of an object, which may be at an address that is no longer configured."""
        if url.startswith(f"{self._root}/"):
            return self._chosen, url[len(self._root) + 1 :]
        if url.startswith(f"{ARCHIVE_FOLDER}/"):
            return self._own, url[len(ARCHIVE_FOLDER) + 1 :]
        root, _, name = url.rpartition("/")
        return self._place(root), name

    def _place(self, root: str) -> FsspecFolder:
        return FsspecFolder(root, self._timeout, self._durability)

    @staticmethod
    def _read_back(place: FsspecFolder, name: str, stored: StoredObject) -> bytes:
        back = place.read(name)
        if len(back) != stored.bytes or hashlib.sha256(back).hexdigest() != stored.sha256:
            raise ArchiveUnavailable(
                f"{stored.url} was written, but other bytes came back ({len(back)} of {stored.bytes}). Nothing was "
                "cleared; check the archive's store. It is tried again later."
            )
        return back
