"""The daemon's log: lines that people read."""

from __future__ import annotations

import pytest
import structlog

from assistant.cli.logging_setup import configure_logging


def test_what_is_several_things_or_nothing_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    structlog.get_logger().info("said", made=["ends", "full"], pair=("a", "b"), torn=[], model=None, left=2, ok=True)
    line = capsys.readouterr().err
    assert line.endswith(' event=said made="ends, full" pair="a, b" torn=none model=none left=2 ok\n')
