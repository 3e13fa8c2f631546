"""The home of version 0.1 that lies packed in `tests/data`."""

from __future__ import annotations

from pathlib import Path

from tests.support.backup_home import unpack_tar

_PACKED = Path(__file__).parents[1] / "data" / "home-0.1.tar.gz"


def unpack_home_0_1(folder: Path) -> Path:
    """The home in this folder; beside it `expected.json`, what version 0.1 read out of it."""
    unpack_tar(_PACKED, folder)
    return folder / "home"
