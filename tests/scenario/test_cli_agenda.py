"""`assistant remind` and `assistant schedule`, as a person runs them where no daemon is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import run_assistant, run_in_process


def test_reminders_are_set_listed_and_cancelled(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = run_assistant(
        home, "remind", "call", "mum", "--at", "tomorrow at 9", ASSISTANT_HOME__TIMEZONE="Europe/Berlin"
    )
    assert done.returncode == 0, done.err
    assert '- 1: "call mum", ' in done.out
    assert "09:00" in done.out
    (listed,) = json.loads(run_in_process(home, "remind", "list", "--json").out)
    assert (listed["text"], listed["state"], listed["catch_up"]) == ("call mum", "active", "once")
    assert run_in_process(home, "remind", "cancel", "1").out.strip() == "Cancelled: 1, call mum"
    assert "No reminder is set" in run_in_process(home, "remind").out
    assert "Nothing was due yet" in run_in_process(home, "remind", "history").out


def test_a_schedule_is_made_shown_and_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = run_in_process(home, "schedule", "add", "my news", "What is 'new'?\nAnd old?", "--every", "weekday at 8:30")
    assert made.returncode == 0, made.err
    shown = run_in_process(home, "schedule", "show", "my news")
    assert "What is 'new'?\nAnd old?" in shown.out
    assert "every weekday: " in shown.out
    (listed,) = json.loads(run_in_process(home, "schedule", "list", "--json").out)
    assert json.loads(run_in_process(home, "schedule", "show", "my", "news", "--json").out) == listed
    assert listed["name"] == "my news"
    assert json.loads(run_in_process(home, "schedule", "history", "--json").out) == []
    assert run_in_process(home, "schedule", "pause", "my news").returncode == 0
    assert run_in_process(home, "schedule", "resume", "my news").returncode == 0
    assert run_in_process(home, "schedule", "remove", "my news").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("remind", "call", "mum", "--at", "yesterday"), "which is past"),
        (("remind", "list", "--at", "tomorrow"), "No such option '--at'"),
        (("remind", "--at", "tomorrow"), "Missing argument 'TEXT'"),
        (("remind", "call mum", "--json"), "When?"),
        (("schedule", "add", "x", "hello", "--cron", "nope"), "is not a line of cron"),
        (("schedule", "add", "x", "hello"), "Say when"),
    ],
)
def test_what_is_not_understood_is_told_in_a_line_and_sets_nothing(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run_in_process(tmp_path / "home", *arguments)
    assert done.returncode == 2
    assert said in done.err
    if "Usage:" not in done.err:
        assert "Nothing was" in done.err


def test_to_dos_have_lists_and_days_and_stand_in_the_agenda_with_the_rest(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run_in_process(home, "todo", "buy", "milk")
    run_in_process(home, "todo", "add", "batteries", "--list", "Shopping", "--due", "tomorrow")
    run_in_process(home, "remind", "call mum", "--at", "tomorrow at 9:30")
    run_in_process(home, "schedule", "add", "news", "What is new?", "--every", "day at 8")
    lists = run_in_process(home, "todo").out.splitlines()
    assert lists[0] == '- [ ] 1: "buy milk"'
    assert lists[1].startswith('- [ ] 2: "batteries", list "Shopping", due ')
    heading, *lines = run_in_process(home, "agenda", "tomorrow").out.splitlines()
    assert heading.endswith(":")
    assert lines == [
        '- "batteries" (to-do 2, list "Shopping")',
        '- 08:00 "What is new?" (schedule "news", every day)',
        '- 09:30 "call mum" (reminder 1)',
    ]
    kinds = [item["kind"] for item in json.loads(run_in_process(home, "agenda", "--week", "--json").out)["items"]]
    assert (kinds.count("todo"), kinds.count("reminder"), kinds.count("schedule") >= 6) == (1, 1, True)

    # What was done is shown, once.
    assert '- [x] 1: "buy milk"' in run_in_process(home, "todo", "done", "milk").out
    done = run_in_process(home, "todo", "done", "2").out
    assert "[x] 2" in done and "milk" not in done
    assert "batteries" not in run_in_process(home, "agenda", "tomorrow").out
    assert '- [x] 2: "batteries", list "Shopping", due ' in run_in_process(home, "todo", "list", "--done").out
    assert "[ ] 2:" in run_in_process(home, "todo", "reopen", "2").out
    assert '"new batteries", list "Shopping"' in run_in_process(home, "todo", "edit", "2", "new", "batteries").out
    assert "batteries" not in run_in_process(home, "todo", "clear", "shopping").out
    assert run_in_process(home, "todo", "list", "boat").err.startswith("Error: There is nothing on a list 'boat'.")


def test_a_reminder_is_changed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run_in_process(home, "remind", "call mum", "--at", "tomorrow at 9:30")
    assert " 15:00 " in run_in_process(home, "remind", "change", "1", "--at", "tomorrow at 15:00").out
    changed = run_in_process(home, "remind", "change", "1", "call", "dad", "--every", "week").out
    assert '- 1: "call dad", every week: ' in changed
    assert '"change the sheets"' in run_in_process(home, "remind", "change the sheets", "--at", "tomorrow").out
