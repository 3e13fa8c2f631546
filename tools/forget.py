"""What would be forgotten, for a person to confirm.

What always holds: the model forgets nothing. It is shown what would go and given a code; only a person can say
`/forget CODE`, so that no quoted text and no mistake of a model can make anything vanish (I10). What is looked at is of
the scope that the call came from. The answer has none of the words: it is kept in the log itself.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from assistant.commands.erasure import render_forget_preview
from assistant.core.erasure import ErasurePreview, ErasureRequest
from assistant.core.errors import ToolError
from assistant.core.ports import Tool, ToolContext
from assistant.core.tool_results import quote_block
from tools.declaration import EVERYONE, Count, tool

_LONGEST = 2000


class Asking(Protocol):
    async def ask(self, wanted: ErasureRequest, now: datetime) -> tuple[ErasurePreview, str]:
        """What would go, and the code that confirms it; "" where there is nothing."""
        ...


def forget_tool(forgetting: Asking) -> Tool:
    @tool(roles=EVERYONE, timeout_seconds=60.0)
    async def forget(
        context: ToolContext,
        text: str = "",
        messages: list[Count] = [],  # noqa: B006 - pydantic copies defaults
        entries: list[Count] = [],  # noqa: B006
        memories: list[str] = [],  # noqa: B006
    ) -> str:
        """Prepare to forget for good: every copy of exact words (text), or messages, journal entries or memories by
        their ids. Nothing goes before the user types the command you are given."""
        wanted = ErasureRequest(context.scope, tuple(messages), tuple(entries), tuple(memories), text.strip())
        if bool(wanted.text) == bool(messages or entries or memories):
            raise ToolError("Give either a text or ids. Nothing was changed.")
        if len(wanted.text) > _LONGEST:
            raise ToolError(f"text: {_LONGEST} characters at most; a telling part of it will do. Nothing was changed.")
        found, code = await forgetting.ask(wanted, context.now)
        return quote_block("\n".join(render_forget_preview(found, code, shown=False)))

    return forget
