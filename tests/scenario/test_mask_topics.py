"""The line that stands for old tool output names what the output is about, in words of its content: never those that
tools, or the cut of a long result, put around it.
"""

from __future__ import annotations

import re
from pathlib import Path

from assistant.context.tokens import TokenCounter
from assistant.context.truncate import TruncationPolicy, mask_tool_result, truncate_for_view
from assistant.core.messages import LogByteRange, Message, ToolCall
from assistant.core.ports import ToolContext
from assistant.core.records import CountingTier, LogLocation
from tests.support.running_app import LiveApp, run_app

PLACE = LogLocation("main", "log/main/conversation.jsonl", LogByteRange(0, 100))
COUNT = TokenCounter(CountingTier("estimate", "", "")).count_text
# Words that only a tool or a cut says.
OURS = {
    "quoted",
    "words",
    "data",
    "best",
    "first",
    "bytes",
    "file",
    "folder",
    "shortened",
    "truncated",
    "total",
    "output",
}


async def topics(it: LiveApp, call: ToolCall, *, limit: int = 5_000) -> list[str]:
    """What the mask of the call's result names, after the result entered the view."""
    context = ToolContext("main", "owner", "turn", call.id, it.clock.now)
    text, ok = await it.app.toolbox.run(call, context, "owner")
    assert ok
    result = Message("tool", text, id=7, tool_call_id=call.id, name=call.name)
    shown = truncate_for_view(result, PLACE, TruncationPolicy("tokens", limit), COUNT)
    masked = mask_tool_result(shown, call, PLACE, COUNT(shown.content))
    found = re.search(r"; about: (.*?)\. All of it", masked.content)
    assert found is not None
    return found[1].split(", ")


async def test_a_file_is_about_what_is_in_it_also_where_it_was_cut(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Yes.") as it:
        workspace = it.app.settings.home.workspace
        workspace.mkdir(exist_ok=True)
        (workspace / "fees.md").write_text("berth mole pier rope buoy\n" + "12 34 56 78 90\n" * 400)
        call = ToolCall("c1", "read_file", {"path": "fees.md"})
        for limit in (5_000, 300):
            assert set(await topics(it, call, limit=limit)) == {"berth", "mole", "pier", "rope", "buoy"}


async def test_lists_of_what_was_said_remembered_and_stored_are_about_their_words(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Yes.") as it:
        for text in ("The mooring in Bergen costs a lot", "Mooring fees of Bergen rose", "The ferry to Bergen is late"):
            await it.say(text)
            await it.wait_idle()
        workspace = it.app.settings.home.workspace
        workspace.mkdir(exist_ok=True)
        for name in ("mooring-plan.md", "mooring-bill.md", "ferry.md"):
            (workspace / name).write_text("x")
        calls = [
            ToolCall("c1", "search_history", {"query": "Bergen mooring"}),
            ToolCall("c2", "read_history", {"message_id": 1}),
            ToolCall("c3", "list_files", {}),
        ]
        for call in calls:
            named = {word.lower() for word in await topics(it, call)}
            assert named & {"bergen", "mooring", "mooring-plan"} and not named & OURS, (call.name, named)
