"""What lies in a folder of the workspace. File names are words from elsewhere: they are quoted like any others."""

from __future__ import annotations

import asyncio
import itertools
import os
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.core.calendar import format_local_time
from assistant.core.errors import ToolError
from assistant.core.ports import Tool, ToolContext
from assistant.core.text import pluralize
from assistant.core.tool_results import quote_text
from tools.declaration import OWNER, Count, tool
from tools.workspace import inside, opened_folder

_MOST_READ = 10_000


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    mode: int
    size: int
    changed: datetime


def list_files_tool(workspace: Path, zone: ZoneInfo, result_bytes: int) -> Tool:
    @tool(roles=OWNER)
    async def list_files(context: ToolContext, path: str = "", offset: Count = 0) -> str:
        """List a folder of the person's workspace; offset skips that many entries."""
        path = inside(path)
        entries = await asyncio.to_thread(_entries, workspace, path)
        if offset and offset >= len(entries):
            raise ToolError(f"it has {pluralize(len(entries), 'entry', 'entries')}; offset {offset} is past the last.")
        return _render(entries, path, offset, zone, result_bytes)

    return list_files


def _entries(workspace: Path, path: str) -> list[_Entry]:
    if not workspace.exists():
        return []
    with opened_folder(workspace, path) as folder, os.scandir(folder) as found:
        entries = [_entry(item) for item in itertools.islice(found, _MOST_READ)]
    return sorted(entries, key=lambda entry: (not stat.S_ISDIR(entry.mode), entry.name))


def _entry(item: os.DirEntry[str]) -> _Entry:
    status = item.stat(follow_symlinks=False)
    return _Entry(item.name, status.st_mode, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def _render(entries: list[_Entry], path: str, offset: int, zone: ZoneInfo, room: int) -> str:
    where = quote_text(path) if path else "the workspace"
    if not entries:
        return f"Nothing is in {where}."
    lines: list[str] = []
    for entry in entries[offset:]:
        line = _line(entry, zone)
        room -= len(line.encode())
        if room < 0 and lines:
            break
        lines.append(line)
    shown = offset + len(lines)
    most = " or more" if len(entries) == _MOST_READ else ""
    more = [f"(More: list_files(path={quote_text(path)}, offset={shown}).)"] if shown < len(entries) else []
    return "\n".join([f"{len(entries)}{most} in {where}:", *lines, *more])


def _line(entry: _Entry, zone: ZoneInfo) -> str:
    if stat.S_ISDIR(entry.mode):
        return f"- folder {quote_text(entry.name + '/')}"
    if stat.S_ISREG(entry.mode):
        return f"- file {quote_text(entry.name)}, {entry.size} bytes, {format_local_time(entry.changed, zone)}"
    kind = "link" if stat.S_ISLNK(entry.mode) else "special file"
    return f"- {kind} {quote_text(entry.name)}, not readable here"
