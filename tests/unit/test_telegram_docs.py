"""Every command of docs/telegram.md is one that the program knows, options and all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assistant.bridges.telegram.incoming import MAX_DOWNLOAD_BYTES
from tests.unit.test_service_docs import ours, parsed

PAGE = (Path(__file__).parents[2] / "docs" / "telegram.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
LINES = {line for block in BLOCKS for line in block.splitlines()} | set(re.findall(r"`(assistant [^`]+)`", PAGE))


@pytest.mark.parametrize("line", sorted(LINES))
def test_a_command_of_the_page_is_understood(line: str) -> None:
    words = ours(line)
    assert words is not None
    assert parsed(words).callback is not None


def test_the_page_says_how_large_files_may_be() -> None:
    assert f"up to {MAX_DOWNLOAD_BYTES // 1_000_000} MB" in PAGE
