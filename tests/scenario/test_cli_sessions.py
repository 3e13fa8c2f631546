"""`assistant sessions`, `assistant reset` and threads on a command line, and `aihistory` after a reset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assistant.cli.aihistory.main import aihistory
from assistant.core.sessions import GenerationEnd
from tests.scenario.command_line import assistant, look, one_line_error
from tests.scenario.compacted_home import compact, fresh
from tests.store_home import NOW, StoreHome


def end(home: StoreHome, *, resumes: int | None = None) -> None:
    info = next(one for one in home.conversation.sessions() if one.key == "main")
    words = f"Number {info.generation} ended."
    ending = GenerationEnd("main", info.generation, info.messages, words, "manual", resumes=resumes)
    home.conversation.turn_over(ending, NOW)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two conversations that ended, the first compacted; the third goes on from the first and is compacted too."""
    path = tmp_path_factory.mktemp("sessions") / "home"
    made = fresh(path)
    made.chat(4)
    compact(made, 2, "We talked of boats.")
    end(made)
    made.say("another day", "indeed")
    end(made, resumes=1)
    made.say("back again", "welcome")
    first = made.conversation.places([1, 8])
    before = [first[1].path, first[1].span.start, first[8].span.end]
    compact(made, 2, "Back to boats.", key_facts={"byte_ranges": [before]})
    made.conversation.upkeep()
    made.close()
    return path


def rows(home: Path, *arguments: str) -> Any:
    return json.loads(look(home, *arguments, "--json").out)


def test_ended_conversations_are_listed_with_the_current_one(home: Path) -> None:
    found = rows(home, "sessions")
    assert [(one["generation"], one["messages"], one["ended"], one["resumed"]) for one in found] == [
        (3, 2, None, 1), (2, 2, "manual", None), (1, 8, "manual", None)
    ]  # fmt: skip
    assert len(rows(home, "sessions", "list", "--limit", "1")) == 1
    shown = look(home, "sessions").out
    assert "by hand" in shown and "thread" not in shown


def test_one_conversation_is_shown(home: Path) -> None:
    one = rows(home, "sessions", "show", "main", "1")
    assert (one["generation"], one["summary"], one["handover"], len(one["compactions"])) == (
        1, "We talked of boats.", "", 1
    )  # fmt: skip
    shown = look(home, "sessions", "show").out
    assert "Handed over to it:\nNumber 2 ended." in shown and "going on from number 1" in shown
    done = look(home, "sessions", "show", "main", "9")
    assert done.returncode == 2 and "no conversation number 9" in one_line_error(done)


def test_a_conversation_is_exported_whole_as_markdown_or_json_lines(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.md"
    assert look(home, "sessions", "export", "main", "--generation", "1", "-o", str(file)).returncode == 0
    text = file.read_text()
    assert text.startswith("# main, number 1\n") and text.count("\n## ") == 8 and "question 0" in text
    again = look(home, "sessions", "export", "main", "-o", str(file))
    assert again.returncode == 1 and "is there already" in one_line_error(again)
    lines = look(home, "sessions", "export", "main", "--format", "jsonl").out.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["resume", "message", "message"]


def test_aihistory_goes_on_answering_about_earlier_conversations(home: Path) -> None:
    listed = json.loads(look(home, "--json", command=aihistory).out)
    assert [one["state"] for one in listed] == ["live", "live"]
    first = listed[-1]["id"]
    assert "We talked of boats." in look(home, "show", str(first), command=aihistory).out
    recovered = look(home, "recover", str(first), command=aihistory).out
    assert "question 0" in recovered and "another day" not in recovered
    goes_on = look(home, "recover", str(listed[0]["id"]), command=aihistory).out
    assert "question 0" in goes_on and "another day" not in goes_on and "Number 2 ended." in goes_on
    assert "question 0" in look(home, "log", "--grep", "question 0").out


def test_what_needs_a_person_is_not_done_without_one(home: Path) -> None:
    done = look(home, "reset")
    assert done.returncode == 2 and "--yes" in one_line_error(done)
    assert look(home, "sessions", "end", "main").returncode == 2
    assert "no name" in one_line_error(look(home, "chat", "--session", "a/b", "-m", "hi"))


def test_a_thread_is_talked_in_reset_and_taken_up_on_a_command_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert assistant(home, "chat", "--session", "Trip", "-m", "We fly to Rome in May.").returncode == 0
    done = look(home, "reset", "--session", "trip", "--yes")
    assert done.returncode == 0 and "thread:trip begins afresh (number 2)" in done.out
    assert (home / "archive" / "thread%3Atrip" / "1.jsonl.gz").stat().st_size > 0
    assert "goes on from number 1" in look(home, "sessions", "resume", "trip").out
    assert [one["generation"] for one in rows(home, "sessions")] == [3, 2, 1]
    assert look(home, "verify").returncode == 0
    assert look(home, "reset", "--session", "trip", "--cancel").out.strip() == "No reset of thread:trip waits."


def test_a_switch_holds_for_the_lines_that_follow_it_in_a_pipe(tmp_path: Path) -> None:
    home = tmp_path / "home"
    piped = b"for main\n/session trip\nfor the trip\n/session main\nagain main\n"
    done = assistant(home, "chat", said=piped)
    assert done.returncode == 0
    assert sorted((one["session"], one["messages"]) for one in rows(home, "sessions")) == [
        ("main", 4), ("thread:trip", 2)
    ]  # fmt: skip
