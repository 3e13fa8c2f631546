"""Numbers of messages jump, since they count tools and notices too: people see them only where they ask for them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.command_line import run_assistant, run_in_process

_LINES = [
    "remember that the lamp is red",
    "where is the lamp?",
    "no, the lamp is blue",
    "which colour is the lamp?",
]


def test_numbers_of_messages_are_shown_where_they_are_asked_for_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = "\n".join([*_LINES, "add oil to my list", "/pin", "/pins", "/branch", "/memory", "/why"])
    answered = run_assistant(home, "chat", said=said.encode())
    # What a tool answered is quoted as it was.
    assert not re.search(r"^[\d-]+ [\d:]+ #", run_in_process(home, "log").out, re.MULTILINE)
    for arguments in (
        ["pins"],
        ["sessions"],
        ["requests", "list", "--all"],
        ["archive", "list"],
        ["status"],
    ):
        shown = run_in_process(home, *arguments).out
        # Requests are told by the number of their message, which `/done` takes.
        numbers = re.findall(r"(?<!^- )#\d+", shown, re.MULTILINE)
        assert numbers == [], (arguments, shown)
    assert re.findall(r"#\d+", answered.out) == []


def test_the_log_shows_the_numbers_with_a_flag_and_as_json(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run_assistant(home, "chat", "-m", _LINES[0])
    numbers = re.findall(r" #(\d+) ", run_in_process(home, "log", "--numbers").out)
    rows = [json.loads(line) for line in run_in_process(home, "log", "--json").out.splitlines()]
    assert numbers == [str(row["id"]) for row in rows] and len(numbers) >= 2
