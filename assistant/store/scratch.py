"""Memory that the system can take back: files without a name, mapped."""

from __future__ import annotations

import contextlib
import mmap
import os
from pathlib import Path
from tempfile import TemporaryFile

_ZEROS = bytes(1 << 20)


def map_scratch(folder: Path, size: int) -> mmap.mmap | None:
    """Map `size` bytes of zeros of a new file in a folder, which is gone once the map is. None where the disk has no
    room for them, or the folder takes no file."""
    with contextlib.suppress(OSError), TemporaryFile(dir=folder, buffering=0) as file:
        # All of it now: a page that the disk had no room for later would end the process.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            for start in range(0, size, len(_ZEROS)):
                file.write(_ZEROS[: size - start])
        return mmap.mmap(file.fileno(), size)
    return None
