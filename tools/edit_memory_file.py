"""MEMORY.md, edited by the model in the owner's conversations.

What always holds: a passage is replaced only where it stands exactly once, as it stands now, so that nothing a person
wrote meanwhile is lost; the answer is the change as a diff, with the number by which it can be taken back.
"""

from __future__ import annotations

from assistant.context.edit_diff import diff
from assistant.core.errors import ToolError
from assistant.core.memory_api import MemoryFilesPort
from assistant.core.ports import Tool, ToolContext
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.tool_results import quote_block
from tools.declaration import OWNER, tool


def edit_memory_file_tool(files: MemoryFilesPort) -> Tool:
    @tool(effects="keyed", roles=OWNER)
    def edit_memory_file(context: ToolContext, old: str = "", new: str = "") -> str:
        """Edit MEMORY.md. old: exact passage ("" appends new). new: replaces it ("" removes)."""
        if context.scope != OWNER_SCOPE:
            raise ToolError("MEMORY.md is the owner's; it cannot be edited from here. Nothing was changed.")
        stands = files.curated()
        wrong = _wrong(stands, old, new)
        # Called again after a crash, the passage is gone already: then the change that was made is shown.
        edit = files.curate(
            stands if wrong else _edited(stands, old, new), stands, "model", context.now, key=context.key
        )
        if edit.id is None:
            raise ToolError(f"{wrong or 'That changes nothing.'} MEMORY.md stays as it is.")
        return f"MEMORY.md, change {edit.id}:\n{quote_block(diff(edit))}"

    return edit_memory_file


def _wrong(stands: str, old: str, new: str) -> str:
    if not old:
        return "" if new.strip() else "Both old and new are empty."
    times = stands.count(old)
    if times == 0:
        return "The passage is not there: give old exactly as the file has it, or somebody edited it meanwhile."
    return f"The passage is there {times} times: give more of what stands around it." if times > 1 else ""


def _edited(stands: str, old: str, new: str) -> str:
    if old:
        return stands.replace(old, new)
    between = "" if not stands or stands.endswith("\n") else "\n"
    return f"{stands}{between}{new}" + ("" if new.endswith("\n") else "\n")
