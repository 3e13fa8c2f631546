"""`assistant memory` and `assistant forget`: looking beside whoever serves the home, changing through them."""

from __future__ import annotations

import json
import os
import pty
import re
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from assistant.core.memories import Memory
from assistant.core.messages import Message
from assistant.mem0.codec import memory_metadata
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from sleep.cycle.change_plan import ChangePlanDraft
from sleep.rules.supersede import EntryDecision
from tests.support.command_line import (
    TIMEOUT_SECONDS,
    command_environment,
    one_line_error,
    run_daemon,
    run_in_process,
)
from tests.support.erasure_home import GUEST, ErasureHome
from tests.support.forked_command import ForkedCommand
from tests.support.imports import import_messages
from tests.support.store_home import NOW

NURSE, TEA, BOAT = "Anna is a nurse in Rome.", 'I like tea — "green" | *hot*', "The boat is called Albatross."
SAID = "My sister Anna,\nshe is a nurse in Rome"


@dataclass(frozen=True)
class FilledHome:
    path: Path
    nurse: Memory
    theirs: Memory


def remembered(home: ErasureHome, key: str, text: str, *sources: int, scope: str = "owner") -> Memory:
    number = home.add_entry(key, text, sources, scope)
    entry = home.journal.read([number], scope)[0]
    draft = ChangePlanDraft([])
    memory = draft.memory(draft.apply_decision(entry, EntryDecision()))
    plan = draft.build_plan([entry], 1)
    home.consolidations.save_plan(plan, NOW)
    home.consolidations.mark_applied(plan.key, NOW)
    payload = memory_metadata(memory) | {"data": memory.text, "user_id": memory.scope}
    home.vectors.put(memory.id, payload, "letters", bytes(52))
    return memory


@pytest.fixture
def home(tmp_path: Path) -> FilledHome:
    """Two memories of the owner, an entry without one, and a guest's memory."""
    stores = ErasureHome(tmp_path / "home").open()
    turn = stores.say(SAID, "Noted.")
    nurse = remembered(stores, "k1", NURSE, turn.items[0].message_id)
    remembered(stores, "k2", TEA)
    stores.add_entry("k3", BOAT)
    import_messages(stores.conversation, GUEST, GUEST, [Message("user", "I owe the owner money")], NOW)
    theirs = remembered(stores, "k4", "The guest owes money.", scope=GUEST)
    stores.close()
    return FilledHome(tmp_path / "home", nurse, theirs)


def rows(home: FilledHome, *arguments: str) -> Any:
    done = run_in_process(home.path, *arguments, "--json")
    assert done.returncode == 0, done.err
    return json.loads(done.out)


# -------------------------------------------------------------------------------------------------------------- looking


def test_each_row_has_an_id_that_the_other_commands_take(home: FilledHome) -> None:
    listed = rows(home, "memory", "list")
    assert [one["text"] for one in listed] == [BOAT, TEA, NURSE]
    assert [one["id"] for one in listed] == ["entry 3", listed[1]["memory_id"][:8], home.nurse.reference]
    for one in listed:
        shown = rows(home, "memory", "show", one["id"])
        assert (shown["text"], shown["entries"]) == (one["text"], one["entries"])
    assert rows(home, "memory", "list", "--limit", "1") == listed[:1]


def test_memories_are_listed_for_people(home: FilledHome) -> None:
    done = run_in_process(home.path, "memory", "list")
    assert home.nurse.reference in done.out and "I like tea" in done.out and "entry 3" in done.out
    newest = run_in_process(home.path, "memory", "list", "--limit", "1")
    assert "There are older ones: `--before " in newest.err
    rest = run_in_process(home.path, "memory", "list", "--before", newest.err.split("--before ")[1].split("`")[0])
    assert f"{newest.out}{rest.out}" == run_in_process(home.path, "memory", "list").out and not rest.err


def test_why_shows_what_was_said_word_for_word(home: FilledHome) -> None:
    chain = rows(home, "memory", "why", home.nurse.id[:6])
    (said,) = chain["said"]
    assert [(one["text"], one["session"]) for one in said["messages"]] == [(SAID, "main")]
    assert said["text"] == NURSE and said["entry"] == 1
    out = run_in_process(home.path, "memory", "why", "e1").out
    assert "> My sister Anna,\n> she is a nurse in Rome\n" in out and "From entry 1 (read in the conversation, " in out


def test_search_finds_by_words_and_says_so_where_there_is_nothing(home: FilledHome) -> None:
    assert [one["text"] for one in rows(home, "memory", "search", "what is the boat called")][:1] == [BOAT]
    assert rows(home, "memory", "search", "zzyzx") == []
    assert "No memory matches that" in run_in_process(home.path, "memory", "search", "zzyzx").out
    found = rows(home, "memory", "search", "boat", "--before", "2020-01-01")
    assert found == []


def test_what_was_known_then_is_shown_and_searched(home: FilledHome) -> None:
    db = Database.open(home.path / "character.db", character_migrations, NOW)
    with db.write():
        db.execute("UPDATE journal SET created_at = '2021-03-0' || id || 'T10:00:00.000000Z'")
        db.execute("UPDATE change_plans SET at = '2021-05-01T10:00:00.000000Z'")
    db.close()

    def known(*arguments: str) -> list[tuple[str, str]]:
        return [(one["id"], one["text"]) for one in rows(home, "memory", "as-of", *arguments)["known"]]

    assert known("2021-03-02") == [("entry 2", TEA), ("entry 1", NURSE)]
    assert known("2021-06-01") == [(one["id"], one["text"]) for one in rows(home, "memory", "list")]
    assert known("2021-03-02", "what does Anna do") == [("entry 1", NURSE)]
    assert known("2021-03-02", "--limit", "1") == [("entry 2", TEA)]
    assert known("2021-06-01", "--session", GUEST) == [(home.theirs.reference, "The guest owes money.")]
    drawn = run_in_process(home.path, "memory", "as-of", "2021-03-01")
    assert NURSE in drawn.out and TEA not in drawn.out and "known on Mon 2021-03-01 23:59" in drawn.out
    assert "noted from Mon 2021-03-01" in run_in_process(home.path, "memory", "as-of", "2021-02-28").out
    for words, why in (("2999-01-01", "in the future"), ("the boat", "not a time that I understand")):
        assert why in one_line_error(run_in_process(home.path, "memory", "as-of", words))


def test_the_page_of_an_earlier_time_is_shown(home: FilledHome) -> None:
    (home.path / "MEMORY.md").write_text("# By hand\n")
    os.utime(home.path / "MEMORY.md", (1_600_000_000, 1_600_000_000))
    assert run_in_process(home.path, "memory", "as-of", "2020-10-01", "--file").out == "# By hand\n"
    before = run_in_process(home.path, "memory", "as-of", "2020-01-01", "--file")
    assert before.out.strip() == "" and "it is not known when" in before.err
    assert rows(home, "memory", "as-of", "2020-10-01", "--file")["text"] == "# By hand\n"
    assert "MEMORY.md, which is the owner's" in one_line_error(
        run_in_process(home.path, "memory", "as-of", "2020-10-01", "--file", "--session", GUEST)
    )


def test_counts_are_told_with_where_memories_lie(home: FilledHome) -> None:
    counts = rows(home, "memory", "stats")
    assert (counts["current"], counts["former"], counts["pending"]) == (2, 0, 1)
    assert counts["store"] == "local" and counts["bytes"] > 0 and counts["kinds"] == {"fact": 2}


def test_f33_memories_of_another_scope_are_shown_for_its_session_alone(home: FilledHome) -> None:
    assert [one["text"] for one in rows(home, "memory", "list", "--session", GUEST)] == ["The guest owes money."]
    assert "no conversation 'nobody'" in one_line_error(
        run_in_process(home.path, "memory", "list", "--session", "nobody")
    )
    assert "There is no" in one_line_error(run_in_process(home.path, "memory", "show", home.theirs.reference))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["memory", "show", "Anna"], "names no memory"),
        (["memory", "why", "deadbeef"], "There is no deadbeef here"),
        (["memory", "search", " "], "nothing in that but blanks"),
        (["memory", "edit", "e1", " "], "Nothing was changed"),
        (["memory", "edit", "e99", "x"], "There is no e99 here"),
        (["memory", "edit", "e1", NURSE], "says so already"),
        (["memory", "edit", "e1", "x", "--session", GUEST], "owner's"),
        (["forget", " "], "nothing in that but blanks"),
        (["forget"], "Say what to forget"),
        (["forget", "memory deadbeef", "--yes"], "There is no memory deadbeef"),
        (["memory", "rebuild", "--session", "x"], "No such option"),
    ],
)
def test_wrong_use_is_told_in_a_line(home: FilledHome, arguments: list[str], why: str) -> None:
    done = run_in_process(home.path, *arguments)
    assert done.returncode != 0 and why in done.err and "Traceback" not in done.err
    assert [one["text"] for one in rows(home, "memory", "list")] == [BOAT, TEA, NURSE]


def test_where_there_is_no_home_none_is_made(tmp_path: Path) -> None:
    rebuilt = run_in_process(tmp_path / "none", "memory", "rebuild")
    assert (rebuilt.returncode, rebuilt.err) == (0, "") and "There is nothing in" in rebuilt.out
    assert "There is nothing in" in one_line_error(run_in_process(tmp_path / "none", "forget", "something long"))
    assert not (tmp_path / "none").exists()


def test_where_memory_db_is_damaged_the_journal_tells(home: FilledHome) -> None:
    (home.path / "memory.db").write_bytes(b"no database at all" * 100)
    done = run_in_process(home.path, "memory", "list", "--json")
    assert [one["text"] for one in json.loads(done.out)] == [BOAT, TEA, NURSE]
    assert "from the journal" in done.err


# ------------------------------------------------------------------------------------------------------------- changing


def test_what_is_changed_goes_one_way_with_and_without_a_daemon(home: FilledHome) -> None:
    done = run_in_process(home.path, "memory", "edit", "e3", "The boat", "is called Tern.", "--json")
    assert json.loads(done.out)["id"] == "entry 5" and json.loads(done.out)["former"] == "entry 3"
    with run_daemon(home.path):
        assert (
            "[entry 5] is out of date"
            in run_in_process(home.path, "memory", "edit", "entry 5", "It is called Kite.").out
        )
        assert [one["text"] for one in rows(home, "memory", "list")] == ["It is called Kite.", TEA, NURSE]
        assert "Forgotten:" in run_in_process(home.path, "forget", TEA, "--yes").out
        assert [one["text"] for one in rows(home, "memory", "list")] == ["It is called Kite.", NURSE]
    former = rows(home, "memory", "list", "--former")
    assert {one["id"]: one["superseded_by"] for one in former if one["until"]} == {
        "entry 3": "entry 5",
        "entry 5": "entry 6",
    }


def test_an_export_is_read_in_elsewhere_once(home: FilledHome, tmp_path: Path) -> None:
    for name, arguments in (("whole", []), ("lines", ["--jsonl"])):
        (tmp_path / name).write_text(run_in_process(home.path, "memory", "export", *arguments).out)
        assert json.loads(run_in_process(home.path, "memory", "import", str(tmp_path / name), "--json").out)["new"] == 0
    ErasureHome(tmp_path / "other").open().close()
    other = FilledHome(tmp_path / "other", home.nurse, home.theirs)
    assert "Added 3 journal entries" in run_in_process(other.path, "memory", "import", str(tmp_path / "lines")).out
    assert [one["text"] for one in rows(other, "memory", "list")] == [BOAT, TEA, NURSE]


@pytest.mark.parametrize("name", ["./notes.txt", "import"])
def test_a_daemon_reads_the_file_of_the_folder_that_the_command_was_typed_in(
    home: FilledHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with run_daemon(home.path):
        monkeypatch.chdir(tmp_path)
        Path(name).write_text('["I sing in a choir."]')
        assert "Added 1 journal entry" in run_in_process(home.path, "memory", "import", name).out


@pytest.mark.parametrize(
    ("content", "why"),
    [(b'["a", 5]', "Item 2 has no words"), (b"caf\xe9", "not UTF-8 text .line 1"), (b"{", "not JSON")],
)
def test_a_broken_file_changes_nothing(home: FilledHome, tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "broken").write_bytes(content)
    done = run_in_process(home.path, "memory", "import", str(tmp_path / "broken"))
    assert done.returncode == 2 and re.search(why, one_line_error(done))
    assert len(rows(home, "memory", "list")) == 3


# ----------------------------------------------------------------------------------------------------------- forgetting


def test_forgetting_without_a_terminal_and_without_yes_changes_nothing(home: FilledHome) -> None:
    done = run_in_process(home.path, "forget", "boat is called Albatross")
    assert done.returncode == 2 and "journal: 1" in done.out
    assert "`--yes`" in done.err and done.err.endswith("Nothing was changed.\n")
    told = run_in_process(home.path, "memory", "forget", "boat is called Albatross", "--json")
    assert json.loads(told.out)["forgotten"] is False and json.loads(told.out)["places"]["journal"] == 1
    assert len(rows(home, "memory", "list")) == 3


def test_a_trial_shows_what_would_be_forgotten_and_asks_nothing(home: FilledHome) -> None:
    done = run_in_process(home.path, "forget", "boat is called Albatross", "--dry-run")
    assert done.returncode == 0 and "journal: 1" in done.out and not done.err
    assert "No such option '--dryrun'" in run_in_process(home.path, "forget", "Albatross", "--dryrun", "--yes").err
    assert len(rows(home, "memory", "list")) == 3


def test_what_is_named_is_forgotten_with_yes(home: FilledHome) -> None:
    done = run_in_process(home.path, "forget", "entry 3", "--yes", "--json")
    assert done.returncode == 0, done.err
    told = json.loads(done.out)
    assert told["forgotten"] is True and told["places"]["journal"] == 1 and "Albatross" not in told["report"]
    assert [one["text"] for one in rows(home, "memory", "list")] == [TEA, NURSE]


def test_what_is_kept_nowhere_is_told_of(home: FilledHome) -> None:
    done = run_in_process(home.path, "forget", "a text that nobody said", "--json")
    assert done.returncode == 0 and json.loads(done.out)["forgotten"] is False
    assert "Nothing of that is kept anywhere" in json.loads(done.out)["report"]


def test_six_digits_are_no_code_here(home: FilledHome) -> None:
    for what, why in (("abcdef", "There is no memory abcdef"), ("123456", "There is no message 123456")):
        assert why in one_line_error(run_in_process(home.path, "forget", what, "--yes"))


@pytest.mark.parametrize(("answer", "gone"), [(b"y\n", True), (b"\n", False)])
def test_a_person_at_a_terminal_is_asked(home: FilledHome, answer: bytes, gone: bool) -> None:
    person, terminal = pty.openpty()
    try:
        with ForkedCommand(
            ["forget", "e3"],
            stdin=terminal,
            stdout=PIPE,
            stderr=PIPE,
            env=command_environment(home.path),
        ) as process:
            os.write(person, answer)
            out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        os.close(person)
        os.close(terminal)
    assert "Forget it? [y/N]" in err.decode() and "/forget" not in err.decode()
    assert (process.returncode, b"Forgotten:" in out) == ((0, True) if gone else (1, False))
    assert (BOAT in [one["text"] for one in rows(home, "memory", "list")]) is not gone


def test_help_has_examples(home: FilledHome) -> None:
    for words in (["memory"], ["memory", "why"], ["memory", "import"], ["forget"]):
        assert "Example:" in run_in_process(home.path, *words, "--help").out
