"""`assistant sessions`, `assistant reset` and threads on a command line, and `aihistory` after a reset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assistant.cli.aihistory.main import aihistory
from assistant.core.sessions import GenerationEnd
from tests.support.command_line import one_line_error, run_assistant, run_in_process
from tests.support.compacted_home import compact_view, open_empty_home
from tests.support.store_home import NOW, StoreHome


def end(home: StoreHome, *, resumes: int | None = None) -> None:
    info = next(one for one in home.conversation.list_sessions() if one.key == "main")
    words = f"Number {info.generation} ended."
    ending = GenerationEnd("main", info.generation, info.messages, words, "manual", resumes=resumes)
    home.conversation.begin_next_generation(ending, NOW)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two conversations that ended, the first compacted; the third goes on from the first and is compacted too."""
    path = tmp_path_factory.mktemp("sessions") / "home"
    made = open_empty_home(path)
    made.chat(4)
    compact_view(made, 2, "We talked of boats.")
    end(made)
    made.say("another day", "indeed")
    end(made, resumes=1)
    made.say("back again", "welcome")
    first = made.conversation.find_log_places([1, 8])
    before = [first[1].path, first[1].span.start, first[8].span.end]
    compact_view(made, 2, "Back to boats.", key_facts={"byte_ranges": [before]})
    made.conversation.run_maintenance()
    made.close()
    return path


def rows(home: Path, *arguments: str) -> Any:
    return json.loads(run_in_process(home, *arguments, "--json").out)


def test_ended_conversations_are_listed_with_the_current_one(home: Path) -> None:
    found = rows(home, "sessions")
    assert [(one["generation"], one["messages"], one["ended"], one["resumed"]) for one in found] == [
        (3, 2, None, 1),
        (2, 2, "manual", None),
        (1, 8, "manual", None),
    ]
    assert len(rows(home, "sessions", "list", "--limit", "1")) == 1
    shown = run_in_process(home, "sessions").out
    assert "reset" in shown and "thread" not in shown


def test_one_conversation_is_shown(home: Path) -> None:
    one = rows(home, "sessions", "show", "main", "1")
    assert (one["generation"], one["summary"], one["handover"], len(one["compactions"])) == (
        1,
        "We talked of boats.",
        "",
        1,
    )
    shown = run_in_process(home, "sessions", "show").out
    assert "It began with this note:\nNumber 2 ended." in shown and "continues main 1" in shown
    done = run_in_process(home, "sessions", "show", "main", "9")
    assert done.returncode == 2 and "no conversation number 9" in one_line_error(done)


def test_a_conversation_is_exported_whole_as_markdown_or_json_lines(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.md"
    assert run_in_process(home, "sessions", "export", "main", "--generation", "1", "-o", str(file)).returncode == 0
    text = file.read_text()
    assert text.startswith("# main, number 1\n") and text.count("\n## ") == 8 and "question 0" in text
    again = run_in_process(home, "sessions", "export", "main", "-o", str(file))
    assert again.returncode == 1 and "exists already" in one_line_error(again)
    lines = run_in_process(home, "sessions", "export", "main", "--format", "jsonl").out.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["resume", "message", "message"]


def test_aihistory_goes_on_answering_about_earlier_conversations(home: Path) -> None:
    listed = json.loads(run_in_process(home, "--json", command=aihistory).out)
    assert [one["state"] for one in listed] == ["live", "live"]
    first = listed[-1]["id"]
    assert "We talked of boats." in run_in_process(home, "show", str(first), command=aihistory).out
    recovered = run_in_process(home, "recover", str(first), command=aihistory).out
    assert "question 0" in recovered and "another day" not in recovered
    goes_on = run_in_process(home, "recover", str(listed[0]["id"]), command=aihistory).out
    assert "question 0" in goes_on and "another day" not in goes_on and "Number 2 ended." in goes_on
    assert "question 0" in run_in_process(home, "log", "--grep", "question 0").out


def test_what_needs_a_person_is_not_done_without_one(home: Path) -> None:
    done = run_in_process(home, "reset")
    assert done.returncode == 2 and "--yes" in one_line_error(done)
    assert run_in_process(home, "sessions", "end", "main").returncode == 2
    assert "cannot be named" in one_line_error(run_in_process(home, "chat", "--session", "a/b", "-m", "hi"))


def test_a_thread_is_talked_in_reset_and_taken_up_on_a_command_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert run_assistant(home, "chat", "--session", "Trip", "-m", "We fly to Rome in May.").returncode == 0
    done = run_in_process(home, "reset", "trip", "--yes")
    assert done.returncode == 0 and "trip begins a new conversation (number 2)" in done.out
    assert (home / "archive" / "thread%3Atrip" / "1.jsonl.gz").stat().st_size > 0
    assert "continues number 1" in run_in_process(home, "sessions", "resume", "trip").out
    assert [one["generation"] for one in rows(home, "sessions")] == [3, 2, 1]
    assert run_in_process(home, "verify").returncode == 0
    assert run_in_process(home, "reset", "trip", "--cancel").out.strip() == "No reset of trip is waiting."


def test_a_switch_holds_for_the_lines_that_follow_it_in_a_pipe(tmp_path: Path) -> None:
    home = tmp_path / "home"
    piped = b"for main\n/session trip\nfor the trip\n/session main\nagain main\n"
    assert run_assistant(home, "chat", said=piped).returncode == 0
    logged = map(json.loads, run_in_process(home, "log", "--json").out.splitlines())
    assert [(row["session"], row["content"]) for row in logged if row["role"] == "user"] == [
        ("main", "for main"),
        ("thread:trip", "for the trip"),
        ("main", "again main"),
    ]
