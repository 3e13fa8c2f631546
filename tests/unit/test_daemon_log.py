"""The daemon's log: lines that people read."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest
import structlog

from assistant.cli.logging_setup import log_to_file, log_to_stderr


def test_what_is_several_things_or_nothing_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("info")
    structlog.get_logger().info("said", made=["ends", "full"], pair=("a", "b"), torn=[], model=None, left=2, ok=True)
    line = capsys.readouterr().err
    assert line.endswith(' event=said made="ends, full" pair="a, b" torn=none model=none left=2 ok\n')


def test_where_a_person_types_the_log_is_a_file_that_is_theirs_alone_and_does_not_grow_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_to_file(tmp_path / "assistant.log", "debug")
    log = structlog.get_logger()
    log.debug("said", text="the words of somebody")
    log.info("turn done", session="main")
    logging.getLogger("httpx").warning("GET /v1/the-words-of-somebody")
    written = (tmp_path / "assistant.log").read_text()
    assert 'event="turn done" session=main' in written and "of=httpx" in written
    assert "words" not in written and capsys.readouterr() == ("", "")
    assert stat.S_IMODE((tmp_path / "assistant.log").stat().st_mode) == 0o600
    for _ in range(3):
        log.error("x", padding="x" * 600_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["assistant.log", "assistant.old.log"]
    assert (tmp_path / "assistant.log").stat().st_size < 1_000_000


def test_a_log_that_cannot_be_written_keeps_nobody_from_talking(tmp_path: Path) -> None:
    log_to_file(tmp_path / "no-such-folder" / "assistant.log")
    structlog.get_logger().error("lost")
    assert list(tmp_path.iterdir()) == []
