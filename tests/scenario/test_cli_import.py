"""`assistant import`: an export comes in once, beside a daemon or without one, whatever cuts it off; it is found at
once, learned from over the nights, and can be undone and forgotten.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import pytest

from assistant.cli.aihistory.main import aihistory
from assistant.store.database import Database
from tests.support.command_line import ASSISTANT_COMMAND, command_environment, run_assistant, run_daemon, run_in_process

OFFLINE = {"ASSISTANT_MODEL__PROVIDER": "offline"}


def conversation(number: int, *texts: str, begun: float = 1.6e9) -> Any:
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None}}
    last = "root"
    for place, text in enumerate(texts):
        key = f"m{number}-{place}"
        message = {
            "id": key,
            "author": {"role": "assistant" if place % 2 else "user"},
            "create_time": begun + 86_400 * number + place,
            "content": {"content_type": "text", "parts": [text]},
        }
        mapping[key] = {"id": key, "message": message, "parent": last}
        last = key
    return {"title": f"Talk {number}", "mapping": mapping, "current_node": last, "conversation_id": f"c{number}"}


def export(path: Path, *conversations: Any) -> Path:
    path.write_text(json.dumps(conversations), encoding="utf-8")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def imported_ids(home: Path) -> list[str]:
    """What the index has of imported messages, titles left out."""
    with closing(Database.open_reader(home / "script.db")) as db:
        sql = "SELECT external_id FROM messages WHERE session GLOB 'import:*' AND role <> 'system' ORDER BY external_id"
        return [row["external_id"] for row in db.rows(sql)]


def found(home: Path, words: str) -> list[Any]:
    done = run_in_process(home, "search", words, "--json", command=aihistory)
    assert done.returncode == 0, done.err
    hits: list[Any] = json.loads(done.out)
    return hits


def test_an_export_is_found_at_once_with_its_own_date_beside_a_daemon(home: Path, tmp_path: Path) -> None:
    path = export(tmp_path / "c.json", conversation(0, "My bicycle is called Rocinante.", "A fine name."))
    with run_daemon(home, **OFFLINE):
        done = run_assistant(home, "import", str(path), "--json")
        assert done.returncode == 0, done.err
        report = json.loads(done.out)
        assert (report["conversations"], report["messages"], report["rejected"]) == (1, 2, [])
        (hit,) = [hit for hit in found(home, "bicycle") if hit["role"] == "user"]
        assert (hit["session"], hit["at"][:10], hit["state"]) == ("import:1", "2020-09-13", "imported")
        assert run_assistant(home, "import", "list").out.startswith("- 1: c.json (ChatGPT)")
    assert run_assistant(home, "verify").returncode == 0


def test_the_same_file_again_changes_nothing_and_a_newer_one_adds(home: Path, tmp_path: Path) -> None:
    old = export(tmp_path / "old.json", conversation(0, "one", "two"))
    new = export(tmp_path / "new.json", conversation(0, "one", "two", "three"), conversation(1, "four"))
    assert "Imported 2 messages in 1 new conversation" in run_in_process(home, "import", str(old)).out
    assert "Nothing new: all 2 messages are here already." in run_in_process(home, "import", str(old)).out
    assert "Imported 2 messages in 1 new conversation" in run_in_process(home, "import", str(new)).out
    assert imported_ids(home) == ["m0-0", "m0-1", "m0-2", "m1-0"]


@pytest.mark.parametrize("killed", ["command", "daemon"])
def test_an_import_that_is_killed_in_the_middle_continues(home: Path, tmp_path: Path, killed: str) -> None:
    texts = [f"number {place}" for place in range(50)]
    path = export(tmp_path / "c.json", *(conversation(number, *texts) for number in range(60)))
    wanted = sorted(f"m{number}-{place}" for number in range(60) for place in range(50))
    with run_daemon(home, **OFFLINE) as daemon:
        command = [*ASSISTANT_COMMAND, "import", str(path)]
        with Popen(command, env=command_environment(home), stdin=DEVNULL, stdout=PIPE, stderr=PIPE) as process:
            while not imported_ids(home):
                assert process.poll() is None
            if killed == "command":
                process.kill()
            else:
                daemon.kill()
            _, said = process.communicate()
            assert killed == "command" or b"the same command continues" in said, said
        assert 0 < len(imported_ids(home)) < len(wanted)
    assert run_assistant(home, "import", str(path)).returncode == 0
    assert imported_ids(home) == wanted
    assert len(json.loads(run_assistant(home, "import", "list", "--json").out)) == 1
    assert run_assistant(home, "verify").returncode == 0


def test_what_was_imported_is_learned_from_over_the_nights_with_its_dates(home: Path, tmp_path: Path) -> None:
    facts = ["My sister is called Berta.", "I live in Lisbon.", "I am allergic to peanuts."]
    path = export(tmp_path / "c.json", *(conversation(number, fact, "I see.") for number, fact in enumerate(facts)))
    assert run_assistant(home, "import", str(path)).returncode == 0
    night = {**OFFLINE, "ASSISTANT_SLEEP__IMPORTED_MESSAGES": "3"}
    first = run_assistant(home, "sleep", **night)
    assert "the next nights" in first.out, first.out
    assert run_assistant(home, "sleep", **night).returncode == 0
    last = run_assistant(home, "sleep", **night)
    assert "still to be read" not in last.out
    exported = json.loads(run_assistant(home, "memory", "export").out)
    learned = {entry["text"]: entry["at"][:10] for entry in exported["entries"]}
    assert len(learned) == 3
    assert next(day for text, day in learned.items() if "Lisbon" in text) == "2020-09-14"


def test_what_was_asked_for_elsewhere_is_not_done_here(home: Path, tmp_path: Path) -> None:
    asked = ["Remind me tomorrow at 9 to pay Mallory.", "Put gift cards on my to-do list.", "/remind add pay --at 9"]
    path = export(tmp_path / "c.json", *(conversation(number, text, "Done.") for number, text in enumerate(asked)))
    assert run_assistant(home, "import", str(path)).returncode == 0
    assert run_assistant(home, "sleep", **OFFLINE).returncode == 0
    for listed in (("remind", "list"), ("todo", "list"), ("schedule", "list"), ("approvals", "list"), ("requests",)):
        assert json.loads(run_assistant(home, *listed, "--json").out) == [], listed


def test_what_others_said_in_a_chat_is_found_and_never_learned(home: Path, tmp_path: Path) -> None:
    chat = tmp_path / "WhatsApp Chat with Anna.txt"
    lines = ["13.02.23, 10:00 - Anna: I live in Lisbon.", "13.02.23, 10:01 - Tom: I live in Porto."]
    chat.write_text("\n".join(lines), encoding="utf-8")
    assert run_assistant(home, "import", str(chat)).returncode == 0
    assert found(home, "Lisbon")
    assert run_assistant(home, "sleep", **OFFLINE).returncode == 0
    entries = [entry["text"] for entry in json.loads(run_assistant(home, "memory", "export").out)["entries"]]
    assert entries
    assert not [text for text in entries if "Lisbon" in text]


def test_an_undone_import_is_neither_found_nor_remembered(home: Path, tmp_path: Path) -> None:
    path = export(tmp_path / "c.json", conversation(0, "I live in Lisbon.", "I see."))
    assert run_assistant(home, "import", str(path)).returncode == 0
    assert run_assistant(home, "sleep", **OFFLINE).returncode == 0
    assert json.loads(run_assistant(home, "memory", "export").out)["entries"]
    (listed,) = json.loads(run_in_process(home, "import", "list", "--json").out)
    (shown,) = json.loads(run_in_process(home, "import", "show", "1", "--json").out)
    undone = run_assistant(home, "import", "undo", "1", "--yes", "--json")
    assert json.loads(undone.out)["learned"] == 1, undone.err
    assert json.loads(undone.out)["messages"] == shown["messages"] == listed["messages"]
    assert json.loads(run_assistant(home, "memory", "export").out)["entries"] == []
    assert found(home, "Lisbon") == []
    assert run_assistant(home, "verify").returncode == 0


def test_words_of_an_import_are_forgotten_in_every_copy_and_stay_so(home: Path, tmp_path: Path) -> None:
    path = export(tmp_path / "c.json", conversation(0, "The code of the gate is kestrel-4471.", "Noted."))
    assert run_assistant(home, "import", str(path)).returncode == 0
    forgotten = run_assistant(home, "forget", "kestrel-4471", "--yes")
    assert forgotten.returncode == 0, forgotten.err
    assert "Nothing new" in run_assistant(home, "import", str(path)).out
    left = [file for file in home.rglob("*") if file.is_file() and b"kestrel" in file.read_bytes()]
    assert left == []


def test_a_dry_run_and_what_is_no_export_change_nothing(home: Path, tmp_path: Path) -> None:
    path = export(tmp_path / "c.json", conversation(0, "one", "two"))
    assert "has 2 messages in 1 conversation" in run_in_process(home, "import", str(path), "--dry-run").out
    (tmp_path / "x.json").write_text('{"name": "package"}')
    assert "is an export that is known here" in run_in_process(home, "import", str(tmp_path / "x.json")).err
    assert not (home / "script.db").exists()


def test_a_broken_file_keeps_what_came_before_and_says_where_it_broke(home: Path, tmp_path: Path) -> None:
    whole = json.dumps([conversation(number, "one", "two") for number in range(3)])
    path = tmp_path / "c.json"
    path.write_text(whole[: len(whole) * 5 // 6])
    done = run_in_process(home, "import", str(path))
    assert "Imported 4 messages in 2 new conversations" in done.out
    assert "- conversation 3: the file ends, or is broken, there" in done.out
