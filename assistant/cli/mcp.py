"""`assistant mcp`: the commands of the table, and `serve`, which lets the owner's other programs search what is known.

What always holds: they reach what the owner said, and nothing of guests and rooms. Without `--write` nothing can be
changed. Reading is done next to a running assistant, as every command that reads; what is noted goes through it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from assistant.agenda.service import AgendaService
from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.open_link import open_home_locally, open_link
from assistant.cli.shell import with_commands
from assistant.commands import mcp as table
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError, install_hint
from assistant.core.messages import ToolCall
from assistant.core.permissions import OWNER_ONLY
from assistant.core.ports import Tool, ToolContext
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.runtime.tool_registry import ToolRegistry
from assistant.settings.settings import Settings
from assistant.wire.services import build_agenda
from assistant.wire.stores import Stores
from tools.declaration import tool
from tools.history import read_history_tool, search_history_tool
from tools.memory import EntryText, search_memory_tool
from tools.reminders import reminder_tools

_RESULT_BYTES = 12_000
_SECONDS = 60.0
_AGENDA = "show_agenda"


@click.command()
@click.option("--write", is_flag=True, help="Programs may also add to the journal.")
def serve(write: bool) -> None:
    """Serve other programs of yours over MCP.

    They search memories and history, and read the agenda.

    A program that speaks MCP starts this command itself; name it in the program's settings.

    > assistant mcp serve
    > assistant mcp serve --write
    """
    settings = load_effective_settings(read_only=True)
    try:
        from assistant.mcp.server import serve_stdio  # the SDK, an extra
    except ModuleNotFoundError as error:
        raise AssistantError(f"The SDK of MCP is not installed: {install_hint('mcp')}.") from error
    writing = [_add_journal_entry(settings)] if write else []

    async def call(name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        now = utc_now()
        context = ToolContext(MAIN_SESSION, OWNER_SCOPE, "mcp", f"mcp:{now.isoformat()}", now)
        with open_home_stores(settings) as stores:
            registry = ToolRegistry([*_reading(settings, stores), *writing], timeout_seconds=_SECONDS)
            try:
                return await registry.run(ToolCall("mcp", name, arguments), context, "owner")
            finally:
                await stores.memories.aclose()

    with open_home_stores(settings) as stores:
        specs = [it.spec for it in _reading(settings, stores)]
    asyncio.run(serve_stdio(specs, [it.spec for it in writing], call))


def _reading(settings: Settings, stores: Stores) -> list[Tool]:
    agenda: AgendaService = build_agenda(settings, stores, lambda: None, utc_now)[0]
    return [
        search_memory_tool(stores.memory_search, settings.zone, _RESULT_BYTES),
        search_history_tool(stores.history, settings.zone, _RESULT_BYTES),
        read_history_tool(stores.history, settings.zone, _RESULT_BYTES),
        *(it for it in reminder_tools(agenda, stores.agenda_days) if it.spec.name == _AGENDA),
    ]


def _add_journal_entry(settings: Settings) -> Tool:
    @tool(effects="keyed", roles=OWNER_ONLY, timeout_seconds=_SECONDS, touches={"writes"})
    async def add_journal_entry(context: ToolContext, content: EntryText) -> str:
        """Have the assistant remember one thing for good, as a whole sentence."""
        async with open_link(settings, partial(open_home_locally, begins=True)) as link:
            done = await link.run_argv(["memory", "add", content], MAIN_SESSION, _SECONDS)
        return done.text

    return add_journal_entry


mcp = with_commands(table.mcp, serve)
