"""The page's libraries, at pinned versions, with their licences: `python -m docs.vendor_page` fetches them again from
npm's registry, `--check` compares what is there. Each package is checked against the registry's own hash, which is
pinned here too.
"""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import tarfile
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[1]
VENDOR_FOLDER = _ROOT / "assistant" / "web" / "page" / "vendor"


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    sha512: str  # of the package, base64
    files: Mapping[str, str]  # in the package, and here


PAGE = (
    Package(
        "htm",
        "3.1.1",
        "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {"package/preact/standalone.module.js": "preact.js", "package/LICENSE": "htm.LICENSE"},
    ),
    # htm's file has Preact in it; this is its licence.
    Package(
        "preact",
        "11.2.0",
        "/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        {"package/LICENSE": "preact.LICENSE"},
    ),
    Package(
        "uplot",
        "1.6.32",
        "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {
            "package/dist/uPlot.iife.min.js": "uplot.js",
            "package/dist/uPlot.min.css": "uplot.css",
            "package/LICENSE": "uplot.LICENSE",
        },
    ),
)


def fetch(package: Package) -> dict[str, bytes]:
    """Its files by their names here. Raises `ValueError` where it is not what was pinned."""
    address = f"https://registry.npmjs.org/{package.name}/-/{package.name}-{package.version}.tgz"
    with urllib.request.urlopen(address, timeout=60) as answer:
        content = answer.read()
    found = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != package.sha512:
        raise ValueError(f"{package.name} {package.version} is not what was pinned: sha512-{found}")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {here: archive.extractfile(there) for there, here in package.files.items()}
        return {here: member.read() for here, member in members.items() if member is not None}


def main() -> int:
    files = {here: content for package in PAGE for here, content in fetch(package).items()}
    if "--check" in sys.argv:
        different = [name for name, content in files.items() if (VENDOR_FOLDER / name).read_bytes() != content]
        print("\n".join(f"differs: {name}" for name in different) or "The page's libraries are what was pinned.")
        return int(bool(different))
    VENDOR_FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (VENDOR_FOLDER / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
