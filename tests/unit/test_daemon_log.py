"""The daemon's log: lines that people read."""

from __future__ import annotations

import logging
import stat
import subprocess
import sys
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


def test_the_library_of_the_log_is_loaded_with_the_first_line_that_is_written(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from assistant.cli.logging_setup import log_to_file;"
        "from assistant.core.logger import get_logger, set_log_level; log = get_logger();"
        f"log_to_file(Path({str(tmp_path / 'assistant.log')!r})); log.info('ready'); log.debug('x', n=1);"
        "print('structlog' in sys.modules); log.warning('late', n=1); print('structlog' in sys.modules);"
        "log.info('below'); set_log_level('info'); log.info('above')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\nTrue\n"
    written = [line.split(" level=")[1] for line in (tmp_path / "assistant.log").read_text().splitlines()]
    assert written == ["warning event=late n=1", "info event=above"]
