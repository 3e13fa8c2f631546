"""A home in the crash harness, and the files that lie beside it: what was seen, printed, traced, found."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.crash.witness import effect_log_path

_MEMORY = Path("/dev/shm")


def output_of(home: Path) -> Path:
    """What the processes that served a home printed."""
    return home.with_name(f"{home.name}.output")


def trace_of(home: Path) -> Path:
    """What strace saw of the last process."""
    return home.with_name(f"{home.name}.trace")


def picture_of(home: Path) -> Path:
    """Where the look at a home is written."""
    return home.with_name(f"{home.name}.picture.json")


def boot_of(home: Path) -> Path:
    """What names the machine's boot, once the power went."""
    return home.with_name(f"{home.name}.boot")


def scratch() -> Path:
    """A directory for homes, in memory where that is possible: a killed process loses nothing of what it wrote there
    either, and a power cut is played on a model of a disk; but nobody waits for a disk."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="crash-", dir=memory)).resolve()


def copy(home: Path, target: Path) -> None:
    """The home and its witness, as they are now. A home that does not exist yet does not exist there either."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if home.exists():
        shutil.copytree(home, target)
    effect_log_path(target).touch(0o600)
    if effect_log_path(home).exists():
        shutil.copyfile(effect_log_path(home), effect_log_path(target))


def remove(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    for beside in (effect_log_path(home), picture_of(home), output_of(home), trace_of(home), boot_of(home)):
        beside.unlink(missing_ok=True)


def moved(path: Path, old: Path, new: Path) -> Path:
    """A file of the home `old`, or its witness, as it is called in the home `new`."""
    if path == effect_log_path(old):
        return effect_log_path(new)
    return new / path.relative_to(old) if path == old or old in path.parents else path


def last_lines(path: Path, most: int = 6) -> str:
    if not path.exists():
        return ""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-most:])
