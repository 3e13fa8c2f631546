"""Skills in the running assistant: offered while there are any, without a word in a prompt where there are none."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from assistant.core.messages import ToolCall
from tests.support.command_line import run_assistant
from tests.support.running_app import LiveApp, run_app
from tests.unit.test_skills import make

FIND = ToolCall("f1", "find_tools", {"query": "skills"})
READ = ToolCall("r1", "use_tool", {"name": "read_skill", "arguments": {"name": "invoices"}})


def topics(it: LiveApp) -> str:
    return next(tool.description for tool in it.model.requests[-1].tools if tool.name == "find_tools")


async def say(it: LiveApp, text: str) -> None:
    await it.say(text)
    await it.wait_idle()


async def test_without_skills_no_prompt_speaks_of_them(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello") as it:
        await say(it, "hello")
        assert "skills" not in topics(it)


async def test_a_skill_that_is_added_meanwhile_is_found_listed_and_read(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello", FIND, READ, "Number them without gaps.") as it:
        await say(it, "hello")
        make(tmp_path / "workspace" / "skills" / "invoices")
        it.clock.now += timedelta(seconds=30)
        it.app.check_due()
        await say(it, "How do I write invoices?")
        assert "skills" in topics(it)
        found, read = [m.content for m in it.model.requests[-1].messages if m.role == "tool"]
        assert "read_skill" in found and "> Add the tax." in read
        assert "invoices: Writes invoices." in await it.app.commands.run("/skills", "main")
        await it.app.commands.run("/skills remove invoices", "main")
        it.app.check_due()
        await say(it, "thanks")
        assert "skills" not in topics(it)


def test_a_shell_adds_a_folder_lists_and_removes_it(tmp_path: Path) -> None:
    home, source = tmp_path / "home", make(tmp_path / "downloaded")
    run_assistant(home, "chat", "-m", "hello", ASSISTANT_MODEL__PROVIDER="offline")
    added = run_assistant(home, "skills", "add", str(source), "--json")
    assert json.loads(added.out)["name"] == "invoices", added.err
    assert "invoices: Writes invoices." in run_assistant(home, "skills").out
    assert run_assistant(home, "skills", "add", str(source)).returncode == 2
    assert run_assistant(home, "skills", "remove", "invoices").returncode == 0
    assert "There are no skills" in run_assistant(home, "skills").out
