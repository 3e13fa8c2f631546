"""Files that come with a message, in offline mode: a question beside one is answered from it, word for word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import run_daemon, run_in_process
from tests.support.documents import make_pdf

LEASE = make_pdf("Lease of the boat house", "The rent is 9,400 crowns", "Notice is three months, in writing")
LETTER = """\
Dear Anna,

the concert is moved to Saturday the 14th.
Doors open at half past six, behind the old
customs house. Please bring the blue folder.

Ivar
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "letter.txt").write_text(LETTER, encoding="utf-8")
    (tmp_path / "lease.pdf").write_bytes(LEASE)
    return tmp_path / "home"


def ask(home: Path, text: str, *names: str) -> str:
    files = [word for name in names for word in ("--file", str(home.parent / name))]
    done = run_in_process(home, "chat", "-m", text, *files, "--json")
    assert done.returncode == 0, done.err
    return str(json.loads(done.out)["reply"])


def test_a_question_beside_a_text_file_is_answered_with_the_passage(home: Path) -> None:
    reply = ask(home, "When do the doors open?", "letter.txt")
    assert reply.startswith('In the file "received/')
    assert "> Doors open at half past six, behind the old customs house." in reply
    assert "can't look at" not in reply
    # Later, too, without sending it again.
    assert "> Dear Anna, the concert is moved" in ask(home, "Which day is the concert moved to?")


def test_the_file_is_asked_before_what_was_told_and_a_document_is_read_too(home: Path) -> None:
    ask(home, "The rent of the boat house is 9,000 crowns.")
    reply = ask(home, "What is the rent?", "letter.txt", "lease.pdf")
    assert "> The rent is 9,400 crowns" in reply and "9,000" not in reply
    told = ask(home, "What is the rent of the boat house?", "letter.txt")
    assert told.startswith("I found no answer in the file that you sent. You told me") and "9,000 crowns" in told


def test_a_file_without_a_question_is_kept_and_said_to_be_readable(home: Path) -> None:
    reply = ask(home, "", "letter.txt")
    assert "letter.txt: kept. Ask me about it, and I quote what I find in it." in reply
    assert "can't look at" not in reply
    (home.parent / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert "I can't look at cat.png offline; kept with your message." in ask(home, "", "cat.png")


def test_beside_a_daemon_the_file_goes_with_the_message(home: Path) -> None:
    with run_daemon(home):
        assert "half past six" in ask(home, "When do the doors open?", "letter.txt")
    (received,) = (home / "workspace" / "received").iterdir()
    assert received.read_text(encoding="utf-8") == LETTER


def test_a_file_that_cannot_be_sent_is_said_and_nothing_is_sent(home: Path) -> None:
    for words, said in (
        (("-m", "What?", "--file", "gone.txt"), "gone.txt is not there. Nothing was sent"),
        (("-m", "/todo", "--file", str(home.parent / "letter.txt")), "A command takes no --file."),
        (("--file", str(home.parent / "letter.txt")), "--file needs -m"),
    ):
        done = run_in_process(home, "chat", *words)
        assert done.returncode == 2 and said in done.err
    assert not (home / "workspace").exists()
