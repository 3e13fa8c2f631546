"""A command that is forked does and says what one that is started does."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import ASSISTANT_COMMAND, TIMEOUT_SECONDS, command_environment
from tests.support.forked_command import ForkedCommand


def outcome(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    with process:
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    return process.returncode, out, err


@pytest.mark.parametrize("words", [("status",), ("log", "--limit", "x"), ("nonsense",)], ids=lambda words: words[0])
def test_it_ends_as_the_command_itself_does(tmp_path: Path, words: tuple[str, ...]) -> None:
    environment = command_environment(tmp_path / "home", TZ="Asia/Kathmandu")
    started, forked = (
        outcome(kind(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=tmp_path))
        for kind, command in ((subprocess.Popen, [*ASSISTANT_COMMAND, *words]), (ForkedCommand, list(words)))
    )
    assert forked[0] == started[0]
    # The program is called `-c` where it is started as the tests do; other tests fill the disk meanwhile.
    told = [[re.sub(rb"Disk: [\d.]+", b"Disk:", text) for text in texts[1:]] for texts in (started, forked)]
    assert [text.replace(b"-c", b"assistant") for text in told[0]] == told[1]


def test_it_is_killed_as_a_process_of_the_one_who_started_it(tmp_path: Path) -> None:
    environment = command_environment(tmp_path / "home")
    with ForkedCommand(["run"], stderr=subprocess.PIPE, env=environment) as process:
        assert process.stderr is not None
        assert process.stderr.readline()
        process.kill()
        assert process.wait(TIMEOUT_SECONDS) == -signal.SIGKILL
