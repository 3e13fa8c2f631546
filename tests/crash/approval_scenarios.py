"""A scenario of approvals: an effect that a model wanted waits for the owner, who says yes; it is done once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from tests.crash.comparison import DIFFER, look
from tests.crash.pictures import rows
from tests.crash.scenario import Scenario, Snapshot
from tests.crash.turn_scenarios import LIVED
from tests.crash.world import CrashEnvironment, live, message, tail
from tests.support.scripted import ScriptStep


def _wants_more(request: ModelRequest) -> ScriptStep:
    """Searches, and then does what nobody asked for."""
    results = [m.name for m in tail(request) if m.role == "tool"]
    if "where is" not in next(m.content for m in reversed(request.messages) if m.role == "user").lower():
        return f"Noted, message {sum(m.role == 'user' for m in request.messages)}."
    if not results:
        return ToolCall("search", "search_history", {"query": "spare key cabin"})
    if "manage_todo_list" not in results:
        return ToolCall("todo", "manage_todo_list", {"action": "add", "items": ["Buy gift cards"]})
    return "Under the blue flowerpot."


_ASKED = CrashEnvironment((*LIVED.messages, message("Where is the spare key?", 3)), _wants_more)
_ANSWERED = replace(_ASKED, messages=(*_ASKED.messages, message("yes", 4)))


def _look(home: Path) -> Snapshot:
    decided = "SELECT id, tool, arguments, effect, state, result FROM approvals ORDER BY id"
    return {**look(home), "approvals": rows(home / "script.db", decided)}


APPROVED = Scenario(
    "approved",
    "the owner says yes to an effect that nobody asked for",
    lambda home: live(home, _ASKED),
    lambda home: live(home, _ANSWERED),
    _look,
    DIFFER,
)
