"""The tools this house has, built over the ports they need, in the order in which models are told of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.core.agenda_ports import Reminders
from assistant.core.authority import NOBODY_ELSE, Authority
from assistant.core.memory_ports import MemoryFiles, MemorySearch, Profiles
from assistant.core.ports import History, Todos, Tool, TurnFiles
from assistant.core.sleep_ports import Journal, Requests
from assistant.core.telemetry import SILENT, Tracer
from tools.add_journal_entry import add_journal_entry_tool
from tools.cancel_reminder import cancel_reminder_tool
from tools.close_requests import close_requests_tool
from tools.current_time import current_time_tool
from tools.delegate import Helpers, delegate_tool
from tools.edit_memory_file import edit_memory_file_tool
from tools.forget import Asking, forget_tool
from tools.list_files import list_files_tool
from tools.list_reminders import list_reminders_tool
from tools.manage_todo_list import manage_todo_list_tool
from tools.read_file import read_file_tool
from tools.read_history import read_history_tool
from tools.registry import Registry
from tools.search_history import search_history_tool
from tools.search_memory import search_memory_tool
from tools.send_file import Keeping, send_file_tool
from tools.set_reminder import set_reminder_tool
from tools.update_memory import Correcting, update_memory_tool
from tools.update_profile import update_profile_tool

RESULT_BYTES = 12_000


@dataclass(frozen=True, slots=True)
class Memory:
    """What the tools of memory work over; `importance` gives 0 to 1 for a kind and a content."""

    search: MemorySearch
    correcting: Correcting
    journal: Journal
    profiles: Profiles
    files: MemoryFiles
    forgetting: Asking
    importance: Callable[[str, str], float]

    def tools(self, history: History, zone: ZoneInfo, result_bytes: int) -> list[Tool]:
        return [
            search_memory_tool(self.search, zone, result_bytes),
            add_journal_entry_tool(self.journal, history, self.importance),
            update_memory_tool(self.correcting, history),
            update_profile_tool(self.profiles, self.files, zone),
            edit_memory_file_tool(self.files),
            forget_tool(self.forgetting),
        ]


def _reminding(reminders: Reminders) -> list[Tool]:
    return [set_reminder_tool(reminders), list_reminders_tool(reminders), cancel_reminder_tool(reminders)]


def build_toolbox(
    history: History,
    todos: Todos,
    *,
    workspace: Path,
    zone: ZoneInfo,
    requests: Requests | None = None,
    helpers: Helpers | None = None,
    memory: Memory | None = None,
    reminders: Reminders | None = None,
    sending: tuple[Keeping, TurnFiles] | None = None,
    timeout_seconds: float = 60.0,
    result_bytes: int = RESULT_BYTES,
    tracer: Tracer = SILENT,
    authority: Authority = NOBODY_ELSE,
) -> Registry:
    """Without `requests`, `helpers`, `memory`, `reminders` or `sending` there are no tools over them. `result_bytes` is
    what a page of quoted words may take, in UTF-8; keep it below half of `tools.output_max_tokens` times four, so that
    a page is never cut when it is written to the working context."""
    tools: list[Tool] = [
        search_history_tool(history, zone, result_bytes),
        read_history_tool(history, zone, result_bytes),
        manage_todo_list_tool(todos),
    ]
    tools += [close_requests_tool(requests, zone)] if requests else []
    tools += _reminding(reminders) if reminders else []
    tools += [
        current_time_tool(zone),
        list_files_tool(workspace, zone, result_bytes),
        read_file_tool(workspace, result_bytes),
    ]
    tools += [send_file_tool(workspace, *sending)] if sending else []
    tools += memory.tools(history, zone, result_bytes) if memory else []
    tools += [delegate_tool(helpers)] if helpers else []
    return Registry(
        tools, timeout_seconds=timeout_seconds, unhurried=frozenset({"delegate"}), authority=authority, tracer=tracer
    )
