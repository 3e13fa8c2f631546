"""`assistant doctor` on homes that are well, broken, or never were."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils
from sqlite_utils import Migrations

from assistant.cli.main import assistant as assistant_command
from assistant.store.schema.migrations import character_migrations, script_migrations
from tests.support.command_line import run_in_process


def found(home: Path, *options: str, **settings: str) -> dict[str, list[dict[str, Any]]]:
    """The findings by their subjects."""
    done = run_in_process(home, "doctor", "--json", *options, command=assistant_command, **settings)
    report = json.loads(done.out)
    assert report["ok"] == (done.returncode == 0)
    by_subject: dict[str, list[dict[str, Any]]] = {}
    for one in report["findings"]:
        by_subject.setdefault(one["subject"], []).append(one)
        assert one["verdict"] in ("ok", "note", "problem")
    return by_subject


def verdicts(home: Path, *options: str, **settings: str) -> dict[str, list[str]]:
    return {name: [one["verdict"] for one in many] for name, many in found(home, *options, **settings).items()}


def spoken_in(home: Path) -> Path:
    assert run_in_process(home, "chat", "-m", "remember that my key is under the pot").returncode == 0
    return home


def test_a_home_that_is_well_is_told_in_a_line_a_thing(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    done = run_in_process(home, "doctor")
    assert done.returncode == 0, done.out
    lines = done.out.splitlines()
    assert lines[-1] == "All is well." and all(line.split()[0] in ("ok", "note") for line in lines[:-2])
    subjects = verdicts(home)
    assert subjects["script.db"] == subjects["character.db"] == subjects["log"] == subjects["permissions"] == ["ok"]


def test_a_home_that_never_was_is_no_problem_and_none_is_made(tmp_path: Path) -> None:
    assert verdicts(tmp_path / "home")["data folder"] == ["note"]
    assert not (tmp_path / "home").exists()


def test_settings_that_are_nonsense_are_findings_and_everything_else_is_looked_at(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    (home / "config.toml").write_text("[context]\ntarget = 5\n[no]\nsuch = 1\n")
    (home / "config.toml").chmod(0o600)
    subjects = verdicts(home)
    assert set(subjects["settings"]) == {"problem"} and len(subjects["settings"]) >= 2
    assert subjects["log"] == subjects["script.db"] == ["ok"]
    assert "provider" not in subjects


def test_a_home_that_is_broken_is_told_and_kills_nobody(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    (home / "script.db").write_bytes(b"nothing that SQLite knows" * 1000)
    log = next((home / "log").rglob("conversation.jsonl"))
    log.unlink()
    subjects = verdicts(home)
    assert subjects["script.db"] == ["problem"] and subjects["data folder"] == ["ok", "problem"]
    assert subjects["character.db"] == ["ok"]


def test_words_that_were_changed_in_the_log_are_found(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    log = next((home / "log").rglob("conversation.jsonl"))
    log.write_bytes(log.read_bytes().replace(b"under the pot", b"under the mat"))
    (finding,) = found(home)["log"]
    assert finding["verdict"] == "problem" and "were changed" in finding["text"]


def test_fix_closes_what_is_open_and_says_so(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    (home / "character.db").chmod(0o644)
    (home / "run" / "control.sock").touch()
    assert run_in_process(home, "doctor").returncode == 1
    done = run_in_process(home, "doctor", "--fix")
    assert done.returncode == 0, done.out
    assert re.search(r"Closed \d+ files? to others\.", done.out) and "Removed it." in done.out
    assert run_in_process(home, "doctor").returncode == 0


def test_fix_leaves_nothing_of_secrets_that_were_open(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    secrets = home / "secrets.toml"
    secrets.write_text("[file]\nOPENAI_API_KEY = 'sk-123456789'\n")
    secrets.chmod(0o644)
    assert verdicts(home)["settings"] == verdicts(home)["permissions"] == ["problem"]
    done = run_in_process(home, "doctor", "--fix")
    assert (done.returncode, done.out.splitlines()[-1]) == (0, "All is well."), done.out
    assert secrets.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "migrations"), [("script.db", script_migrations), ("character.db", character_migrations)]
)
def test_a_home_of_an_earlier_version_needs_a_start_and_no_backup(
    tmp_path: Path, name: str, migrations: Migrations
) -> None:
    home = spoken_in(tmp_path / "home")
    with contextlib.closing(sqlite3.connect(home / name)) as db, db:
        last = list(migrations.applied(sqlite_utils.Database(home / name)))[-1].name
        db.execute("DELETE FROM _sqlite_migrations WHERE name = ?", (last,))
    done = run_in_process(home, "doctor")
    (finding,) = [one for one in found(home)["data folder"] if one["verdict"] != "ok"]
    assert (done.returncode, finding["verdict"]) == (0, "note")
    assert f"{name} was written by an earlier version. Nothing was changed" in finding["text"]
    assert last not in finding["text"]
    assert "`assistant run`" in finding["text"] and "keeps a copy" in finding["text"]
    assert "backup restore" not in done.out


def test_a_web_port_that_another_program_has_is_a_problem_while_nobody_serves(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        (finding,) = found(home, ASSISTANT_WEB__PORT=port)["web"]
        assert finding["verdict"] == "problem" and f"port {port}" in finding["text"]
    assert verdicts(home, ASSISTANT_WEB__PORT=port)["web"] == ["ok"]
    assert "web" not in verdicts(home)


def test_a_bridge_that_cannot_be_reached_is_told_with_its_name(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    told = {"ASSISTANT_TELEGRAM__ENABLED": "true", "ASSISTANT_TELEGRAM__BASE_URL": "http://127.0.0.1:9"}
    assert verdicts(home, **told)["bridge telegram"] == ["problem"]
    (finding,) = found(home, **told, ASSISTANT_TELEGRAM__TOKEN="123:abc")["bridge telegram"]
    assert finding["verdict"] == "problem" and "123:abc" not in finding["text"]


def test_what_turns_the_status_red_is_a_problem_to_the_doctor_too(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    with contextlib.closing(sqlite3.connect(home / "script.db")) as db, db:
        db.execute("UPDATE outbox SET state = 'ambiguous'")
    (problem,) = json.loads(run_in_process(home, "status", "--json").out)["problems"]
    assert [one["text"] for one in found(home)["status"]] == [problem]
    assert run_in_process(home, "doctor").returncode == 1


def test_a_provider_without_its_key_is_a_problem_before_anything_is_asked(tmp_path: Path) -> None:
    home, chosen = tmp_path / "home", {"ASSISTANT_MODEL__PROVIDER": "anthropic"}
    done = run_in_process(home, "status", "--json", **chosen)
    line = (
        "The model cannot be asked: anthropic has no key. `assistant config secret set ANTHROPIC_API_KEY` stores one."
    )
    assert (done.returncode, json.loads(done.out)["problems"]) == (1, [line])
    assert [one["text"] for one in found(home, **chosen)["provider"]] == [line]
    assert run_in_process(home, "status", **chosen, ANTHROPIC_API_KEY="sk-1").returncode == 0


def test_a_problem_that_both_find_is_told_once(tmp_path: Path) -> None:
    home = spoken_in(tmp_path / "home")
    (home / "secrets.toml").write_text("[file]\nOPENAI_API_KEY = 'sk-123456789'\n")
    (home / "secrets.toml").chmod(0o644)
    (warning,) = json.loads(run_in_process(home, "status", "--json").out)["problems"]
    told = [one["text"] for many in found(home).values() for one in many]
    assert told.count(warning) == 1 and "status" not in found(home)
