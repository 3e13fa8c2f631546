"""`aihistory` over a home in which two conversations were compacted: for people, for programs, beside a daemon."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import click
import pytest

from assistant.cli.aihistory.main import aihistory
from assistant.cli.main import assistant as assistant_command
from assistant.core.messages import Message
from tests.support.command_line import (
    ROOT,
    TIMEOUT_SECONDS,
    command_environment,
    one_line_error,
    run_daemon,
    run_in_process,
)
from tests.support.compacted_home import GUEST, compact_view, days_later, json_output, open_empty_home
from tests.support.imports import import_messages
from tests.support.store_home import NOW

KEYS = [
    "id",
    "session",
    "at",
    "trigger",
    "tier",
    "state",
    "compacted_count",
    "original_token_count",
    "summary_token_count",
    "ratio",
    "from_message_id",
    "to_message_id",
    "cost_usd",
    "depth",
]
COMMANDS = (["show", "1"], ["recover", "1"], ["diff", "1"], ["search", "Bergen"], ["stats"], [])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compactions 1, 3 and 4 of `main` (the last in another month), 2 of a guest's conversation."""
    path = tmp_path_factory.mktemp("compacted") / "home"
    stores = open_empty_home(path)
    stores.say(
        "I travel to Bergen with Anna Berg on 2027-03-04, ticket TK-4471-Q", "Noted: with Anna Berg on 2027-03-04."
    )
    stores.say("Please water the plants before we leave", "I will remind you.")
    stores.say("我的护照在厨房的抽屉里", "记住了。")
    stores.chat(2)
    facts = {"decisions": ["travel in March"], "restored": ["TK-4471-Q"], "kept": [1], "pressure": [0.7, 0.25]}
    compact_view(stores, 4, "A trip to Bergen on 2027-03-04. Ticket TK-4471-Q.", key_facts=facts)
    for number in range(4):
        stores.say(f"guest question {number}", "an answer", session=GUEST)
    compact_view(
        stores, 2, "A guest asked.", session=GUEST, trigger="emergency", tier="floor", at=days_later(1), cost=0.0
    )
    stores.chat(3)
    compact_view(
        stores,
        4,
        "予約番号は山田太郎の手帳にあります。",
        at=days_later(2),
        cost=None,
        key_facts={"pressure": [0.6, 0.3]},
    )
    stores.say("the tram stops at Byparken", "it does")
    compact_view(
        stores, 2, "Questions 0, 1 and 2.", at=days_later(14), tier="extractive", key_facts={"pressure": [0.8, 0.3]}
    )
    stores.close()
    return path


# ------------------------------------------------------------------------------------------------------------- listing


def test_the_list_is_one_array_newest_first_with_stable_keys(home: Path) -> None:
    found = json_output(home)
    assert [row["id"] for row in found] == [4, 3, 2, 1]
    assert all(list(row) == KEYS for row in found)
    oldest = found[-1]
    assert (oldest["session"], oldest["trigger"], oldest["tier"], oldest["state"]) == ("main", "sleep", "full", "live")
    assert oldest["ratio"] == round(oldest["summary_token_count"] / oldest["original_token_count"], 4)
    assert (oldest["compacted_count"], oldest["from_message_id"], oldest["to_message_id"]) == (6, 1, 6)
    assert (oldest["cost_usd"], found[1]["cost_usd"], oldest["depth"]) == (0.01, None, 1)
    assert datetime.fromisoformat(oldest["at"]) == NOW


def test_the_list_for_people_has_a_line_for_each(home: Path) -> None:
    shown = run_in_process(home, command=aihistory).out.splitlines()
    assert [line.split(" ")[1] for line in shown] == ["#4", "#3", "#2", "#1"]
    assert GUEST in shown[2] and "emergency" in shown[2] and "->" in shown[2] and "shortened" in shown[2]
    assert shown[1].endswith("cost not known") and shown[0].endswith("without a model, sleep, in use, $0.0100")


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--session", "main"], [4, 3, 1]),
        (["--session", GUEST], [2]),
        (["--since", "2026-11-21T12:00"], [4, 3]),
        (["--since", "2026-11-21T10:00:00+00:00", "--session", "main"], [4, 3]),
        (["--since", "2030-01-01"], []),
    ],
)
def test_the_list_is_narrowed_by_session_and_date(home: Path, options: list[str], ids: list[int]) -> None:
    assert [row["id"] for row in json_output(home, *options)] == ids


def test_a_day_begins_at_midnight_of_the_home(home: Path) -> None:
    at_ten = ["--since", "2026-11-20T10:30", "--json"]
    east = run_in_process(home, *at_ten, command=aihistory, ASSISTANT_HOME__TIMEZONE="Asia/Tokyo")
    assert [row["id"] for row in json.loads(east.out)] == [4, 3, 2, 1]
    assert [row["id"] for row in json_output(home, *at_ten[:2])] == [4, 3, 2]


def test_options_of_a_command_are_typed_after_its_name(home: Path) -> None:
    assert json_output(home, "list") == json_output(home)
    before = run_in_process(home, "--json", "stats", command=aihistory)
    assert before.returncode == 2 and "stats" in before.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_three_options(home: Path, command: list[str]) -> None:
    done = run_in_process(home, *command, "--since", "2026-11-01", "--session", "main", "--json", command=aihistory)
    assert (done.returncode, done.err) == (0, "")
    assert isinstance(json.loads(done.out), dict if command[:1] == ["show"] else list)


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "99"], "no compaction 99"),
        (["recover", "99"], "`aihistory` lists"),
        (["diff", "2", "--session", "main"], "no compaction 2 of 'main'"),
        (["show", "1", "--since", "2026-12-01"], "since 2026-12-01"),
        (["--since", "yesterday"], "2026-11-20T18:30"),
        (["--session", "nowhere"], "Conversations: main"),
        (["search", "  "], "empty"),
    ],
)
def test_wrong_use_is_one_line_that_says_what_to_do(home: Path, arguments: list[str], words: str) -> None:
    done = run_in_process(home, *arguments, command=aihistory)
    assert done.returncode == 2
    assert words in one_line_error(done)


# ---------------------------------------------------------------------------------------------------- one in every way


def test_show_tells_everything_of_one(home: Path) -> None:
    shown = run_in_process(home, "show", "1", command=aihistory).out
    assert "A trip to Bergen on 2027-03-04." in shown
    assert "Decisions:\n- travel in March" in shown
    assert "Messages that stay as they were said:\n- #1" in shown
    assert "Put back by the check, word for word:\n- TK-4471-Q" in shown
    assert "log/main/conversation.jsonl bytes 0 to" in shown
    whole = json_output(home, "show", "1")
    assert list(whole)[: len(KEYS)] == KEYS
    assert whole["summary"].startswith("A trip") and whole["key_facts"]["restored"] == ["TK-4471-Q"]
    path, start, end = whole["key_facts"]["byte_ranges"][0]
    assert b"TK-4471-Q" in (home / path).read_bytes()[start:end]


def test_recover_gives_the_originals_and_nothing_else(home: Path) -> None:
    found = json_output(home, "recover", "1")
    assert [row["id"] for row in found] == [1, 2, 3, 4, 5, 6]
    assert found[0]["content"] == "I travel to Bergen with Anna Berg on 2027-03-04, ticket TK-4471-Q"
    assert [row["content"] for row in json_output(home, "recover", "2")][-1] == "an answer"
    lines = run_in_process(home, "recover", "1", command=aihistory).out.splitlines()
    assert lines[4] == "2026-11-20 10:00:00 #5 user: 我的护照在厨房的抽屉里"


def test_recover_reads_page_after_page(tmp_path: Path) -> None:
    stores = open_empty_home(tmp_path / "home")
    long = 2_300
    import_messages(
        stores.conversation, "main", "owner", [Message("user", f"line {n}", ts=NOW) for n in range(long)], NOW
    )
    stores.chat(1)
    compact_view(stores, 2, "Many lines.")
    stores.close()
    found = json_output(tmp_path / "home", "recover", "1")
    assert [row["content"] for row in found] == [f"line {n}" for n in range(long)]


def test_diff_lists_what_the_summary_left_out(home: Path) -> None:
    rows = json_output(home, "diff", "1")
    found = {(row["kind"], row["text"]): row for row in rows}
    assert len(found) == len(rows)
    assert ("names", "Anna Berg") in found
    assert not [text for _, text in found if text in ("TK-4471-Q", "2027-03-04", "Bergen")]
    assert found["names", "Anna Berg"]["message_id"] == 1 and found["names", "Anna Berg"]["kept"] is True
    (task,) = [row for (kind, _), row in found.items() if kind == "tasks"]
    assert "water the plants" in task["text"] and task["kept"] is False
    shown = run_in_process(home, "diff", "1", command=aihistory).out
    assert "- Anna Berg (#1, kept word for word)" in shown
    nothing = run_in_process(home, "diff", "4", command=aihistory)
    assert nothing.out == "The summary names everything that the original messages name.\n"


# -------------------------------------------------------------------------------------------------------------- search


def test_search_finds_summaries_and_originals(home: Path) -> None:
    found = json_output(home, "search", "TICKET tk-4471-q")
    assert [(row["kind"], row["id"], row["message_id"]) for row in found] == [("message", 1, 1), ("summary", 1, None)]
    assert next((row["kind"], row["id"]) for row in json_output(home, "search", "asked guest")) == ("summary", 2)


def test_search_leaves_out_what_shares_a_common_word_only(tmp_path: Path) -> None:
    stores = open_empty_home(tmp_path / "home")
    stores.say("the kayak is in the boathouse near the lake", "good")
    for number in range(20):
        stores.say(f"{number} walks around the lake", "fine")
    stores.chat(1)
    compact_view(stores, 2, "Outdoors.")
    stores.close()
    found = json_output(tmp_path / "home", "search", "kayak near that boathouse by the lake")
    assert found and 1 in [row["message_id"] for row in found]
    assert len(found) < 5


def test_search_leaves_out_what_is_still_in_view(home: Path) -> None:
    assert json_output(home, "search", "Byparken") == []
    assert run_in_process(home, "log", "--grep", "Byparken").out


@pytest.mark.parametrize(
    ("text", "kind", "compaction"),
    [("照在厨", "message", 1), ("护照", "message", 1), ("予約番号", "summary", 3), ("山田太郎", "summary", 3)],
)
def test_search_finds_any_part_of_a_text_without_spaces(home: Path, text: str, kind: str, compaction: int) -> None:
    (row,) = json_output(home, "search", text)
    assert (row["kind"], row["id"]) == (kind, compaction)
    assert text in row["text"]


def test_search_does_not_take_scattered_characters_for_the_text(home: Path) -> None:
    assert json_output(home, "search", "护照厨房") == []


def test_search_finds_a_text_without_spaces_among_very_many_that_have_its_parts(tmp_path: Path) -> None:
    """More of them than the history's search looks at: the log is read."""
    stores = open_empty_home(tmp_path / "home")
    parts = [Message("user", f"丙丁 {n} 乙丙 {n} 甲乙", ts=NOW) for n in range(300)]
    import_messages(stores.conversation, "main", "owner", [Message("user", "甲乙丙丁", ts=NOW), *parts], NOW)
    stores.chat(1)
    compact_view(stores, 2, "Signs.")
    stores.close()
    (row,) = json_output(tmp_path / "home", "search", "甲乙丙丁")
    assert (row["message_id"], row["text"]) == (1, "甲乙丙丁")


def test_search_is_narrowed_like_the_list(home: Path) -> None:
    assert {row["session"] for row in json_output(home, "search", "question")} == {"main", GUEST}
    assert {row["session"] for row in json_output(home, "search", "question", "--session", "main")} == {"main"}
    assert {row["id"] for row in json_output(home, "search", "question", "--since", "2026-11-21T12:00")} == {3, 4}
    for limit in (1, 2, 3):
        assert len(json_output(home, "search", "question", "--limit", str(limit))) == limit
    found = json_output(home, "search", "question", "--session", "main", "--limit", "2")
    assert [row["at"] for row in found] == sorted((row["at"] for row in found), reverse=True)


# --------------------------------------------------------------------------------------------------------------- stats


def test_stats_sum_up_by_month(home: Path) -> None:
    december, november = json_output(home, "stats")
    assert (december["month"], november["month"]) == ("2026-12", "2026-11")
    rows = json_output(home)
    assert november["compactions"] == 3
    assert november["compacted_count"] == sum(row["compacted_count"] for row in rows[1:])
    assert november["tokens_saved"] == sum(r["original_token_count"] - r["summary_token_count"] for r in rows[1:])
    assert november["ratio"] == pytest.approx(sum(row["ratio"] for row in rows[1:]) / 3, abs=1e-3)
    assert (november["cost_usd"], november["unpriced"]) == (0.01, 1)
    assert november["tiers"] == {"full": 0.6667, "floor": 0.3333}
    assert december["tiers"] == {"extractive": 1.0}


def test_stats_draw_the_rise_and_fall_of_the_most_compacted_conversation(home: Path) -> None:
    shown = run_in_process(home, "stats", command=aihistory).out
    assert "Context of main, in % of the room, at its last 3 compactions" in shown
    assert any("⠀" <= char <= "⣿" for char in shown)
    assert "peer" not in run_in_process(home, "stats", "--session", GUEST, command=aihistory).out


def test_stats_fit_80_columns(home: Path) -> None:
    shown = run_in_process(home, "stats", command=aihistory, COLUMNS="80").out.splitlines()
    assert len(shown) > 10 and [line for line in shown if len(line) > 80] == []


def test_only_what_draws_loads_what_draws(home: Path) -> None:
    code = (
        "import sys; from assistant.cli.lazy import run_guarded; from assistant.cli.aihistory.main import aihistory;"
        "run_guarded(aihistory, sys.argv[1:]); print('plotille' in sys.modules)"
    )
    for arguments, loaded in ([], "False"), (["stats"], "True"):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=command_environment(home),
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            cwd=ROOT,
            check=True,
            text=True,
        )
        assert done.stdout.splitlines()[-1] == loaded


# -------------------------------------------------------------------------------------------------- beside whoever runs


def files(home: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of every file but those in which SQLite keeps track of its readers."""
    found = [path for path in home.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal"))]
    return {str(path.relative_to(home)): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


def test_nothing_is_written(home: Path) -> None:
    before = files(home)
    for command in COMMANDS:
        assert run_in_process(home, *command, command=aihistory).returncode == 0
    assert files(home) == before


def aihistory_process(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from assistant.cli.aihistory.main import main; main()", *arguments],
        text=True,
        env=command_environment(home),
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        stdin=subprocess.DEVNULL,
    )


def test_everything_works_beside_a_running_daemon(home: Path) -> None:
    without = {tuple(command): json_output(home, *command) for command in COMMANDS}
    with run_daemon(home):
        assert {command: json_output(home, *command) for command in without} == without
        done = aihistory_process(home, *COMMANDS[0], "--json")
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout) == without[tuple(COMMANDS[0])]


def test_a_terminal_is_never_sent_what_it_would_act_on(home: Path, tmp_path: Path) -> None:
    stores = open_empty_home(tmp_path / "home")
    stores.chat(2)
    compact_view(stores, 2, "red \x1b[31malert\x07", at=NOW + timedelta(days=1))
    stores.close()
    for command in ([], ["search", "alert"]):
        assert "\x1b" not in run_in_process(tmp_path / "home", *command, command=aihistory).out


def test_the_commands_are_registered() -> None:
    assert {"compact", "requests", "pins"} <= set(assistant_command.list_commands(click.Context(assistant_command)))
