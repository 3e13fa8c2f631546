"""Every command of docs/service.md and docs/telegram.md is one that the program knows, with its options."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from assistant.bridges.telegram.incoming import MAX_DOWNLOAD_BYTES
from assistant.cli.main import assistant
from tests.support.docs_pages import assistant_words, parse_command

SERVICE_PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
SERVICE_BLOCKS = re.findall(r"^```sh\n(.*?)^```$", SERVICE_PAGE, re.M | re.S)
SERVICE_INLINE = re.findall(r"`(assistant [^`]+)`", SERVICE_PAGE)
SERVICE_LINES = [line for block in SERVICE_BLOCKS for line in block.splitlines()] + SERVICE_INLINE
# What else is called: the programs of others, whose options are not ours to check.
OTHER_PROGRAMS = ("pipx", "uv", "loginctl", "systemctl", "sudo pipx")


@pytest.mark.parametrize("line", sorted(set(SERVICE_LINES)))
def test_a_command_of_the_service_page_is_understood(line: str) -> None:
    words = assistant_words(line)
    if words is None:
        assert line.startswith(OTHER_PROGRAMS), line
    else:
        assert parse_command(words).callback is not None


def test_the_page_names_every_command_of_the_group() -> None:
    group = assistant.get_command(click.Context(assistant), "service")
    assert isinstance(group, click.Group)
    called = {words[-1] if len(words) == 2 else next(w for w in words[1:] if w in group.commands) for words in _calls()}
    assert called == set(group.commands)


def _calls() -> list[list[str]]:
    found = [words for line in SERVICE_LINES if (words := assistant_words(line))]
    return [words for words in found if words[0] == "service" and len(words) > 1]


TELEGRAM_PAGE = (Path(__file__).parents[2] / "docs" / "telegram.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TELEGRAM_PAGE, re.M | re.S)
LINES = {line for block in BLOCKS for line in block.splitlines()} | set(
    re.findall(r"`(assistant [^`]+)`", TELEGRAM_PAGE)
)


@pytest.mark.parametrize("line", sorted(LINES))
def test_a_command_of_the_telegram_page_is_understood(line: str) -> None:
    words = assistant_words(line)
    assert words is not None
    assert parse_command(words).callback is not None


def test_the_page_says_how_large_files_may_be() -> None:
    assert f"up to {MAX_DOWNLOAD_BYTES // 1_000_000} MB" in TELEGRAM_PAGE
