"""Searches the bytes of files for text in any encoding: as UTF-8 with any escapes (JSON, percent), as UTF-16, in base64
at any of its three alignments, and in compressed data (gzip, zlib, zip), also in the middle of a file or nested.

Nothing is changed; a file is read once, block by block. Databases are read in another process: a process that closes
any descriptor of a file releases every lock that SQLite holds on it there, and the next close of the same database
would then delete its write-ahead log under an open connection.
"""

from __future__ import annotations

import base64
import gzip
import re
import subprocess
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from assistant.core.erasure_patterns import number_spellings
from assistant.core.erasure_values import is_number
from assistant.core.errors import StoreError
from assistant.core.text import lazy_regex
from assistant.store.erasure.plan import ErasurePlan

_BLOCK = 4 << 20
# Longer than any phrase, including its spaces and escapes.
_OVERLAP = 64 << 10
_MAX_DEPTH = 3
_MAX_EXPANDED = 1 << 30
# Shorter phrases would be found by chance.
_MIN_BASE64 = 6
_MEMBER = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]|PK\x03\x04")
_ZIP_HEADER = 30
_LETTERS = lazy_regex(r"[a-z0-9]+")


class ByteSearch:
    """Searches any number of files for the text of one erasure."""

    def __init__(self, plan: ErasurePlan) -> None:
        self._wording = plan.wording
        said = [*plan.phrases[: int(plan.everywhere)], *plan.values]
        texts = [*said, *(form for text in said if is_number(text) for form in number_spellings(text))]
        self._base64 = sorted({core for text in texts for core in _base64_cores(text)})
        self._wide = [(_wide_anchor(text), pattern) for text in texts for pattern in _wide_patterns(text)]

    def count_in_file(self, path: Path, change: Callable[[bytes], bytes] | None = None) -> int:
        """Return how often the text is in a file, or in what `change` makes of its lines; 0 if the file does not exist.
        Raises `StoreError` if it cannot be read."""
        try:
            with open_beside_sqlite(path) as opened:
                file = gzip.GzipFile(fileobj=opened) if path.suffix == ".gz" else opened
                return self.count(map(change, _whole_lines(file)) if change else _blocks(file))
        except FileNotFoundError:
            return 0
        except (OSError, EOFError, zlib.error) as error:
            raise StoreError(f"{path} cannot be read: {error}") from error

    def count(self, blocks: Iterable[bytes]) -> int:
        """Return how often the text is in the blocks, which are consecutive; also across their borders."""
        stream = _Stream(self, 0)
        for block in blocks:
            stream.feed(block)
        return stream.match_count

    def find_ends(self, data: bytes) -> list[int]:
        """Return where uncompressed copies end."""
        ends = self._wording.match_ends(data)
        lowered = data.lower() if self._wide and b"\0" in data else b""
        for anchor, pattern in self._wide:
            if anchor in lowered:
                ends += [match.end() for match in re.finditer(pattern, data, re.IGNORECASE)]
        for core in self._base64:
            ends += [match.end() for match in re.finditer(re.escape(core), data)] if core in data else []
        return ends

    def has_wrapped(self, data: bytes) -> bool:
        """Return whether base64 has the text across line ends."""
        if not self._base64:
            return False
        # Line breaks may be escaped as in JSON, more than once.
        joined = data.replace(b"\\n", b"").replace(b"\\r", b"").translate(None, b"\r\n\\")
        return any(core in joined and core not in data for core in self._base64)


class _Stream:
    """A sequence of bytes: a file, or what a compressed member in it expands to."""

    def __init__(self, search: ByteSearch, depth: int) -> None:
        self._search = search
        self._depth = depth
        self._before = b""
        self._members: list[_Member] = []
        self._has_wrapped = False
        self._count = 0

    @property
    def match_count(self) -> int:
        return self._count + self._has_wrapped + sum(member.stream.match_count for member in self._members)

    def feed(self, block: bytes) -> None:
        """Search a block. A copy is counted in the block where it ends, and a member where it begins, so that none is
        counted twice."""
        data = self._before + block
        self._count += sum(end > len(self._before) for end in self._search.find_ends(data))
        self._has_wrapped = self._has_wrapped or self._search.has_wrapped(data)
        for member in self._members:
            member.expand(block)
        for match in _MEMBER.finditer(data) if self._depth < _MAX_DEPTH else ():
            if match.end() > len(self._before):
                member = _Member(_expander(match[0]), _Stream(self._search, self._depth + 1))
                member.expand(memoryview(data)[_first_byte(data, match) :])
                self._members.append(member)
        self._count += sum(member.stream.match_count for member in self._members if member.is_done)
        self._members = [member for member in self._members if not member.is_done]
        self._before = data[-_OVERLAP:]


class _Member:
    """Compressed data, or bytes that begin like it."""

    def __init__(self, expander: zlib._Decompress, stream: _Stream) -> None:
        self._expander = expander
        self.stream = stream
        self.is_done = False
        self._size = 0

    def expand(self, data: bytes | memoryview) -> None:
        try:
            while data and not self.is_done:
                expanded = self._expander.decompress(data, _BLOCK)
                self.stream.feed(expanded)
                self._size += len(expanded)
                data = self._expander.unconsumed_tail
                self.is_done = self._expander.eof or self._size > _MAX_EXPANDED
        except zlib.error:
            self.is_done = True


def _expander(magic: bytes) -> zlib._Decompress:
    return zlib.decompressobj(-zlib.MAX_WBITS if magic[:2] == b"PK" else zlib.MAX_WBITS | 32)


def _first_byte(data: bytes, match: re.Match[bytes]) -> int:
    """Return where the compressed bytes of a member begin."""
    if match[0][:2] != b"PK":
        return match.start()
    header = data[match.start() : match.start() + _ZIP_HEADER]
    lengths = (int.from_bytes(header[place : place + 2], "little") for place in (26, 28))
    return match.start() + _ZIP_HEADER + sum(lengths)


def _base64_cores(text: str) -> Iterator[bytes]:
    """Return for each alignment the base64 characters of a text that do not depend on what surrounds it."""
    for data in {form.encode() for form in (text, text.lower(), text.upper())}:
        for before in range(3):
            encoded = base64.b64encode(bytes(before) + data)
            core = encoded[-(-8 * before // 6) : 8 * (before + len(data)) // 6]
            if len(core) >= _MIN_BASE64:
                yield from {core, core.translate(bytes.maketrans(b"+/", b"-_"))}


def _wide_anchor(text: str) -> bytes:
    """Return the letters of a text, in lower case, that appear in UTF-16 of either byte order."""
    longest = max(_LETTERS.findall(text.lower()), key=len, default="")
    return longest.encode("utf-16-le")[:-1]


def _wide_patterns(text: str) -> Iterator[bytes]:
    for encoding in ("utf-16-le", "utf-16-be"):
        space = b"(?:" + b"|".join(re.escape(char.encode(encoding)) for char in " \n\r\t\u00a0") + b")+"
        words = [b"".join(_wide_char(char, encoding) for char in word) for word in text.split()]
        yield space.join(words)


def _wide_char(char: str, encoding: str) -> bytes:
    forms = dict.fromkeys((char, char.lower(), char.upper()))
    return b"(?:" + b"|".join(re.escape(form.encode(encoding)) for form in forms) + b")"


def _blocks(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block


def _whole_lines(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while lines := file.readlines(_BLOCK):
        yield b"".join(lines)


@contextmanager
def open_beside_sqlite(path: Path) -> Iterator[IO[bytes]]:
    """Yield the bytes of a file. Raises `OSError`, at the end too if not everything could be read."""
    if ".db" not in path.suffixes and not path.suffix.startswith(".db-"):
        with path.open("rb") as file:
            yield file
        return
    path.stat()
    with subprocess.Popen(("cat", "--", path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reading:
        assert reading.stdout is not None
        yield reading.stdout
        all_read = not reading.stdout.read(1)
    if all_read and reading.returncode:
        path.stat()
        raise OSError("it could not be read to its end")
