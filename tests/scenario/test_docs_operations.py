"""Every command of docs/operations.md does what the page says, or is one that another test holds to what it does; every
line that its table of trouble quotes is one that the program says."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from keyring.backends.fail import Keyring as NoKeyring

from tests.support.command_line import ROOT, run_daemon, run_in_process
from tests.support.docs_pages import read_page, run_shell_line, shell_lines
from tests.support.keyring import use_keyring
from tests.unit.test_docs_command_lines import SERVICE_LINES as OF_THE_SERVICE

PAGE = read_page("operations.md")
# Programs of others: what they are given is checked against the wheel (`test_install.py`).
INSTALLERS = ("pipx ", "uv ")
SAID = "Remember that the spare key is with Ines."


def is_run(line: str) -> bool:
    """Whether a line is run here. What a service manager would be asked stands on the page of the service."""
    if line in ("assistant service install", "assistant service restart"):
        assert line in OF_THE_SERVICE
        return False
    return not line.startswith(INSTALLERS)


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    lines = [line for line in shell_lines(PAGE) if is_run(line)]
    assert len(lines) >= 28
    printed: dict[str, str] = {}
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        for line in lines:
            backups = json.loads(run_shell_line("assistant backup list --json", home)) if "NAME" in line else []
            printed[line] = run_shell_line(
                line.replace("NAME", backups[0]["name"] if backups else ""), home, expect=ends(line)
            )
    assert "All is well." in printed["assistant doctor"]
    assert "All is well." in printed["ASSISTANT_HOME=~/moved assistant verify"]
    assert SAID in printed['ASSISTANT_HOME=~/drill assistant log --grep "spare key"']
    assert "before-restore-" in printed["assistant backup restore NAME --force"]
    assert "ExecStart=" in printed["assistant service print --systemd"]
    assert SAID not in printed["assistant doctor --json"] + printed["assistant verify --json"]


def ends(line: str) -> int:
    """Nothing serves the home in this test, which `assistant stop` says with 1."""
    return 1 if line == "assistant stop" else 0


def test_a_process_that_serves_is_stopped_and_holds_the_home_until_then(tmp_path: Path) -> None:
    with run_daemon(tmp_path / "home") as running:
        assert run_in_process(tmp_path / "home", "backup", "create").returncode == 0
        (backup,) = json.loads(run_in_process(tmp_path / "home", "backup", "list", "--json").out)
        refused = run_in_process(tmp_path / "home", "backup", "restore", backup["name"], "--force")
        assert refused.returncode == 1 and f"Process {running.process.pid} uses the data folder" in refused.err
        assert run_in_process(tmp_path / "home", "stop").returncode == 0
        assert running.process.wait(60) == 0


def said_by_the_program() -> str:
    """Every text that stands in the program, with `...` where something is put in."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "assistant").rglob("*.py")]
    texts: list[str] = []
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.JoinedStr):
            texts.append("".join(str(one.value) if isinstance(one, ast.Constant) else "..." for one in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return "\n".join(texts)


def test_every_line_that_the_table_of_trouble_quotes_is_one_that_the_program_says() -> None:
    rows = [line.split("|")[1] for line in PAGE.partition("| What you see |")[2].splitlines() if line.startswith("|")]
    quoted = [words for row in rows for words in re.findall(r"\*([^*]+)\*", row)]
    assert len(quoted) >= 18
    program = said_by_the_program()
    assert [words for words in quoted if words not in program] == []


def torn(home: Path) -> None:
    with (home / "log" / "main" / "conversation.jsonl").open("ab") as log:
        log.write(b'{"id": 9, "torn')


def other_words(home: Path) -> None:
    log = home / "log" / "main" / "conversation.jsonl"
    log.write_bytes(log.read_bytes().replace(b"spare key", b"spare bed"))


def no_database(home: Path) -> None:
    (home / "script.db").write_bytes(b"hello " * 1000)
    for beside in home.glob("script.db-*"):
        beside.unlink()


def newer(home: Path) -> None:
    db = sqlite3.connect(home / "script.db")
    db.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('script', '0999_later', '')")
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("trouble", "words", "command", "mended_by"),
    [
        (torn, "a torn last record", "verify", ["chat", "-m", "hello"]),
        (other_words, "the words of record", "verify", ["verify", "--repair"]),
        (no_database, "is damaged", "verify", ["verify", "--repair"]),
        (newer, "was written by a newer version", "status", ["backup", "restore", "NAME", "--force"]),
    ],
)
def test_what_the_table_says_to_do_mends_it(
    tmp_path: Path, trouble: Callable[[Path], None], words: str, command: str, mended_by: list[str]
) -> None:
    home = tmp_path / "home"
    assert (
        run_in_process(home, "chat", "-m", SAID).returncode == 0
        and run_in_process(home, "backup", "create").returncode == 0
    )
    (backup,) = json.loads(run_in_process(home, "backup", "list", "--json").out)
    trouble(home)
    told = run_in_process(home, command)
    assert told.returncode == 1 and words in told.out + told.err, told
    assert words in PAGE
    done = run_in_process(home, *[backup["name"] if word == "NAME" else word for word in mended_by])
    # Of a database in which nothing can be read, what is newer than the backup may be gone.
    assert done.returncode == (1 if trouble is no_database else 0)
    assert run_in_process(home, "verify").out.endswith("All is well.\n")
    assert SAID in run_in_process(home, "log").out
