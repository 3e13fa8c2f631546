"""What the pages of docs/ name is there: commands, options, slash commands, settings, extras of the package."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from assistant.commands.argv import LEAVE_COMMANDS, SLASH_COMMANDS
from assistant.commands.table import CommandGroup
from assistant.core.errors import install_hint
from tests.support.command_line import ROOT
from tests.support.docs_pages import DOCS, PROGRAMS, parse_shell_line, shell_lines

PAGES = (*sorted(DOCS.glob("*.md")), ROOT / "README.md")
DEFAULTS = tomllib.loads((ROOT / "config" / "default.toml").read_text(encoding="utf-8"))
PACKAGE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# `section.key` in the text of a page, and not a file of that name.
_SETTING = re.compile(rf"`(?:({'|'.join(DEFAULTS)})\.([a-z_]+))(?: = [^`]*)?`")
# Addresses of the web API, and commands of Telegram's @BotFather.
_NOT_OURS = {
    "/healthz",
    "/readyz",
    "/metrics",
    "/newbot",
    "/revoke",
    "/setprivacy",
    "/setjoingroups",
    "/invite",
    "/nocturne",
}
_FILES = {"md", "db", "sql", "toml", "json", "jsonl", "py"}
_INSTALLED = re.compile(r"(?:pipx|uv tool|pip) install(?: --[\w-]+)* '?([^\s'`\[-][^\s'`\[]*)(?:\[([\w,]+)\])?'?")


def named(text: str) -> Iterator[tuple[str, list[str]]]:
    """(program, words) of each of our commands that a page shows in a block or names in a line."""
    inline = re.findall(r"`((?:assistant|aihistory) [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for line in (*shell_lines(text), *(" ".join(one.split()) for one in inline)):
        if line.startswith(("sudo", "API=", "SHOW=", "curl")):
            continue
        words = parse_shell_line(line)[1]
        if words and words[0] in PROGRAMS:
            yield words[0], words[1:]


def called(program: str, words: list[str]) -> click.Command:
    """The command that these words call; of its options only the names are looked at, since a page that names a command
    leaves out what it is given. Raises `click.UsageError` where one does not exist."""
    command = PROGRAMS[program]
    context = click.Context(command)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
        if word.startswith("-") and word != "-":
            if word.partition("=")[0] not in options:
                raise click.UsageError(f"{command.name} has no {word}")
        elif isinstance(command, click.Group) and (found := command.get_command(context, word)) is not None:
            command, context = found, click.Context(found, parent=context)
        elif isinstance(command, CommandGroup) and command.default:
            command, context = command.commands[command.default], click.Context(command, parent=context)
        elif isinstance(command, click.Group) and not takes_words(command):
            raise click.UsageError(f"{command.name} has no {word}")
    return command


def takes_words(command: click.Command) -> bool:
    """Whether what is no command of the group may be a word for the group itself."""
    return any(isinstance(one, click.Argument) for one in command.params) or "--name" in {
        name for one in command.params for name in one.opts
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_that_a_page_names_is_there(path: Path) -> None:
    for program, words in named(path.read_text(encoding="utf-8")):
        assert called(program, words), words


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_slash_command_that_a_page_names_is_there(path: Path) -> None:
    for name in re.findall(r"`(/[a-z]+)(?: [^`]*)?`", path.read_text(encoding="utf-8")):
        assert name in {*SLASH_COMMANDS, *LEAVE_COMMANDS, *_NOT_OURS}, name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_setting_that_a_page_names_is_there(path: Path) -> None:
    for section, key in _SETTING.findall(path.read_text(encoding="utf-8")):
        assert key in DEFAULTS[section] or key in _FILES, f"{section}.{key}"


def test_what_a_page_has_installed_is_the_checkout_and_no_name_on_an_index_with_extras_that_it_has() -> None:
    installed = [found for path in DOCS.glob("*.md") for found in _INSTALLED.findall(path.read_text(encoding="utf-8"))]
    assert len(installed) >= 8
    for place, extras in installed:
        assert place == "./"
        assert {one for one in extras.split(",") if one} <= set(PACKAGE["optional-dependencies"])


@pytest.mark.parametrize("extra", PACKAGE["optional-dependencies"])
def test_what_brings_an_extra_is_said_as_the_pages_say_it(extra: str) -> None:
    assert _INSTALLED.findall(install_hint(extra)) == [("./", extra)] * 2
