"""`/help` in a conversation: every command by subject, how each is used in words that a person types, and the keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.running_app import ANN, BridgePeople, run_app


async def test_help_lists_every_command_and_short_form_under_its_subject_in_plain_words(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        text = await it.app.commands.run("/help", "main")
        listed = re.findall(r"^- `(/\w+)` — [A-Z].*[^.]$", text, re.MULTILINE)
        assert sorted([*listed, "/start"]) == sorted(it.app.commands.names())
        assert re.findall(r"^\*\*(.+)\*\*$", text, re.MULTILINE)[:3] == ["Talk", "Remember", "Time"]
        assert "[" not in text and "`assistant" not in text and "`/help keys`" in text


async def test_help_of_a_command_shows_its_use_with_examples_as_typed_in_a_conversation(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        run = it.app.commands.run
        assert "`/pins add [TEXT|ID]`" in await run("/help pins", "main")
        for name in ("pin", "pins add", "/pin"):
            told = await run(f"/help {name}", "main")
            assert 'For example: `/pins add "The dog is allergic to chicken"`, `/pins add 12`' in told
        assert "[--days N]" in await run("/help usage", "main")
        commands = json.loads(await run("/help --json", "main"))["commands"]
        for command in commands:
            shown = "\n".join([command["usage"], command["about"], command["more"], *command["examples"]])
            assert "assistant pins" not in shown and not re.search(r"\[--[\w-]+ [a-z]", shown), shown


async def test_help_behind_the_name_of_a_group_shows_its_use_and_is_no_text(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        run = it.app.commands.run
        for name in ("todo", "remind", "memory"):
            assert await run(f"/{name} help", "main") == await run(f"/help {name}", "main")
        assert await run("/todo add help", "main")
        assert [todo.text for todo in it.app.stores.todos.list_todos("owner")] == ["help"]


async def test_help_keys_lists_the_keys_of_a_terminal(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        told = await it.app.commands.run("/help keys", "main")
    assert all(key in told for key in ("Enter", "Alt-Enter", "Tab", "Ctrl-C", "Ctrl-D", "`bye`"))


async def test_a_guest_is_shown_what_guests_may_type_and_nothing_of_the_rest(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/help", ANN)
        (_, text), *_ = them.sent_since_last()[-1:]
        listed = re.findall(r"^- `/(\w+)`", text, re.MULTILINE)
        assert set(listed) <= {"help", "undo", "retry", "stop", "agenda", "todo", "remind"} and "remind" in listed
        await them.write("/help people", ANN)
        assert "There is no command /people here" in them.sent_since_last()[-1][1]
