"""Mem0 works in the home and nowhere else: every file that its process makes, opens for writing, renames or removes,
and every connection that it opens, as the kernel saw it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from assistant.mem0.client import MemoryStoreSettings
from assistant.wire.memories import MEMORY_WORKER_COMMAND
from tests.crash.available import needs_strace
from tests.support.semantic_memory import NOW, add_changes, delete_changes, make_memory, open_memories, update_changes

_CALLS = (
    "openat,open,creat,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,link,linkat,symlink,symlinkat,connect"
)
_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NOWHERE = {Path("/dev/null"), Path("/dev/tty")}


@needs_strace
async def test_nothing_is_written_outside_the_home_and_nobody_is_called(tmp_path: Path) -> None:
    home, seen = tmp_path / "home", tmp_path / "seen"
    # A person's directory that has nothing yet: what is there already would not be made again.
    person = f"HOME={tmp_path / 'person'}"
    watched = (
        "env",
        person,
        "strace",
        "-f",
        "-qq",
        "-s",
        "4096",
        "-o",
        str(seen),
        "-e",
        f"trace={_CALLS}",
        *MEMORY_WORKER_COMMAND,
    )
    kept = [
        make_memory(text, number=number)
        for number, text in enumerate(("I live in Oslo.", "Cake, 東京 🐈", "x" * 300_000))
    ]
    async with open_memories(MemoryStoreSettings(home), watched) as app:
        await app.apply(add_changes(*kept))
        await app.apply(update_changes(replace(kept[0], text="Anna moved to Bergen on Monday.", until=NOW)))
        assert len((await app.nearest(["Oslo"], "main"))[0]) == 3
        await app.apply(delete_changes(kept[1]))
        await app.erase([kept[2].id])
        assert await app.reembed() == 0
    lines = seen.read_text(encoding="utf-8", errors="replace").splitlines()
    calls = [line.split(maxsplit=1)[1] for line in lines if "(" in line and "resumed>" not in line]
    changed = [path for call in calls for path in _changed(call, home)]
    assert [call for call in calls if call.startswith("connect(")] == []
    assert home / "memory.db" in changed
    assert [path for path in changed if home not in (path, *path.parents) and path not in _NOWHERE] == []


def _changed(call: str, home: Path) -> list[Path]:
    """The files that a call makes, changes or takes away, seen from the directory that the child works in."""
    name = call.partition("(")[0]
    if name.startswith("open") and not _WRITING.search(call):
        return []
    # A name that exists and is only looked for is not made.
    if name.startswith("mkdir") and "EEXIST" in call:
        return []
    return [home / named for named in _NAMED.findall(call)]
