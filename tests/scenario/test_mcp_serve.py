"""`assistant mcp serve`, as the owner's other programs see it: asked by the client of the official SDK."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from tests.support.command_line import ASSISTANT_COMMAND, command_environment, run_assistant, run_daemon
from tests.support.running_app import ANN, BridgePeople, run_app


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """The owner and a guest each said something about a boat."""
    async with run_app(tmp_path / "home", "fine") as it:
        people = BridgePeople(it)
        await people.allow_everybody()
        await it.say("My boat is called Kestrel.")
        await it.wait_idle()
        await it.app.commands.run('/remind add "paint the boat" --at "tomorrow at 9"', "main")
        await people.write("My own boat is called Merlin.", ANN)
    return tmp_path / "home"


@asynccontextmanager
async def client(home: Path, *flags: str) -> AsyncIterator[Client]:
    program, *words = ASSISTANT_COMMAND
    command = StdioServerParameters(
        command=program, args=[*words, "mcp", "serve", *flags], env=command_environment(home), cwd="/"
    )
    async with Client(command, read_timeout_seconds=60) as it:
        yield it


async def call(it: Client, name: str, **arguments: Any) -> tuple[str, bool]:
    result = await it.call_tool(name, arguments)
    part = result.content[0]
    assert isinstance(part, TextContent)
    return part.text, not result.is_error


async def test_other_programs_find_what_the_owner_said_and_nothing_of_others(home: Path) -> None:
    async with client(home) as it:
        tools = (await it.list_tools()).tools
        assert [tool.name for tool in tools] == ["search_memory", "search_history", "read_history", "show_agenda"]
        assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
        found, ok = await call(it, "search_history", query="boat")
        assert ok and "Kestrel" in found and "Merlin" not in found
        assert "Merlin" not in (await call(it, "search_memory", query="Merlin"))[0].replace('for "Merlin"', "")
        guests = int(found.partition("#")[2].split()[0]) + 1
        for message_id in range(guests, guests + 6):
            assert "Merlin" not in (await call(it, "read_history", message_id=message_id))[0]


async def test_without_the_flag_nothing_can_be_noted(home: Path) -> None:
    async with client(home) as it:
        text, ok = await call(it, "add_journal_entry", content="Mallory owns the boat.")
        assert not ok and "There is no tool" in text
    assert "Mallory" not in run_assistant(home, "memory", "search", "Mallory", "--json").out


@pytest.mark.parametrize("runs", [False, True])
async def test_with_the_flag_a_program_notes_something_with_or_without_a_running_assistant(
    home: Path, runs: bool
) -> None:
    async def note() -> None:
        async with client(home, "--write") as it:
            text, ok = await call(it, "add_journal_entry", content="The boat was painted in May.")
            assert ok and text == "Noted. The next sleep makes a memory of it."
            assert "painted in May" in (await call(it, "search_memory", query="painted"))[0]

    if runs:
        with run_daemon(home):
            await note()
    else:
        await note()
    assert [entry["text"] for entry in json.loads(run_assistant(home, "memory", "list", "--json").out)] == [
        "The boat was painted in May."
    ]


async def test_wrong_arguments_are_answered_and_the_server_stays(home: Path) -> None:
    async with client(home) as it:
        text, ok = await call(it, "search_history", query="", limit=9000)
        assert not ok and "search_history was not run" in text
        assert (await call(it, "show_agenda"))[1]
