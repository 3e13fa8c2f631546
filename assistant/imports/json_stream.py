"""Reads objects from a JSON file of any size, one at a time.

Only one object is in memory at a time; objects larger or nested deeper than the limits are skipped.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

import ijson

MAX_OBJECT = 24 * 1024 * 1024
"""About how many bytes one object may take."""

MAX_DEPTH = 60
_READ_AT_ONCE = 64 * 1024
_VALUE_BYTES = 40
_SHALLOW = 6

Path = tuple[str, ...]


class TooLarge:
    """Stands for a skipped object."""


TOO_LARGE = TooLarge()


class CutOff(Exception):
    """The file is truncated or broken."""


class Utf8Stream:
    """Converts a text in UTF-8 or UTF-16 to valid UTF-8."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        start = stream.read(4)
        is_wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        self._decoder = codecs.getincrementaldecoder("utf-16" if is_wide else "utf-8-sig")("replace")
        self._start = start

    def read(self, size: int = -1) -> bytes:
        """Return b"" only at the end. `size` limits what is read, so the result may be longer."""
        if size == 0:
            return b""
        block, self._start = self._start or self._stream.read(size), b""
        text = self._decoder.decode(block, final=not block)
        # A block that ends within a character is not the end of the file.
        while block and not text:
            block = self._stream.read(size)
            text = self._decoder.decode(block, final=not block)
        return text.encode("utf-8", "replace")


def read_objects(stream: BinaryIO, wanted: Collection[Path]) -> Iterator[tuple[Path, Any]]:
    """Yield every object at one of the `wanted` paths ("item" in arrays), and every plain value outside of them near
    the root. Raises `CutOff` after what could be read."""
    depths = {len(path) for path in wanted}
    path: list[str] = []
    builder: _Builder | None = None
    begun_at = 0
    try:
        for event, value in ijson.basic_parse(Utf8Stream(stream), use_float=True, buf_size=_READ_AT_ONCE):
            if event == "map_key":
                path[-1] = value if len(path) <= _SHALLOW else ""
                if builder is not None:
                    builder.add(event, value)
                continue
            is_start, is_end = event in ("start_map", "start_array"), event in ("end_map", "end_array")
            if is_end:
                path.pop()
            if builder is None and event == "start_map" and len(path) in depths and tuple(path) in wanted:
                builder, begun_at = _Builder(), len(path)
            if builder is not None:
                builder.add(event, value)
                if is_end and len(path) == begun_at:
                    yield tuple(path), builder.value
                    builder = None
            elif not is_start and not is_end and len(path) < _SHALLOW:
                yield tuple(path), value
            if is_start:
                path.append("item" if event == "start_array" else "")
    except ijson.JSONError:
        raise CutOff from None


class _Builder:
    """Builds one object from its events. If it becomes too large or too deep, it is dropped."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._keys: list[str] = []
        self._size = 0
        self.value: Any = TOO_LARGE
        self._is_dropped = False

    def add(self, event: str, value: Any) -> None:
        if self._is_dropped:
            return
        if event == "map_key":
            self._keys[-1] = value
            return
        if event in ("end_map", "end_array"):
            self._stack.pop()
            self._keys.pop()
            return
        self._size += _VALUE_BYTES + (len(value) if isinstance(value, str) else 0)
        made: Any = {} if event == "start_map" else [] if event == "start_array" else value
        if self._size > MAX_OBJECT or len(self._stack) > MAX_DEPTH:
            self._is_dropped, self._stack, self.value = True, [], TOO_LARGE
            return
        if not self._stack:
            self.value = made
        elif isinstance(self._stack[-1], dict):
            self._stack[-1][self._keys[-1]] = made
        else:
            self._stack[-1].append(made)
        if event in ("start_map", "start_array"):
            self._stack.append(made)
            self._keys.append("")
