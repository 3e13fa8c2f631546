"""The object store for archives, over the file systems that fsspec knows: a folder of this machine, S3, and others.

What always holds:
- An object has its name only after it was read back under another one and verified, and is read back there once more.
  What is being written is in `.part/` below the same root, under a name that the next attempt uses again.
- The home's own folder is never encrypted, since the log is beside it in plain text; any other is if there is a key.
- Nothing comes from a cache: what is read comes from where it is stored.
- No step takes longer than its timeout: storage that hangs keeps a thread of its own, which prevents nobody from
  stopping the program.
- The error of a file system is reported in one line without the credentials of the address.
- Names are whole paths below the root, made of letters that no file system takes for a pattern.
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
# Where folders are only a way of writing names; making one would make a bucket.
_OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss", "obs"})
# For every so many bytes the place has its time once more.
_BYTES_A_WAIT = 10_000_000


@dataclass(frozen=True, slots=True)
class LocalDurability:
    """How a folder of this machine is written so that a power cut takes nothing back."""

    make_directory: Callable[[Path], None]
    sync: Callable[[Path], None]  # a file, or a directory for the names in it


class FsspecFolder:
    """`url` is the folder; nothing is asked of it before the first call. Every method raises `ArchiveUnavailable`."""

    def __init__(self, url: str, timeout_seconds: float, durability: LocalDurability) -> None:
        self.display_url = url_without_credentials(url)
        self._url = url
        self._timeout = timeout_seconds
        self._durability = durability
        self._opened: tuple[Any, str] | None = None

    def write(self, name: str, data: bytes) -> None:
        """The object is there, on the medium, with these bytes or others: read it back."""
        fs, path = self._locate(name)

        def act() -> None:
            self._make_folder(fs, path)
            if isinstance(fs, LocalFileSystem):
                # Closed to others before there is a word in it.
                Path(path).touch(mode=0o600)
            fs.pipe_file(path, data)
            if isinstance(fs, LocalFileSystem):
                self._durability.sync(Path(path))

        self._run(act, "written", len(data))

    def read(self, name: str) -> bytes:
        """Raises `ArchiveMissing` where there is none."""
        fs, path = self._locate(name)
        fs.invalidate_cache()
        size = self._run(lambda: fs.info(path)["size"], "read")
        return bytes(self._run(lambda: fs.cat_file(path), "read", size or 0))

    def has(self, name: str) -> bool:
        fs, path = self._locate(name)
        fs.invalidate_cache()
        return bool(self._run(lambda: fs.exists(path), "read"))

    def move(self, name: str, to: str) -> None:
        """In place of what stood at `to`."""
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
        """None there is as good."""
        fs, path = self._locate(name)
        fs.invalidate_cache()

        def act() -> None:
            if fs.exists(path):
                fs.rm_file(path)
                if isinstance(fs, LocalFileSystem):
                    self._durability.sync(Path(path).parent)

        self._run(act, "removed")

    def list_names(self, folder: str) -> list[str]:
        """The objects right in a folder below the root."""
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
        """The folder of a file, where there are folders."""
        protocols = {fs.protocol} if isinstance(fs.protocol, str) else {*fs.protocol}
        if isinstance(fs, LocalFileSystem):
            self._durability.make_directory(Path(path).parent)
        elif not _OBJECT_STORES & protocols:
            fs.makedirs(posixpath.dirname(path), exist_ok=True)

    def _run(self, act: Callable[[], T], action: str, size: int = 0) -> T:
        seconds = self._timeout * (1 + size // _BYTES_A_WAIT)
        outcome: Future[T] = Future()
        threading.Thread(target=_act, args=(act, outcome), name="archive", daemon=True).start()
        try:
            error = outcome.exception(seconds)
        except TimeoutError:
            raise ArchiveUnavailable(
                f"The archive at {self.display_url} did not answer within {seconds:g} s ([archive] timeout_seconds). "
                "Nothing was cleared; it is tried again later."
            ) from None
        if isinstance(error, FileNotFoundError):
            raise ArchiveMissing(f"The archive at {self.display_url} could not be {action}: it is not there.") from None
        if error is not None:
            # Not chained: what a file system says of itself may name what it was opened with.
            raise ArchiveUnavailable(
                f"The archive at {self.display_url} could not be {action}: {self._reason(error)}. Nothing was cleared; "
                "see [archive] in the settings. It is tried again later."
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
    # File systems raise what they like, those written in Rust even beside `Exception`; unheard, it would be waited for
    # until the time is up. `FsspecFolder._run` says what it means.
    except BaseException as error:  # noqa: BLE001
        outcome.set_exception(error)


def url_without_credentials(url: str) -> str:
    """An address without what opens it: no user, password or query, and no slash at its end."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url.rstrip("/")
    rest = rest.partition("?")[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}".rstrip("/")


def _s3_options(seconds: float) -> dict[str, Any]:
    """Its own waits end before ours does; who may do what comes from AWS's own files and variables."""
    return {"use_listings_cache": False, "config_kwargs": {"connect_timeout": seconds, "read_timeout": seconds}}


ARCHIVE_FOLDER = "archive"
_PARTS = ".part"
_LOCAL = ("/", "file://", "local://")


class FsspecObjectStore:
    """`url` "" keeps objects in `archive/` of the home."""

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
        """An object that was put where archives do not go any more is found there all the same."""
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
