"""Every command of docs/operations.md does what the page says, or is one that another test holds to what it does; every
line that its table of trouble quotes is one that the program says."""

from __future__ import annotations

import json
from pathlib import Path

from keyring.backends.fail import Keyring as NoKeyring

from tests.kept_keyring import in_use
from tests.scenario.command_line import daemon, look
from tests.scenario.docs_pages import page, run, shell_lines
from tests.unit.test_service_docs import LINES as OF_THE_SERVICE

PAGE = page("operations.md")
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
    with in_use(NoKeyring()):  # type: ignore[no-untyped-call]
        for line in lines:
            backups = json.loads(run("assistant backup list --json", home)) if "NAME" in line else []
            printed[line] = run(line.replace("NAME", backups[0]["name"] if backups else ""), home, expect=ends(line))
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
    with daemon(tmp_path / "home") as running:
        assert look(tmp_path / "home", "backup", "create").returncode == 0
        (backup,) = json.loads(look(tmp_path / "home", "backup", "list", "--json").out)
        refused = look(tmp_path / "home", "backup", "restore", backup["name"], "--force")
        assert refused.returncode == 1 and f"Process {running.process.pid} serves the home" in refused.err
        assert look(tmp_path / "home", "stop").returncode == 0
        assert running.process.wait(60) == 0
