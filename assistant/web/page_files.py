"""The files of the page: read, compressed and kept in memory at first use.

The content at a path with the version (a hash over all files) never changes, so browsers cache it; the page itself
names that version, and is not cached. Nothing outside of the folder is served. Comments, and line breaks and spaces
that mean nothing, are removed, which saves a tenth of the size; all modules are served as one, `main.js`, apart from
the plots' library.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from functools import lru_cache
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.web.page_condense import condense_script
from assistant.web.page_modules import join_modules

PAGE_FOLDER = Path(__file__).parent / "page"
_INDEX = "index.html"
_ENTRY = "main.js"
_STYLE = "page.css"
# Shows notifications, at the root of the page and without it.
_WORKER = "worker.js"
_PLOTS = "vendor/uplot.js"
_PLOTS_STYLE = "vendor/uplot.css"
# The page's placeholder for the path of its files.
_VERSION = b"{version}"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

_REMARK = re.compile(rb"/\*.*?\*/", re.DOTALL)
# The last semicolon of a block.
_LAST_SEMICOLON = re.compile(rb";(?=\s*\})")
# Spaces of a style sheet, and the zero before a decimal point.
_AROUND = re.compile(rb"(?<!\s)\s+(?=[{};,>])|(?<=[{};,>:])\s+|(?<=[ :(])0(?=\.\d)")
# With deflate's smaller tables: for these files the result is smaller.
_MEMORY_LEVEL = 7


@dataclass(frozen=True, slots=True)
class PageFile:
    media_type: str
    compressed: bytes  # gzip
    etag: str

    @property
    def content(self) -> bytes:
        return gzip.decompress(self.compressed)


@dataclass(frozen=True, slots=True)
class PageFiles:
    version: str
    index: PageFile
    worker: PageFile
    files: dict[str, PageFile]  # by path below the folder, with "/"


@lru_cache(maxsize=1)
def load_page_files() -> PageFiles:
    """Return the page's files, condensed and compressed, and a version that changes with any of them. Built once per
    process."""
    contents = {
        path.relative_to(PAGE_FOLDER).as_posix(): path.read_bytes()
        for path in sorted(PAGE_FOLDER.rglob("*"))
        if path.suffix in _TYPES
    }
    contents[_STYLE] = contents.pop(_PLOTS_STYLE) + _condense_style(contents[_STYLE])
    contents[_WORKER] = condense_script(contents[_WORKER].decode()).encode()
    # The plots' library is a plain script, which the page loads with the first plot.
    apart = (_PLOTS, _WORKER)
    modules = {name: content for name, content in contents.items() if name.endswith(".js") and name not in apart}
    joined = join_modules({name: content.decode() for name, content in modules.items()}, _ENTRY)
    contents = {name: content for name, content in contents.items() if name not in modules} | {_ENTRY: joined.encode()}
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    version = digest.hexdigest()[:16]
    worker = _page_file(_WORKER, contents.pop(_WORKER))
    index = contents.pop(_INDEX).replace(_VERSION, version.encode())
    files = {name: _page_file(name, content) for name, content in contents.items()}
    return PageFiles(version, _page_file(_INDEX, index), worker, files)


def _condense_style(content: bytes) -> bytes:
    """Without what only people read."""
    return _LAST_SEMICOLON.sub(b"", _AROUND.sub(b"", _REMARK.sub(b"", content)).strip())


def _page_file(name: str, content: bytes) -> PageFile:
    # With the header of gzip, without a time: the same content gives the same bytes.
    making = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS + 16, _MEMORY_LEVEL)
    compressed = making.compress(content) + making.flush()
    return PageFile(_TYPES[Path(name).suffix], compressed, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
