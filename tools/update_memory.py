"""A memory put right by the model.

What always holds: only what is of the call's scope can be named (I10); what was noted before keeps its words and gets a
date, nothing is deleted. The call's key makes a repeated call the same correction; its source is the person's newest
message, beside those that the memory came from (I6).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Protocol

from pydantic import Field

from assistant.commands.memory import render_correction
from assistant.core.errors import ToolError, UsageError
from assistant.core.memories import CorrectionResult
from assistant.core.ports import HistoryPort, Tool, ToolContext
from tools.add_journal_entry import Content, newest_request
from tools.declaration import EVERYONE, tool


class Correcting(Protocol):
    async def correct(
        self,
        reference: str,
        text: str,
        scope: str,
        session: str,
        now: datetime,
        *,
        key: str = "",
        sources: Sequence[int] = (),
    ) -> CorrectionResult:
        """Raises `UsageError` where nothing is changed."""
        ...


def update_memory_tool(memory: Correcting, history: HistoryPort) -> Tool:
    # Starting the memory store takes seconds, and it may need as long as `memory.timeout_seconds` to answer.
    @tool(effects="keyed", roles=EVERYONE, timeout_seconds=180.0)
    async def update_memory(
        context: ToolContext, reference: Annotated[str, Field(max_length=50)], text: Content
    ) -> str:
        """Correct a memory by its [reference]: text, a whole sentence, holds instead from now on."""
        newest = newest_request(history, context)
        sources = (newest.id,) if newest else ()
        try:
            done = await memory.correct(
                reference, text, context.scope, context.session, context.now, key=f"tool:{context.key}", sources=sources
            )
        except UsageError as error:
            raise ToolError(str(error)) from None
        return "\n".join(render_correction(done))

    return update_memory
