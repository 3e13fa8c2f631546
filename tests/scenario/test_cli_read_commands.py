"""The commands that look at a home, with no daemon running: one conversation, seen from every side."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from assistant.cli.aihistory.main import aihistory
from tests.support.command_line import (
    ASSISTANT_COMMAND,
    TIMEOUT_SECONDS,
    FinishedCommand,
    command_environment,
    one_line_error,
    run_assistant,
    run_in_process,
)
from tests.support.forked_command import ForkedCommand


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which a little was said."""
    home = tmp_path_factory.mktemp("looking") / "home"
    lines = (
        b"remember that the Passport is in the drawer\nwhere is the passport?\nremember that 100% is \xc3\xa9nough\n"
    )
    assert run_assistant(home, "chat", said=lines).returncode == 0
    return home


def rows(done: FinishedCommand) -> list[dict[str, object]]:
    assert done.returncode == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def test_the_log_has_every_message_in_order_with_its_keys(home: Path) -> None:
    found = rows(run_in_process(home, "log", "--json"))
    assert [row["id"] for row in found] == sorted(row["id"] for row in found)
    assert found[0]["content"] == "remember that the Passport is in the drawer"
    assert {row["role"] for row in found} == {"user", "assistant", "tool"}
    assert set(found[0]) == {
        "id",
        "at",
        "session",
        "generation",
        "kind",
        "role",
        "name",
        "content",
        "tool_calls",
        "tool_call_id",
        "bridge",
        "sender",
        "model",
        "turn",
        "refs",
        "bytes",
    }


def test_the_newest_are_shown_when_there_are_more(home: Path) -> None:
    everything = rows(run_in_process(home, "log", "--json", "--limit", "1000"))
    assert rows(run_in_process(home, "log", "--json", "--limit", "2")) == everything[-2:]


def test_grep_finds_what_contains_the_text_in_any_case_and_takes_it_literally(home: Path) -> None:
    found = rows(run_in_process(home, "log", "--json", "--grep", "PASSPORT"))
    assert found and all("passport" in str(row["content"]).lower() for row in found)
    assert len(rows(run_in_process(home, "log", "--json", "--grep", "100% is É"))) == 1
    assert rows(run_in_process(home, "log", "--json", "--grep", "10_%")) == []


def test_the_log_for_people_names_time_id_and_speaker(home: Path) -> None:
    first = run_in_process(home, "log").out.splitlines()[0]
    assert first.endswith(" user: remember that the Passport is in the drawer")


def test_the_log_for_people_shows_what_a_tool_did_in_one_line_and_no_call_without_words(home: Path) -> None:
    told = [line for line in run_in_process(home, "log").out.splitlines() if line.startswith("20")]
    assert not [line for line in told if line.endswith("assistant: ") or "→" in line]
    (searched,) = [line for line in told if " tool search_history: " in line]
    assert len(searched) < 160
    whole = run_in_process(home, "log", "--tools").out
    assert '→ search_history {"query"' in whole and len(whole) > len("\n".join(told))
    assert not [line for line in whole.splitlines() if line and not line.strip()]


def test_a_session_that_does_not_exist_is_wrong_use(home: Path) -> None:
    done = run_in_process(home, "log", "--session", "nowhere")
    assert done.returncode == 2
    assert "main" in one_line_error(done)


def test_sessions_are_listed_with_stable_keys(home: Path) -> None:
    (main,) = json.loads(run_in_process(home, "sessions", "--json").out)
    assert list(main) == [
        "session",
        "generation",
        "scope",
        "started_at",
        "last_at",
        "messages",
        "view_messages",
        "view_tokens",
        "checkpoints",
        "kind",
        "first_at",
        "ended_at",
        "ended",
        "pressure",
        "resumed",
        "archive",
        "reset_waits",
    ]
    assert main["session"] == "main"
    assert "main" in run_in_process(home, "sessions").out


def test_status_is_green_without_a_daemon_and_says_that_none_runs(home: Path) -> None:
    done = run_in_process(home, "status", "--json")
    report = json.loads(done.out)
    assert (done.returncode, report["ok"], report["running"]) == (0, True, False)
    shown = run_in_process(home, "status").out
    assert "Green" in shown and "not running" in shown


def test_status_is_red_where_nobody_runs_and_a_message_waits(tmp_path: Path) -> None:
    assert run_assistant(tmp_path / "home", "chat", "-m", "hi").returncode == 0
    with sqlite3.connect(tmp_path / "home" / "script.db") as db:
        db.execute("UPDATE inbox SET state = 'accepted'")
    done = run_in_process(tmp_path / "home", "status")
    assert done.returncode == 1
    assert "in 1 conversation a message waits for an answer. Start `assistant run`." in done.out


def test_status_is_red_and_exits_with_1_when_a_delivery_is_uncertain(home: Path, tmp_path: Path) -> None:
    assert run_assistant(tmp_path / "home", "chat", "-m", "hi").returncode == 0
    with sqlite3.connect(tmp_path / "home" / "script.db") as db:
        db.execute("UPDATE outbox SET state = 'ambiguous'")
    done = run_in_process(tmp_path / "home", "status")
    assert done.returncode == 1
    assert "1 delivery may" in done.out and "Green" not in done.out


def test_verify_is_fine_with_a_whole_home_and_tells_what_is_broken(home: Path, tmp_path: Path) -> None:
    done = run_in_process(home, "verify", "--json")
    report = json.loads(done.out)
    assert (done.returncode, report["ok"], report["problems"]) == (0, True, [])
    assert run_assistant(tmp_path / "home", "chat", "-m", "the colour is green").returncode == 0
    log = tmp_path / "home" / "log" / "main" / "conversation.jsonl"
    log.write_bytes(log.read_bytes().replace(b"green", b"black"))
    broken = run_in_process(tmp_path / "home", "verify")
    assert broken.returncode == 1
    assert "conversation.jsonl" in broken.out or "main" in broken.out


def test_usage_and_aihistory_have_stable_shapes_when_there_is_nothing_yet(home: Path) -> None:
    usage = json.loads(run_in_process(home, "usage", "--by", "model", "--json").out)
    assert (usage["by"], usage["rows"], usage["today"]["usd"], usage["stopped"]) == ("model", [], 0.0, [])
    assert [cap["setting"] for cap in usage["caps"]] == ["daily_usd", "monthly_usd"]
    drawn = run_in_process(home, "usage").out
    assert drawn.startswith("Today        $0.00 of $5.00 ") and "No model was called" in drawn
    assert "\x1b" not in drawn and max(map(len, drawn.splitlines())) <= 80
    assert json.loads(run_in_process(home, "--json", command=aihistory).out) == []
    assert "Nothing was compacted yet" in run_in_process(home, command=aihistory).out
    done = run_in_process(home, "show", "3", command=aihistory)
    assert done.returncode == 2
    assert "no compaction 3" in one_line_error(done)


def test_output_that_nobody_reads_to_the_end_is_no_error(home: Path) -> None:
    printing = subprocess.Popen(
        [*ASSISTANT_COMMAND, "log", "--limit", "1000"],
        env=command_environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert printing.stdout is not None
    printing.stdout.close()
    assert printing.communicate(timeout=TIMEOUT_SECONDS)[1] == b""


def test_secrets_are_never_printed(home: Path) -> None:
    secrets = {"ANTHROPIC_API_KEY": "sk-ant-very-secret", "OPENAI_API_KEY": "sk-other-secret"}
    (home / "config.toml").write_text('[model]\napi_key = "sk-third-secret"\nprovider = "offline"\n')
    try:
        for command in (
            ["config", "show"],
            ["config", "show", "--json"],
            ["config", "check"],
            ["status"],
            ["--debug", "status"],
        ):
            done = run_in_process(home, *command, **secrets)
            assert done.returncode == 0, done.err
            assert not any(word in done.out + done.err for word in ("very-secret", "other-secret", "third-secret"))
        shown = run_in_process(home, "config", "show", **secrets).out
    finally:
        (home / "config.toml").unlink()
    assert "ANTHROPIC_API_KEY" in shown and str(home / "config.toml") in shown


def test_the_settings_fit_80_columns_and_name_an_origin_that_is_not_the_default(home: Path) -> None:
    done = run_in_process(home, "config", "show", ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS="16000")
    lines = done.out.splitlines()
    # A path that is longer cannot be broken.
    assert all(len(line) <= 80 for line in lines if " " in line.strip() and str(home) not in line)
    own = next(number for number, line in enumerate(lines) if line.startswith("context.max_context_tokens"))
    assert "16000" in lines[own] and "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS" in lines[own - 1] + lines[own]
    assert "default.toml" not in done.out


def test_config_tells_where_a_value_came_from(home: Path) -> None:
    changed = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "16000"}
    shown = json.loads(run_in_process(home, "config", "show", "--json", **changed).out)
    row = {entry["key"]: entry for entry in shown}["context.max_context_tokens"]
    assert (row["value"], row["origin"]) == ("16000", "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS")
    assert run_in_process(home, "config", "path").out.strip() == str(home / "config.toml")
    wrong = run_in_process(home, "config", "check", ASSISTANT_MODEL__COLOUR="blue")
    assert wrong.returncode == 2
    assert "ASSISTANT_MODEL__COLOUR" in wrong.err


def test_following_prints_what_is_said_meanwhile(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert run_assistant(home, "chat", "-m", "the first thing").returncode == 0
    with ForkedCommand(
        ["log", "--follow", "--grep", "thing"],
        env=command_environment(home),
        stdout=subprocess.PIPE,
    ) as following:
        assert following.stdout is not None
        assert b"the first thing" in following.stdout.readline()
        assert run_assistant(home, "chat", "-m", "the second thing").returncode == 0
        assert b"the second thing" in following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert following.wait(TIMEOUT_SECONDS) == 130


def test_a_database_that_is_gone_beside_its_log_is_told_with_what_brings_it_back(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("script.db*", "run"))
    assert "verify --repair" in one_line_error(run_in_process(copy, "status"))
    assert "verify --repair" in one_line_error(run_in_process(copy, "chat", "-m", "hello"))
    # What was only there is gone, and is named.
    assert run_in_process(copy, "verify", "--repair").returncode == 1
    assert "drawer" in run_assistant(copy, "chat", "-m", "where is the passport?").out
