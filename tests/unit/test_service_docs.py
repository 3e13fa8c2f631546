"""Every command of docs/service.md is one that the program knows, options and all."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from assistant.cli.main import assistant

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
INLINE = re.findall(r"`(assistant [^`]+)`", PAGE)
LINES = [line for block in BLOCKS for line in block.splitlines()] + INLINE
# What else is called: the programs of others, whose options are not ours to check.
OTHERS = ("pipx", "uv", "loginctl", "systemctl", "sudo pipx")


def ours(line: str) -> list[str] | None:
    """The words after `assistant`; None for another program's line."""
    words = [word for word in shlex.split(line) if not re.fullmatch(r"[A-Z_]+=\S+", word)]
    return words[words.index("assistant") + 1 :] if "assistant" in words else None


def parsed(words: list[str]) -> click.Command:
    """The command that these words call, its options understood but nothing done. Raises `click.UsageError`."""
    command: click.Command = assistant
    context = command.make_context("assistant", list(words))
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None, name
        command = found
        context = command.make_context(name, rest, parent=context)
    return command


@pytest.mark.parametrize("line", sorted(set(LINES)))
def test_a_command_of_the_page_is_understood(line: str) -> None:
    words = ours(line)
    if words is None:
        assert line.startswith(OTHERS), line
    else:
        assert parsed(words).callback is not None


def test_the_page_names_every_command_of_the_group() -> None:
    group = assistant.get_command(click.Context(assistant), "service")
    assert isinstance(group, click.Group)
    called = {words[-1] if len(words) == 2 else next(w for w in words[1:] if w in group.commands) for words in _calls()}
    assert called == set(group.commands)


def _calls() -> list[list[str]]:
    found = [words for line in LINES if (words := ours(line))]
    return [words for words in found if words[0] == "service" and len(words) > 1]
