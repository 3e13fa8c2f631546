"""Something worth remembering, written into the journal at once.

What always holds: an entry belongs to the scope that the call came from, names the person's newest message as where it
is from (I6), and is written once, however often the call is repeated. What a guest has noted says that it is a guest's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator

from assistant.core.memories import JournalEntry
from assistant.core.ports import HistoryPort, Tool, ToolContext
from assistant.core.records import LogRecord
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.store_ports import Journal
from tools.declaration import EVERYONE, tool

_MOST = 2000


def _whole(content: str) -> str:
    if not content.strip() or len(content) > _MOST:
        raise ValueError(f"must have 1 to {_MOST} characters")
    return " ".join(content.split())


def _share(weight: float) -> float:
    if not 0 <= weight <= 1:
        raise ValueError("must be 0 to 1")
    return weight


# Checked, but not worth a schema's tokens.
Content = Annotated[str, AfterValidator(_whole)]
Weight = Annotated[float, AfterValidator(_share)]
_LOOKED_BACK = 50


def newest_request(history: HistoryPort, context: ToolContext) -> LogRecord | None:
    """The person's newest message in the session of a call."""
    recent = history.recent(context.scope, session=context.session, limit=_LOOKED_BACK)
    return next((one for one in reversed(recent) if one.role == "user" and one.kind == "message"), None)


def add_journal_entry_tool(journal: Journal, history: HistoryPort, importance: Callable[[str, str], float]) -> Tool:
    """`importance` gives 0 to 1 for a kind and a content."""

    @tool(effects="keyed", roles=EVERYONE)
    def add_journal_entry(
        context: ToolContext,
        content: Content,
        kind: Literal["fact", "preference", "decision"] = "fact",
        weight: Weight | None = None,
    ) -> str:
        """Remember one thing for good, as a whole sentence. weight: importance, 0 to 1."""
        newest = newest_request(history, context)
        entry = JournalEntry(
            key=f"tool:{context.key}",
            scope=context.scope,
            session=context.session,
            generation=newest.generation if newest else 1,
            content=content,
            timestamp=newest.ts if newest else context.now,
            source_type="tool",
            importance=importance(kind, content) if weight is None else weight,
            tags=(kind,) if context.scope == OWNER_SCOPE else (kind, "guest"),
            sources=(newest.id,) if newest else (),
        )
        journal.add([entry], context.now)
        return "Noted in the journal."

    return add_journal_entry
