"""The menu after a slash: what it offers of commands and of the lists of the assistant, and that it is on a screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from assistant.cli.chat.completion import CommandCompleter
from assistant.core.errors import UsageError
from tests.scenario.test_cli_terminal import left, terminal
from tests.support.command_line import run_in_process
from tests.support.running_app import LiveApp, run_app


@asynccontextmanager
async def menu_of(home: Path) -> AsyncIterator[tuple[CommandCompleter, LiveApp]]:
    """The menu over an assistant with a few things in its lists."""
    async with run_app(home) as it:
        for typed in (
            "/remind call Ines --at tomorrow at 9",
            "/todo add lamp oil",
            "/todo add batteries",
            '/schedule add news "What is new?" --every "day at 8"',
            "/pin The dog is allergic to chicken",
        ):
            await it.app.commands.run(typed, "main")
        menu = CommandCompleter()

        async def run(argv: Sequence[str]) -> Any:
            return (await it.app.commands.run_argv(argv, "main")).value

        menu.run = run
        yield menu, it


async def offered(menu: CommandCompleter, typed: str) -> dict[str, str]:
    """What the menu shows, with what it says of each."""
    found = menu.get_completions_async(Document(typed), CompleteEvent(text_inserted=True))
    return {completion.text: completion.display_meta_text async for completion in found}


async def test_each_command_is_offered_with_what_it_does_and_so_is_what_is_within_it(tmp_path: Path) -> None:
    async with menu_of(tmp_path) as (menu, it):
        commands = await offered(menu, "/")
        assert sorted([*commands, "/start"]) == sorted([*it.app.commands.names(), "/quit", "/exit"])
        assert all(commands.values()) and commands["/undo"] == "Remove the last exchange from the conversation"
        assert list(await offered(menu, "/remi")) == ["/remind"]
        assert (await offered(menu, "/remind "))["cancel"].startswith("Cancel a reminder")
        assert list(await offered(menu, "/usage --")) == ["--days"]
        assert list(await offered(menu, "/usage ")) == ["day", "model", "kind", "session", "part"]
        assert "keys" in await offered(menu, "/help ") and "pins" in await offered(menu, "/help ")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/remind cancel ", {"1": "call Ines"}),
        ("/remind cancel ines", {"1": "call Ines"}),
        ("/todo done ", {"1": "lamp oil", "2": "batteries"}),
        ("/todo done 1 ", {"2": "batteries"}),
        ("/schedule pause ", {"news": "What is new?"}),
        ("/unpin ", {"1": "The dog is allergic"}),
        ("/pins remove ", {"1": "The dog is allergic"}),
        ("/session ", {"main": ""}),
        ("/model ", {"auto": "What the settings say", "offline": "Offline mode"}),
    ],
)
async def test_what_a_command_takes_is_offered_with_its_words(
    tmp_path: Path, typed: str, expected: dict[str, str]
) -> None:
    async with menu_of(tmp_path) as (menu, it):
        if typed == "/session ":
            await it.say("hello")
            await it.wait_idle()
        shown = await offered(menu, typed)
        assert list(shown) == list(expected)
        assert all(shown[name].startswith(about) for name, about in expected.items())


async def test_a_memory_is_offered_under_the_name_that_its_commands_take(tmp_path: Path) -> None:
    listed = [{"id": "1a2b3c4d5e6f", "text": "Ines lives in Bergen"}, {"id": "entry 12345", "text": "the key is red"}]
    menu = CommandCompleter()
    async with run_app(tmp_path) as it:
        commands = (await it.app.commands.run_argv(["help"], "main")).value
        answers = {("help",): commands, ("memory", "list"): listed}

        async def answer(argv: Sequence[str]) -> Any:
            return answers[tuple(argv)]

        menu.run = answer
        assert list(await offered(menu, "/forget ")) == ["1a2b3c4d", "e12345"]
        assert list(await offered(menu, "/why berg")) == ["1a2b3c4d"]


async def test_a_mistyped_command_is_answered_by_the_one_that_is_like_it(tmp_path: Path) -> None:
    async with menu_of(tmp_path) as (menu, it):
        assert list(await offered(menu, "/remindrs")) == ["/remind"]
        with pytest.raises(UsageError, match=r"Did you mean `/reset` or `/retry`|Did you mean `/remind`"):
            await it.app.commands.run("/remindrs", "main")


async def test_what_is_no_command_gets_no_menu_and_what_was_said_by_others_cannot_act_on_the_screen(
    tmp_path: Path,
) -> None:
    async with menu_of(tmp_path) as (menu, it):
        for typed in ("hello /re", "", "/etc/pass", "/remind\nlist", "/nothing like it "):
            assert await offered(menu, typed) == {}
        await it.app.commands.run("/todo add \x1b]0;owned\x07", "main")
        menu.clear()
        assert "␛]0;owned␇" in (await offered(menu, "/todo done "))["3"]


async def test_an_assistant_that_cannot_be_asked_leaves_the_names(tmp_path: Path) -> None:
    async def refuse(argv: Sequence[str]) -> Any:
        raise UsageError("gone")

    menu = CommandCompleter()
    menu.run = refuse
    assert list(await offered(menu, "/remi")) == ["/remind"]
    assert await offered(menu, "/remind cancel ") == {}


def test_the_menu_is_on_the_screen_and_fills_in_a_number(tmp_path: Path) -> None:
    with terminal(tmp_path / "home", "chat") as child:
        child.send("/remind call Ines --at tomorrow at 9\r")
        child.expect("Set:")
        child.send("/remi")
        child.expect("Set reminders; list")
        child.send("nd cancel ")
        child.expect("call Ines · ")
        child.send("\t")
        child.send("\r")
        child.expect("ancelled")
        child.send("/remindrs\r")
        child.expect("Did you mean")
        assert left(child) == 0


@pytest.mark.parametrize("word", ["exit", "quit", "bye"])
def test_a_word_of_parting_leaves_the_terminal_and_is_no_message(tmp_path: Path, word: str) -> None:
    with terminal(tmp_path / "home", "chat") as child:
        child.send(f"{word}\r")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 0
    assert run_in_process(tmp_path / "home", "log").out == ""


async def test_of_a_conversation_that_was_reset_the_current_one_is_offered(tmp_path: Path) -> None:
    async with menu_of(tmp_path) as (menu, it):
        await it.say("The boiler code is 4711.")
        await it.wait_idle()
        await it.app.commands.run("/reset --yes", "main")
        await it.wait_idle()
        menu.clear()
        assert (await offered(menu, "/sessions show "))["main"] == "messages: 0"
