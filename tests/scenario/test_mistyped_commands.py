"""What begins with a slash and is no command: refused with a suggestion where it looks like one, in a terminal, a pipe
and on networks alike, and a message where it does not.
"""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from assistant.cli.main import assistant
from assistant.commands.argv import OTHER_NAMES, rewrite_for_shell
from assistant.commands.catalog import command_root
from assistant.commands.table import parse_command
from assistant.core.errors import UsageError
from assistant.core.sessions import peer_session_key
from tests.support.command_line import run_assistant, run_in_process
from tests.support.running_app import ANN, OWNER, ROOM, BridgePeople, run_app
from tests.support.scripted import owner_message

ANNS = peer_session_key("kept", ANN)


@pytest.mark.parametrize("piped", [False, True])
def test_a_mistyped_command_is_not_said_to_the_assistant(tmp_path: Path, piped: bool) -> None:
    home = tmp_path / "home"
    asked = (
        run_assistant(home, "chat", said=b"/remnid me\n/etc/passwd is a file\n")
        if piped
        else run_assistant(home, "chat", "-m", "/remnid me")
    )
    assert (asked.returncode, "Did you mean `/remind`?" in asked.err) == (2, True)
    assert "Did you mean `/quit`?" in run_assistant(home, "chat", "-m", "/quti").err
    assert "nothing to leave" in run_assistant(home, "chat", "-m", "/quit").err
    stored = run_in_process(home, "log").out if piped else ""
    assert "remnid" not in stored and ("/etc/passwd is a file" in stored) is piped


async def test_a_slash_that_is_no_command_is_a_message(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/etc/passwd is a file", ANN)
        assert it.view_contents(ANNS)[0] == ("user", "/etc/passwd is a file")


async def test_a_mistyped_command_is_not_stored_and_is_answered_with_what_is_like_it(tmp_path: Path) -> None:
    """On a network as in a terminal; a guest is told only of what guests may type."""
    async with run_app(tmp_path, "hello") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        for text, sender, suggestion in (("/statsu", OWNER, "`/status`"), ("/remnid", ANN, "`/remind`")):
            await them.write(text, sender)
            assert f"Did you mean {suggestion}?" in them.sent_since_last()[-1][1]
        await them.write("/peopel", ANN)
        assert "Did you mean" not in them.sent_since_last()[-1][1]
        await them.write("/", OWNER)
        assert "`/status`" in them.sent_since_last()[-1][1]  # a slash alone shows what can be typed
        assert [it.view_contents(session) for session in ("main", ANNS)] == [[], []]


async def test_a_command_that_only_a_shell_has_is_answered_with_where_it_is_run(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        for text, sender, is_told in (("/setup", OWNER, True), ("/doctor --fix", OWNER, True), ("/setup", ANN, False)):
            await them.write(text, sender)
            name = text[1:].split()[0]
            answer = them.sent_since_last()[-1][1]
            assert (f"`assistant {name}` is run in a shell, not in a conversation" in answer) is is_told


async def test_a_command_of_another_bot_in_a_room_gets_no_answer_of_ours(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello", ASSISTANT_ROOM__ANSWERS="everything") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/poll lunch?", ANN, room=ROOM, addressed=False)
        assert "There is no command" not in str(them.sent_since_last())


async def test_start_which_a_network_sends_at_first_lists_what_can_be_typed(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/start", ANN)
        assert "`/remind`" in them.sent_since_last()[-1][1]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("todo ad milk", "add"), ("todo lsit", "list"), ("memory serch tea", "search"), ("remind lst", "list")],
)
def test_a_mistyped_word_of_a_group_is_not_taken_for_its_text(tmp_path: Path, typed: str, meant: str) -> None:
    done = run_in_process(tmp_path / "home", *typed.split())
    assert (done.returncode, f"Did you mean `{meant}`?" in done.err) == (2, True)
    with pytest.raises(UsageError, match=f"Did you mean `{meant}`"):
        parse_command(command_root(), typed.split())


async def test_words_that_only_look_like_a_command_are_text(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        for text in ("lost keys", "clean the kitchen", "add ad milk"):
            await it.app.commands.run(f"/todo {text}", "main")
        todos = it.app.stores.todos.list_todos("owner")
        assert [item.text for item in todos] == ["lost keys", "clean the kitchen", "ad milk"]


async def test_the_name_of_a_conversation_alone_shows_it_and_how_to_go_there(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        await it.app.runtime.accept(owner_message("hello", external_id="m1", session="thread:trip"))
        await it.wait_idle()
        shown = await it.app.commands.run("/sessions trip", "main")
    assert shown.endswith("`/session trip` goes there.")
    assert rewrite_for_shell(shown).endswith("`assistant chat --session trip` goes there.")


def test_search_is_named_in_a_shell_with_what_was_typed(tmp_path: Path) -> None:
    asked = run_in_process(tmp_path / "home", "search", "lamp", "post")
    assert asked.returncode == 2 and "Did you mean `assistant memory search lamp post`?" in asked.err


async def test_search_is_the_search_of_memories_and_names_the_other(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        assert "`assistant log --grep WORDS`" in await it.app.commands.run("/search lamp", "main")


NOT_THERE = [
    "remind cancel 9",
    "todo done 99",
    "todo edit 99 milk",
    "todo remove 99",
    "todo reopen 99",
    "todo list nope",
    "schedule run nope",
    "pins remove 99",
    "requests done 99",
    "memory show abcd1234",
    "deliveries drop 99",
    "people deny 99",
    "sessions show nope",
    "compact --undo 77",
    "branch 9999",
    "archive show nope",
    "backup verify nope",
    "config get nope.x",
    "log --session nope",
]


def test_what_is_not_there_is_wrong_use_in_every_command(tmp_path: Path) -> None:
    assert run_in_process(tmp_path, "todo", "add", "milk").returncode == 0
    codes = {line: run_in_process(tmp_path, *line.split()).returncode for line in NOT_THERE}
    assert codes == dict.fromkeys(NOT_THERE, 2)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("settings", "Did you mean `assistant config`?"),
        ("journal", "Did you mean `assistant memory list`?"),
        ("restore", "Did you mean `assistant backup restore`?"),
        ("remnd", "Did you mean `assistant remind`?"),
        ("history", "Did you mean `assistant log`?"),
        ("history oslo trip", "Did you mean `assistant log --grep 'oslo trip'`?"),
        ("find keys", "Did you mean `assistant memory search keys`?"),
        ("remember milk", "Did you mean `assistant chat -m milk`?"),
        ("timer 5 minutes tea", "Did you mean `assistant remind add in 5 minutes tea`?"),
        ("what is on", "Did you mean `assistant chat -m 'what is on'`?"),
        ("nonsense", "No such command 'nonsense'."),
        ("config nonsense in three words", "No such command 'nonsense'."),
        ("todo edit stamps", "'stamps' is not a number. `assistant todo` lists them with their numbers."),
        ("todo done bread", "No to-do has the words 'bread'. Nothing was changed; `assistant todo` lists them."),
        ("sessions new trip", "'trip' is not a whole number."),
        ("sessions trip", "`assistant chat --session NAME` begins one, `assistant reset NAME` ends one."),
        ("log --limit many", "'many' is not a whole number."),
    ],
)
def test_a_shell_that_is_given_something_else_says_what_is_meant(kept_home: Path, words: str, advice: str) -> None:
    asked = run_in_process(kept_home, *words.split())
    assert asked.returncode == 2 and asked.err.rstrip().endswith(advice)


@pytest.fixture(scope="module")
def kept_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("mistyped")
    assert run_in_process(home, "todo", "add", "stamps").returncode == 0
    assert run_in_process(home, "chat", "-m", "hello").returncode == 0
    return home


def test_what_other_people_call_a_command_names_one_that_is_there() -> None:
    for meant in OTHER_NAMES.values():
        command: click.Command | None = assistant
        words = meant.split()
        while words and isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None, meant
        options = {name for option in command.params for name in option.opts}
        assert not words or {"words", *words[:1]} & options, meant
    assert not {*OTHER_NAMES} & {*assistant.list_commands(click.Context(assistant))}


async def test_commands_of_a_conversation_say_what_is_so_and_touch_nothing_else(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.") as it:
        run = it.app.commands.run

        async def refused(line: str) -> str:
            with pytest.raises(UsageError) as error:
                await run(line, "main")
            return str(error.value)

        # Words name whole words, or begin them: "all" is no part of "call".
        await run('/remind "call mum" --at "in 2 hours"', "main")
        await run("/todo add buy a toothbrush", "main")
        assert "No reminder has the words 'all'" in await refused("/remind cancel all")
        assert "Done" in await run("/todo done tooth", "main") or "toothbrush" not in await run("/todo", "main")
        assert "Did you mean `list`?" in await refused("/todo lists")
        for line, meant in (("move 1 to 8", "change"), ("snooze 1", "again"), ("delete 1", "cancel")):
            assert f"Did you mean `{meant}`? If" in await refused(f"/remind {line}")
        assert "remove 2" not in await run("/remind", "main")
        assert "It does not take 'main'. Use `/context`." in await refused("/context main")
        # What the status names is understood where the status is read.
        assert "No model was called" in await run("/usage --by part", "main")
        # What a conversation refuses is not offered there.
        assert "--yes is for a shell" in await refused("/forget it --yes")
        assert "--yes" not in await run("/help forget", "main")
        bare = await refused("/web")
        assert bare == "It has commands of its own. Use `/web [link | sessions | revoke]`. Nothing was changed."
        assert (await refused("/aihistory")).startswith("`aihistory` is run in a shell")
        assert "`/sleep` makes them now" in await run("/memory", "main")
        # What a conversation took over was said in it.
        await it.say("The wifi is upstairs.")
        await it.wait_idle()
        await run("/reset", "main")
        await run("/sessions resume main 1", "main")
        assert "'The wifi is upstairs.'" in await run("/pin", "main")
