"""The table of commands: how a line becomes a command with its words and options."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

import click
import pytest

from assistant.commands.argv import split_line
from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, number_argument, parse_command, phrase_option, words_argument
from assistant.core.errors import UsageError


def _render(value: Any, _: tzinfo) -> str:
    return str(value)


@click.group(cls=CommandGroup, default="add", is_free_text=lambda words: words[:2] == ["list", "everybody"])
def notes() -> None:
    """Notes."""


@notes.command("add", result=str, render=_render, context_settings={"ignore_unknown_options": True})
@words_argument("text")
@phrase_option("--at", "when", metavar="WHEN", help="When.")
def add(context: CommandContext, text: str, when: str | None) -> str:
    """Add."""
    return text


@notes.command("list", result=str, render=_render)
@click.option("--all", "everything", is_flag=True, help="All.")
def list_notes(context: CommandContext, everything: bool) -> str:
    """List."""
    return ""


@notes.command("remove", result=str, render=_render)
@number_argument("note")
def remove(context: CommandContext, note: int) -> str:
    """Remove."""
    return ""


ROOT = click.Group("", {"notes": notes})


def parse(argv: Sequence[str]) -> tuple[str, dict[str, Any]]:
    parsed = parse_command(ROOT, argv)
    return parsed.path[-1], dict(parsed.params)


@pytest.mark.parametrize(
    ("line", "command", "params"),
    [
        ("notes", "list", {"everything": False}),
        ("notes --all", "list", {"everything": True}),
        ("notes list", "list", {"everything": False}),
        ("notes list everybody", "add", {"text": "list everybody", "when": None}),
        ("notes buy  milk --at tomorrow at 9", "add", {"text": "buy  milk", "when": "tomorrow at 9"}),
        ("notes --at tomorrow", "add", None),
        ('notes --at="next week" milk', "add", {"text": "milk", "when": "next week"}),
        ("notes buy -5 degrees", "add", {"text": "buy -5 degrees", "when": None}),
        ('notes buy "--milk" twice', "add", {"text": 'buy "--milk" twice', "when": None}),
        ("notes buy —for Tom— milk", "add", {"text": "buy —for Tom— milk", "when": None}),
        ("notes buy milk -- --att tomorrow", "add", {"text": "buy milk --att tomorrow", "when": None}),
        ("notes buy milk --att tomorrow", "add", None),
        ("notes remove #3", "remove", {"note": 3}),
        ("notes remove three", "remove", None),
        ("notes remove 3 4", "remove", None),
    ],
)
def test_words_that_name_no_command_go_to_the_default_and_none_at_all_to_the_list(
    line: str, command: str, params: dict[str, Any] | None
) -> None:
    if params is not None:
        assert parse(split_line(line)) == (command, params)
        return
    with pytest.raises(UsageError, match=rf"Use `/notes {command} .*Nothing was changed\.$"):
        parse(split_line(line))


def test_an_option_of_several_words_is_one_word_in_a_shell() -> None:
    assert parse(["notes", "--at", "next week", "buy", "milk"]) == ("add", {"text": "buy milk", "when": "next week"})


def test_a_misspelt_option_is_no_part_of_a_text() -> None:
    with pytest.raises(UsageError, match=r"No such option '--att'\..* Did you mean '--at'\?"):
        parse(["notes", "buy", "milk", "--att", "tomorrow"])
    assert parse(["notes", "buy milk --att tomorrow"]) == ("add", {"text": "buy milk --att tomorrow", "when": None})
