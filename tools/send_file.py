"""A file of the workspace, sent to the person along with the answer.

What is sent is a copy, kept in the workspace as it was then: whatever becomes of the file, a resend has the same bytes.
"""

from __future__ import annotations

import asyncio
import mimetypes
import os
from pathlib import Path
from typing import Protocol

from assistant.core.errors import ToolError
from assistant.core.messages import Media
from assistant.core.ports import Tool, ToolContext, TurnFilesPort
from assistant.core.tool_results import quote_text
from assistant.gateway.attachments import MAX_SENT_BYTES, SENT_FOLDER, safe_file_name
from tools.declaration import OWNER, tool
from tools.workspace import inside, opened_file

_MOST_A_TURN = 10


class Keeping(Protocol):
    """Where copies are kept (`assistant.gateway.attachments.Files`)."""

    def keep(self, folder: str, names: tuple[str, ...], data: bytes) -> str: ...


def send_file_tool(workspace: Path, files: Keeping, leaving: TurnFilesPort) -> Tool:
    @tool(effects="keyed", roles=OWNER, timeout_seconds=30.0)
    async def send_file(context: ToolContext, path: str) -> str:
        """Send a file of the person's workspace (10 MB at most) to them, with your answer. Call it once a file; say in
        the answer what it is."""
        path = inside(path)
        if len(leaving.of_turn(context.turn)) >= _MOST_A_TURN:
            raise ToolError(f"{_MOST_A_TURN} files go out with this answer already; send more with another.")
        data = await asyncio.to_thread(_bytes, workspace, path)
        mime = mimetypes.guess_type(path)[0] or "application/octet-stream"
        name = path.rsplit("/", 1)[-1]
        medium = Media("image" if mime.startswith("image/") else "file", mime, name, len(data))
        kept = await asyncio.to_thread(files.keep, SENT_FOLDER, (safe_file_name(medium),), data)
        leaving.add(Media(medium.kind, mime, name, len(data), path=kept), context)
        return f"{quote_text(path)} ({mime}, {len(data)} bytes) goes out with your answer."

    return send_file


def _bytes(workspace: Path, path: str) -> bytes:
    with opened_file(workspace, path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > MAX_SENT_BYTES:
            raise ToolError(f"{quote_text(path)} has {size} bytes; {MAX_SENT_BYTES} at most can be sent.")
        if not size:
            raise ToolError(f"{quote_text(path)} is empty, so there is nothing to send.")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(MAX_SENT_BYTES + 1)
