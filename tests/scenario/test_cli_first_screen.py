"""What a terminal shows before anything is typed, to somebody new and to somebody who was there; and that the program's
own log is not on it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pexpect
import pytest

from tests.scenario.test_cli_terminal import CTRL_D, PROMPT, started
from tests.support.command_line import run_in_process


def shown_until_left(home: Path, *arguments: str, say: str = "", answer: str = "") -> str:
    """Everything that reached the screen, without our own colours and cursor movements."""
    child = started(home, *arguments)
    steps = [(PROMPT, f"{say}\r"), (answer, CTRL_D)] if say else [(PROMPT, CTRL_D)]
    seen = ""
    for wait_for, then in [*steps, (pexpect.EOF, "")]:
        child.expect(wait_for)
        seen += child.before + (child.after if isinstance(child.after, str) else "")
        child.send(then) if then else None
    child.close(force=True)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)


@pytest.mark.parametrize("arguments", [["chat"], ["run", "--chat"]], ids=" ".join)
def test_the_first_screen_says_what_this_is_what_to_try_and_how_a_model_is_connected(
    tmp_path: Path, arguments: list[str]
) -> None:
    home = tmp_path / "home"
    screen = shown_until_left(home, *arguments, say="remember that the lamp is red", answer="Noted")
    first = [line.strip() for line in screen.partition(PROMPT)[0].splitlines() if line.strip()]
    assert len(first) == 3 and max(map(len, first)) <= 80
    assert first[0].startswith("This is Nocturne") and first[1].startswith("Try: ") and "`assistant setup`" in first[2]
    assert not any(noise in screen for noise in ("event=", "level=", "WARNING"))
    again = shown_until_left(home, *arguments).partition(PROMPT)[0]
    assert "This is Nocturne" not in again and "offline mode · /help lists commands" in again


def test_what_the_program_says_of_itself_is_in_a_file_that_doctor_names(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shown_until_left(home, "run", "--chat")
    assert "event=ready" in (home / "run" / "assistant.log").read_text()
    assert str(home / "run" / "assistant.log") in run_in_process(home, "doctor").out
