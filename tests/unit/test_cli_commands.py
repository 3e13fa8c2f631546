"""The tree of commands: each can be loaded, and each tells what it does, with an example."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from assistant import __version__
from assistant.cli.aihistory.main import aihistory
from assistant.cli.lazy import escape_unencodable, run_guarded, with_help_option
from assistant.cli.main import assistant
from assistant.cli.serve import path_hint
from assistant.commands.argv import (
    SHELL_ONLY_COMMANDS,
    SLASH_COMMANDS,
    command_name,
    is_leave_command,
    rewrite_for_shell,
)
from assistant.commands.catalog import command_root
from assistant.core.calendar import utc_now
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app


def tree(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            if inner.hidden:  # typed by nobody: what one process asks of another
                continue
            yield from tree(inner, f"{name} {part}")


EVERY = dict([*tree(assistant, "assistant"), *tree(aihistory, "aihistory")])


def test_the_commands_of_this_version_are_there() -> None:
    assert {name.split()[-1] for name in EVERY} >= {
        "run",
        "stop",
        "chat",
        "status",
        "sessions",
        "log",
        "verify",
        "usage",
        "config",
        "show",
        "check",
        "path",
    }


@pytest.mark.parametrize("name", EVERY)
def test_every_command_tells_what_it_does_with_an_example(name: str) -> None:
    command = EVERY[name]
    assert command.help
    assert name == "assistant" or "Example:" in command.help
    for parameter in command.params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.name
    shown = CliRunner().invoke(command, ["--help"])
    assert shown.exit_code == 0
    assert "Usage:" in shown.output


# Interactive, running on, or printing a file: docs/developing/decisions.md says why.
WITHOUT_JSON = {
    *("assistant setup", "assistant run", "assistant bridge add", "assistant config edit", "assistant mail add"),
    *("assistant service logs", "assistant service print", "assistant sessions export"),
    *("assistant completion", "assistant mcp serve", "assistant fleet host", "assistant fleet route"),
}


def test_every_command_that_has_a_result_prints_json_whose_shape_is_in_the_reference() -> None:
    commands = {name: command for name, command in EVERY.items() if not isinstance(command, click.Group)}
    without = {name for name, command in commands.items() if not any("--json" in it.opts for it in command.params)}
    assert without == WITHOUT_JSON
    reference = (Path(__file__).parents[2] / "docs/developing/reference/json.md").read_text(encoding="utf-8")
    assert [name for name in commands if name not in WITHOUT_JSON and f"- `{name}`: " not in reference] == []


@pytest.mark.parametrize(
    "name", [name for name, command in EVERY.items() if isinstance(command, click.Group) and name != "assistant"]
)
def test_every_group_alone_does_what_one_of_its_commands_does_and_takes_its_options(name: str) -> None:
    group = EVERY[name]
    assert isinstance(group, click.Group)
    context = group.make_context(name, ["--json"])
    words = [*context._protected_args, *context.args]
    implied = EVERY[f"{name} {words[0]}"]
    assert words[1:] == ["--json"] and any("--json" in option.opts for option in implied.params)
    assert group.make_context(name, [])._protected_args == words[:1]


def test_options_of_a_group_stay_before_the_command_that_is_implied() -> None:
    service = EVERY["assistant service"]
    context = service.make_context("service", ["--system", "--name", "two", "--json"])
    assert [*context._protected_args, *context.args] == ["status", "--json"]
    assert context.params == {"system": True, "name": "two"}


def test_the_menu_names_each_command_once_in_the_order_of_the_reference() -> None:
    shown = CliRunner().invoke(assistant, ["--help"]).output
    listed = [line.split()[0] for line in shown.partition("Talk:")[2].splitlines() if line.startswith("  ")][:-1]
    assert listed == assistant.list_commands(click.Context(assistant))


def test_the_menu_is_shown_without_loading_a_command() -> None:
    program = (
        "import sys, assistant.cli.main as main; main.assistant(['--help'], standalone_mode=False);"
        "print(sorted(name for name in sys.modules if name.startswith(('assistant.', 'pydantic'))), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Look after it:" in ran.stdout
    assert "assistant.cli.main" in ran.stderr
    assert "assistant.cli.chat.command" not in ran.stderr and "pydantic" not in ran.stderr


def test_numpy_has_one_thread_unless_a_person_wants_more() -> None:
    program = (
        "import os, sys, assistant.cli.main as main; sys.argv = ['assistant', '--version'];"
        "import atexit;"
        "atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS'], file=sys.stderr)); main.main()"
    )
    for wanted, expected in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"} | wanted
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        assert ran.stderr.strip() == expected


def test_the_version_is_told() -> None:
    assert __version__ in CliRunner().invoke(assistant, ["--version"]).output


def test_completion_offers_the_commands_that_the_runtime_knows(tmp_path: Path) -> None:
    app = build_app(load_settings(None, {"ASSISTANT_HOME": str(tmp_path)}), utc_now)
    try:
        assert sorted(app.commands.names()) == sorted(SLASH_COMMANDS)
    finally:
        app.close()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("/todo add milk", True),
        ("/STATUS", True),
        ("/remindrs", True),
        ("/help?", True),
        (" /help@nocturne_bot me", True),
        ("/etc/hosts", False),
        ("/etc/passwd is a file", False),
        ("/ 2", False),
        ("/2", False),
        ("todo", False),
        ("/", True),
        (" / ", True),
    ],
)
def test_a_command_is_told_apart_from_a_message_that_begins_with_a_slash(text: str, is_one: bool) -> None:
    assert bool(command_name(text)) is is_one


def test_commands_that_only_a_shell_has_are_all_told_as_such() -> None:
    in_shell = {*assistant.list_commands(click.Context(assistant))}
    assert {*SHELL_ONLY_COMMANDS} == in_shell - {*command_root().commands}


def test_quit_leaves_and_nothing_longer_does() -> None:
    assert is_leave_command(" /quit ") and is_leave_command("/exit") and is_leave_command("/quit please")
    assert not is_leave_command("quit smoking")


@pytest.mark.parametrize("word", ["exit", " Quit ", "EXIT  \n", "bye", "Bye!"])
def test_a_word_of_parting_alone_on_a_line_leaves(word: str) -> None:
    assert is_leave_command(word)
    assert not is_leave_command(f"say {word} to Ines")


def test_a_command_that_is_mistyped_is_answered_with_the_one_that_is_like_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_guarded(assistant, ["stauts"]) == 2
    assert "Did you mean `assistant status`?" in capsys.readouterr().err
    assert run_guarded(assistant, ["why", "e1"]) == 2
    assert "Did you mean `assistant memory why e1`?" in capsys.readouterr().err
    assert run_guarded(assistant, ["hepl"]) == 2
    assert "Did you mean `assistant help`?" in capsys.readouterr().err
    assert run_guarded(assistant, ["zzzzzz"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


def test_the_name_alone_shows_the_whole_menu_and_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(assistant, []) == 0
    bare = capsys.readouterr()
    assert run_guarded(assistant, ["--help"]) == 0
    assert bare.out == capsys.readouterr().out and not bare.err


def test_what_the_encoding_of_a_terminal_does_not_know_is_written_as_its_number() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="latin-1")
    escape_unencodable(stream)
    stream.write("Bjørn ░")
    stream.flush()
    assert written.getvalue() == b"Bj\xf8rn \\u2591"


@pytest.mark.parametrize(
    ("typed", "shell"),
    [
        ("`/compact --undo 3` takes it back", "`assistant compact --undo 3` takes it back"),
        ("`/sleep` tries again.", "`assistant sleep` tries again."),
        ("`/reset trip --cancel` cancels it.", "`assistant reset trip --cancel` cancels it."),
        ("`/reset` or `/reset trip`", "`assistant reset` or `assistant reset trip`"),
        ("`/why e12`, `/unpin 3`", "`assistant memory why e12`, `assistant pins remove 3`"),
        ("`/remind cancel 3`, `/done 4`", "`assistant remind cancel 3`, `assistant requests done 4`"),
        ("then type `/retry`.", "then type `assistant chat -m /retry`."),
        ("`/sleeping`, /sleep, `/stop`", "`/sleeping`, /sleep, `/stop`"),
    ],
)
def test_a_shell_is_told_what_can_be_typed_there(typed: str, shell: str) -> None:
    assert rewrite_for_shell(typed) == shell


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["help"], ["--help"]),
        (["help", "help"], ["--help"]),
        (["help", "remind"], ["remind", "--help"]),
        (["help", "remind", "add"], ["remind", "add", "--help"]),
        (["--debug", "help", "usage"], ["--debug", "usage", "--help"]),
        (["remind", "help"], ["remind", "--help"]),
        (["config", "help"], ["config", "--help"]),
    ],
)
def test_help_as_a_word_prints_what_the_option_prints(
    words: list[str], meant: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for line in (words, meant):
        assert run_guarded(assistant, line) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "Usage:" in printed[0]


def test_help_within_the_text_of_a_command_is_text() -> None:
    line = ["todo", "add", "help"]
    assert with_help_option(assistant, line) == line


def test_help_on_a_command_that_does_not_exist_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(assistant, ["help", "remnd"]) == 2
    assert "Did you mean `assistant remind --help`?" in capsys.readouterr().err


def test_aihistory_knows_help_as_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(aihistory, ["help", "show"]) == 0
    assert "Usage: aihistory show" in capsys.readouterr().out


def test_a_program_that_is_not_on_the_path_says_how_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert path_hint(".venv/bin/assistant").startswith("Here `assistant` is `.venv/bin/assistant`; ")
    assert path_hint("-m") == path_hint("assistant") == ""
    (tmp_path / "assistant").write_text("#!/bin/sh")
    (tmp_path / "assistant").chmod(0o755)
    assert path_hint(".venv/bin/assistant") == ""


def test_a_command_ends_once_its_threads_ended_and_its_output_is_written() -> None:
    # One write a line: `print` writes a line and its end apart, and a thread may come between the two.
    program = (
        "import atexit, sys, threading; from concurrent.futures import ThreadPoolExecutor;"
        "from assistant.cli.lazy import end_process; say = sys.stdout.write; atexit.register(say, 'at the end\\n');"
        "threading.Thread(target=lambda: say(f'{sum(range(10**6))}\\n')).start();"
        "ThreadPoolExecutor().submit(say, 'in a pool\\n'); end_process(3)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (3, "")
    assert sorted(ended.stdout.splitlines()) == ["499999500000", "at the end", "in a pool"]
